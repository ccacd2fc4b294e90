package adaptive

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

func TestStepVectors(t *testing.T) {
	wide := Bounds{Floor: 1, Start: 12, Ceiling: 16}
	press, idle := Period{Pressing: true, Contended: true}, Period{Pressing: true}
	calm, quiet := Period{Contended: true}, Period{}
	for _, c := range []struct {
		name               string
		limit, count, need int
		bounds             Bounds
		period             Period
		wantLimit, want    int
	}{
		{"first pressing period", 16, 0, 2, wide, press, 16, 1},
		{"second halves, count starts over", 16, 1, 2, wide, press, 8, 0},
		{"odd halves down", 5, 1, 2, wide, press, 2, 0},
		{"to the floor", 3, 1, 2, Bounds{2, 12, 16}, press, 2, 0},
		{"at the floor", 1, 1, 2, wide, press, 1, 0},
		{"the ceiling is below the floor", 3, 1, 2, Bounds{4, 3, 3}, press, 3, 0},
		{"one period is enough", 16, 0, 1, wide, press, 8, 0},
		{"no contention starts the count over", 16, 1, 2, wide, idle, 16, 0},
		{"calm and contended climbs", 12, 1, 2, wide, calm, 13, 0},
		{"to the ceiling", 16, 0, 2, wide, calm, 16, 0},
		{"calm alone climbs", 11, 0, 2, wide, quiet, 12, 0},
		{"to the start", 12, 0, 2, wide, quiet, 12, 0},
		{"above the start it stays", 14, 0, 2, wide, quiet, 14, 0},
		{"a start above the ceiling", 16, 0, 2, Bounds{1, 20, 16}, quiet, 16, 0},
		{"a ceiling that fell", 16, 0, 2, Bounds{1, 8, 8}, quiet, 8, 0},
	} {
		limit, count := Step(c.limit, c.count, c.need, c.bounds, c.period)
		if limit != c.wantLimit || count != c.want {
			t.Errorf("%s: limit %d, count %d; want %d, %d", c.name, limit, count, c.wantLimit, c.want)
		}
	}
}

// naive is the rule said once more, for comparison.
func naive(limit, count, periods int, b Bounds, pressing, contended bool) (int, int) {
	low := min(b.Floor, b.Ceiling)
	if pressing && contended {
		count++
		if count >= periods {
			limit /= 2
			if limit < low {
				limit = low
			}
			return limit, 0
		}
		return limit, count
	}
	if pressing {
		return limit, 0
	}
	if contended && limit < b.Ceiling || !contended && limit < b.Start && limit < b.Ceiling {
		limit++
	}
	return limit, 0
}

func randomBounds(rng *rand.Rand) Bounds {
	b := Bounds{Floor: 1 + rng.IntN(6), Ceiling: 1 + rng.IntN(40)}
	b.Start = 1 + rng.IntN(b.Ceiling)
	return b
}

func TestStepAgainstNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 200_000 {
		b := randomBounds(rng)
		low := min(b.Floor, b.Ceiling)
		limit := low + rng.IntN(b.Ceiling-low+1)
		need := 1 + rng.IntN(4)
		count := rng.IntN(need)
		p := Period{rng.IntN(2) == 0, rng.IntN(2) == 0}
		gotLimit, gotCount := Step(limit, count, need, b, p)
		wantLimit, wantCount := naive(limit, count, need, b, p.Pressing, p.Contended)
		if gotLimit != wantLimit || gotCount != wantCount {
			t.Fatalf("limit %d, count %d of %d, %+v, %+v: %d, %d; want %d, %d", limit, count, need, b, p, gotLimit, gotCount, wantLimit, wantCount)
		}
		if gotLimit < low || gotLimit > b.Ceiling || gotCount >= need {
			t.Fatalf("out of bounds: limit %d, count %d", gotLimit, gotCount)
		}
	}
}

// randomInput makes up a period, however unlikely.
func randomInput(rng *rand.Rand, now time.Time, limit int, b Bounds) input {
	v := pressure.Verdict{
		Known: rng.IntN(10) > 0, Fresh: rng.IntN(4) > 0, Strong: rng.IntN(5) == 0, Freeze: rng.IntN(20) == 0,
		NeedBaseline: rng.IntN(50) == 0, WritesMove: rng.IntN(20) > 0,
	}
	v.Pressing, v.Reason = v.Known && rng.IntN(2) == 0, "a signal"
	for _, name := range signalNames {
		if rng.IntN(2) == 0 {
			base := time.Duration(rng.IntN(1000)) * time.Microsecond
			v.Signals = append(v.Signals, pressure.Signal{
				Name: name, Baseline: base, Value: base + time.Duration(rng.IntN(9000))*time.Microsecond, Threshold: 2 * base,
				Pressing: v.Pressing && rng.IntN(2) == 0, Fresh: v.Fresh, Since: now.Add(-time.Duration(rng.IntN(2000)) * time.Millisecond),
			})
		}
	}
	return input{
		now: now, limit: limit, bounds: b, contended: rng.IntN(3) > 0, verdict: v,
		activity: pressure.Activity{Running: rng.IntN(limit + 3), ReadsDone: rng.IntN(20), ReadTime: time.Duration(rng.IntN(1000)) * time.Millisecond},
	}
}

