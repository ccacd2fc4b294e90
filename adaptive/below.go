package adaptive

import (
	"math"
	"math/bits"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// below remembers what own writes took at lower limits. Where they were slow now and then
// down there too, a slow window proves little against the reads above: how much, depends on
// how many of the windows below were as slow. Where none were slow, it has no say. The zero
// below remembers nothing.
type below struct {
	limit   int
	since   time.Time // when no more ran than that limit lets
	seen    int       // windows at that limit
	pressed bool      // own writes pressed in the last period
	// levels is by the limit's length in bits: a cut always leads to a lower one.
	levels [18]belowLevel
}

const (
	belowKeeps  = 40 // windows of each level
	belowAge    = 10 * time.Minute
	belowEnough = 16 // windows that a comparison takes
	belowLikes  = 4  // of them those that came after one such as the last, else all are compared
	belowSlow   = 2  // slow ones among them that make writes slow by themselves
	belowWrites = 8  // of a window: a 90th percentile of fewer says nothing

	// A level that has borne so many windows, or was left so often without a proof, is not
	// left again without one.
	belowBears = 4
	belowTries = 3

	// The evidence is a cumulated sum of normal scores, each less the drift: windows that are
	// as those below hardly ever bring it to a proof, three or four that are slower than all of
	// them do.
	belowDrift = 0.5
	belowProof = 4
)

// belowLevel is what was seen at limits of one length.
type belowLevel struct {
	windows  [belowKeeps]belowWindow
	n        int
	last     time.Time // when the last one was seen
	evidence float64   // that writes are slower here than at lower levels
	left     int       // how often it was left without a proof
}

// belowWindow is what own writes took in a period.
type belowWindow struct {
	p90 time.Duration
	// after: own writes pressed in the period before. Slow windows come in rows, and a level
	// is tried after a calm one: so it is compared with those that followed a calm one.
	after bool
}

// note takes in a period of length dt.
func (b *below) note(in input, dt time.Duration, own pressure.Signal) {
	if in.limit != b.limit {
		b.limit, b.since, b.seen = in.limit, in.now.Add(-dt), 0
	}
	if in.activity.Running > in.limit {
		b.since = in.now
	}
	w := belowWindow{in.activity.Writes.P90(), b.pressed}
	b.pressed = own.Pressing
	if in.activity.Running > in.limit || !in.contended || in.activity.Writes.Count < belowWrites {
		return
	}
	b.seen++
	l := b.level()
	if score, ok := b.score(in.now, w); ok {
		l.evidence = max(0, l.evidence+score-belowDrift)
	}
	// A write that ends now has seen the reads that ran when it began, and their backlog.
	if in.now.Add(-dt - w.p90 - settle).Before(b.since) {
		return
	}
	l.windows[l.n%belowKeeps] = w
	l.n++
	l.last = in.now
}

func (b *below) level() *belowLevel { return &b.levels[b.length()] }

func (b *below) length() int { return min(bits.Len(uint(b.limit)), len(b.levels)-1) }

// each calls f with each window of the lower levels.
func (b *below) each(now time.Time, f func(belowWindow)) {
	for i := range b.length() {
		l := &b.levels[i]
		if now.Sub(l.last) > belowAge {
			continue
		}
		for _, w := range l.windows[:min(l.n, belowKeeps)] {
			f(w)
		}
	}
}

// score is the normal score of a window among those below, where they are enough.
func (b *below) score(now time.Time, w belowWindow) (score float64, ok bool) {
	var all, likes, slower, slowerLikes int
	b.each(now, func(o belowWindow) {
		all++
		if o.p90 >= w.p90 {
			slower++
		}
		if o.after != w.after {
			return
		}
		likes++
		if o.p90 >= w.p90 {
			slowerLikes++
		}
	})
	if all < belowEnough {
		return 0, false
	}
	if likes >= belowLikes {
		all, slower = likes, slowerLikes
	}
	return math.Sqrt2 * math.Erfinv(1-(2*float64(slower)+1)/float64(all+1)), true
}

// doubts reports whether writes are slow by themselves now and then, and nothing proves that
// they are slower at this limit.
func (b *below) doubts(now time.Time, own pressure.Signal) bool {
	if own.Name != pressure.OwnWrites || own.Threshold <= 0 || b.level().evidence >= belowProof {
		return false
	}
	all, slow := 0, 0
	b.each(now, func(w belowWindow) {
		all++
		if w.p90 > own.Threshold {
			slow++
		}
	})
	return all >= belowEnough && slow >= belowSlow
}

// excuses reports whether this limit is not to be left for what that signal says.
func (b *below) excuses(now time.Time, s pressure.Signal) bool {
	return (b.seen > belowBears || b.level().left >= belowTries) && b.doubts(now, s)
}

// leaves takes note that this limit is left for what that signal says, and reports whether
// that is without a proof.
func (b *below) leaves(now time.Time, s pressure.Signal) bool {
	l := b.level()
	if !b.doubts(now, s) {
		l.left = 0
		return false
	}
	l.left++
	return true
}

// undecided reports whether there is evidence against the reads at this limit that proves
// nothing, or too little was seen to tell.
func (b *below) undecided(now time.Time, v pressure.Verdict) bool {
	own, ok := v.Signal(pressure.OwnWrites)
	return ok && (b.level().evidence > 0 || b.seen < belowBears) && b.doubts(now, own)
}
