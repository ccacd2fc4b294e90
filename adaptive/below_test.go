package adaptive

import (
	"testing"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// windows is a below that lives from window to window.
type windows struct {
	below
	now    time.Time
	own    pressure.Signal
	bounds Bounds
	count  int // writes in a period
}

func newWindows() *windows {
	return &windows{now: at(0), bounds: wide, count: 50, own: pressure.Signal{Name: pressure.OwnWrites, Threshold: 2 * time.Millisecond}}
}

// see takes in periods at a limit, in each of which all writes took that many milliseconds.
func (w *windows) see(limit, running int, took ...float64) {
	for _, ms := range took {
		w.now = w.now.Add(DefaultPeriod)
		var writes pressure.Writes
		p90 := time.Duration(ms * float64(time.Millisecond))
		for range w.count {
			writes.Observe(p90)
		}
		in := input{now: w.now, limit: limit, bounds: w.bounds, contended: true}
		in.activity.Running, in.activity.Writes = running, writes.Take()
		w.own.Pressing = p90 > w.own.Threshold
		w.note(in, DefaultPeriod, w.own)
	}
}

// times is one value many times over.
func times(n int, ms float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = ms
	}
	return list
}

// mixed is a floor where one window in four is slow.
func mixed(w *windows) {
	for range 10 {
		w.see(1, 1, 1, 1, 1, 3)
	}
}

func TestBelowHasNoSayWhereNoneWereSlow(t *testing.T) {
	w := newWindows()
	if w.excuses(w.now, w.own) || w.leaves(w.now, w.own) {
		t.Error("nothing was seen, and it excuses")
	}
	w.see(1, 1, times(30, 1)...)
	w.see(2, 2, 1, 1, 1, 1, 1, 1, 3)
	if w.excuses(w.now, w.own) || w.leaves(w.now, w.own) {
		t.Error("no window below was slow, and a slow one is excused")
	}
}

func TestBelowExcusesWhatIsAsBelow(t *testing.T) {
	w := newWindows()
	mixed(w)
	w.see(2, 2, 3)
	if w.excuses(w.now, w.own) {
		t.Error("a level that has borne nothing is excused")
	}
	weighed := input{now: w.now, contended: true, verdict: pressure.Verdict{Signals: []pressure.Signal{w.own}}}
	if !w.leaves(w.now, w.own) || !w.undecided(weighed) {
		t.Errorf("one window is a proof: %.1f", w.level().evidence)
	}
	for range 20 {
		w.see(2, 2, 1, 1, 1, 3)
		if !w.excuses(w.now, w.own) {
			t.Fatalf("windows as those below prove something: %.1f", w.level().evidence)
		}
	}
}

func TestBelowProves(t *testing.T) {
	w := newWindows()
	mixed(w)
	w.see(2, 2, 1, 1, 1, 1, 1, 1)
	seen := 0
	for w.see(2, 2, 4); w.doubts(w.now, w.own); w.see(2, 2, 4) {
		if seen++; seen > 4 {
			t.Fatalf("windows slower than all below prove nothing: %.1f", w.level().evidence)
		}
	}
	if w.leaves(w.now, w.own) {
		t.Error("it is left without a proof")
	}
	if seen == 0 {
		t.Error("one window is a proof")
	}
}

// TestBelowLearnsWhatTheLimitDid: not what reads did that ran above it, nor the backlog they left.
func TestBelowLearnsWhatTheLimitDid(t *testing.T) {
	w := newWindows()
	w.see(1, 16, times(20, 30)...)
	if w.levels[0].n != 0 {
		t.Errorf("%d windows beside sixteen reads count for a limit of one", w.levels[0].n)
	}
	w.see(1, 1, 30, 30, 1, 1)
	if w.levels[0].n != 1 {
		t.Errorf("%d windows count, want the one that began half a second after the reads were gone", w.levels[0].n)
	}
	w = newWindows()
	mixed(w)
	w.see(4, 4, 1, 1, 1, 1)
	if w.see(2, 2, 9, 9); w.seen != 0 || w.level().evidence != 0 {
		t.Errorf("the backlog of four is evidence against two: %.1f", w.level().evidence)
	}
	if w.see(4, 4, 9); w.seen != 1 || w.level().evidence == 0 {
		t.Error("the first window after a raise is no evidence")
	}
}

func TestBelowLeftTooOften(t *testing.T) {
	w := newWindows()
	mixed(w)
	for range belowTries {
		w.see(2, 2, 2.5)
		if w.excuses(w.now, w.own) {
			t.Fatal("excused too soon")
		}
		if !w.leaves(w.now, w.own) {
			t.Fatalf("proved: %.1f", w.level().evidence)
		}
		w.see(1, 1, 1, 1, 3, 1, 1, 1)
	}
	w.see(2, 2, 2.5)
	if !w.excuses(w.now, w.own) {
		t.Errorf("left %d times without a proof, and left again", w.level().left)
	}
}

