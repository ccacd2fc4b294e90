package pressure

import (
	"math"
	"testing"
	"time"
)

// alike are n writes of one latency.
func alike(n int, d time.Duration) WriteStats {
	var w Writes
	for range n {
		w.Observe(d)
	}
	return w.Take()
}

// ownAt judges by own writes against a baseline of one millisecond.
func ownAt(tolerance float64) *own {
	o := &own{tolerance: tolerance, baseQuiet: true}
	o.base.add(alike(1000, time.Millisecond), 1)
	return o
}

// window judges one window of n writes, as if nothing had been pooled before.
func (o *own) window(n int, d time.Duration, a Activity) Signal {
	o.acc, o.since, o.pool = alike(n, d), second(0), nil
	o.judge(a)
	return o.signal
}

// times is so many times the middle of the bucket that a millisecond lies in.
func times(factor float64) time.Duration {
	return time.Duration(factor * bucketValue(bucketOf(int64(time.Millisecond))))
}

func TestOwnThresholds(t *testing.T) {
	near := func(got time.Duration, want float64) bool { return math.Abs(float64(got)/want-1) < 1e-6 }
	base := bucketValue(bucketOf(int64(time.Millisecond)))
	enter, leave, strong := ownAt(1.6).thresholds()
	if !near(enter, 1.6*base) || !near(leave, 1.3*base) || !near(strong, 2.2*base) {
		t.Errorf("at 1.6: %v, %v, %v", enter, leave, strong)
	}
	// Above the default there is room for the scatter of windows beside several reads.
	if enter, leave, _ = ownAt(3).thresholds(); enter < times(3.2) || leave <= times(1.5) || leave >= enter {
		t.Errorf("at 3: %v, %v", enter, leave)
	}
	o := ownAt(1.6)
	o.absolute = 10 * time.Millisecond
	if enter, leave, strong = o.thresholds(); enter != 10*time.Millisecond || leave != 8*time.Millisecond || strong != 14*time.Millisecond {
		t.Errorf("absolute: %v, %v, %v", enter, leave, strong)
	}
	o = &own{tolerance: 1.6}
	o.base.add(alike(minWrites-1, time.Millisecond), 1)
	if enter, leave, strong = o.thresholds(); enter+leave+strong != 0 {
		t.Errorf("with too few writes: %v, %v, %v", enter, leave, strong)
	}
	o.base.add(alike(1, time.Millisecond), 1)
	if enter, _, _ = o.thresholds(); enter == 0 {
		t.Error("with enough writes there is no threshold")
	}
}

// TestOwnHysteresis: it stays above the threshold to leave, and enters at the upper one
// alone.
func TestOwnHysteresis(t *testing.T) {
	o := ownAt(1.6)
	for i, step := range []struct {
		factor float64
		press  bool
	}{{1.5, false}, {1.7, true}, {1.5, true}, {1.35, true}, {1.2, false}, {1.5, false}, {1.7, true}} {
		if s := o.window(20, times(step.factor), manyReads); s.Pressing != step.press {
			t.Errorf("step %d, %v times: pressing %t, %+v", i, step.factor, s.Pressing, s)
		}
	}
	// A threshold met exactly is not passed; the one to leave met exactly still holds.
	p90 := times(2)
	o.absolute = time.Duration(bucketValue(bucketOf(int64(p90))))
	o.judged = false
	if o.window(20, p90, manyReads).Pressing {
		t.Error("it presses at its threshold")
	}
	o.window(20, times(9), manyReads)
	o.absolute = time.Duration(bucketValue(bucketOf(int64(p90))) / 0.8)
	_, leave, _ := o.thresholds()
	if s := o.window(20, p90, manyReads); s.Pressing != (s.Value >= leave) {
		t.Errorf("at %v, with %v to leave: %t", s.Value, leave, s.Pressing)
	}
	if o.window(20, times(9), Activity{Limit: 16}).Pressing {
		t.Error("it presses without reads")
	}
	o.stop()
	if o.judged || o.strong || o.signal != (Signal{}) || o.pool != nil || o.acc.Count != 0 || !o.since.IsZero() {
		t.Errorf("after writes stopped it still holds %+v", o)
	}
}

