package pressure

import (
	"testing"
	"time"
)

// newLevel is a level that knows a baseline of 2 ms, enters at 4 ms and leaves below
// 3 ms.
func newLevel() *level {
	return &level{name: WALSync, factor: 2, has: true, baseQuiet: true, baseline: 2e6}
}

func (l *level) at(ms float64) bool {
	l.judge(ms*1e6, time.Unix(1, 0), true)
	return l.signal.Pressing
}

func TestLevelEntersAndLeaves(t *testing.T) {
	l := newLevel()
	for i, step := range []struct {
		ms    float64
		press bool
	}{
		{4, false},
		{4, false},
		{4, false}, // at the threshold is not over it
		{4.1, false},
		{3.9, false},
		{4.1, false}, // one window over is chance
		{4.1, true},
		{3.1, true},
		{3, true}, // between the two thresholds it stays
		{2.9, false},
		{3.9, false},
		{3.9, false}, // below it left, and stays out
		{4.1, false},
		{4.1, true}, // and enters as at first
	} {
		if got := l.at(step.ms); got != step.press {
			t.Errorf("step %d, %v ms: pressing %t", i, step.ms, got)
		}
	}
	s := l.signal
	if s.Name != WALSync || s.Baseline != 2*time.Millisecond || s.Threshold != 4*time.Millisecond || !s.Fresh || !s.Since.Equal(time.Unix(1, 0)) {
		t.Errorf("the signal is %+v", s)
	}
	if l.judge(9e6, time.Time{}, false); l.signal.Pressing {
		t.Error("it presses where nothing is eligible")
	}
	l.at(9)
	l.absent()
	if l.judged || l.signal != (Signal{}) || l.at(9) {
		t.Errorf("after absence the first window presses, or the last value stands: %+v", l.signal)
	}
}

func TestLevelThresholds(t *testing.T) {
	for name, c := range map[string]struct {
		level        level
		enter, leave time.Duration
	}{
		"unknown":           {level{factor: 2}, 0, 0},
		"known zero":        {level{factor: 2, has: true}, 0, 0},
		"the baseline":      {level{factor: 3, has: true, baseline: 2e6}, 6 * time.Millisecond, 4 * time.Millisecond},
		"the least":         {level{factor: 3, has: true, baseline: 1e6, least: 5e6}, 5 * time.Millisecond, 3 * time.Millisecond},
		"absolute":          {level{factor: 3, has: true, baseline: 2e6, least: 5e6, absolute: 1e6}, time.Millisecond, 800 * time.Microsecond},
		"absolute, unknown": {level{absolute: 1}, 1, 0},
	} {
		enter, leave := c.level.thresholds()
		if time.Duration(enter) != c.enter || time.Duration(leave) != c.leave {
			t.Errorf("%s: enters at %v and leaves at %v", name, time.Duration(enter), time.Duration(leave))
		}
	}
	none := level{factor: 2}
	if none.at(1e6); none.over != 0 || none.at(1e6) || none.at(1e6) {
		t.Error("it presses without a threshold")
	}
}

// TestLevelLearns: which window moves which baseline, and how far.
func TestLevelLearns(t *testing.T) {
	const tenth = 2.2e6 // a tenth of the way from 2 ms to 4 ms
	for name, c := range map[string]struct {
		has, quiet bool
		kind       windowKind
		ms         float64
		over       int
		want       float64
		wantQuiet  bool
	}{
		"quiet, first":             {kind: quiet, ms: 4, want: 4e6, wantQuiet: true},
		"probing, first":           {kind: probing, ms: 4, want: 4e6, wantQuiet: true},
		"quiet replaces loud":      {has: true, kind: quiet, ms: 4, want: 4e6, wantQuiet: true},
		"quiet follows":            {has: true, quiet: true, kind: quiet, ms: 4, want: tenth, wantQuiet: true},
		"quiet, though over":       {has: true, quiet: true, kind: quiet, ms: 4, over: 1, want: tenth, wantQuiet: true},
		"loud, first":              {kind: loud, ms: 4, want: 4e6},
		"loud follows":             {has: true, kind: loud, ms: 4, want: tenth},
		"loud teaches quiet none":  {has: true, quiet: true, kind: loud, ms: 4, want: 2e6, wantQuiet: true},
		"calmer":                   {has: true, quiet: true, kind: loud, ms: 1, want: 1.9e6, wantQuiet: true},
		"calmer, contended":        {has: true, quiet: true, kind: contended, ms: 1, want: 1.9e6, wantQuiet: true},
		"hardly calmer":            {has: true, quiet: true, kind: contended, ms: 1.8, want: 2e6, wantQuiet: true},
		"contended, first":         {kind: contended, ms: 4},
		"contended, loud baseline": {has: true, kind: contended, ms: 4, want: 2e6},
		"pressed, first":           {kind: pressed, ms: 4},
		"pressed":                  {has: true, kind: pressed, ms: 1, want: 2e6},
		"held, first":              {kind: held, ms: 4},
		"held":                     {has: true, quiet: true, kind: held, ms: 1, want: 2e6, wantQuiet: true},
		"over":                     {has: true, kind: loud, ms: 4, over: 1, want: 2e6},
		"calmer, first":            {kind: contended, ms: 0},
	} {
		l := &level{has: c.has, baseQuiet: c.quiet, over: c.over}
		if c.has {
			l.baseline = 2e6
		}
		l.signal.Value = time.Duration(c.ms * 1e6)
		l.learn(c.kind)
		if d := l.baseline - c.want; d > 1 || d < -1 || l.baseQuiet != c.wantQuiet || l.has != (c.has || c.want > 0) {
			t.Errorf("%s: baseline %v (quiet %t, has %t), want %v", name, time.Duration(l.baseline), l.baseQuiet, l.has, time.Duration(c.want))
		}
	}
}
