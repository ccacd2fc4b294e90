package pressure

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

const period = 250 * time.Millisecond

// bench judges made-up periods.
type bench struct {
	t     *testing.T
	judge *Judge
	now   time.Time
	rng   *rand.Rand

	server Sample
	rate   float64       // writes per second on the server
	sync   time.Duration // of each
}

func newBench(t *testing.T, tolerance float64, options Options) *bench {
	t.Helper()
	j, err := NewJudge(tolerance, options)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, judge: j, now: time.Unix(1e9, 0), rng: rand.New(rand.NewPCG(1, 2)), rate: 200, sync: 200 * time.Microsecond}
}

// writes are n write latencies about a median.
func (b *bench) writes(n int, median time.Duration) WriteStats {
	var w Writes
	for range n {
		w.Observe(time.Duration(float64(median) * math.Exp(0.26*b.rng.NormFloat64())))
	}
	return w.Take()
}

// own judges a period by own writes alone.
func (b *bench) own(a Activity) Verdict {
	b.now = b.now.Add(period)
	return b.judge.Next(b.now, nil, a)
}

// many repeats a period and returns the last verdict and how many pressed.
func (b *bench) many(n int, next func() Verdict) (last Verdict, pressing int) {
	for range n {
		if last = next(); last.Pressing {
			pressing++
		}
	}
	return last, pressing
}

func (b *bench) idle(periods int) {
	b.many(periods, func() Verdict { return b.own(Activity{Limit: 16, Writes: b.writes(50, time.Millisecond)}) })
}

func (b *bench) loaded(n int, median time.Duration) Activity {
	return Activity{Limit: 16, Running: 16, Waiting: 3, Contended: true, ReadsDone: 5, ReadTime: time.Second, Writes: b.writes(n, median)}
}

func TestOwnWritesEnterAndLeave(t *testing.T) {
	b := newBench(t, 0, Options{})
	b.idle(20)
	// 1.45 times is inside the tolerance; 2 times is not, and stays so at 1.45,
	// which is above the threshold to leave; 1.1 ends it.
	for _, step := range []struct {
		factor float64
		want   bool
	}{{1.4, false}, {2, true}, {1.45, true}, {1.1, false}, {1.45, false}} {
		v, _ := b.many(8, func() Verdict {
			return b.own(b.loaded(50, time.Duration(step.factor*float64(time.Millisecond))))
		})
		s, ok := v.Signal(OwnWrites)
		if v.Pressing != step.want || !v.Known || !ok || s.Pressing != step.want {
			t.Errorf("at %v times: pressing %t, %+v", step.factor, v.Pressing, s)
		}
		if r := s.Ratio(); math.Abs(r/step.factor-1) > 0.12 {
			t.Errorf("at %v times the ratio is %v", step.factor, r)
		}
	}
}

func TestStrongEvidence(t *testing.T) {
	for _, c := range []struct {
		writes int
		factor float64
		strong bool
	}{{50, 3, true}, {50, 1.9, false}, {20, 2, false}, {20, 6, true}} {
		b := newBench(t, 0, Options{})
		b.idle(20)
		v := b.own(b.loaded(c.writes, time.Duration(c.factor*float64(time.Millisecond))))
		if !v.Pressing || v.Strong != c.strong {
			t.Errorf("%d writes at %v times: pressing %t, strong %t", c.writes, c.factor, v.Pressing, v.Strong)
		}
	}
}

func TestFewWritesAccumulate(t *testing.T) {
	b := newBench(t, 0, Options{})
	b.idle(20)
	for i := 1; i <= 8; i++ {
		v := b.own(b.loaded(1, 5*time.Millisecond))
		if s, _ := v.Signal(OwnWrites); v.Pressing != (i == 8) || s.Fresh != (i == 8) {
			t.Fatalf("after %d slow writes: pressing %t, fresh %t", i, v.Pressing, s.Fresh)
		}
	}
	// What was judged stands until it is judged anew.
	if v := b.own(b.loaded(1, 5*time.Millisecond)); !v.Pressing || v.Fresh {
		t.Errorf("between two judgements: pressing %t, fresh %t", v.Pressing, v.Fresh)
	}
}

