package adaptive

import (
	"testing"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

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
	for i, want := range []int{16, 32, 64, 64} {
		if q.grant(now, 1e6, short, long); q.length != time.Duration(want)*time.Second || !q.until.Equal(now.Add(q.length)) {
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