func TestOwnStrongEvidence(t *testing.T) {
	// p90 far over, median calm: so many writes are needed.
	mixed := func(n int) WriteStats { return alike(n-n/4, time.Millisecond).Add(alike(n/4, 9*time.Millisecond)) }
	for _, c := range []struct {
		writes WriteStats
		strong bool
	}{
		{mixed(strongWrites), true},
		{mixed(strongWrites - 2), false},
		{alike(minWrites, times(2.4)), true},
		{alike(minWrites, times(2.0)), false},
		{alike(strongWrites, times(2.0)), false},
	} {
		o := ownAt(1.6)
		o.pool, o.cond = []pooled{{alike(500, time.Millisecond), second(-5)}}, conditions{manyReads.Limit, manyReads.Contended}
		o.acc, o.since = c.writes, second(0)
		o.judge(manyReads)
		if o.strong != c.strong {
			t.Errorf("%d writes, median %v: strong %t", c.writes.Count, c.writes.Median(), o.strong)
		}
		// Strong evidence is of this window alone, other evidence of those pooled.
		since, value := second(-5), alike(500, time.Millisecond).Add(c.writes).P90()
		if c.strong {
			since, value = second(0), c.writes.P90()
		}
		if !o.signal.Since.Equal(since) || o.signal.Value != value {
			t.Errorf("%d writes: of %v since %v, want %v since %v", c.writes.Count, o.signal.Value, o.signal.Since, value, since)
		}
	}
}

func TestOwnPoolsWindows(t *testing.T) {
	o := ownAt(1.6)
	pool := func(a Activity, from float64) (int, time.Time) {
		o.acc, o.since = alike(10, time.Millisecond), second(from)
		all, since := o.gather(a)
		return all.Count, since
	}
	for i := range poolWindows + 3 {
		n, since := pool(manyReads, float64(i))
		if want := min(i+1, poolWindows); n != 10*want || !since.Equal(second(float64(i-want+1))) {
			t.Errorf("window %d: %d writes since %v", i, n, since)
		}
	}
	other := manyReads
	other.Limit--
	if n, since := pool(other, 20); n != 10 || !since.Equal(second(20)) {
		t.Errorf("at another limit %d writes since %v are judged together", n, since)
	}
	other.Contended = false
	if n, _ := pool(other, 21); n != 10 {
		t.Errorf("once reads contend no more, %d writes are judged together", n)
	}
}

func TestOwnObserves(t *testing.T) {
	var o own
	step := func(at float64, writes, running int) bool {
		return o.observe(second(at), Activity{Writes: alike(writes, time.Millisecond), WritesRunning: running}, time.Second)
	}
	if step(1, minWrites-1, 0) || !o.since.Equal(second(0)) {
		t.Errorf("too few are judged, or the window began at %v", o.since)
	}
	if !step(2, 1, 0) || o.acc.Count != minWrites || !o.since.Equal(second(0)) {
		t.Errorf("%d writes since %v", o.acc.Count, o.since)
	}
	if step(60, 0, 0); o.acc.Count != minWrites {
		t.Error("writes of the last minute are forgotten")
	}
	if step(61, 1, 0); o.acc.Count != 1 || !o.since.Equal(second(60)) {
		t.Errorf("after a minute %d writes since %v are kept", o.acc.Count, o.since)
	}
	// A first period has no length, and yet its writes lie inside the window.
	o = own{}
	if o.observe(second(0), Activity{}, 0); !o.since.Before(second(0)) {
		t.Errorf("the window began at %v", o.since)
	}
}

func TestOwnMoving(t *testing.T) {
	for name, c := range map[string]struct {
		rate float64
		ago  float64 // seconds since the last write
		want bool
	}{
		"many":            {100, 0.4, true},
		"many, stopped":   {100, 0.6, false},
		"few":             {2, 3.9, true},
		"few, stopped":    {2, 4.1, false},
		"rare":            {0.1, 9.9, true},
		"rare, stopped":   {0.1, 10.1, false},
		"none, a while":   {0, 9.9, true},
		"none, long gone": {0, 10, false},
	} {
		o := own{rate: c.rate, lastWrite: second(0)}
		if got := o.moving(second(c.ago)); got != c.want {
			t.Errorf("%s: moving %t", name, got)
		}
	}
	if (&own{}).moving(second(0)) {
		t.Error("writes move before the first")
	}
	// The rate follows within a few seconds, from below and from above.
	var o own
	rate := func(writes int) float64 {
		for i := range 8 {
			o.observe(second(float64(i)), Activity{Writes: alike(writes, time.Millisecond)}, time.Second)
		}
		return o.rate
	}
	if r := rate(100); r < 95 || r > 100 {
		t.Errorf("100 writes/s for 8 s: %v", r)
	}
	if r := rate(0); r < 0 || r > 3 {
		t.Errorf("none for 8 s: %v", r)
	}
	o = own{}
	o.observe(second(1), Activity{Writes: alike(100, time.Millisecond)}, time.Second)
	if o.rate < 35 || o.rate > 45 { // 1 - exp(-1/2) of it after a second
		t.Errorf("after one second the rate is %v", o.rate)
	}
}

