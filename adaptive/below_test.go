package adaptive

import (
	"testing"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// windows is a below that lives from window to window.
type windows struct {
	below
	now time.Time
	own pressure.Signal
}

func newWindows() *windows {
	return &windows{now: at(0), own: pressure.Signal{Name: pressure.OwnWrites, Threshold: 2 * time.Millisecond}}
}

// see takes in periods at a limit, in each of which all writes took that many milliseconds.
func (w *windows) see(limit, running int, took ...float64) {
	for _, ms := range took {
		w.now = w.now.Add(DefaultPeriod)
		var writes pressure.Writes
		p90 := time.Duration(ms * float64(time.Millisecond))
		for range 50 {
			writes.Observe(p90)
		}
		in := input{now: w.now, limit: limit, bounds: wide, contended: true}
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
	if !w.leaves(w.now, w.own) || !w.undecided(w.now, pressure.Verdict{Signals: []pressure.Signal{w.own}}) {
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
	if w.levels[1].n != 0 {
		t.Errorf("%d windows beside sixteen reads count for a limit of one", w.levels[1].n)
	}
	w.see(1, 1, 30, 30, 1, 1)
	if w.levels[1].n != 1 {
		t.Errorf("%d windows count, want the one that began half a second after the reads were gone", w.levels[1].n)
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
