package bulkhead

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// loop is a program that opens rows and runs a read of a millisecond for each: what
// would deadlock a plain limit.
func loop(t *testing.T, b *Bulkhead, rows int, peak *atomic.Int64) {
	outer, err := b.Acquire(t.Context(), "loop", 1)
	if err != nil {
		t.Error(err)
		return
	}
	defer outer.Release()
	time.Sleep(time.Microsecond) // the first row is on its way
	for range rows {
		outer.Idle()
		nested, err := b.Acquire(t.Context(), "loop", 1)
		if err != nil {
			t.Error(err)
			return
		}
		if n := int64(b.Stat().Permits); n > peak.Load() {
			peak.Store(n)
		}
		time.Sleep(time.Millisecond)
		nested.Release()
		outer.Busy()
	}
}

func TestNestedReadsPayOnce(t *testing.T) {
	for _, c := range []struct {
		loops, rows int
		most        time.Duration
	}{
		{1, 1000, 1110 * time.Millisecond},
		{8, 100, 1650 * time.Millisecond},
	} {
		bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
			var peak atomic.Int64
			var wg sync.WaitGroup
			start := time.Now()
			for range c.loops {
				wg.Go(func() { loop(t, b, c.rows, &peak) })
			}
			wg.Wait()
			if took := time.Since(start); took > c.most {
				t.Errorf("%d loops of %d rows took %v, want at most %v", c.loops, c.rows, took, c.most)
			}
			if peak.Load() > 2 {
				t.Errorf("%d loops: %d ran at once, want at most 2", c.loops, peak.Load())
			}
			if s := b.Stat(); s.StallSlots != uint64(c.loops*c.rows) || s.BusyStalls != 0 {
				t.Errorf("%d loops: %d reads by stall slots, %d by busy stalls", c.loops, s.StallSlots, s.BusyStalls)
			}
		})
	}
}

// Loops that all start before any has its first row: the newest waiter is another
// loop, which stalls in the slot itself. It still ends, and soon.
func TestLoopsThatStartTogether(t *testing.T) {
	for _, limit := range []int{1, 4} {
		bubble(t, Options{Limit: limit}, func(t *testing.T, b *Bulkhead) {
			var wg sync.WaitGroup
			start := time.Now()
			for range 8 {
				wg.Go(func() {
					outer, _ := b.Acquire(t.Context(), "loop", 1)
					defer outer.Release()
					for range 50 {
						outer.Idle()
						nested, _ := b.Acquire(t.Context(), "loop", 1)
						time.Sleep(time.Millisecond)
						nested.Release()
						outer.Busy()
					}
				})
			}
			wg.Wait()
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("limit %d: took %v", limit, took)
			}
		})
	}
}

func TestRowsInRowsInRows(t *testing.T) {
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		start := time.Now()
		var nest func(depth int)
		nest = func(depth int) {
			p, err := b.Acquire(t.Context(), "a", 1)
			if err != nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond)
			for range 2 {
				if depth > 1 {
					p.Idle()
					nest(depth - 1)
					p.Busy()
				}
			}
			p.Release()
			b.check(t)
		}
		nest(5)
		if took := time.Since(start); took > 1600*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestStallSlotGoesToTheNewestAndThenToArrivals(t *testing.T) {
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		outer := begin(t, b, "a", 1)
		older := begin(t, b, "b", 1)
		outer.permit.Idle()
		time.Sleep(20 * time.Millisecond)
		newest := begin(t, b, "a", 1)
		time.Sleep(79 * time.Millisecond)
		newest.mustWait() // 99 ms idle
		time.Sleep(time.Millisecond)
		newest.mustRun()
		older.mustWait()

		for range 10 { // the slot is taken at once by those that come
			outer.permit.Busy()
			newest.end()
			older.mustWait()
			outer.permit.Idle()
			newest = begin(t, b, "a", 1)
			newest.mustRun()
			another := begin(t, b, "c", 1)
			another.mustWait() // one above the limit, no more
			another.end()
			b.check(t)
		}
		if s := b.Stat(); s.StallSlots != 11 || s.Running != 2 || s.Overdrafts() != 11 {
			t.Errorf("%+v", s)
		}

		outer.end() // the stalled permit: the slot closes, and the limit is full
		older.mustWait()
		newest.end()
		older.mustRun()
		arrival := begin(t, b, "a", 1)
		arrival.mustWait()
		endAll(arrival, older)
	})
}

// Idle for longer than StallAfter before anybody waited: the first waiter goes at once.
func TestLongIdleOpensAtOnce(t *testing.T) {
	bubble(t, Options{Limit: 2}, func(t *testing.T, b *Bulkhead) {
		x, y := begin(t, b, "a", 1), begin(t, b, "b", 1)
		x.permit.Idle()
		time.Sleep(time.Second)
		y.permit.Idle()
		time.Sleep(100 * time.Millisecond)
		r := begin(t, b, "c", 1)
		time.Sleep(time.Millisecond)
		r.mustRun()
		endAll(x, y, r)
	})
}

