package adaptive

import (
	"testing"
	"time"
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
	for i, want := range []int{16, 32, 64, 64} {
		h.raised(4, at(100))
		if h.pressed(4, at(100), false, short, long); h.length != time.Duration(want)*time.Second || !h.until.Equal(at(100).Add(h.length)) || h.level != 4 || h.probing {
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
		took, thenTook       int // milliseconds
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
		if wrote, read := feed(&d, 4, 40, c.writes, c.reads, time.Duration(c.took)*time.Millisecond); wrote || read {
			t.Errorf("%s: halved at once", c.name)
		}
		wrote, read := feed(&d, c.limit, 8, c.then, c.reads, time.Duration(c.thenTook)*time.Millisecond)
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

// TestHoldDoubted: a cut that proves nothing waits a little, and shortens nothing.
func TestHoldDoubted(t *testing.T) {
	var h hold
	h.doubted(4, at(0), 2*time.Second)
	if !h.blocks(4, at(1.9)) || h.blocks(4, at(2)) || h.blocks(3, at(0)) {
		t.Errorf("held at 4 for two seconds: %+v", h)
	}
	h.pressed(4, at(10), false, 8*time.Second, 64*time.Second)
	if h.length != 8*time.Second {
		t.Errorf("the first proof holds for %v", h.length)
	}
	h = hold{level: 4, length: 64 * time.Second, until: at(100), probing: true}
	h.doubted(5, at(50), 2*time.Second)
	if want := (hold{level: 4, length: 64 * time.Second, until: at(100)}); h != want {
		t.Errorf("a doubt at 5 makes it %+v", h)
	}
	if h.doubted(2, at(99), 2*time.Second); h.level != 2 || !h.until.Equal(at(101)) || h.length != 64*time.Second {
		t.Errorf("a doubt at 2 makes it %+v", h)
	}
	h = hold{}
	h.doubted(4, at(0), 2*time.Second)
	if h.pressed(2, at(1), true, 8*time.Second, 64*time.Second); h.level != 2 || !h.until.Equal(at(9)) {
		t.Errorf("a proof at 2 on the way down from a doubt at 4 makes it %+v", h)
	}
}
