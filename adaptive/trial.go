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
	signal string
	began  time.Time // zero while none goes on
	before float64   // the excess below
	with   mean      // the excess with one more

	next   time.Time // when to ask; zero while the floor does not press
	length time.Duration
}

// worseBy is how much the excess must grow for one more read to be held to matter.
const worseBy = 1 / betterBy

func (t *trial) active() bool { return !t.began.IsZero() }

// pressed takes in a period that pressed at the lowest limit, and begins a trial when
// that has gone on for long enough.
func (t *trial) pressed(now time.Time, lead pressure.Signal, here mean, shortest time.Duration) (begun bool) {
	if t.next.IsZero() {
		t.length = max(t.length, shortest)
		t.next = now.Add(t.length)
	}
	if now.Before(t.next) || here.n < recentWindows {
		return false
	}
	t.signal, t.began, t.before, t.with = lead.Name, now, here.value(), mean{}
	return true
}

// end ends a trial. The next is later each time, until a climb has borne an acquittal out.
func (t *trial) end(longest time.Duration) { *t = trial{length: min(2*t.length, longest)} }

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