func TestBelowForgets(t *testing.T) {
	w := newWindows()
	mixed(w)
	w.see(2, 2, 1, 1, 1, 1, 1, 3)
	if !w.excuses(w.now, w.own) || w.excuses(w.now.Add(belowAge+time.Second), w.own) {
		t.Error("what was seen long ago has a say, or what was just seen has none")
	}
	if other := (pressure.Signal{Name: pressure.WALSync, Threshold: 1}); w.excuses(w.now, other) {
		t.Error("another signal is excused")
	}
}

// TestBelowLongRows: a level that is slow all the time is no better for being as slow as the
// rows of slow windows below.
func TestBelowLongRows(t *testing.T) {
	w := newWindows()
	for range 5 {
		w.see(1, 1, 1, 1, 1, 1, 3, 3, 3)
	}
	w.see(2, 2, 1, 1, 1, 1, 1)
	for n := 0; w.doubts(w.now, w.own) || n == 0; n++ {
		if n > 2*3+belowBears {
			t.Fatalf("%d slow windows in a row prove nothing, where no more than three were below", n)
		}
		w.see(2, 2, 3)
	}
}

// TestBelowFewWrites: a window lasts until there are enough.
func TestBelowFewWrites(t *testing.T) {
	w := newWindows()
	few := func(limit int, ms float64) {
		w.count = 3
		w.see(limit, limit, ms)
	}
	for range 60 {
		few(1, 1)
	}
	if n := w.levels[0].n; n < 15 || n > 20 {
		t.Errorf("60 periods of three writes are %d windows", n)
	}
	few(2, 5)
	few(2, 5)
	if w.seen != 0 {
		t.Error("six writes are a window")
	}
	if few(2, 5); w.seen != 1 {
		t.Error("nine are none")
	}
}

// TestBelowHighFloor: the limit that a cut leads to counts as lower, whatever its length in bits.
func TestBelowHighFloor(t *testing.T) {
	for _, limits := range [][2]int{{2, 3}, {9, 12}, {100_000, 131_071}} {
		w := newWindows()
		w.bounds = Bounds{Floor: limits[0], Start: 1 << 20, Ceiling: 1 << 20}
		for range 10 {
			w.see(limits[0], limits[0], 1, 1, 1, 3)
		}
		if w.doubts(w.now, w.own) {
			t.Errorf("floor %d: there is nothing below it", limits[0])
		}
		for range 20 {
			w.see(limits[1], limits[1], 1, 1, 1, 1, 1, 3)
		}
		if !w.excuses(w.now, w.own) {
			t.Errorf("at %d what was seen at the floor of %d has no say", limits[1], limits[0])
		}
	}
	w := newWindows()
	w.see(-3, 0, 1)
	w.see(0, 0, 1)
}

// TestBelowEvidenceEnds: what an hour of overload proved is outgrown, and grows old.
func TestBelowEvidenceEnds(t *testing.T) {
	w := newWindows()
	mixed(w)
	for range 100 {
		w.see(2, 2, 9, 9)
		w.see(1, 1, 1)
	}
	if e := w.levels[2].evidence; e < belowProof || e > 2*belowProof {
		t.Errorf("the evidence is %.1f", e)
	}
	old := *w
	w.see(2, 2, times(30, 1)...)
	if w.level().evidence > 0 {
		t.Errorf("after thirty calm windows the evidence is %.1f", w.level().evidence)
	}
	old.now = old.now.Add(belowAge + time.Second)
	if old.see(2, 2, 1); old.level().evidence > 0 {
		t.Errorf("after %v the evidence is %.1f", belowAge, old.level().evidence)
	}
	w.own.Threshold = 0
	if w.see(1, 1, 1); w.levels[0].n > 0 {
		t.Error("nothing says what slow is, and windows are kept")
	}
}

// TestBelowComparesLikeWithLike: a slow window after a calm one says more than one in a row of
// slow ones, where those below came in rows.
func TestBelowComparesLikeWithLike(t *testing.T) {
	w := newWindows()
	for range 4 {
		w.see(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3)
	}
	w.see(2, 2, 1)
	first, _, _ := w.compare(belowWindow{at: w.now.Sub(w.born), p90: 2900 * time.Microsecond})
	later, _, ok := w.compare(belowWindow{at: w.now.Sub(w.born), p90: 2900 * time.Microsecond, after: true})
	if !ok || first < 1 || later > 0 {
		t.Errorf("the first of a row scores %.1f, one within it %.1f", first, later)
	}
}
