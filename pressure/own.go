package pressure

import (
	"math"
	"time"
)

// What a judgement by own writes takes.
const (
	minWrites    = 8  // below, a p90 says nothing: periods are accumulated
	strongWrites = 30 // from here on, one period can be evidence enough
	// A busier stretch of so many writes that is so far below the baseline replaces it. Of
	// stretches of a hundred some are that low by chance, and each would lower it again.
	calmerWrites = 1000
	calmerMargin = 0.85
	// baselineHalfLife is the calm time after which a baseline has forgotten half.
	baselineHalfLife = 15 * time.Second
	// baselineKeeps is the number of writes that decay leaves, so that a few writes
	// a minute keep a baseline at all.
	baselineKeeps = 24.0
	accumulateFor = time.Minute
	// teachableRate is how many writes a second teach a baseline in the two seconds for
	// which reads may be held at their floor for it.
	teachableRate = minWrites / 2.0
)

// own judges by the program's own write latency.
type own struct {
	tolerance float64
	absolute  time.Duration

	acc   WriteStats // since the last judgement
	since time.Time

	pool []pooled // the last few windows under unchanged conditions, oldest first
	cond conditions

	base      weights
	baseQuiet bool // base was learned while reads were quiet, or at the floor
	youth     youth
	calmer    WriteStats

	lastWrite time.Time
	rate      float64 // writes per second, smoothed

	signal Signal
	judged bool
	strong bool
}

// observe takes in a period of length dt and reports whether enough writes have
// come together for a judgement.
func (o *own) observe(now time.Time, a Activity, dt time.Duration) bool {
	if o.since.IsZero() || (o.acc.Count > 0 && now.Sub(o.since) > accumulateFor) {
		// Never now itself: what this period saw must lie inside the window.
		o.acc, o.since = WriteStats{}, now.Add(-max(dt, 1))
	}
	if a.Writes.Count > 0 || a.WritesRunning > 0 {
		o.lastWrite = now
	}
	if dt > 0 {
		k := 1 - math.Exp(-dt.Seconds()/2)
		o.rate += k * (float64(a.Writes.Count)/dt.Seconds() - o.rate)
	}
	o.acc = o.acc.Add(a.Writes)
	return o.acc.Count >= minWrites
}

// moving is true while own writes come, at whatever rate they do.
func (o *own) moving(now time.Time) bool {
	if o.lastWrite.IsZero() {
		return false
	}
	wait := 10 * time.Second
	if o.rate > 0 {
		wait = min(wait, time.Duration(8/o.rate*float64(time.Second)))
	}
	return now.Sub(o.lastWrite) < max(wait, 500*time.Millisecond)
}

// stop forgets the judgement (not the baseline) because writes have stopped.
func (o *own) stop() {
	o.acc, o.since, o.pool = WriteStats{}, time.Time{}, nil
	o.judged, o.strong, o.signal = false, false, Signal{}
}

func (o *own) usable() bool { return o.base.total >= minWrites }

// thresholds returns where the signal enters, leaves, and is strong evidence; zero
// when there is nothing to compare with.
func (o *own) thresholds() (enter, leave, strong time.Duration) {
	if o.absolute > 0 {
		t := float64(o.absolute)
		return o.absolute, time.Duration(0.8 * t), time.Duration(1.4 * t)
	}
	if !o.usable() {
		return 0, 0, 0
	}
	base := float64(o.base.p90())
	factor := scatter(o.tolerance)
	return time.Duration(base * factor), time.Duration(base * (1 + (factor-1)/2)), time.Duration(base * (1 + 2*(factor-1)))
}

// scatter turns a tolerance into the factor at which a short window presses. The
// more reads run, the more do windows scatter about their mean (beside two reads by
// a quarter either way), so a high tolerance needs room above it to be reached at
// all.
func scatter(tolerance float64) float64 {
	if tolerance <= DefaultTolerance {
		return tolerance
	}
	return DefaultTolerance * math.Pow(tolerance/DefaultTolerance, 1.35)
}

