package bulkhead

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPermitIsReleasedOnce(t *testing.T) {
	bubble(t, Options{Limit: 2}, func(t *testing.T, b *Bulkhead) {
		var none Permit
		none.Idle()
		none.Busy()
		none.Release()

		old := begin(t, b, "a", 1)
		old.end()
		fresh := begin(t, b, "b", 1) // in the same slot
		if fresh.permit.slot != old.permit.slot {
			t.Fatal("the slot is not used again")
		}
		for range 3 {
			old.permit.Release()
			old.permit.Idle() // must not make the new permit look idle
		}
		if _, idle := fresh.permit.slot.idleSince(b.now()); idle || b.Stat().Running != 1 {
			t.Errorf("an old permit moved a new one: idle %v, %+v", idle, b.Stat())
		}
		fresh.permit.Idle()
		old.permit.Busy()
		if _, idle := fresh.permit.slot.idleSince(b.now()); !idle {
			t.Error("an old permit made a new one busy")
		}
		fresh.end()
	})
}

func TestIdleSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Options{Limit: 1})
		r := begin(t, b, "a", 1)
		slot := r.permit.slot
		for _, d := range []time.Duration{0, time.Second, 24 * time.Hour, 30 * 24 * time.Hour} {
			time.Sleep(d)
			at := b.now()
			r.permit.Idle()
			time.Sleep(3 * time.Hour)
			r.permit.Idle() // changes nothing
			if since, idle := slot.idleSince(b.now()); !idle || since != at {
				t.Errorf("idle %v since %v, want %v", idle, since, at)
			}
			if since, _ := slot.idleSince(at - time.Second); since != at-time.Second {
				t.Errorf("a stamp ahead of the time counts from %v, want %v", since, at-time.Second)
			}
			r.permit.Busy()
			if _, idle := slot.idleSince(b.now()); idle {
				t.Error("busy, and still idle")
			}
		}
		r.end()
	})
}

func TestDoneContextGetsNoPermit(t *testing.T) {
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, mode := range []Mode{Enforce, Shadow, Off} {
			b.SetMode(mode)
			if _, err := b.Acquire(ctx, "a", 1); !errors.Is(err, context.Canceled) {
				t.Errorf("%v: %v", mode, err)
			}
		}
		b.SetMode(Enforce)
		if s := b.Stat(); s.Admitted != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A context that ends in the same instant as the permit is given back: whichever comes
// first, the read does not run and the next one does.
func TestDoneWaiterIsPassedOver(t *testing.T) {
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		holder := begin(t, b, "a", 1)
		first, second := begin(t, b, "b", 1), begin(t, b, "b", 1)
		first.cancel() // not waited for: its goroutine has not run yet
		holder.permit.Release()
		if got := b.Stat(); got.Admitted != 2 || got.Abandoned != 1 || got.Waiting != 0 {
			t.Errorf("the done waiter was granted: %+v", got)
		}
		second.mustRun()
		if err := first.mustFail(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		endAll(holder, first, second)
	})
}

// The other order: granted, and then done before its goroutine has run.
func TestGrantedWaiterThatIsDoneGivesBack(t *testing.T) {
	for range 20 { // the goroutine finds both, and picks one at random
		bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
			holder := begin(t, b, "a", 1)
			first, second := begin(t, b, "b", 1), begin(t, b, "b", 1)
			holder.permit.Release()
			first.cancel()
			if err := first.mustFail(); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			second.mustRun()
			endAll(holder, first, second)
		})
	}
}

// What Off lets through was not held back, also not for the period that it ends in.
func TestOffLeavesNoContentionBehind(t *testing.T) {
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		b.SetMode(Off)
		x, y := begin(t, b, "a", 1), begin(t, b, "b", 1)
		endAll(x, y)
		b.SetMode(Enforce)
		if b.EndPeriod() {
			t.Error("contended")
		}
	})
}

func TestClose(t *testing.T) {
	for _, cause := range []error{nil, errors.New("closed pool")} {
		synctest.Test(t, func(t *testing.T) {
			b := mustNew(t, Options{Limit: 2})
			running := []*read{begin(t, b, "a", 1), begin(t, b, "a", 1)}
			var waiters []*read
			for range 20 {
				waiters = append(waiters, begin(t, b, "b", 1))
			}
			b.Close(cause)
			b.Close(errors.New("a second call counts for nothing"))
			want := cause
			if cause == nil {
				want = ErrClosed
			}
			for _, w := range waiters {
				if err := w.mustFail(); err != want {
					t.Errorf("waiter got %v", err)
				}
			}
			if _, err := b.Acquire(t.Context(), "a", 1); err != want {
				t.Errorf("Acquire got %v", err)
			}
			if _, err := b.TryAcquire("a", 1); err != want {
				t.Errorf("TryAcquire got %v", err)
			}
			endAll(running...)
			b.check(t)
			if s := b.Stat(); s.Running != 0 || s.Waiting != 0 || s.Released != 2 {
				t.Errorf("%+v", s)
			}
			b.SetLimit(1)
			b.SetMode(Off)
			if _, err := b.Acquire(t.Context(), "a", 1); err != want {
				t.Errorf("Acquire in mode off got %v", err)
			}
		})
	}
}

