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
// While pressure holds the member back, <held> follows as one part more, and "=" where it
// does not climb either; both are left out where there is no room, as there is but for
// numbers beyond any real limit. Numbers are in base 36, without leading zeros.
const (
	scheme    = "pgyield:"
	maxFleet  = 21
	idLength  = 8
	digits    = "0123456789abcdefghijklmnopqrstuvwxyz"
	numWidth  = 4
	maxName   = 63
	holdsMark = "="
	beats     = 36 * 36 * 36 * 36 // heartbeats count modulo this
	maxNumber = beats - 1
)

// message is what a name says of a member.
type message struct {
	id      string
	beat    uint32
	running int
	hungry  int  // what waits or was refused, as reads that would run now
	wish    int  // demand, running included, smoothed
	claim   int  // what it holds of the limit, or is about to
	held    int  // what pressure lets it run; 0: it holds nothing back
	holds   bool // it does not climb, because more has pressed lately
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
	b := make([]byte, 0, maxName+1+numWidth+len(holdsMark))
	b = append(b, prefix...)
	b = append(b, m.id...)
	b = strconv.AppendUint(append(b, ':'), uint64(m.beat), 36)
	number := func(n int) { b = strconv.AppendUint(append(b, ':'), uint64(min(max(n, 0), maxNumber)), 36) }
	for _, n := range [...]int{m.running, m.hungry, m.wish, m.claim} {
		number(n)
	}
	if m.held <= 0 {
		return string(b)
	}
	whole := len(b)
	if number(m.held); m.holds {
		b = append(b, holdsMark...)
	}
	if len(b) > maxName {
		b = b[:whole]
	}
	return string(b)
}

// decode is strict: exactly what encode writes, and nothing else.
func decode(prefix, name string) (m message, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok || len(name) > maxName || len(rest) < idLength || !inBase36(rest[:idLength]) {
		return m, false
	}
	m.id, rest = rest[:idLength], rest[idLength:]
	var beat int
	for _, to := range [...]*int{&beat, &m.running, &m.hungry, &m.wish, &m.claim} {
		if *to, rest, ok = decodeNumber(rest); !ok {
			return m, false
		}
	}
	m.beat = uint32(beat) //nolint:gosec // at most four digits
	if rest == "" {
		return m, true
	}
	rest, m.holds = strings.CutSuffix(rest, holdsMark)
	m.held, rest, ok = decodeNumber(rest)
	return m, ok && m.held > 0 && rest == ""
}

// decodeNumber takes a colon and a number off the front.
func decodeNumber(text string) (n int, rest string, ok bool) {
	if text, ok = strings.CutPrefix(text, ":"); !ok {
		return 0, text, false
	}
	end := strings.IndexByte(text, ':')
	if end < 0 {
		end = len(text)
	}
	digits, rest := text[:end], text[end:]
	if digits == "" || len(digits) > numWidth || digits[0] == '0' && len(digits) > 1 || !inBase36(digits) {
		return 0, rest, false
	}
	value, _ := strconv.ParseUint(digits, 36, 32) // at most four checked digits
	return int(value), rest, true
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
