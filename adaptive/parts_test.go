package adaptive

import (
	"testing"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// The parts of the rule's memory, each alone. Times are seconds since t0.
var t0 = time.Unix(1_000_000, 0)

func at(seconds float64) time.Time {
	return t0.Add(time.Duration(seconds * float64(time.Second)))
}

func TestHoldParts(t *testing.T) {
	const short, long = 8 * time.Second, 64 * time.Second
	var h hold
	if h.blocks(1, at(0)) || h.blocks(0, at(0)) {
		t.Error("the zero hold blocks")
	}
	if h.raised(9, at(0)); h.probing || h.outlasted(at(9), 0, true) {
		t.Error("the zero hold is probed")
	}
	h.pressed(4, at(0), false, short, long)
	for _, c := range []struct {
		level int
		now   float64
		want  bool
	}{{4, 0, true}, {5, 7.9, true}, {3, 0, false}, {4, 8, false}, {5, 8, false}} {
		if got := h.blocks(c.level, at(c.now)); got != c.want {
			t.Errorf("held at 4 for 8 s: level %d at %v s: blocked %t", c.level, c.now, got)
		}
	}

	// A lower level on the way down moves mark and wait; on the way up the mark alone.
	down := h
	if down.pressed(2, at(3), true, short, long); down.level != 2 || !down.until.Equal(at(11)) || down.length != short {
		t.Errorf("a descent leads to %+v", down)
	}
	up := h
	if up.pressed(2, at(3), false, short, long); up.level != 2 || !up.until.Equal(at(8)) || up.length != short {
		t.Errorf("a lower level leads to %+v", up)
	}
	// The level again: each failed probe doubles the wait, up to the longest; a descent
	// does not.
	for i, want := range []time.Duration{16, 32, 64, 64} {
		h.raised(4, at(100))
		if h.pressed(4, at(100), false, short, long); h.length != want*time.Second || !h.until.Equal(at(100).Add(h.length)) || h.level != 4 || h.probing {
			t.Errorf("failed probe %d leads to %+v", i, h)
		}
	}
	h.length = short
	if h.pressed(6, at(200), true, short, long); h.length != short || h.level != 4 || !h.until.Equal(at(208)) {
		t.Errorf("a descent through the level leads to %+v", h)
	}
}

func TestHoldOutlasted(t *testing.T) {
	probe := func() hold {
		h := hold{level: 4, length: time.Second}
		h.raised(3, at(0))
		if h.probing {
			t.Fatal("a lower level is no probe")
		}
		h.raised(4, at(0))
		h.raised(5, at(9)) // goes on with the same
		if !h.probing || !h.since.Equal(at(0)) {
			t.Fatalf("the probe is %+v", h)
		}
		return h
	}
	h := probe()
	if !h.outlasted(at(0.5), time.Second, true) || !h.outlasted(at(0.9), time.Second, true) || h.seen != 2 {
		t.Errorf("before a second: %+v", h)
	}
	if h.outlasted(at(1), time.Second, false) || h != (hold{}) {
		t.Errorf("after a second and two judgements: %+v", h)
	}
	h = probe()
	if !h.outlasted(at(5), time.Second, true) || !h.outlasted(at(6), time.Second, false) {
		t.Errorf("after one judgement: %+v", h)
	}
	if h.outlasted(at(7), time.Second, true) {
		t.Errorf("after two judgements: %+v", h)
	}
}

func TestProofParts(t *testing.T) {
	var p proof
	steps := []struct {
		now    float64
		limit  int
		fresh  bool
		lasted bool
	}{
		{0, 4, true, false},    // begins
		{0.5, 4, true, false},  // one judgement
		{1.5, 4, false, false}, // long enough, but still one
		{1.6, 4, true, true},
		{1.8, 4, false, true},
		{2, 5, true, false}, // another limit begins anew
		{2.2, 5, true, false},
		{2.4, 5, true, false}, // two judgements, but too soon
		{3, 5, false, true},
		{3.1, 3, true, false},
	}
	for i, c := range steps {
		if got := p.calm(at(c.now), c.limit, time.Second, c.fresh); got != c.lasted {
			t.Errorf("step %d: lasted %t", i, got)
		}
	}
	if p.good != 5 {
		t.Errorf("the best that lasted is %d", p.good)
	}
	if q := p; !q.refute(5) || q.good != 4 || q.limit != 0 {
		t.Errorf("refuted at 5: %+v", q)
	}
	if q := p; q.refute(6) || q.good != 5 {
		t.Errorf("refuted at 6, which had not lasted: %+v", q)
	}
	if q := p; !q.refute(2) || q.good != 1 {
		t.Errorf("refuted at 2: %+v", q)
	}
}

func TestDemandHalves(t *testing.T) {
	const quarter = 250 * time.Millisecond
	feed := func(d *demand, limit, periods, writes, reads int, readTime time.Duration) (wrote, read bool) {
		for range periods {
			w, r := d.halved(limit, quarter, writes, reads, readTime)
			wrote, read = wrote || w, read || r
		}
		return wrote, read
	}
	for _, c := range []struct {
		name                 string
		writes, then, limit  int
		reads                int
		took, thenTook       time.Duration
		wantWrote, wantReads bool
	}{
		{name: "nothing changes", writes: 50, then: 50, limit: 4, reads: 2, took: 100, thenTook: 100},
		{name: "less than half the writes", writes: 50, then: 24, limit: 4, wantWrote: true},
		{name: "just over half the writes", writes: 50, then: 26, limit: 4},
		{name: "no writes left", writes: 8, then: 0, limit: 4, wantWrote: true},
		{name: "too few writes to tell", writes: 1, then: 0, limit: 4},
		{name: "another limit", writes: 50, then: 10, limit: 5, reads: 2, took: 100, thenTook: 10},
		{name: "lighter reads", limit: 4, reads: 2, took: 100, thenTook: 49, wantReads: true},
		{name: "hardly lighter reads", limit: 4, reads: 2, took: 100, thenTook: 51},
		{name: "heavier reads", limit: 4, reads: 2, took: 100, thenTook: 300},
	} {
		var d demand
		if wrote, read := feed(&d, 4, 40, c.writes, c.reads, c.took*time.Millisecond); wrote || read {
			t.Errorf("%s: halved at once", c.name)
		}
		wrote, read := feed(&d, c.limit, 8, c.then, c.reads, c.thenTook*time.Millisecond)
		if wrote != c.wantWrote || read != c.wantReads {
			t.Errorf("%s: writes halved %t, reads %t", c.name, wrote, read)
		}
	}
	// The highest rate is compared with, not the last one.
	var d demand
	feed(&d, 4, 8, 50, 0, 0)
	if wrote, _ := feed(&d, 4, 8, 30, 0, 0); wrote {
		t.Error("30 of 50 are half")
	}
	if wrote, _ := feed(&d, 4, 8, 24, 0, 0); !wrote {
		t.Error("24 are not half of the 50 that once came")
	}
	// Once told, lighter reads are the new measure, and are told of once.
	d = demand{}
	feed(&d, 4, 8, 0, 2, 100*time.Millisecond)
	told := 0
	for range 40 {
		if _, read := d.halved(4, quarter, 0, 2, 40*time.Millisecond); read {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	// Seven reads are too few.
	d = demand{}
	for range 7 {
		d.halved(4, quarter, 0, 1, time.Second)
	}
	if d.service != 0 {
		t.Errorf("seven reads teach %v", d.service)
	}
	if d.halved(4, quarter, 0, 1, time.Second); d.service != 1 {
		t.Errorf("eight reads teach %v", d.service)
	}
}

// slowBy is own writes with that much more than in calm, in milliseconds, seen from then on.
func slowBy(ms, since float64) pressure.Signal {
	return pressure.Signal{
		Name: pressure.OwnWrites, Baseline: time.Millisecond, Threshold: 1600 * time.Microsecond,
		Value: time.Millisecond + time.Duration(ms*float64(time.Millisecond)), Fresh: true, Since: at(since), Pressing: ms > 0.6,
	}
}

func said(sig pressure.Signal) pressure.Verdict {
	return pressure.Verdict{Known: true, Fresh: sig.Fresh, WritesMove: true, Pressing: sig.Pressing, Signals: []pressure.Signal{sig}}
}

func TestExcess(t *testing.T) {
	if e := excess(slowBy(2, 0)); e != 2e6 {
		t.Errorf("2 ms more are %v", e)
	}
	if e := excess(slowBy(-0.5, 0)); e != 0 {
		t.Errorf("less than in calm is %v", e)
	}
}

func TestRecentParts(t *testing.T) {
	var r recent
	note := func(limit int, contended bool, sig pressure.Signal) {
		r.note(input{limit: limit, contended: contended, verdict: said(sig)})
	}
	check := func(why string, mean float64, n int) {
		t.Helper()
		if m := r.mean(pressure.OwnWrites); m.n != n || m.value() != mean*1e6 {
			t.Errorf("%s: %d windows, mean %v", why, m.n, m.value())
		}
	}
	check("nothing yet", 0, 0)
	for i := range 10 {
		note(4, true, slowBy(float64(i), 0))
	}
	check("the last eight", (2+9)/2.0, 8)
	stale := slowBy(100, 0)
	stale.Fresh = false
	note(4, true, stale)
	check("what is not fresh", (2+9)/2.0, 8)
	if m := r.mean(pressure.WALSync); m.n != 0 {
		t.Errorf("another signal has %d windows", m.n)
	}
	note(3, true, slowBy(1, 0))
	check("another limit", 1, 1)
	note(3, true, slowBy(2, 0))
	check("the same", 1.5, 2)
	note(3, false, slowBy(5, 0))
	check("no contention", 5, 1)
}

func TestSeriesParts(t *testing.T) {
	var before recent
	for range 4 {
		before.note(input{limit: 8, contended: true, verdict: said(slowBy(4, 0))})
	}
	begin := func() *series {
		s := &series{}
		if s.active() {
			t.Fatal("the zero series is active")
		}
		if failed, helped := s.watch(at(0), 4, pressure.Activity{}, said(slowBy(9, 0))); failed || helped {
			t.Fatal("the zero series has a result")
		}
		s.cut(8, slowBy(4, 0), before)
		if !s.active() || s.from != 8 || s.loaded.value() != 4e6 {
			t.Fatalf("it begins as %+v", s)
		}
		return s
	}
	over := pressure.Activity{Running: 5}
	gone := pressure.Activity{Running: 4}

	// While reads above the limit run, what is seen counts as before the cut.
	s := begin()
	s.watch(at(0.25), 4, over, said(slowBy(8, 0)))
	if s.watch(at(0.5), 4, gone, said(slowBy(4, 0))); !s.drained.Equal(at(0.5)) || s.loaded.n != 6 {
		t.Errorf("drained at %v, with %d windows before", s.drained, s.loaded.n)
	}
	// Another cut begins the wait anew, and keeps where it began and what was before.
	s.relieved.add(1)
	s.cut(4, slowBy(9, 0), recent{})
	if s.from != 8 || s.loaded.n != 6 || !s.drained.IsZero() || s.relieved.n != 0 {
		t.Errorf("after another cut: %+v", s)
	}

	type step struct {
		now, since, ms float64
		failed, helped bool
	}
	run := func(name string, steps []step) {
		t.Helper()
		s := begin()
		s.watch(at(0), 4, gone, said(slowBy(4, 0)))
		for i, c := range steps {
			failed, helped := s.watch(at(c.now), 4, gone, said(slowBy(c.ms, c.since)))
			if failed != c.failed || helped != c.helped {
				t.Errorf("%s, step %d: failed %t, helped %t: %+v", name, i, failed, helped, s)
			}
			if helped && s.active() {
				t.Errorf("%s: it goes on", name)
			}
		}
	}
	run("too early", []step{{1, 0, 4, false, false}, {1.25, 0.4, 4, false, false}, {1.5, 0.49, 4, false, false}, {1.75, 0.5, 4, false, false}, {2, 0.5, 4, true, false}})
	run("as bad", []step{{1, 0.5, 4, false, false}, {1.25, 0.75, 4, false, false}, {1.49, 1, 4, false, false}, {1.5, 1, 4, true, false}})
	run("still as bad by a hair", []step{{1, 0.5, 2.9, false, false}, {2, 0.5, 2.9, true, false}})
	run("better by a hair", []step{{1, 0.5, 2.7, false, false}, {2, 0.5, 2.7, false, false}, {3, 0.5, 2.7, false, false}})
	run("bad on average, but not now", []step{{1, 0.5, 8, false, false}, {2, 0.5, 1, false, false}})
	run("bad now, but not on average", []step{{1, 0.5, 0, false, false}, {2, 0.5, 0, false, false}, {3, 0.5, 4, false, false}})
	helps := []step{}
	for i := range 8 {
		helps = append(helps, step{float64(i + 2), 1, 0, false, i == 7})
	}
	run("well", helps)
	for i := range helps {
		helps[i].ms, helps[i].helped = 1, false
	}
	run("better, but pressing", helps)

	// What is absent, or old, is no result.
	s = begin()
	s.watch(at(0), 4, gone, said(slowBy(4, 0)))
	stale := slowBy(4, 1)
	stale.Fresh = false
	other := slowBy(4, 1)
	other.Name = pressure.WALSync
	for range 9 {
		for _, sig := range []pressure.Signal{stale, other} {
			if failed, helped := s.watch(at(9), 4, gone, said(sig)); failed || helped || s.relieved.n > 0 {
				t.Fatalf("it ends by %+v", sig)
			}
		}
	}
	stale.Value = time.Second
	s = begin()
	if s.watch(at(0), 4, over, said(stale)); s.loaded.n != 4 {
		t.Error("what is not fresh counts as before the cut")
	}
}

func TestAcquittalParts(t *testing.T) {
	const short, long = 8 * time.Second, 64 * time.Second
	var q acquittal
	if q.holds(at(0), slowBy(1, 0)) || q.known(at(0), long) != 0 {
		t.Error("the zero acquittal holds")
	}
	q.grant(at(0), 1e6, short, long)
	if !q.holds(at(7.9), slowBy(1, 0)) || q.holds(at(8), slowBy(1, 0)) {
		t.Error("the first does not hold for 8 s")
	}
	if q.known(at(8+64), long) != 1e6 || q.known(at(8+64.1), long) != 0 {
		t.Error("what it found is not known for 64 s more")
	}
	// Soon after, twice as long, to a bound; long after, as at first.
	now := at(10)
	for i, want := range []time.Duration{16, 32, 64, 64} {
		if q.grant(now, 1e6, short, long); q.length != want*time.Second || !q.until.Equal(now.Add(q.length)) {
			t.Errorf("grant %d is for %v", i, q.length)
		}
		now = q.until.Add(long)
	}
	if q.grant(now.Add(1), 1e6, short, long); q.length != short {
		t.Errorf("long after it is for %v", q.length)
	}

	// It ends when the signal is much worse for six fresh periods in a row.
	q = acquittal{}
	q.grant(at(0), 1e6, short, long)
	worse, same := slowBy(2.6, 0), slowBy(2.5, 0)
	old := worse
	old.Fresh = false
	for range 5 {
		if !q.holds(at(1), worse) || !q.holds(at(1), old) {
			t.Fatal("it ends too early")
		}
	}
	if !q.holds(at(1), same) || q.worse != 0 {
		t.Error("2.5 times as slow is much worse")
	}
	for i := range 6 {
		if got := q.holds(at(2), worse); got != (i < 5) {
			t.Fatalf("the sixth in a row does not end it, or period %d does", i)
		}
	}
	if q.holds(at(2), same) || !q.until.Equal(at(2)) || q.worse != 0 {
		t.Errorf("it goes on: %+v", q)
	}
	if q.grant(at(3), 1e6, short, long); q.length != 2*short || q.worse != 0 {
		t.Errorf("the next is %+v", q)
	}
}

func TestAcquittalsTogether(t *testing.T) {
	var q acquittals
	q.of(pressure.OwnWrites).grant(at(0), 1, 8*time.Second, time.Minute)
	q.of(pressure.LockWait).grant(at(4), 1, 8*time.Second, time.Minute)
	if q.of(pressure.OwnWrites) == q.of(pressure.LockWait) || !q.of(pressure.WALSync).until.IsZero() {
		t.Fatal("two signals share one")
	}
	p := q
	p.prolong(at(10))
	if !p.of(pressure.LockWait).until.Equal(at(18)) || !p.of(pressure.OwnWrites).until.Equal(at(8)) || !p.of(pressure.WALSync).until.IsZero() {
		t.Errorf("prolonged: %+v", p)
	}
	p = q
	p.of(pressure.LockWait).worse = 3
	p.revoke(at(10))
	if u := p.of(pressure.LockWait); !u.until.Equal(at(10)) || u.worse != 0 || u.length != 8*time.Second {
		t.Errorf("revoked: %+v", u)
	}
	if !p.of(pressure.OwnWrites).until.Equal(at(8)) || !p.of(pressure.WALSync).until.IsZero() {
		t.Errorf("revoked: %+v", p)
	}
}

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
	for i, want := range []time.Duration{8, 16, 30, 30} {
		if c.end(30 * time.Second); c.length != want*time.Second || c.active() {
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