func TestModes(t *testing.T) {
	for _, mode := range []Mode{Shadow, Off} {
		bubble(t, Options{Limit: 2}, func(t *testing.T, b *Bulkhead) {
			reads := []*read{begin(t, b, "a", 2)}
			waiters := []*read{begin(t, b, "b", 1), begin(t, b, "c", 5)}
			b.SetMode(mode)
			for _, w := range waiters {
				w.mustRun() // those that wait go at once
			}
			later := begin(t, b, "d", 1)
			later.mustRun() // and later ones too
			if permit, err := b.TryAcquire("e", 1); err != nil {
				t.Error(err)
			} else {
				permit.Release()
			}
			if got := b.EndPeriod(); got != (mode == Shadow) {
				t.Errorf("%v: contended %v", mode, got)
			}
			if s := b.Stat(); s.Mode != mode || b.Mode() != mode || s.Running != 6 || s.StallSlots != 0 {
				t.Errorf("%v: %+v", mode, s)
			}

			b.SetMode(Enforce) // nothing lost: 6 run, and nobody comes in until they fit
			next := begin(t, b, "f", 1)
			endAll(append(waiters, later)...)
			next.mustWait()
			endAll(reads...)
			next.mustRun()
			next.end()
		})
	}
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		b.SetMode(Mode(42))
		if b.Mode() != Enforce {
			t.Errorf("mode %v", b.Mode())
		}
	})
	for mode, want := range map[Mode]string{Enforce: "enforce", Shadow: "shadow", Off: "off", 7: "Mode(7)"} {
		if mode.String() != want {
			t.Errorf("%d: %s", mode, mode)
		}
	}
}

// What contends, word for word: the limit held a read back, or the period ends with
// reads waiting or running at the limit.
func TestEndPeriod(t *testing.T) {
	bubble(t, Options{Limit: 2}, func(t *testing.T, b *Bulkhead) {
		expect := func(when string, want bool) {
			t.Helper()
			if got := b.EndPeriod(); got != want {
				t.Errorf("%s: contended %v", when, got)
			}
		}
		expect("nothing", false)
		x := begin(t, b, "a", 1)
		expect("below the limit", false)
		y := begin(t, b, "b", 1)
		expect("at the limit", true)
		w := begin(t, b, "c", 1)
		expect("a read waits", true)
		endAll(x, w)
		expect("the read waited, and gave up", true)
		expect("nothing since", false)
		x = begin(t, b, "a", 1)
		w = begin(t, b, "c", 1)
		y.end()
		w.mustRun()
		endAll(x, w)
		expect("a read had waited, and ran", true)
		x = begin(t, b, "a", 2)
		_, err := b.TryAcquire("b", 1)
		x.end()
		if err == nil {
			t.Error("let in above the limit")
		}
		expect("a read was refused at the limit", true)
		expect("nothing since", false)
	})
}

func TestLimitKeepsItsBounds(t *testing.T) {
	bubble(t, Options{Limit: 4, Floor: 2, Ceiling: 8}, func(t *testing.T, b *Bulkhead) {
		for set, want := range map[int]int{-5: 2, 0: 2, 1: 2, 5: 5, 8: 8, 9: 8, 1 << 40: 8} {
			if b.SetLimit(set); b.Limit() != want {
				t.Errorf("SetLimit(%d): %d, want %d", set, b.Limit(), want)
			}
		}
		for _, bad := range [][3]int{{0, 4, 8}, {0, 0, 8}, {5, 4, 8}, {2, 9, 8}, {9, 9, 8}, {-1, -1, -1}} {
			if err := b.SetBounds(bad[0], bad[1], bad[2]); err == nil || !strings.Contains(err.Error(), "want at ") {
				t.Errorf("SetBounds(%v): %v", bad, err)
			}
		}
		if f, s, c := b.Bounds(); f != 2 || s != 4 || c != 8 {
			t.Errorf("bounds %d, %d, %d after errors", f, s, c)
		}
		b.SetLimit(8)
		r := begin(t, b, "a", 8)
		if err := b.SetBounds(1, 2, 3); err != nil || b.Limit() != 3 {
			t.Errorf("limit %d under a new ceiling of 3, %v", b.Limit(), err)
		}
		w := begin(t, b, "b", 3)
		r.end()
		w.mustRun()
		if err := b.SetBounds(6, 6, 6); err != nil || b.Limit() != 6 {
			t.Errorf("limit %d over a new floor of 6, %v", b.Limit(), err)
		}
		w.end()
	})
	bubble(t, Options{Limit: 4}, func(t *testing.T, b *Bulkhead) {
		b.SetLimit(9) // no ceiling was given
		if f, s, c := b.Bounds(); b.Limit() != 9 || f != 1 || s != 4 || c != 9 {
			t.Errorf("limit %d, bounds %d, %d, %d", b.Limit(), f, s, c)
		}
	})
	bubble(t, Options{Ceiling: 7}, func(t *testing.T, b *Bulkhead) {
		if b.Limit() != 7 {
			t.Errorf("limit %d, want the ceiling", b.Limit())
		}
	})
}