// conditions are what must not change for windows to be judged together: a pool must
// not carry calm over into a load, nor a load over its relief.
type conditions struct {
	limit     int
	contended bool
}

// pooled is one window of those judged together.
type pooled struct {
	writes WriteStats
	since  time.Time
}

// poolWindows is how many windows are judged together: one alone scatters so much
// that a level which is good on average would look bad every few seconds.
const poolWindows = 4

// gather adds the window just ended to the pool and returns the whole.
func (o *own) gather(a Activity) (all WriteStats, since time.Time) {
	if cond := (conditions{a.Limit, a.Contended}); cond != o.cond {
		o.pool, o.cond = nil, cond
	}
	o.pool = append(o.pool, pooled{o.acc, o.since})
	if extra := len(o.pool) - poolWindows; extra > 0 {
		o.pool = o.pool[extra:]
	}
	for _, p := range o.pool {
		all = all.Add(p.writes)
	}
	return all, o.pool[0].since
}

// judge ends the accumulated window. With no reads about nothing can press.
func (o *own) judge(a Activity) {
	enter, leave, strong := o.thresholds()
	all, since := o.gather(a)
	p90 := all.P90()
	was := o.judged && o.signal.Pressing
	s := Signal{Name: OwnWrites, Value: p90, Threshold: enter, Fresh: true, Since: since}
	if o.usable() {
		s.Baseline = o.base.p90()
	}
	// A median over the strong threshold is as good as many writes whose p90 is:
	// it is what makes a few writes a second enough.
	able := enter > 0 && a.reading()
	o.strong = able && ((o.acc.Count >= strongWrites && o.acc.P90() > strong) || o.acc.Median() > strong)
	if o.strong {
		s.Value, s.Since = o.acc.P90(), o.since
	}
	s.Pressing = able && (o.strong || p90 > enter || (was && p90 >= leave))
	o.signal, o.judged = s, true
}

// learn takes the window just judged into the baseline where it may be.
func (o *own) learn(now time.Time, w windowKind) {
	defer func() { o.acc, o.since = WriteStats{}, now }()
	switch {
	case w == probing || w == quiet:
		if !o.baseQuiet {
			o.base, o.baseQuiet, o.youth = weights{}, true, youth{}
		}
		o.addToBase(now)
	case w == pressed || w == held:
		o.calmer = WriteStats{}
		if w == held {
			return
		}
	case !o.baseQuiet && w == loud:
		o.addToBase(now)
	case o.usable():
		o.learnCalmer()
	}
}

func (o *own) addToBase(now time.Time) {
	keep := math.Exp2(-now.Sub(o.since).Seconds() / baselineHalfLife.Seconds())
	if o.base.total*keep < baselineKeeps {
		keep = min(1, baselineKeeps/max(o.base.total, 1))
	}
	if swift, ok := o.youth.outgrown(now, o.since, o.acc, o.base.p90()); ok {
		o.base.add(swift, 0)
	} else {
		o.base.add(o.acc, keep)
	}
	o.calmer = WriteStats{}
}

// learnCalmer replaces the baseline by a stretch under load that was better still.
// Only whole stretches are compared: to add the better windows alone would make
// the baseline a record, not a norm.
func (o *own) learnCalmer() {
	o.calmer = o.calmer.Add(o.acc)
	if o.calmer.Count < calmerWrites {
		return
	}
	if float64(o.calmer.P90()) < calmerMargin*float64(o.base.p90()) {
		o.base = weights{}
		o.base.add(o.calmer, 1)
	}
	o.calmer = WriteStats{}
}

// windowKind says what a window may teach.
type windowKind uint8

const (
	loud      windowKind = iota // reads ran, the limit held none back, nothing pressed
	quiet                       // at most one read ran, none waited
	contended                   // the limit held reads back, nothing pressed
	probing                     // at the floor, to learn
	pressed                     // something pressed
	held                        // before a probe has drained: teaches nothing
)
