package adaptive

import (
	"testing"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

func TestTrialParts(t *testing.T) {
	full := mean{sum: 16e6, n: 8} // 2 ms
	var c trial
	if c.active() || c.pressed(at(0), slowBy(2, 0), full, 4*time.Second) || c.pressed(at(3.9), slowBy(2, 0), full, 4*time.Second) {
		t.Error("it begins at once")
	}
	if c.pressed(at(4), slowBy(2, 0), mean{sum: 14e6, n: 7}, 4*time.Second) {
		t.Error("it begins with seven windows")
	}
	if !c.pressed(at(4), slowBy(2, 0), full, 4*time.Second) || !c.active() || c.before != 2e6 || c.signal != pressure.OwnWrites {
		t.Errorf("after 4 s it is %+v", c)
	}
	for i, want := range []int{8, 16, 30, 30} {
		if c.end(30 * time.Second); c.length != time.Duration(want)*time.Second || c.active() {
			t.Errorf("the end %d leads to %+v", i, c)
		}
	}
	if c.pressed(at(10), slowBy(2, 0), full, 4*time.Second) || c.pressed(at(39), slowBy(2, 0), full, 4*time.Second) ||
		!c.pressed(at(40), slowBy(2, 0), full, 4*time.Second) {
		t.Error("the wait after others is not 30 s")
	}

	type step struct {
		now, since, ms float64
		over, matter   bool
	}
	for name, steps := range map[string][]step{
		"no worse":         {{0.5, 0, 2, false, false}, {1, 0.5, 2, false, false}, {1.5, 1, 2, true, false}},
		"hardly worse":     {{1, 0.5, 2.8, false, false}, {1.5, 1, 2.8, true, false}},
		"worse":            {{1, 0.5, 2.9, false, false}, {1.5, 1, 2.9, true, true}},
		"worse by far":     {{0.25, 0, 6, false, false}, {0.3, 0, 6.1, true, true}},
		"early ones":       {{0.4, 0, 5, false, false}, {0.49, 0, 5, false, false}, {1, 0.5, 2, false, false}, {1.5, 1, 2, true, false}},
		"one is too few":   {{2, 1.5, 2, false, false}, {2.25, 1.75, 2, true, false}},
		"before it began":  {{1, -0.1, 9, false, false}, {1.5, -0.1, 9, false, false}, {2, -0.1, 9, false, false}},
		"not long enough":  {{0.5, 0, 2, false, false}, {0.75, 0, 2, false, false}, {1.49, 0, 2, false, false}, {1.5, 0, 2, true, false}},
		"the mean decides": {{0.5, 0, 1, false, false}, {1, 0, 1, false, false}, {1.5, 0, 5, true, false}},
	} {
		c := trial{signal: pressure.OwnWrites, began: at(0), before: 2e6}
		for i, s := range steps {
			over, matter := c.watch(at(s.now), slowBy(s.ms, s.since))
			if over != s.over || matter != s.matter {
				t.Errorf("%s, step %d: over %t, matter %t", name, i, over, matter)
			}
		}
	}
	c = trial{began: at(0), before: 1e5}
	if over, _ := c.watch(at(0.25), slowBy(2.9, 0)); over {
		t.Error("less than three times the baseline ends a trial early")
	}
	old := slowBy(9, 1)
	old.Fresh = false
	if over, _ := c.watch(at(1), old); over || c.with.n > 0 {
		t.Error("what is not fresh counts")
	}
}

func TestClimbParts(t *testing.T) {
	bad := func(since float64) pressure.Verdict { return said(slowBy(4, since)) }
	var none climb
	if none.active() || none.refuted(bad(9), true) || none.refuted(bad(9), true) {
		t.Error("the zero climb is refuted")
	}
	c := climb{to: 16, stepped: at(1)}
	if c.refuted(bad(0.9), true) || c.seen != 0 {
		t.Error("what was seen before the step counts")
	}
	if c.refuted(bad(1), true) || c.seen != 1 || c.refuted(bad(2), false) || c.worse != 0 || c.seen != 2 {
		t.Errorf("one that was worse, and one that was not: %+v", c)
	}
	if c.refuted(bad(2), true) || !c.refuted(bad(2), true) || c.active() || !c.revoked {
		t.Errorf("two in a row: %+v", c)
	}
	if c.refuted(bad(3), true) {
		t.Error("it is refuted again")
	}
	old := bad(2)
	old.Signals[0].Fresh = false
	if d := (climb{to: 16}); d.refuted(old, true) || d.seen != 0 {
		t.Error("what is not fresh counts")
	}
	half := bad(2)
	half.Signals[0].Pressing = false
	if d := (climb{to: 16}); d.refuted(half, true) || d.seen != 0 {
		t.Error("a signal that the verdict does not rest on counts")
	}
}

func TestDipIsWanted(t *testing.T) {
	ask := pressure.Verdict{NeedBaseline: true, WritesMove: true}
	for name, c := range map[string]struct {
		d         dip
		limit     int
		b         Bounds
		contended bool
		change    func(*pressure.Verdict)
		want      bool
	}{
		"wanted":                    {limit: 8, b: wide, contended: true, want: true},
		"it goes on already":        {d: dip{active: true}, limit: 8, b: wide, contended: true},
		"no contention":             {limit: 8, b: wide},
		"a baseline is known":       {limit: 8, b: wide, contended: true, change: func(v *pressure.Verdict) { v.NeedBaseline = false }},
		"no writes":                 {limit: 8, b: wide, contended: true, change: func(v *pressure.Verdict) { v.WritesMove = false }},
		"a relation's lock":         {limit: 8, b: wide, contended: true, change: func(v *pressure.Verdict) { v.Freeze = true }},
		"at the floor, may rise":    {limit: 1, b: wide, contended: true, want: true},
		"at the floor for good":     {limit: 2, b: Bounds{2, 2, 2}, contended: true},
		"a ceiling below a floor":   {limit: 2, b: Bounds{4, 2, 2}, contended: true},
		"above a ceiling that fell": {limit: 3, b: Bounds{2, 2, 2}, contended: true, want: true},
		"it is too early":           {d: dip{again: at(1.1)}, limit: 8, b: wide, contended: true},
		"it is time again":          {d: dip{again: at(1)}, limit: 8, b: wide, contended: true, want: true},
	} {
		v := ask
		if c.change != nil {
			c.change(&v)
		}
		if got := c.d.wanted(at(1), c.limit, c.b, c.contended, v); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestDipParts(t *testing.T) {
	const short, long = 8 * time.Second, 64 * time.Second
	over := func(d *dip, now float64, running int, need bool) bool {
		return d.over(at(now), 1, running, need, short, long)
	}
	// It drains, waits out the backlog, and ends when four periods have passed.
	var d dip
	if d.learning() {
		t.Error("the zero dip learns")
	}
	d.length, d.again = short, at(-1) // it has been tried before
	d.begin(at(0), 16)
	if !d.active || d.from != 16 || over(&d, 1, 16, true) || over(&d, 7.9, 2, true) || !d.drained.IsZero() || d.learning() {
		t.Errorf("while reads run: %+v", d)
	}
	if over(&d, 7.95, 1, true) || !d.drained.Equal(at(7.95)) || d.learning() {
		t.Errorf("drained: %+v", d)
	}
	for i := range 3 {
		if over(&d, 8.2+float64(i)/4, 1, false) || !d.learning() {
			t.Errorf("period %d: %+v", i, d)
		}
	}
	if !over(&d, 9, 1, false) || d.active || d.learning() || d.length != 0 || !d.again.IsZero() {
		t.Errorf("learned: %+v", d)
	}
	// Two seconds are the most, whatever was learned; then it may be tried again, later
	// each time, and gives longer reads more time.
	d.begin(at(0), 16)
	over(&d, 1, 1, true)
	for i, now := range []float64{1.3, 1.6, 1.9, 2.2, 2.9} {
		if over(&d, now, 1, true) {
			t.Errorf("period %d: %+v", i, d)
		}
	}
	if !over(&d, 3, 1, true) || d.length != short || !d.again.Equal(at(11)) {
		t.Errorf("taught nothing: %+v", d)
	}
	for i, want := range []int{16, 32, 64, 64} {
		d.begin(at(0), 16)
		patience := min(max(dipDrain, 2*d.length), DefaultHoldMax).Seconds()
		if over(&d, patience-0.1, 2, true) {
			t.Errorf("try %d ends before %v s", i, patience)
		}
		if !over(&d, patience, 2, true) || d.length != time.Duration(want)*time.Second || !d.again.Equal(at(patience).Add(d.length)) {
			t.Errorf("try %d: %+v", i, d)
		}
	}
	if d.begin(at(500), 8); d.periods != 0 || !d.drained.IsZero() {
		t.Errorf("it begins as %+v", d)
	}
}