func TestMaxPermits(t *testing.T) {
	bubble(t, Options{Limit: 10, MaxPermits: 2}, func(t *testing.T, b *Bulkhead) {
		x, y := begin(t, b, "a", 1), begin(t, b, "b", 1)
		w := begin(t, b, "c", 1)
		w.mustWait()
		b.check(t)
		if !b.EndPeriod() {
			t.Error("a read waits: contended")
		}
		x.end()
		w.mustRun()
		endAll(y, w)
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "Limit is 0"},
		{Options{Limit: -1}, "Limit is -1: want at least 1"},
		{Options{Limit: 4, Floor: -2}, "Floor is -2: want at least 1"},
		{Options{Limit: 4, Floor: 5}, "Floor is 5: want at most Ceiling (4)"},
		{Options{Limit: 4, Floor: 5, Ceiling: 8}, "Limit is 4: want at least Floor (5)"},
		{Options{Limit: 9, Ceiling: 8}, "Limit is 9: want at most Ceiling (8)"},
		{Options{Limit: 4, Ceiling: -8}, "Ceiling is -8: want at least 1"},
		{Options{Limit: 4, MaxCallers: -1}, "MaxCallers is -1: want at least 1"},
		{Options{Limit: 4, MaxPermits: -1}, "MaxPermits is -1: want at least 1"},
		{Options{Limit: 4, MaxWait: -time.Second}, "MaxWait is -1s: want at least"},
		{Options{Limit: 4, Window: -time.Second}, "Window is -1s: want at least"},
		{Options{Limit: 4, StallAfter: time.Nanosecond}, "StallAfter is 1ns: want at least 1µs"},
		{Options{Limit: 4, BusyStall: -1}, "BusyStall is -1ns: want at least 1µs"},
	} {
		_, err := New(c.o)
		if err == nil || !strings.HasPrefix(err.Error(), "pgyield: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
	o := Options{Limit: 4}
	o.Demerit.PerDenial = -1
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "PerDenial is -1") {
		t.Errorf("%v", err)
	}
}

func TestStat(t *testing.T) {
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		x := begin(t, b, "a", 1)
		y := begin(t, b, "a", 1)
		z := beginFor(t, b, "a", 1, time.Millisecond)
		time.Sleep(30 * time.Millisecond)
		x.end()
		time.Sleep(20 * time.Millisecond)
		endAll(y, z)
		s := b.Stat()
		if s.Admitted != 2 || s.Waited != 1 || s.Released != 2 || s.Abandoned != 1 || s.HeldTime != 50*time.Millisecond {
			t.Errorf("%+v", s)
		}
		if len(s.RefusedBy) != len(Reasons()) {
			t.Errorf("reasons %v", s.RefusedBy)
		}
		h := s.Waits
		if h.Count != 2 || h.Sum != 0.03 || len(h.Bounds) != len(h.Counts) {
			t.Errorf("%+v", h)
		}
		for i, bound := range h.Bounds { // cumulative: one waited 0, one 30 ms
			want := uint64(1)
			if bound >= 0.03 {
				want = 2
			}
			if h.Counts[i] != want {
				t.Errorf("%d waits up to %v s, want %d", h.Counts[i], bound, want)
			}
		}
		h.Counts[0], s.RefusedBy[ReasonCap] = 99, 99
		if s := b.Stat(); s.Waits.Counts[0] == 99 || s.RefusedBy[ReasonCap] == 99 {
			t.Error("a snapshot shares with the next")
		}
	})
}
