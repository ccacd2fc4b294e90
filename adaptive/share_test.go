package adaptive

import (
	"testing"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// sharer is a limit that others share.
type sharer struct {
	limit  int
	behind bool
	holds  bool // as it was told
}

func (s *sharer) Limit() int              { return s.limit }
func (s *sharer) SetLimit(n int)          { s.limit = n }
func (s *sharer) EndPeriod() bool         { return true }
func (s *sharer) Bounds() (int, int, int) { return 1, 8, 8 }

func (s *sharer) Beside(holds bool) (behind bool) {
	s.holds = holds
	return s.behind
}

// TestBehindClimbsPastAHold: a limit that holds below a level tells so, and climbs past it
// in calm where others that see the same writes run more.
func TestBehindClimbsPastAHold(t *testing.T) {
	s := &sharer{limit: 3}
	l, err := New(s, nil, Options{Activity: func() (a pressure.Activity) {
		var w pressure.Writes
		for range 50 {
			w.Observe(time.Millisecond)
		}
		a.Running, a.Waiting, a.Writes = s.limit, 5, w.Take()
		return a
	}, Pressure: pressure.Options{OwnWrites: 20 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	l.state.hold = hold{level: 4, until: time.Now().Add(time.Hour), length: time.Hour}
	for range 3 {
		if d := l.Evaluate(t.Context()); d.To != 3 || d.Reason != reasonHold || !s.holds {
			t.Fatalf("%d, holds %v: %s; want 3, held", d.To, s.holds, d.Reason)
		}
	}
	s.behind = true
	if d := l.Evaluate(t.Context()); d.To != 4 {
		t.Fatalf("behind others it goes to %d, want 4: %s", d.To, d.Reason)
	}
}
