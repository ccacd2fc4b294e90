package adaptive

import (
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// trial asks whether reads matter at all while a lowered limit still presses: one
// read more is let run, and when writes are no worse for it, reads are not to blame.
// Without it, a cut that seemed to help by chance, or helped a little, would keep
// reads down for as long as something else slows writes. The zero trial is none.
type trial struct {
	began  time.Time
	before float64 // the excess below
	with   mean    // the excess with one more
}

// worseBy is how much the excess must grow for one more read to be held to matter.
const worseBy = 1 / betterBy

func (t *trial) active() bool { return !t.began.IsZero() }

// due is true when a lowered limit has pressed for long enough to ask.
func (s *series) due(now time.Time, h hold) bool {
	return s.active() && s.relieved.n >= enoughGood && h.level > 0 && !now.Before(h.until)
}

// watch takes in a period of a trial. It is over when enough was seen, or when
// enough was seen to stop early.
func (t *trial) watch(now time.Time, sig pressure.Signal) (over, matter bool) {
	if !sig.Fresh || sig.Since.Before(t.began) {
		return false, false
	}
	e := excess(sig)
	if e > 3*max(t.before, float64(sig.Baseline)) {
		return true, true
	}
	if now.Sub(t.began) < settle {
		return false, false
	}
	t.with.add(e)
	if t.with.n < enoughBad || now.Sub(t.began) < settle+experiment {
		return false, false
	}
	return true, t.with.value() > worseBy*t.before
}
