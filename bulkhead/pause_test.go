package bulkhead

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// pauseIt pauses b, or with a limit ends the pause.
func pauseIt(t *testing.T, b *Bulkhead, limit int) {
	t.Helper()
	err := b.SetBounds(min(limit, 1), limit, limit)
	if b.SetLimit(limit); err != nil || b.Limit() != limit {
		t.Fatalf("limit %d, want %d: %v", b.Limit(), limit, err)
	}
	synctest.Wait()
}

func TestPauseLetsNothingIn(t *testing.T) {
	bubble(t, Options{Limit: 4}, func(t *testing.T, b *Bulkhead) {
		pauseIt(t, b, 0)
		if b.EndPeriod() {
			t.Error("contended, though nobody came")
		}
		var refused *RefusedError
		if _, err := b.TryAcquire("a", 1); !errors.As(err, &refused) || refused.Reason != ReasonLimit || refused.Limit != 0 {
			t.Errorf("a read that may not wait: %v", err)
		}
		if !b.EndPeriod() {
			t.Error("a refusal in a pause is no contention")
		}
		x, y := begin(t, b, "a", 1), begin(t, b, "b", 9)
		b.SetLimit(4) // the ceiling is 0
		time.Sleep(50 * time.Second)
		x.mustWait()
		y.mustWait()
		if s := b.Stat(); s.Running != 0 || s.Limit != 0 || s.Overdrafts() != 0 {
			t.Errorf("in a pause: %+v", s)
		}
		pauseIt(t, b, 4)
		x.mustRun()
		y.mustWait() // its cost is the whole limit
		x.end()
		y.mustRun()
		if s := b.Stat(); s.Running != 4 {
			t.Errorf("a read of cost 9 runs with %d of 4", s.Running)
		}
		y.end()
	})
}

// TestPauseLeavesWhatRuns lowers the limit to 0 beneath a read, which goes on.
func TestPauseLeavesWhatRuns(t *testing.T) {
	bubble(t, Options{Limit: 2}, func(t *testing.T, b *Bulkhead) {
		x := begin(t, b, "a", 2)
		pauseIt(t, b, 0)
		if !b.EndPeriod() || b.Stat().Running != 2 {
			t.Errorf("a read above the limit is no contention: %+v", b.Stat())
		}
		w := begin(t, b, "b", 1)
		x.end()
		w.mustWait()
		pauseIt(t, b, 2)
		w.mustRun()
		w.end()
	})
}

// TestNestedReadsGoOnInAPause: a loop over rows that reads within must not wait for the
// end of a pause at each row, but pays for its first stall as ever.
func TestNestedReadsGoOnInAPause(t *testing.T) {
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		rows := begin(t, b, "a", 1)
		pauseIt(t, b, 0)
		rows.permit.Idle()
		started := time.Now()
		for range 1000 {
			nested, err := b.Acquire(t.Context(), "a", 7)
			if err != nil {
				t.Fatal(err)
			}
			if s := b.Stat(); s.Running != 2 {
				t.Fatalf("the loop's read and the nested one run with %d, want 1 each", s.Running)
			}
			nested.Release()
		}
		if took := time.Since(started); took > 2*b.stallAfter {
			t.Errorf("1,000 nested reads waited %v", took)
		}
		rows.end() // and with it the slot
		w := begin(t, b, "a", 1)
		time.Sleep(10 * time.Second)
		w.mustWait()
		pauseIt(t, b, 1)
		w.mustRun()
		w.end()
	})
}

// TestStallAfterAPause: what stalls right after a pause is helped as early as ever, though
// in the pause nothing could stall.
func TestStallAfterAPause(t *testing.T) {
	for _, waits := range []bool{true, false} {
		bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
			pauseIt(t, b, 0)
			early := begin(t, b, "a", 1)
			if !waits {
				early.end()
			}
			pauseIt(t, b, 1)
			rows := early
			if !waits {
				rows = begin(t, b, "a", 1)
			}
			rows.mustRun()
			rows.permit.Idle()
			nested := begin(t, b, "a", 1)
			time.Sleep(2 * b.stallAfter)
			nested.mustRun()
			endAll(nested, rows)
		})
	}
}

// TestPauseThatNobodyEnds lets a read go once a minute.
func TestPauseThatNobodyEnds(t *testing.T) {
	bubble(t, Options{Limit: 4}, func(t *testing.T, b *Bulkhead) {
		pauseIt(t, b, 0)
		var reads []*read
		for range 3 {
			reads = append(reads, begin(t, b, "a", 1))
		}
		for i, r := range reads {
			time.Sleep(59 * time.Second)
			r.mustWait()
			time.Sleep(time.Second)
			r.mustRun()
			if s := b.Stat(); s.Running != 1 || int(s.BusyStalls) != i+1 {
				t.Errorf("%+v", s)
			}
			r.end()
		}
		pauseIt(t, b, 4)
	})
}

// TestDeniedInAPause charges as at a limit of 1: who has one read alone is within its
// share.
func TestDeniedInAPause(t *testing.T) {
	bubble(t, Options{Limit: 4}, func(t *testing.T, b *Bulkhead) {
		pauseIt(t, b, 0)
		one := beginFor(t, b, "one", 1, time.Second)
		many := []*read{beginFor(t, b, "many", 1, time.Second), beginFor(t, b, "many", 1, time.Second)}
		for _, r := range append(many, one) {
			if err := r.mustFail(); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if got := demeritOf(b, "one"); got != 0 {
			t.Errorf("one read that was denied costs its caller %v", got)
		}
		if got := demeritOf(b, "many"); got != 1 {
			t.Errorf("the second of two that were denied costs its caller %v, want 1", got)
		}
		pauseIt(t, b, 4)
	})
}

// TestRetryAfterAPause comes back when the pause is likely to be over.
func TestRetryAfterAPause(t *testing.T) {
	bubble(t, Options{Limit: 4}, func(t *testing.T, b *Bulkhead) {
		retryAfter := func() time.Duration {
			var refused *RefusedError
			if _, err := b.TryAcquire("a", 1); !errors.As(err, &refused) {
				t.Fatal(err)
			}
			return refused.RetryAfter
		}
		pauseIt(t, b, 0)
		time.Sleep(4 * time.Second)
		if got := retryAfter(); got < 3*time.Second || got > 6*time.Second {
			t.Errorf("4 s into the first pause: %v, want about as long again", got)
		}
		pauseIt(t, b, 4)
		time.Sleep(time.Second)
		pauseIt(t, b, 0)
		time.Sleep(3 * time.Second)
		if got := retryAfter(); got < 750*time.Millisecond || got > 1500*time.Millisecond {
			t.Errorf("3 s into a pause after one of 4 s: %v, want about 1 s", got)
		}
		pauseIt(t, b, 4)
	})
}

// TestPauseInOtherModes holds back nothing where nothing is to be held back.
func TestPauseInOtherModes(t *testing.T) {
	for _, mode := range []Mode{Shadow, Off} {
		bubble(t, Options{Limit: 2}, func(t *testing.T, b *Bulkhead) {
			pauseIt(t, b, 0)
			w := begin(t, b, "a", 5)
			w.mustWait()
			b.SetMode(mode)
			w.mustRun()
			x := begin(t, b, "a", 1)
			x.mustRun()
			if s := b.Stat(); s.Running != 2 || b.EndPeriod() != (mode == Shadow) {
				t.Errorf("%v: %+v", mode, s)
			}
			endAll(w, x)
			b.SetMode(Enforce)
			pauseIt(t, b, 2)
		})
	}
}
