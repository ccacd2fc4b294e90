package adaptive

import (
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// A program that starts in the middle of a load has no baseline, and without one
// nothing can press. So the limit dips to its floor once: what writes take when the
// reads that ran are gone is the first baseline.
const (
	dipDrain   = 8 * time.Second // without one that ends, reads are not waited for
	dipLearn   = 2 * time.Second
	dipPeriods = 4 // the first is the backlog's
)

// dip is the state of that. The zero dip is none.
type dip struct {
	active  bool
	from    int // the limit before
	began   time.Time
	fewest  int       // reads that ran at a time; 0: not known
	ended   time.Time // when fewer ran than ever before
	drained time.Time
	periods int // since it drained

	again  time.Time // not before
	length time.Duration
}

// learning is true when the next period is to be learned as the baseline.
func (d *dip) learning() bool { return d.active && d.periods >= 1 }

// wanted is true when the limit should dip now. A limit that is at its lowest already
// dips too where it may rise: without the baseline that it learns nothing could be judged,
// and it would stay there for as long as reads contend.
func (d *dip) wanted(now time.Time, limit int, b Bounds, contended bool, v pressure.Verdict) bool {
	return !d.active && contended && v.NeedBaseline && v.WritesMove && !v.Freeze && (limit > b.low() || b.low() < b.Ceiling) && !now.Before(d.again)
}

func (d *dip) begin(now time.Time, limit int) {
	d.active, d.from, d.began, d.drained, d.periods = true, limit, now, time.Time{}, 0
	d.fewest, d.ended = 0, now
}

// draining is true while it is worth waiting for the reads that run: one of them has ended
// lately, or they are still half of what the limit was, so that little is held back for it.
// Longer reads are given more time at each try.
func (d *dip) draining(now time.Time, running int, longest time.Duration) bool {
	switch {
	case d.fewest == 0:
		d.fewest = running
	case running < d.fewest:
		d.fewest, d.ended = running, now
	}
	longest = max(dipDrain, longest)
	patience := min(max(dipDrain, 2*d.length), longest)
	return (now.Sub(d.ended) < patience || 2*running >= d.from) && now.Sub(d.began) < longest
}

// over takes in a period of the dip and reports whether it ended.
func (d *dip) over(now time.Time, low, running int, need bool, shortest, longest time.Duration) bool {
	switch {
	case d.drained.IsZero():
		if running <= low {
			d.drained = now
		} else if d.draining(now, running, longest) {
			return false
		}
		if !d.drained.IsZero() {
			return false
		}
	default:
		d.periods++
		if (need || d.periods < dipPeriods) && now.Sub(d.drained) < dipLearn {
			return false
		}
	}
	d.active = false
	if !need {
		d.length, d.again = 0, time.Time{}
		return true
	}
	// It taught too little. It may be tried again, ever more rarely.
	d.length = min(max(2*d.length, shortest), longest)
	d.again = now.Add(d.length)
	return true
}
