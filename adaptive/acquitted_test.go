package adaptive

import (
	"strings"
	"testing"

	"github.com/pgyield/pgyield/pressure"
)

// TestAcquittedSignalsAreNoEvidence: where one that reads were acquitted of presses beside
// one that they were not, only the other makes a period count, and is the reason.
func TestAcquittedSignalsAreNoEvidence(t *testing.T) {
	const own, sync = pressure.OwnWrites, pressure.WALSync
	for _, c := range []struct{ acquitted, accused string }{{sync, own}, {own, sync}} {
		p := newScript(t)
		p.limit = 8
		p.s.blame.of(c.acquitted).grant(p.now, 9e6, DefaultHold, DefaultHoldMax)
		values := ms{c.acquitted: 9, c.accused: 3}
		if out := p.period(values); out.to != 8 || out.reason != reasonAwaits {
			t.Fatalf("%s, one period: to %d: %s", c.accused, out.to, out.reason)
		}
		p.change = func(v *pressure.Verdict) {
			for i := range v.Signals {
				v.Signals[i].Fresh = v.Signals[i].Name == c.acquitted
			}
		}
		for range 3 {
			if out := p.period(values); out.to != 8 || out.reason != reasonAwaits {
				t.Errorf("%s, seen once: to %d: %s", c.accused, out.to, out.reason)
			}
		}
		p.change = nil
		if out := p.period(values); out.to != 4 || !strings.HasPrefix(out.reason, c.accused+" 3ms over ") {
			t.Errorf("%s, seen twice: to %d: %s", c.accused, out.to, out.reason)
		}
	}
}
