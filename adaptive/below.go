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
	born time.Time // windows are told apart by their time since then

	limit int
	low   int       // the lowest
	under int       // the highest that it is compared with: a cut leads there
	since time.Time // when no more ran than the limit lets
	fell  bool      // more ran before that
	seen  int       // windows at that limit
	row   int       // of them, those at the end that pressed

	writes  pressure.WriteStats // of the window that goes on
	began   time.Time           // when that one began
	pressed bool                // own writes pressed at the end of the last one

	// levels is by the limit's length in bits, so that all limits share little memory; the
	// first is the lowest limit's.
	levels [18]belowLevel
}

const (
	belowKeeps  = 64 // windows of each level
	belowAge    = 10 * time.Minute
	belowEnough = 16 // windows that a comparison takes
	belowLikes  = 4  // of them those that came after one such as the last, else all are compared
	belowSlow   = 2  // slow ones among them that make writes slow by themselves
	belowWrites = 8  // of a window: a 90th percentile of fewer says nothing

	// A level that has borne so many windows, or was left so often without a proof, is not
	// left again without one.
	belowBears = 4
	belowTries = 3

	// The evidence is a cumulated sum of normal scores, each less the drift. Windows that are
	// each slower than all below make a proof within two to six; ones that are as those below
	// make one by chance in some 340.
	belowDrift = 0.5
	belowProof = 4
)

// belowLevel is what was seen at limits of one length.
type belowLevel struct {
	windows  [belowKeeps]belowWindow
	n        int
	last     time.Time // when one was last seen, or left
	evidence float64   // that writes are slower here than at lower limits
	left     int       // how often it was left without a proof
}

// belowWindow is what own writes took in a while.
type belowWindow struct {
	at    time.Duration // since below was born
	p90   time.Duration
	limit int
	// after: own writes pressed in the window before. Slow windows come in rows, and a level
	// is tried after a calm one: so it is compared with those that followed a calm one.
	after, pressed bool
}

// note takes in a period of length dt.
func (b *below) note(in input, dt time.Duration, own pressure.Signal) {
	if own.Threshold <= 0 {
		*b = below{} // nothing says what slow is: another server's times would stay
		return
	}
	if b.born.IsZero() {
		b.born = in.now
	}
	if low := in.bounds.low(); in.limit != b.limit || low != b.low {
		b.fell = in.limit < b.limit
		b.limit, b.low, b.since, b.seen, b.row = in.limit, low, in.now.Add(-dt), 0, 0
		b.writes = pressure.WriteStats{}
		b.under = in.limit - 1
		if in.limit > low {
			b.under = max(low, in.limit/2)
		}
		if l := b.level(); in.now.Sub(l.last) > belowAge {
			*l = belowLevel{}
		}
	}
	if in.activity.Running > in.limit {
		b.since, b.fell = in.now, true
	}
	if in.activity.Running > in.limit || !in.contended {
		b.writes, b.row, b.pressed = pressure.WriteStats{}, 0, own.Pressing
		return
	}
	if b.writes.Count == 0 {
		b.began = in.now.Add(-dt)
	}
	b.writes = b.writes.Add(in.activity.Writes)
	if b.writes.Count < belowWrites {
		return
	}
	b.take(in.now, belowWindow{
		at: in.now.Sub(b.born), p90: b.writes.P90(), limit: in.limit, after: b.pressed, pressed: own.Pressing,
	})
	b.writes, b.pressed = pressure.WriteStats{}, own.Pressing
}

// take takes in a window that ends now.
func (b *below) take(now time.Time, w belowWindow) {
	l := b.level()
	l.last = now
	// A write that ends now has seen the reads that ran when it began, and their backlog.
	clean := !b.began.Add(-w.p90 - settle).Before(b.since)
	if b.fell && !clean {
		return
	}
	b.seen++
	if b.row++; !w.pressed {
		b.row = 0
	}
	score, row, ok := b.compare(w)
	switch {
	case !ok:
	case b.row > 2*row+belowBears:
		// So long it was never slow below. That those within a row are like those within the
		// rows below is then no comparison.
		l.evidence = max(l.evidence, belowProof)
	default:
		l.evidence = min(max(0, l.evidence+score-belowDrift), 2*belowProof)
	}
	if !clean {
		return
	}
	l.windows[l.n%belowKeeps] = w
	l.n++
}

func (b *below) level() *belowLevel { return &b.levels[b.length()] }

func (b *below) length() int {
	if b.limit <= b.low {
		return 0
	}
	return min(bits.Len(uint(max(0, b.limit))), len(b.levels)-1)
}

// each calls f with each window of the limits below, oldest first of each level.
func (b *below) each(now time.Duration, f func(belowWindow)) {
	for i := range b.length() + 1 {
		l := &b.levels[i]
		for k := max(0, l.n-belowKeeps); k < l.n; k++ {
			if w := l.windows[k%belowKeeps]; w.limit <= b.under && now-w.at <= belowAge {
				f(w)
			}
		}
	}
}

// compare returns the normal score of a window among those below, and the longest row of
// those that pressed there, where they are enough.
func (b *below) compare(w belowWindow) (score float64, longest int, ok bool) {
	var all, likes, slower, slowerLikes, row int
	b.each(w.at, func(o belowWindow) {
		if row++; !o.pressed {
			row = 0
		}
		longest = max(longest, row)
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
		return 0, 0, false
	}
	if likes >= belowLikes {
		all, slower = likes, slowerLikes
	}
	return math.Sqrt2 * math.Erfinv(1-(2*float64(slower)+1)/float64(all+1)), longest, true
}

// noisy reports whether writes are slow by themselves now and then.
func (b *below) noisy(now time.Time, s pressure.Signal) bool {
	if s.Name != pressure.OwnWrites || s.Threshold <= 0 {
		return false
	}
	all, slow := 0, 0
	b.each(now.Sub(b.born), func(w belowWindow) {
		all++
		if w.p90 > s.Threshold {
			slow++
		}
	})
	return all >= belowEnough && slow >= belowSlow
}

// doubts reports whether writes are slow by themselves now and then, and nothing proves that
// they are slower at this limit.
func (b *below) doubts(now time.Time, s pressure.Signal) bool {
	return b.level().evidence < belowProof && b.noisy(now, s)
}

// excuses reports whether this limit is not to be left for what that signal says.
func (b *below) excuses(now time.Time, s pressure.Signal) bool {
	return (b.seen > belowBears || b.level().left >= belowTries) && b.doubts(now, s)
}

// leaves takes note that this limit is left for what that signal says, and reports whether
// that is without a proof.
func (b *below) leaves(now time.Time, s pressure.Signal) bool {
	if s.Name != pressure.OwnWrites {
		return false
	}
	l := b.level()
	if !b.doubts(now, s) {
		l.left = 0
		return false
	}
	l.left, l.last = l.left+1, now
	return true
}

// undecided reports whether own writes press beside contending reads, and there is evidence
// against the reads at this limit that proves nothing, or too little was seen to tell.
func (b *below) undecided(in input) bool {
	own, ok := in.verdict.Signal(pressure.OwnWrites)
	return ok && own.Pressing && in.contended && (b.level().evidence > 0 || b.seen < belowBears) && b.doubts(in.now, own)
}
