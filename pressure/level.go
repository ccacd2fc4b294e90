package pressure

import "time"

// level judges one of the server's signals: a time for each write.
type level struct {
	name     string
	factor   float64       // enters at this many times the baseline
	least    time.Duration // but never below this
	absolute time.Duration // replaces both when set

	has       bool // a baseline is known (it may be zero)
	baseQuiet bool
	baseline  float64 // nanoseconds

	over   int // windows in a row over the threshold
	judged bool
	signal Signal
}

// enterWindows is how many windows in a row must be over before a server's signal
// presses: one of twelve good windows is over by chance.
const enterWindows = 2

func (l *level) thresholds() (enter, leave float64) {
	if l.absolute > 0 {
		return float64(l.absolute), 0.8 * float64(l.absolute)
	}
	if !l.has {
		return 0, 0
	}
	enter = max(l.factor*l.baseline, float64(l.least))
	return enter, (enter + l.baseline) / 2
}

// judge takes the value of a window that began at since. It can press only where
// eligible: reads are about, and whatever else the signal asks for.
func (l *level) judge(value float64, since time.Time, eligible bool) {
	enter, leave := l.thresholds()
	was := l.judged && l.signal.Pressing
	if enter > 0 && value > enter {
		l.over++
	} else {
		l.over = 0
	}
	l.signal = Signal{
		Name: l.name, Value: time.Duration(value), Baseline: time.Duration(l.baseline),
		Threshold: time.Duration(enter), Fresh: true, Since: since,
		Pressing: eligible && enter > 0 && (l.over >= enterWindows || (was && value >= leave)),
	}
	l.judged = true
}

// learn takes the window just judged into the baseline where it may be.
func (l *level) learn(kind windowKind) {
	value := float64(l.signal.Value)
	switch {
	case kind == quiet || kind == probing:
		if !l.has || !l.baseQuiet {
			l.baseline, l.has, l.baseQuiet = value, true, true
			return
		}
		l.baseline += 0.1 * (value - l.baseline)
	case kind == pressed || kind == held || l.over > 0:
	case !l.has && kind == loud:
		l.baseline, l.has = value, true
	case l.has && !l.baseQuiet && kind == loud, l.has && value < calmerMargin*l.baseline:
		l.baseline += 0.1 * (value - l.baseline)
	}
}

// absent forgets the value because the server no longer gives it.
func (l *level) absent() { l.judged, l.over, l.signal = false, 0, Signal{} }
