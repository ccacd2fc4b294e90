package adaptive

import "testing"

// event is what a limit that follows the bare rule lives through in one period.
type event struct {
	pressing, contended bool
	cut                 bool // the limit was halved at its end
}

// expected is the rule in its own words, by looking back at all that happened: no
// count is kept that could be kept wrongly.
func expected(log []event, limit, periods int, b Bounds) (next int, cut bool) {
	low := min(b.Floor, b.Ceiling)
	limit = max(low, min(limit, b.Ceiling)) // the bounds may have moved
	now := log[len(log)-1]
	switch {
	case now.pressing && now.contended:
		row := 0
		for i := len(log) - 1; i >= 0 && log[i].pressing && log[i].contended && !log[i].cut; i-- {
			row++
		}
		if row < periods {
			return limit, false
		}
		return max(limit/2, low), true
	case now.pressing:
		return limit, false
	case now.contended:
		return min(limit+1, b.Ceiling), false
	default:
		return max(limit, min(limit+1, b.Start, b.Ceiling)), false
	}
}

// FuzzStep lets the rule live through a sequence: two bits of each byte say what a
// period is like; a third moves the bounds to what the next bytes say.
func FuzzStep(f *testing.F) {
	for _, seed := range []string{
		"\x03\x03\x03\x03", "\x03\x02\x03\x00\x03\x03", "\x03\x07\x01\x08\x08\x03\x03\x02\x02\x02\x02",
		"\x02\x02\x02\x06\x01\x05\x30\x02\x02\x00\x00\x03\x03\x03", "\x07\x09\x04\x03\x03\x03\x02",
	} {
		for periods := range uint8(4) {
			f.Add([]byte(seed), periods, uint8(16))
		}
	}
	f.Fuzz(func(t *testing.T, script []byte, n, start uint8) {
		periods, b := 1+int(n%5), Bounds{Floor: 1, Start: max(1, int(start)), Ceiling: max(1, int(start))}
		limit, count := b.Start, 0
		var log []event
		for i := 0; i < len(script); i++ {
			now := event{pressing: script[i]&1 != 0, contended: script[i]&2 != 0}
			if script[i]&4 != 0 && i+3 < len(script) {
				b = Bounds{Floor: 1 + int(script[i+1]%8), Start: 1 + int(script[i+2]), Ceiling: 1 + int(script[i+3]%64)}
				i += 3
			}
			log = append(log, now)
			want, cut := expected(log, limit, periods, b)
			log[len(log)-1].cut = cut
			before := b.clamp(limit)
			limit, count = Step(limit, count, periods, b, Period{Pressing: now.pressing, Contended: now.contended})
			if limit != want {
				t.Fatalf("period %d, %+v in %+v: from %d to %d, want %d", len(log), now, b, before, limit, want)
			}
			if limit < b.low() || limit > b.Ceiling || limit > before+1 || limit < before/2 || count < 0 || count >= periods {
				t.Fatalf("period %d, %+v in %+v: from %d to %d, %d counted of %d", len(log), now, b, before, limit, count, periods)
			}
		}
	})
}
