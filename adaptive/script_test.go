package adaptive

import (
	"slices"
	"testing"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// script drives the rule alone, by signals that it makes up: each has a baseline of
// 1 ms and presses from 1.6 ms on.
type script struct {
	t     *testing.T
	r     rule
	s     state
	now   time.Time
	limit int
	b     Bounds

	watch watcher
	idle  bool // reads do not contend
	run   int  // reads that run; 0: as many as the limit
	// change, when set, changes what each period says.
	change func(*pressure.Verdict)
}

func newScript(t *testing.T) *script {
	return &script{
		t: t, r: rule{periods: DefaultPeriods, hold: DefaultHold, holdMax: DefaultHoldMax, staleAfter: DefaultStaleAfter},
		now: time.Unix(1e9, 0), limit: wide.Start, b: wide,
	}
}

// ms is what a signal says, in milliseconds.
type ms map[string]float64

// period lives through one, and holds what must be true of each.
func (p *script) period(values ms) outcome {
	p.t.Helper()
	v := pressure.Verdict{Known: true, Fresh: true, WritesMove: true, Reason: "calm"}
	for _, name := range signalNames {
		value, ok := values[name]
		if !ok {
			continue
		}
		sig := pressure.Signal{
			Name: name, Value: time.Duration(value * float64(time.Millisecond)), Baseline: time.Millisecond,
			Threshold: 1600 * time.Microsecond, Fresh: true, Since: p.now,
		}
		if sig.Pressing = sig.Value > sig.Threshold; sig.Pressing {
			v.Pressing, v.Reason = true, name
		}
		v.Signals = append(v.Signals, sig)
	}
	if p.change != nil {
		p.change(&v)
	}
	p.now = p.now.Add(DefaultPeriod)
	in := input{now: p.now, limit: p.limit, bounds: p.b, contended: !p.idle, verdict: v, activity: pressure.Activity{Running: p.limit}}
	if p.run > 0 {
		in.activity.Running = p.run
	}
	next, out := p.r.next(p.s, in)
	check(p.t, p.r, p.s, in, out)
	p.watch.swing(Decision{At: p.now, To: out.to, Verdict: v}, p.b)
	p.s, p.limit = next, out.to
	return out
}

// until lives through periods until one has that reason, or fails after a minute.
func (p *script) until(reason string, values func() ms) {
	p.t.Helper()
	for range 240 {
		if p.period(values()).reason == reason {
			return
		}
	}
	p.t.Fatalf("after a minute at limit %d it is still not that %q", p.limit, reason)
}

func (p *script) live(d time.Duration, values func() ms) {
	p.t.Helper()
	for end := p.now.Add(d); p.now.Before(end); {
		p.period(values())
	}
}

func always(v ms) func() ms { return func() ms { return v } }

// TestHowLongALevelMustLast: as long as the slowest signal that can press needs.
func TestHowLongALevelMustLast(t *testing.T) {
	for name, c := range map[string]struct {
		values ms
		change func(*pressure.Verdict)
		want   time.Duration
	}{
		"own writes":            {values: ms{pressure.OwnWrites: 1}, want: outlastOwn},
		"the server":            {values: ms{pressure.WALSync: 1}, want: outlastServer},
		"both":                  {values: ms{pressure.OwnWrites: 1, pressure.WALSync: 1}, want: outlastServer},
		"one that cannot press": {values: ms{pressure.OwnWrites: 1, pressure.WALSync: 1}, change: func(v *pressure.Verdict) { v.Signals[1].Threshold = 0 }, want: outlastOwn},
	} {
		p := newScript(t)
		p.limit, p.change = 3, c.change
		p.s.hold = hold{level: 4, length: DefaultHold}
		if out := p.period(c.values); out.to != 4 || !p.s.hold.probing {
			t.Fatalf("%s: to %d: %s", name, out.to, out.reason)
		}
		begun := p.now
		for p.limit == 4 && p.now.Sub(begun) < time.Minute {
			if out := p.period(c.values); out.to == 4 && out.reason != reasonProbe {
				t.Errorf("%s: %s", name, out.reason)
			}
		}
		if d := p.now.Sub(begun); d != c.want || p.s.hold.level != 0 {
			t.Errorf("%s: after %v, hold at %d", name, d, p.s.hold.level)
		}
	}
}

// TestAProbeThatPresses has outlasted nothing: time and judgements begin anew.
func TestAProbeThatPresses(t *testing.T) {
	const own = pressure.OwnWrites
	p := newScript(t)
	p.limit, p.s.hold = 3, hold{level: 4, length: DefaultHold}
	p.period(ms{own: 1})
	p.live(500*time.Millisecond, always(ms{own: 1}))
	p.period(ms{own: 2}) // one alone cuts nothing
	pressed := p.now
	p.change = func(v *pressure.Verdict) { v.Fresh, v.Signals[0].Fresh = false, false }
	p.live(2*time.Second, always(ms{own: 1}))
	p.change = nil
	if out := p.period(ms{own: 1}); out.reason != reasonProbe || p.limit != 4 {
		t.Errorf("after one judgement: limit %d, %s", p.limit, out.reason)
	}
	if p.period(ms{own: 1}); p.limit != 5 || p.s.hold.level != 0 {
		t.Errorf("%v after it pressed, and two judgements: limit %d, hold at %d", p.now.Sub(pressed), p.limit, p.s.hold.level)
	}
}

// TestAProbeThatFailsAtOnce is the comparison itself: bad windows after it acquit nobody. One
// that was calm first is a cut as any other, and its experiment may.
func TestAProbeThatFailsAtOnce(t *testing.T) {
	const own = pressure.OwnWrites
	for _, c := range []struct {
		calm   int
		strong bool
		want   string
	}{
		{0, true, reasonFloor},
		{1, true, reasonUnhelpful},
		{0, false, reasonFloor},
		{1, false, reasonUnhelpful}, // two windows must press then
	} {
		p := newScript(t)
		p.limit, p.s.hold = 1, hold{level: 2, length: DefaultHold, calm: true} // as the probe before
		p.period(ms{own: 1})
		for range c.calm {
			p.period(ms{own: 1})
		}
		p.change = func(v *pressure.Verdict) { v.Strong = c.strong }
		if !c.strong {
			p.period(ms{own: 5})
		}
		if out := p.period(ms{own: 5}); out.to != 1 {
			t.Fatalf("%+v: to %d: %s", c, out.to, out.reason)
		}
		p.change = nil
		seen := map[string]bool{}
		for range 14 { // three seconds and a half: no trial at the floor yet
			seen[p.period(ms{own: 4.5}).reason] = true
		}
		if !seen[c.want] || seen[reasonUnhelpful] != (c.want == reasonUnhelpful) {
			t.Errorf("%+v: %v", c, seen)
		}
	}
}

// TestTrialWaitsForReadsOfBefore, whatever lowered the limit: one read more is no read more
// while they run. Those that run for good do not keep it from ever being tried.
func TestTrialWaitsForReadsOfBefore(t *testing.T) {
	const own = pressure.OwnWrites
	lowered := map[string]func(p *script){
		"a cut": func(p *script) { p.limit = 2; p.period(ms{own: 5}); p.period(ms{own: 5}) },
		"a probe that failed": func(p *script) {
			p.limit, p.s.hold = 1, hold{level: 2, length: DefaultHold}
			p.period(ms{own: 1})
			p.run = 2
			p.period(ms{own: 5})
			p.period(ms{own: 5})
		},
		"a trial": func(p *script) {
			p.limit, p.s.trial.length = 1, 100*time.Millisecond
			p.until(reasonTrial, always(ms{own: 5}))
			p.until(reasonMatter, always(ms{own: 40}))
		},
	}
	for name, lower := range lowered {
		p := newScript(t)
		if lower(p); p.limit != 1 {
			t.Fatalf("%s: the limit is %d", name, p.limit)
		}
		begun := p.now
		p.run = 2
		for p.limit == 1 && p.now.Sub(begun) < 2*DefaultHoldMax {
			p.period(ms{own: 5})
		}
		if d := p.now.Sub(begun); d < DefaultHoldMax-time.Second || d > DefaultHoldMax+10*time.Second {
			t.Errorf("%s: the limit rose after %v", name, d)
		}
	}
}

// TestOneBadWindow alone, however strong, against a limit that has lasted, cuts and marks
// nothing; so does none against one that has not; and another soon after marks.
func TestOneBadWindow(t *testing.T) {
	const own = pressure.OwnWrites
	strong := func(v *pressure.Verdict) { v.Strong = v.Pressing }
	lasting := func() *script {
		p := newScript(t)
		p.limit, p.change = 8, strong
		p.live(10*time.Second, always(ms{own: 1}))
		return p
	}
	p := lasting()
	if p.period(ms{own: 9}); p.limit != 8 || p.s.hold.level != 0 {
		t.Errorf("the first: limit %d, hold at %d", p.limit, p.s.hold.level)
	}
	p.live(9*DefaultPeriod, always(ms{own: 1})) // up again, but for no second
	if p.period(ms{own: 9}); p.limit != 8 || p.s.hold.level != 16 {
		t.Errorf("the second: limit %d, hold at %d", p.limit, p.s.hold.level)
	}
	// The first after a cut is no lone one.
	p = lasting()
	p.period(ms{own: 9})
	if p.period(ms{own: 9}); p.limit != 4 || p.s.hold.level != 8 {
		t.Errorf("two in a row: limit %d, hold at %d", p.limit, p.s.hold.level)
	}
	// Two that are not strong are no lone one either.
	p = lasting()
	p.change = nil
	p.period(ms{own: 9})
	if p.period(ms{own: 9}); p.limit != 8 || p.s.hold.level != 16 {
		t.Errorf("two that are not strong: limit %d, hold at %d", p.limit, p.s.hold.level)
	}
}

// TestWritesThatStop end what was found out beside them.
func TestWritesThatStop(t *testing.T) {
	const own = pressure.OwnWrites
	p := newScript(t)
	p.until(reasonUnhelpful, always(ms{own: 3}))
	p.s.innocent = true
	if p.period(ms{own: 3}); !p.s.innocent || p.s.blame == (acquittals{}) || !p.s.climb.active() {
		t.Fatalf("innocent %t, %+v", p.s.innocent, p.s.climb)
	}
	p.change = func(v *pressure.Verdict) { v.WritesMove = false }
	if p.period(ms{}); p.s.innocent || p.s.blame != (acquittals{}) || p.s.climb.active() {
		t.Errorf("writes have stopped: innocent %t, %+v", p.s.innocent, p.s.climb)
	}
}

// TestAcquittedReadsRise though writes are slow, as long as they are no slower for it.
func TestAcquittedReadsRise(t *testing.T) {
	const own = pressure.OwnWrites
	for _, c := range []struct {
		value float64
		want  int
	}{{3, 5}, {3.8, 5}, {3.9, 4}} { // 1.43 times the 2 ms that it was without them
		p := newScript(t)
		p.limit = 4
		p.s.blame.of(own).grant(p.now, 2e6, DefaultHold, DefaultHoldMax)
		if out := p.period(ms{own: c.value}); out.to != c.want || out.reason != reasonAcquitted {
			t.Errorf("%v ms: to %d: %s", c.value, out.to, out.reason)
		}
	}
}

// TestTrialAtTheFloor: cuts helped, and then the floor presses: one read more is let
// run, and what that shows decides.
func TestTrialAtTheFloor(t *testing.T) {
	const own = pressure.OwnWrites
	begin := func() *script {
		p := newScript(t)
		p.live(10*time.Second, always(ms{own: 1}))
		p.until(reasonFloor, always(ms{own: 3}))
		p.live(3*time.Second, always(ms{own: 1})) // the cuts have proved themselves
		if p.limit != 1 || p.s.series.active() {
			t.Fatalf("limit %d, series %+v", p.limit, p.s.series)
		}
		p.until(reasonFloor, always(ms{own: 3}))
		begun := p.now
		p.until(reasonTrial, always(ms{own: 3}))
		if d := p.now.Sub(begun); p.limit != 2 || d < DefaultHold/2-DefaultPeriod || d > DefaultHold/2+DefaultPeriod {
			t.Fatalf("limit %d after %v", p.limit, d)
		}
		return p
	}
	p := begin()
	begun := p.now
	p.until(reasonUnhelpful, always(ms{own: 3}))
	if e := p.s.blame.of(own).excess; e != 2e6 {
		t.Errorf("without the reads writes took %v longer", time.Duration(e))
	}
	if d := p.now.Sub(begun); d > 2*time.Second || p.s.climb.to != 16 || p.limit != 3 {
		t.Errorf("no worse: after %v, limit %d, climb %+v", d, p.limit, p.s.climb)
	}

	p = begin()
	p.until(reasonUnhelpful, always(ms{own: 2.5}))
	if e := p.s.blame.of(own).excess; e != 1.5e6 {
		t.Errorf("the lower of both is %v", time.Duration(e))
	}

	p = begin()
	p.until(reasonMatter, always(ms{own: 5}))
	if p.limit != 1 || p.s.hold.level != 2 || p.s.innocent || p.s.raised {
		t.Errorf("worse: limit %d, hold at %d", p.limit, p.s.hold.level)
	}
	begun = p.now
	p.until(reasonTrial, always(ms{own: 3}))
	if d := p.now.Sub(begun); d < DefaultHold {
		t.Errorf("the next trial comes %v later", d)
	}

	// Writes are well again: the trial is over, and the rule goes on.
	p = begin()
	if out := p.period(ms{own: 1}); p.s.trial.active() || out.reason == reasonTrial {
		t.Errorf("well: %s", out.reason)
	}

	// There is no room for one more.
	p = newScript(t)
	p.b, p.limit = Bounds{Floor: 2, Start: 2, Ceiling: 2}, 2
	p.live(time.Minute, func() ms {
		if p.limit != 2 {
			t.Fatalf("limit %d", p.limit)
		}
		return ms{own: 3}
	})
}

// TestClimbsBack: after an acquittal the limit rises by one up to 4, then doubles, one
// judgement for each step, and is borne out after a second and a half at its height.
func TestClimbsBack(t *testing.T) {
	const own = pressure.OwnWrites
	acquitted := func() *script {
		p := newScript(t)
		p.live(10*time.Second, always(ms{own: 1}))
		// The first is compared with windows before it began, and is not believed.
		p.until(reasonUnhelpful, always(ms{own: 3}))
		p.until(reasonUnhelpful, always(ms{own: 3}))
		return p
	}
	p := acquitted()
	var path []int
	for p.limit < 16 {
		path = append(path, p.limit)
		p.period(ms{own: 3})
	}
	if !p.s.raised {
		t.Error("a climb is no rise")
	}
	if !slices.Equal(path, []int{2, 3, 4, 8}) {
		t.Errorf("it climbs by %v", path)
	}
	begun := p.now
	if a := p.s.blame.of(own); !a.until.Equal(begun.Add(a.length)) {
		t.Errorf("cuts wait %v of %v from the last step on", a.until.Sub(begun), a.length)
	}
	for !p.s.innocent && p.now.Sub(begun) < time.Minute {
		if p.period(ms{own: 3}); p.limit != 16 {
			t.Fatalf("limit %d", p.limit)
		}
	}
	if d := p.now.Sub(begun); d != settle+experiment || p.s.climb.active() || p.s.hold.level != 0 {
		t.Errorf("borne out after %v: %+v", d, p.s.climb)
	}
	// The last judgement is not to be worse.
	p = acquitted()
	for p.limit < 16 {
		p.period(ms{own: 3})
	}
	p.live(settle+experiment-DefaultPeriod, always(ms{own: 3}))
	if p.period(ms{own: 5}); p.s.innocent {
		t.Error("borne out by a judgement that was worse")
	}
	if p.period(ms{own: 3}); !p.s.innocent {
		t.Error("not borne out by one that was not")
	}
	// What is not judged, or waits for a relation's lock, is no step.
	p = acquitted()
	p.change = func(v *pressure.Verdict) { v.Fresh, v.Signals[0].Fresh = false, false }
	if p.live(5*time.Second, always(ms{own: 3})); p.limit != 2 {
		t.Errorf("unjudged it climbs to %d", p.limit)
	}
	if calm := *p; true { // in calm it rises without
		if calm.live(time.Second, always(ms{own: 1})); calm.limit != 16 {
			t.Errorf("in a second of calm it climbs to %d", calm.limit)
		}
	}
	p.change = func(v *pressure.Verdict) { v.Freeze = true }
	if p.live(5*time.Second, always(ms{own: 3})); p.limit != 2 {
		t.Errorf("it climbs to %d while a lock is waited for", p.limit)
	}
	// One judgement that is worse, and it waits for another; at the top as well.
	p.change = nil
	if p.period(ms{own: 5}); p.limit != 2 {
		t.Errorf("after one that is worse it climbs to %d", p.limit)
	}
	if p.period(ms{own: 3}); p.limit != 3 {
		t.Errorf("after one that is not it stays at %d", p.limit)
	}
	p.change = func(v *pressure.Verdict) { v.Fresh, v.Signals[0].Fresh = false, false }
	if p.live(time.Second, always(ms{own: 3})); p.limit != 3 {
		t.Errorf("a step without a judgement, to %d", p.limit)
	}
}

// TestInARow: a calm period between two that press starts the count over.
func TestInARow(t *testing.T) {
	const own = pressure.OwnWrites
	p := newScript(t)
	for range 20 {
		p.period(ms{own: 3})
		if p.period(ms{own: 1}); p.limit != 16 {
			t.Fatalf("limit %d", p.limit)
		}
	}
	// So does one without contention.
	for range 20 {
		p.idle = false
		p.period(ms{own: 3})
		p.idle = true
		if p.period(ms{own: 3}); p.limit != 16 {
			t.Fatalf("limit %d", p.limit)
		}
	}
}

// TestDemandThatIsGone forgets all that levels were found to do.
func TestDemandThatIsGone(t *testing.T) {
	const own = pressure.OwnWrites
	p := newScript(t)
	p.s.hold = hold{level: 4, length: DefaultHold, until: p.now.Add(time.Hour)}
	p.s.series, p.s.climb, p.s.trial = series{signal: own, from: 16}, climb{to: 16, revoked: true}, trial{length: time.Minute}
	p.change = func(v *pressure.Verdict) { v.Known = false }
	p.live(DefaultStaleAfter*DefaultPeriod, always(ms{}))
	if p.s.hold.level != 4 {
		t.Error("the hold is forgotten too early")
	}
	if p.period(ms{}); p.s.hold != (hold{}) || p.s.series != (series{}) || p.s.climb != (climb{}) || p.s.trial != (trial{}) {
		t.Errorf("after long without a word: %+v", p.s)
	}
}

// TestSignalsThatPressInTurn: period by period, and for longer, with and without the
// reads' doing.
func TestSignalsThatPressInTurn(t *testing.T) {
	const own, sync = pressure.OwnWrites, pressure.WALSync
	for _, length := range []int{1, 2, 3, 5, 8, 20, 40, 120} {
		n := 0
		turn := func(slow float64) ms {
			if n++; n/length%2 == 0 {
				return ms{own: slow, sync: 1}
			}
			return ms{own: 1, sync: slow}
		}

		p := newScript(t)
		p.live(10*time.Minute, func() ms { return turn(3) })
		if most := 2 * (int(10*time.Minute/DefaultHoldMax) + 4); p.watch.swings > most {
			t.Errorf("for %d periods each, without the reads: %d swings in ten minutes", length, p.watch.swings)
		}

		p = newScript(t)
		most, sum := 0, 0
		p.live(10*time.Minute, func() ms { return turn(slow(float64(p.limit))) })
		p.live(10*time.Minute, func() ms {
			most, sum = max(most, p.limit), sum+p.limit
			return turn(slow(float64(p.limit)))
		})
		if mean := float64(sum) / 2400; p.watch.swings > 1 || mean > 1.5 || most > 4 {
			t.Errorf("for %d periods each, because of the reads: %d swings; then %.1f on average, %d at most", length, p.watch.swings, mean, most)
		}
	}
}

// TestAcquittalsStandSideBySide: a signal that reads were acquitted of is not forgotten
// when they are acquitted of another, nor tried in its place.
func TestAcquittalsStandSideBySide(t *testing.T) {
	const own, sync = pressure.OwnWrites, pressure.WALSync
	p := newScript(t)
	p.live(time.Minute, always(ms{own: 1, sync: 1}))
	p.until(reasonUnhelpful, always(ms{own: 3, sync: 1}))
	p.until(reasonTop, always(ms{own: 1, sync: 1}))

	// Then syncs are slow as well: they are tried, not own writes once more.
	p.until(reasonUnhelpful, func() ms {
		if s := p.s.series.signal; s == own {
			t.Fatal("own writes are tried again")
		}
		return ms{own: 3, sync: 3}
	})
	p.live(5*time.Second, always(ms{own: 1, sync: 1}))
	for _, c := range []ms{{own: 3, sync: 1}, {own: 1, sync: 3}, {own: 3, sync: 3}} {
		before := p.limit
		if p.live(5*time.Second, always(c)); p.limit < before {
			t.Errorf("%v lowers the limit from %d to %d, though reads are not to blame for either", c, before, p.limit)
		}
	}
}

// TestStrongIsForOwnWrites: what is strong evidence in own writes lets no cut for
// another signal come early.
func TestStrongIsForOwnWrites(t *testing.T) {
	const own, sync = pressure.OwnWrites, pressure.WALSync
	p := newScript(t)
	p.until(reasonUnhelpful, always(ms{own: 3, sync: 1}))
	p.until(reasonTop, always(ms{own: 1, sync: 1}))
	in := input{now: p.now.Add(DefaultPeriod), limit: p.limit, bounds: p.b, contended: true}
	in.verdict = pressure.Verdict{Known: true, Fresh: true, WritesMove: true, Pressing: true, Strong: true, Reason: own}
	for _, name := range []string{own, sync} {
		in.verdict.Signals = append(in.verdict.Signals, pressure.Signal{
			Name: name, Value: 3 * time.Millisecond, Baseline: time.Millisecond, Threshold: 1600 * time.Microsecond,
			Fresh: true, Pressing: true, Since: p.now,
		})
	}
	s := p.s
	s.blame.of(sync).until = p.now // it waits no longer
	if _, out := p.r.next(s, in); out.to != p.limit || out.reason != reasonAwaits {
		t.Errorf("to %d: %s", out.to, out.reason)
	}
	s.blame.of(own).until = p.now
	if _, out := p.r.next(s, in); out.to != p.limit/2 {
		t.Errorf("for own writes to %d: %s", out.to, out.reason)
	}
}

// TestAFailedClimbIsForgotten: a climb that failed keeps the cut that follows from
// marking a level. One that comes when all has been well for long marks it.
func TestAFailedClimbIsForgotten(t *testing.T) {
	const own = pressure.OwnWrites
	fail := func() *script {
		p := newScript(t)
		p.live(10*time.Second, always(ms{own: 1}))
		p.until(reasonUnhelpful, always(ms{own: 3}))
		for range 8 {
			if p.period(ms{own: 3}); p.limit >= 4 {
				break
			}
		}
		for i := 0; !p.s.climb.revoked; i++ {
			if p.period(ms{own: 6}); i > 4 {
				t.Fatal("the climb does not fail")
			}
		}
		return p
	}
	p := fail()
	p.s.hold = hold{}
	from := p.limit
	for range 4 {
		if p.period(ms{own: 6}); p.limit < from {
			break
		}
	}
	if p.limit >= from || p.s.hold.level != 0 || p.s.climb.revoked {
		t.Errorf("right after it: limit %d, hold at %d, climb %+v", p.limit, p.s.hold.level, p.s.climb)
	}

	p = fail()
	p.live(2*time.Minute, always(ms{own: 1}))
	if p.limit != 16 || p.s.hold.level != 0 {
		t.Fatalf("after two minutes of calm: limit %d, hold at %d", p.limit, p.s.hold.level)
	}
	for range 4 {
		if p.period(ms{own: 6}); p.limit < 16 {
			break
		}
	}
	if p.limit != 8 || p.s.hold.level != 16 {
		t.Errorf("long after it: limit %d, hold at %d", p.limit, p.s.hold.level)
	}
}

// TestGuiltAfterInnocence: reads were acquitted, and that was borne out. When they begin
// to harm, they are cut as ever; and the next acquittal is to be borne out again.
func TestGuiltAfterInnocence(t *testing.T) {
	for _, slowness := range []float64{1, 2} {
		seeds(t, wide, Options{}, func(t *testing.T, m *model, l *Limit) {
			m.sleeping = true
			m.warm(l)
			m.readers = 16
			m.slowness = func() float64 { return 2 }
			for end := time.Now().Add(10 * time.Minute); !l.state.innocent || m.limit < 16; m.run(l, time.Second, nil) {
				if time.Now().After(end) {
					t.Fatal("the acquittal is not borne out")
				}
			}
			m.sleeping = false
			m.slowness = func() float64 { return slowness }
			begun, low := time.Now(), time.Duration(0)
			m.run(l, 15*time.Second, func(d Decision) {
				if low == 0 && d.To <= 2 {
					low = d.At.Sub(begun)
				}
			})
			m.harm(0)
			most := 0
			m.run(l, 5*time.Minute, func(d Decision) { most = max(most, d.To) })
			harm := m.harm(0.95) / idleP95
			if low == 0 || low > 4*time.Second || most > 4 || harm > 1.3 || l.state.innocent {
				t.Errorf("beside writes slower by %v: limit 2 after %v, then %d at most; p95 %.2f times what one read makes it; innocent %t", slowness, low, most, harm, l.state.innocent)
			}
		})
	}
}