// TestOwnLearns: which window becomes which baseline.
func TestOwnLearns(t *testing.T) {
	base := func(o *own) time.Duration { return o.base.p90() }
	learn := func(o *own, kind windowKind, n int, d time.Duration) {
		o.acc, o.since = alike(n, d), second(0)
		o.learn(second(0.25), kind)
		if o.acc.Count != 0 || !o.since.Equal(second(0.25)) {
			t.Errorf("the window was not ended: %d writes since %v", o.acc.Count, o.since)
		}
	}
	slow := 4 * time.Millisecond
	for name, c := range map[string]struct {
		known, quiet bool
		kind         windowKind
		changes      bool
		wantQuiet    bool
	}{
		"quiet, first":            {kind: quiet, changes: true, wantQuiet: true},
		"probing, first":          {kind: probing, changes: true, wantQuiet: true},
		"quiet replaces loud":     {known: true, kind: quiet, changes: true, wantQuiet: true},
		"loud, first":             {kind: loud, changes: true},
		"loud follows loud":       {known: true, kind: loud, changes: true},
		"loud teaches quiet none": {known: true, quiet: true, kind: loud, wantQuiet: true},
		"contended, first":        {kind: contended},
		"pressed, first":          {kind: pressed},
		"pressed":                 {known: true, kind: pressed},
		"held, first":             {kind: held},
		"held":                    {known: true, quiet: true, kind: held, wantQuiet: true},
	} {
		o := &own{tolerance: 1.6, baseQuiet: c.quiet}
		if c.known {
			o.base.add(alike(50, time.Millisecond), 1)
		}
		before := base(o)
		learn(o, c.kind, 50, slow)
		if changed := base(o) != before; changed != c.changes || o.baseQuiet != c.wantQuiet {
			t.Errorf("%s: from %v to %v, quiet %t", name, before, base(o), o.baseQuiet)
		}
	}
	o := &own{baseQuiet: false}
	o.base.add(alike(5000, time.Millisecond), 1)
	if learn(o, quiet, 10, slow); base(o) < 3*time.Millisecond || o.base.total != 10 {
		t.Errorf("a loud baseline was not replaced but mixed: %v of %v writes", base(o), o.base.total)
	}
}

func TestOwnBaselineForgets(t *testing.T) {
	o := ownAt(1.6)
	o.acc, o.since = alike(10, time.Millisecond), second(0)
	o.addToBase(second(baselineHalfLife.Seconds()))
	if d := o.base.total - 510; math.Abs(d) > 1e-6 {
		t.Errorf("after a half-life %v writes of 1,000 count, with 10 new", o.base.total)
	}
	// A few writes a minute keep a baseline, and never more than there were.
	for _, c := range []struct{ had, keeps int }{{1000, baselineKeeps}, {baselineKeeps - 4, baselineKeeps - 4}} {
		o := &own{}
		o.base.add(alike(c.had, time.Millisecond), 1)
		o.acc, o.since = alike(1, time.Millisecond), second(0)
		o.addToBase(second(3600))
		if want := float64(c.keeps + 1); math.Abs(o.base.total-want) > 1e-6 {
			t.Errorf("an hour after %d writes %v count, want %v", c.had, o.base.total, want)
		}
	}
}

// TestOwnLearnsCalmer: a whole calmer stretch under load replaces the baseline; parts of
// one, with anything between them, do not.
func TestOwnLearnsCalmer(t *testing.T) {
	half := calmerWrites / 2
	for name, c := range map[string]struct {
		between func(*own)
		n       int
		factor  float64
		changes bool
	}{
		"calmer":                 {func(*own) {}, half, 0.5, true},
		"too short":              {func(*own) {}, half - 1, 0.5, false},
		"hardly calmer":          {func(*own) {}, half, 0.95, false},
		"pressed between":        {func(o *own) { o.acc = alike(1, 1); o.learn(second(1), pressed) }, half, 0.5, false},
		"held between":           {func(o *own) { o.acc = alike(1, 1); o.learn(second(1), held) }, half, 0.5, false},
		"quiet between":          {func(o *own) { o.acc = alike(1, time.Millisecond); o.learn(second(1), quiet) }, half, 0.5, false},
		"another stretch judged": {func(o *own) { o.acc = alike(half, 9e6); o.learn(second(1), contended) }, half, 0.5, false},
	} {
		o := ownAt(1.6)
		for i := range 2 {
			if i == 1 {
				c.between(o)
			}
			o.acc, o.since = alike(c.n, times(c.factor)), second(float64(i))
			o.learn(second(float64(i+1)), contended)
		}
		want := times(1)
		if c.changes {
			want = times(c.factor)
			if o.base.total != float64(2*half) || o.calmer.Count != 0 {
				t.Errorf("%s: the baseline holds %v writes, the next stretch %d", name, o.base.total, o.calmer.Count)
			}
		}
		if got := float64(o.base.p90()); math.Abs(got/float64(want)-1) > 0.04 {
			t.Errorf("%s: the baseline is %v, want %v", name, time.Duration(got), want)
		}
	}
}