func TestNothingPressesWithoutReadsOrWrites(t *testing.T) {
	b := newBench(t, 0, Options{})
	b.idle(20)
	v := b.own(Activity{Limit: 16, Writes: b.writes(50, 9*time.Millisecond)})
	if v.Pressing || !v.Known || v.Reason != "no reads" {
		t.Errorf("without reads: %+v", v)
	}
	b = newBench(t, 0, Options{})
	b.idle(20)
	b.own(b.loaded(50, 9*time.Millisecond))
	v, pressing := b.many(40, func() Verdict { return b.own(b.loaded(0, 0)) })
	if v.Pressing || !v.Known || v.WritesMove || v.Reason != "no writes" || pressing > 4 {
		t.Errorf("after writes stopped: %d pressing, %+v", pressing, v)
	}
	// A write that takes long has not stopped.
	b.own(b.loaded(50, 9*time.Millisecond))
	_, pressing = b.many(40, func() Verdict {
		a := b.loaded(0, 0)
		a.WritesRunning = 1
		return b.own(a)
	})
	if pressing != 40 {
		t.Errorf("while a write hangs, %d of 40 periods press", pressing)
	}
}

func TestAnHourOfPressureIsNeverNormal(t *testing.T) {
	b := newBench(t, 0, Options{})
	b.idle(20)
	before, _ := b.own(b.loaded(50, 2*time.Millisecond)).Signal(OwnWrites)
	v, pressing := b.many(4*3600, func() Verdict { return b.own(b.loaded(50, 2*time.Millisecond)) })
	after, _ := v.Signal(OwnWrites)
	if pressing < 4*3600-1 || after.Baseline != before.Baseline {
		t.Errorf("%d of %d periods pressed; the baseline went from %v to %v", pressing, 4*3600, before.Baseline, after.Baseline)
	}
}

func TestBaselineFollowsQuietNotLoad(t *testing.T) {
	b := newBench(t, 0, Options{})
	b.idle(20)
	baseline := func() time.Duration {
		s, _ := b.own(b.loaded(50, time.Millisecond)).Signal(OwnWrites)
		return s.Baseline
	}
	was := baseline()
	// Load that stays inside the tolerance teaches nothing.
	b.many(2000, func() Verdict { return b.own(b.loaded(50, 1300*time.Microsecond)) })
	if is := baseline(); is != was {
		t.Errorf("load moved the baseline from %v to %v", was, is)
	}
	// Slower writes without reads are the new normal.
	b.many(400, func() Verdict { return b.own(Activity{Limit: 16, Writes: b.writes(50, 3*time.Millisecond)}) })
	if is := baseline(); float64(is) < 2.5*float64(was) {
		t.Errorf("with writes three times as slow and no reads the baseline is %v, was %v", is, was)
	}
	// Faster ones under load replace it: they are calmer than it.
	b.many(200, func() Verdict { return b.own(b.loaded(50, time.Millisecond)) })
	if is := baseline(); float64(is) > 1.1*float64(was) {
		t.Errorf("with fast writes under load the baseline is %v, was %v before", is, was)
	}
}

func TestWithoutBaselineNothingPressesAndProbingLearns(t *testing.T) {
	b := newBench(t, 0, Options{})
	v, pressing := b.many(10, func() Verdict { return b.own(b.loaded(50, 20*time.Millisecond)) })
	if pressing > 0 || v.Known || !v.NeedBaseline || !v.WritesMove {
		t.Fatalf("without a baseline: %d pressing, %+v", pressing, v)
	}
	probe := b.loaded(50, time.Millisecond)
	probe.Running, probe.Limit, probe.Probing = 1, 1, true
	for range 3 {
		probe.Writes = b.writes(50, time.Millisecond)
		v = b.own(probe)
	}
	if v.NeedBaseline {
		t.Error("three periods at the floor taught nothing")
	}
	if v = b.own(b.loaded(50, 20*time.Millisecond)); !v.Pressing || !v.Strong {
		t.Errorf("after the first baseline: %+v", v)
	}
}

func TestAbsoluteThresholdNeedsNoBaseline(t *testing.T) {
	b := newBench(t, 0, Options{OwnWrites: 10 * time.Millisecond})
	if v := b.own(b.loaded(50, 5*time.Millisecond)); v.Pressing || !v.Known || v.NeedBaseline {
		t.Errorf("below: %+v", v)
	}
	if v := b.own(b.loaded(50, 20*time.Millisecond)); !v.Pressing || !strings.HasPrefix(v.Reason, OwnWrites) {
		t.Errorf("above: %+v", v)
	}
}

func TestToleranceIsTheKnob(t *testing.T) {
	for _, c := range []struct {
		tolerance, factor float64
		want              bool
	}{{1.6, 2.8, true}, {3, 2.8, false}, {3, 5, true}, {1.2, 1.35, true}} {
		b := newBench(t, c.tolerance, Options{})
		b.idle(20)
		v, _ := b.many(8, func() Verdict { return b.own(b.loaded(50, time.Duration(c.factor*float64(time.Millisecond)))) })
		if v.Pressing != c.want {
			t.Errorf("tolerance %v at %v times: pressing %t", c.tolerance, c.factor, v.Pressing)
		}
	}
}