func TestLongQueryOpensNoStallSlot(t *testing.T) {
	bubble(t, Options{Limit: 2, BusyStall: time.Hour}, func(t *testing.T, b *Bulkhead) {
		idle, busy := begin(t, b, "a", 1), begin(t, b, "b", 1)
		idle.permit.Idle()
		w := begin(t, b, "c", 1)
		time.Sleep(time.Minute)
		w.mustWait()
		for range 20 { // never idle for as long as it takes
			busy.permit.Idle()
			time.Sleep(99 * time.Millisecond)
			busy.permit.Busy()
		}
		w.mustWait()
		busy.permit.Idle()
		time.Sleep(100 * time.Millisecond)
		w.mustRun()
		endAll(idle, busy, w)
	})
}

// A permit that goes idle often stops reading the clock; it must still count as idle.
func TestManyRowsThenAStall(t *testing.T) {
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		outer := begin(t, b, "a", 1)
		for range 1000 {
			outer.permit.Busy()
			outer.permit.Idle()
		}
		time.Sleep(time.Second)
		w := begin(t, b, "a", 1)
		time.Sleep(100 * time.Millisecond)
		w.mustRun()
		endAll(outer, w)
	})
}

func TestBusyStallDoublesUntilARelease(t *testing.T) {
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		busy := begin(t, b, "a", 1)
		var waiters []*read
		for range 9 {
			waiters = append(waiters, begin(t, b, "b", 1))
		}
		next := 0
		expect := func(after time.Duration) {
			t.Helper()
			time.Sleep(after - time.Millisecond)
			waiters[next].mustWait()
			time.Sleep(time.Millisecond)
			waiters[next].mustRun()
			next++
		}
		for _, s := range []int{5, 10, 20, 40, 60, 60} {
			expect(time.Duration(s) * time.Second)
		}
		waiters[0].end()
		expect(5 * time.Second)
		expect(10 * time.Second)
		if s := b.Stat(); s.BusyStalls != 8 || s.StallSlots != 0 || s.Running != 8 {
			t.Errorf("%+v", s)
		}
		endAll(append(waiters, busy)...)
	})
}

// A read that flows keeps the busy stall away, however long one of them waits.
func TestNoBusyStallWhileReadsFlow(t *testing.T) {
	bubble(t, Options{Limit: 2}, func(t *testing.T, b *Bulkhead) {
		long := begin(t, b, "a", 1)
		big := begin(t, b, "b", 1)
		for range 20 {
			time.Sleep(4 * time.Second)
			w := begin(t, b, "c", 1)
			big.end()
			w.mustRun()
			big = w
		}
		if s := b.Stat(); s.Overdrafts() != 0 {
			t.Errorf("%d overdrafts", s.Overdrafts())
		}
		endAll(long, big)
	})
}

func TestMayOverdrawIsAskedAgain(t *testing.T) {
	var allow atomic.Bool
	var asked [2]atomic.Int64
	var b *Bulkhead
	o := Options{Limit: 1, MayOverdraw: func(kind Overdraft, permits int) bool {
		asked[kind].Add(1)
		if permits != b.Stat().Permits { // would deadlock under the lock
			return false
		}
		return allow.Load()
	}}
	synctest.Test(t, func(t *testing.T) {
		b = mustNew(t, o)
		outer := begin(t, b, "a", 1)
		outer.permit.Idle()
		nested := begin(t, b, "a", 1)
		time.Sleep(4 * time.Second)
		nested.mustWait()
		if n := asked[StallSlot].Load(); n < 30 || n > 40 {
			t.Errorf("asked %d times in 4 s", n)
		}
		allow.Store(true)
		time.Sleep(100 * time.Millisecond)
		nested.mustRun()
		nested.end()

		// The reserved slot asks as well, and a read that may not have it waits.
		allow.Store(false)
		nested = begin(t, b, "a", 1)
		nested.mustWait()
		allow.Store(true)
		time.Sleep(200 * time.Millisecond)
		nested.mustRun()
		nested.end()

		outer.end()

		// A busy stall is asked for too, and again at the same interval.
		busy := begin(t, b, "a", 1)
		allow.Store(false)
		waiter := begin(t, b, "a", 1)
		time.Sleep(5*time.Second - time.Millisecond)
		if n := asked[BusyStall].Load(); n != 0 {
			t.Errorf("asked %d times before it was due", n)
		}
		time.Sleep(time.Second + time.Millisecond)
		if n := asked[BusyStall].Load(); n < 9 || n > 11 {
			t.Errorf("asked %d times in 1 s", n)
		}
		waiter.mustWait()
		allow.Store(true)
		time.Sleep(100 * time.Millisecond)
		waiter.mustRun()
		endAll(waiter, busy)
		b.checkRest(t)
	})
}

// The nested read need not be the newest waiter: others came after it, and keep coming.
func TestNestedReadBehindAFlow(t *testing.T) {
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		outer := begin(t, b, "a", 1)
		outer.permit.Idle()
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		nested := begin(t, b, "a", 1)
		wg.Go(func() { // 100 reads a second of 5 ms
			for ctx.Err() == nil {
				time.Sleep(10 * time.Millisecond)
				wg.Go(func() {
					p, err := b.Acquire(ctx, "flow", 1)
					if err == nil {
						time.Sleep(5 * time.Millisecond)
						p.Release()
					}
				})
			}
		})
		<-nested.done
		if nested.err != nil || nested.took > 4*time.Second {
			t.Errorf("the nested read took %v: %v", nested.took, nested.err)
		}
		stop()
		wg.Wait()
		endAll(nested, outer)
	})
}