// TestRuleKeepsItsPromises walks through made-up periods and holds what must be true
// of every one.
func TestRuleKeepsItsPromises(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		r := rule{periods: 1 + rng.IntN(3), hold: 2 * time.Second, holdMax: 16 * time.Second, staleAfter: 4}
		b := randomBounds(rng)
		limit, s, now := b.clamp(b.Start), state{}, time.Unix(1e9, 0)
		for n := range 2000 {
			now = now.Add(250 * time.Millisecond)
			in := randomInput(rng, now, limit, b)
			before := s
			next, out := r.next(s, in)
			if n%100 == 99 { // it takes its time
				if !reflect.DeepEqual(s, before) {
					t.Fatal("next changed the state that it was given")
				}
				if again, same := r.next(s, in); !reflect.DeepEqual(again, next) || same != out {
					t.Fatal("next is not a function of what it is given")
				}
			}
			check(t, r, s, in, out)
			s, limit = next, out.to
			if rng.IntN(200) == 0 { // the bounds moved
				b = randomBounds(rng)
				limit = b.clamp(limit)
			}
		}
	}
}

func check(t *testing.T, r rule, s state, in input, out outcome) {
	t.Helper()
	b, v, low := in.bounds, in.verdict, in.bounds.low()
	fail := func(why string) {
		t.Helper()
		t.Fatalf("%s: from %d to %d because %q, in %+v, with %+v", why, in.limit, out.to, out.reason, in, s)
	}
	switch {
	case out.reason == "":
		fail("no reason")
	case out.to < low || out.to > b.Ceiling:
		fail("out of bounds")
	}
	if out.to < in.limit {
		switch out.reason {
		case reasonBaseline, reasonDrift, reasonMatter:
		default:
			if !v.Pressing || !in.contended || !v.Fresh {
				fail("lowered without fresh pressure and contention")
			}
			if out.to != max(low, in.limit/2) {
				fail("not halved")
			}
			if !v.Strong && s.count+1 < r.periods {
				fail("lowered too early")
			}
		}
	}
	if out.to > in.limit {
		switch out.reason {
		case reasonUntaught:
			if out.to > s.dip.from {
				fail("above where the dip began")
			}
		case reasonUnhelpful, reasonClimb:
			if out.to > 2*in.limit && !(s.innocent && out.reason == reasonUnhelpful) {
				fail("more than double")
			}
		default:
			if out.to != in.limit+1 {
				fail("more than one")
			}
		}
		switch out.reason {
		case reasonUnhelpful, reasonTrial, reasonDrift, reasonUntaught:
		default:
			if v.Freeze {
				fail("raised while a relation's lock is waited for")
			}
			if !in.contended && in.limit >= b.Start {
				fail("raised above the start without contention")
			}
			if v.Pressing && out.reason != reasonAcquitted && out.reason != reasonClimb {
				fail("raised under pressure")
			}
		}
	}
	if !v.Known && out.to != in.limit && out.reason != reasonDrift && out.reason != reasonBaseline && out.reason != reasonUntaught {
		fail("moved with nothing to judge by")
	}
}

func TestDriftGoesToTheStart(t *testing.T) {
	r := rule{periods: 2, hold: time.Second, holdMax: time.Second, staleAfter: 5}
	for _, c := range []struct{ limit, want int }{{1, 12}, {16, 12}, {12, 12}} {
		s, limit, now := state{}, c.limit, time.Unix(1e9, 0)
		for i := range 40 {
			now = now.Add(250 * time.Millisecond)
			var out outcome
			s, out = r.next(s, input{now: now, limit: limit, bounds: Bounds{1, 12, 16}, contended: true})
			if d := out.to - limit; i < 5 && d != 0 || d > 1 || d < -1 {
				t.Fatalf("period %d: from %d to %d", i, limit, out.to)
			}
			limit = out.to
		}
		if limit != c.want {
			t.Errorf("from %d it drifts to %d", c.limit, limit)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		options Options
		parts   []string
	}{
		{Options{Period: time.Millisecond}, []string{"Period", "1ms", "10ms"}},
		{Options{Period: 2 * time.Minute}, []string{"Period", "2m0s", "1m0s"}},
		{Options{Periods: -1}, []string{"Periods", "-1", "1000"}},
		{Options{Tolerance: 1}, []string{"Tolerance", "1.1", "100"}},
		{Options{Hold: time.Millisecond}, []string{"Hold", "1ms", "250ms"}},
		{Options{Hold: time.Minute, HoldMax: time.Second}, []string{"HoldMax", "1s", "1m0s"}},
		{Options{StaleAfter: -2}, []string{"StaleAfter", "-2"}},
		{Options{FloorAfter: -2}, []string{"FloorAfter"}},
		{Options{Pressure: pressure.Options{Timeout: time.Hour}}, []string{"Timeout", "1h0m0s"}},
	} {
		_, err := New(newModel(1, Bounds{1, 4, 4}), nil, c.options)
		if err == nil {
			t.Errorf("%+v passes", c.options)
			continue
		}
		for _, part := range append(c.parts, "pgyield: ") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not name %q", err, part)
			}
		}
	}
	if _, err := New(nil, nil, Options{}); err == nil {
		t.Error("no limiter passes")
	}
}
