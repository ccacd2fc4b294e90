package fleet

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
)

// A name is, with the longest parts, exactly as long as Postgres keeps:
//
//	pgyield:<fleet 21>:<id 8>:<beat 4>:<running 4>:<hungry 4>:<wish 4>:<claim 4>
//
// Numbers are in base 36, without leading zeros.
const (
	scheme    = "pgyield:"
	maxFleet  = 21
	idLength  = 8
	digits    = "0123456789abcdefghijklmnopqrstuvwxyz"
	numWidth  = 4
	beats     = 36 * 36 * 36 * 36 // heartbeats count modulo this
	maxNumber = beats - 1
)

// message is what a name says of a member.
type message struct {
	id      string
	beat    uint32
	running int
	hungry  int // what waits or was refused, as reads that would run now
	wish    int // demand, running included, smoothed
	claim   int // what it holds of the limit, or is about to
}

// CheckName returns an error unless name can be a fleet's, which is part of its members'
// sessions' names as it is: Postgres replaces other bytes, and the colon separates.
func CheckName(name string) error {
	if len(name) == 0 || len(name) > maxFleet {
		return fmt.Errorf("pgyield: fleet: Name is %q, %d bytes long: must be of 1 to %d bytes", name, len(name), maxFleet)
	}
	for _, c := range []byte(name) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.-", c) >= 0 {
			continue
		}
		return fmt.Errorf("pgyield: fleet: Name is %q: must consist of letters and digits of ASCII, '_', '.' and '-'", name)
	}
	return nil
}

// prefix is what the names of a fleet's members begin with. The colon at its end keeps
// apart fleets of which one's name begins with the other's.
func prefix(fleet string) string { return scheme + fleet + ":" }

// newID draws the id of a member. Of 1,000 members two share one in about one case of
// six million.
func newID() string {
	var random [idLength]byte
	rand.Read(random[:]) // never fails
	for i, b := range random {
		random[i] = digits[int(b)%len(digits)]
	}
	return string(random[:])
}

func (m message) encode(prefix string) string {
	b := make([]byte, 0, 63)
	b = append(b, prefix...)
	b = append(b, m.id...)
	b = strconv.AppendUint(append(b, ':'), uint64(m.beat), 36)
	for _, n := range [...]int{m.running, m.hungry, m.wish, m.claim} {
		b = strconv.AppendUint(append(b, ':'), uint64(min(max(n, 0), maxNumber)), 36)
	}
	return string(b)
}

// decode is strict: exactly what encode writes, and nothing else.
func decode(prefix, name string) (m message, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok || len(rest) < idLength || !inBase36(rest[:idLength]) {
		return m, false
	}
	m.id, rest = rest[:idLength], rest[idLength:]
	var numbers [5]int
	for i := range numbers {
		if rest, ok = strings.CutPrefix(rest, ":"); !ok {
			return m, false
		}
		end := strings.IndexByte(rest, ':')
		if end < 0 {
			end = len(rest)
		}
		text := rest[:end]
		if text == "" || len(text) > numWidth || text[0] == '0' && len(text) > 1 || !inBase36(text) {
			return m, false
		}
		value, _ := strconv.ParseUint(text, 36, 32) // at most four checked digits
		numbers[i], rest = int(value), rest[end:]
	}
	m.beat, m.running, m.hungry, m.wish, m.claim = uint32(numbers[0]), numbers[1], numbers[2], numbers[3], numbers[4]
	return m, rest == ""
}

func inBase36(text string) bool {
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// newer reports whether beat a was counted after b. The count wraps.
func newer(a, b uint32) bool {
	ahead := (uint64(a) + beats - uint64(b)) % beats
	return ahead != 0 && ahead < beats/2
}
