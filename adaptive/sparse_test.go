package adaptive

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// sparse is a server of a large fleet's member: each poll waits for its turn. Syncs are slow
// while reads run at more than so many.
type sparse struct {
	*server
	limit    *fixed
	every    time.Duration
	bearable int // guarded by the server's lock
	due      time.Time
}

func (s *sparse) bear(reads int) { s.set(func() { s.bearable = reads }) }

// history is what was decided since it was last taken.
type history struct {
	mu   sync.Mutex
	list []Decision
}

func (h *history) add(d Decision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, d)
}

func (h *history) take() []Decision {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.list
	h.list = nil
	return list
}

func (s *sparse) Paced() {}

func (s *sparse) Sample(ctx context.Context) (pressure.Sample, error) {
	select {
	case <-ctx.Done():
		return pressure.Sample{}, ctx.Err()
	case <-time.After(time.Until(s.due)):
	}
	s.set(func() {
		s.sync = 200 * time.Microsecond
		if s.limit.Limit() > s.bearable {
			s.sync = 2 * time.Millisecond
		}
	})
	sample, err := s.server.Sample(ctx)
	sample.Every = s.every
	s.due = time.Now().Add(s.every)
	return sample, err
}

// startSparse starts the limit of a member that polls so rarely. Until bear says less 16 reads
// are bearable.
func startSparse(t *testing.T, every time.Duration, contended bool) (*Limit, *sparse, *history) {
	t.Helper()
	f := newFixed(16, Bounds{1, 16, 16})
	f.set(contended)
	src, made := &sparse{server: &server{}, limit: f, every: every, bearable: 16}, &history{}
	l, err := New(f, src, Options{Pressure: pressure.Options{Timeout: time.Minute}, OnDecision: made.add})
	if err != nil {
		t.Fatal(err)
	}
	l.Start()
	time.Sleep(3 * every)
	return l, src, made
}

// TestSparsePolls: members of a large fleet poll each 5 to 50 s. What the server shows of
// writes that are not theirs lowers their limits all the same; between two polls it stands.
func TestSparsePolls(t *testing.T) {
	for _, every := range []time.Duration{3 * time.Second, 10 * time.Second, 50 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l, src, made := startSparse(t, every, false)
			defer l.Stop()
			f := src.limit
			polls := func(n int) []Decision {
				made.take()
				time.Sleep(time.Duration(n) * every)
				decisions := made.take()
				for _, d := range decisions {
					if d.Reason == reasonUnknown || d.Reason == reasonDrift || l.Blind() {
						t.Fatalf("polls each %v: %s at %v, blind %t", every, d.Reason, d.At, l.Blind())
					}
				}
				return decisions
			}
			polls(10)
			f.set(true)
			polls(3)
			if f.Limit() != 16 {
				t.Fatalf("polls each %v, calm and contended: limit %d", every, f.Limit())
			}
			src.bear(4)
			for second := src.polls() + 2; src.polls() < second; {
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(time.Second)
			if f.Limit() != 8 {
				t.Errorf("polls each %v: limit %d after two that saw slow writes, %s", every, f.Limit(), l.LastDecision().Reason)
			}
			polls(10)
			for _, d := range polls(20) { // what is tried above 4 takes two polls to show
				if d.To > 7 {
					t.Errorf("polls each %v: limit %d where 4 are bearable, %s", every, d.To, d.Reason)
					break
				}
			}
			// It rises no faster than is looked.
			src.bear(16)
			rises := slices.DeleteFunc(polls(20), func(d Decision) bool { return d.To <= d.From })
			for i, d := range rises {
				if d.To > d.From+1 || i > 0 && d.At.Sub(rises[i-1].At) < every-time.Second {
					t.Errorf("polls each %v: from %d to %d at %v, %s", every, d.From, d.To, d.At, d.Reason)
				}
			}
			if len(rises) == 0 {
				t.Errorf("polls each %v: it does not rise in calm: %s", every, l.LastDecision().Reason)
			}
		})
	}
}

// TestSparsePollsDoNotDip: a dip for a first baseline is over before the next poll, and would
// only hold reads back.
func TestSparsePollsDoNotDip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, src, made := startSparse(t, 10*time.Second, true)
		defer l.Stop()
		time.Sleep(20 * src.every)
		for _, d := range made.take() {
			if d.Reason == reasonBaseline || d.To < 16 {
				t.Fatalf("limit %d at %v: %s", d.To, d.At, d.Reason)
			}
		}
	})
}

// TestSparsePollsBlameless: writes are slow whatever the reads do.
func TestSparsePollsBlameless(t *testing.T) {
	for _, every := range []time.Duration{3 * time.Second, 10 * time.Second, 20 * time.Second, 50 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l, src, made := startSparse(t, every, false)
			defer l.Stop()
			time.Sleep(10 * every)
			src.limit.set(true)
			time.Sleep(3 * every)
			src.bear(0)
			made.take()
			time.Sleep(200 * every)
			high, all := 0, made.take()
			for _, d := range all {
				if d.To >= 8 {
					high++
				}
			}
			share := float64(high) / float64(len(all))
			t.Logf("polls each %v: at half the limit or more %.0f %% of the time", every, 100*share)
			if share < 0.7 {
				t.Errorf("polls each %v: at half the limit or more %.0f %% of the time, want 70", every, 100*share)
			}
		})
	}
}
