package bulkhead

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestEvictionKeepsTheDemerits(t *testing.T) {
	bubble(t, Options{Limit: 2, MaxCallers: 4}, func(t *testing.T, b *Bulkhead) {
		penalise(t, b, "bad", 6)
		time.Sleep(time.Second)
		penalise(t, b, "worse", 12)
		begin(t, b, "clean", 1).end()
		// holder, bad, worse and clean fill the table. The next two take the places of
		// those without demerit, the one after that of the one with the least.
		has := func(names ...string) {
			t.Helper()
			for _, name := range names {
				if b.byName[name] == nil {
					t.Errorf("%q is gone", name)
				}
			}
			if len(b.byName) != 4 {
				t.Errorf("%d callers", len(b.byName))
			}
			b.check(t)
		}
		has("holder", "bad", "worse", "clean")
		n1 := begin(t, b, "n1", 1)
		has("bad", "worse", "clean", "n1") // holder had not been seen for longest
		n2 := begin(t, b, "n2", 1)
		has("bad", "worse", "n1", "n2")
		n1.end()
		n2.end()
		b.SetMode(Off)
		reads := []*read{begin(t, b, "n1", 1), begin(t, b, "n2", 1), begin(t, b, "n3", 1)}
		has("worse", "n1", "n2", "n3")
		reads = append(reads, begin(t, b, "n4", 1))
		has("n4", "n1", "n2", "n3")

		// All are busy: further callers share an account, and each read is given back
		// to the account that granted it.
		reads = append(reads, begin(t, b, "n5", 1), begin(t, b, "n6", 1))
		has("n1", "n2", "n3", "n4")
		if b.overflow.permits != 2 || b.Stat().Callers != 5 {
			t.Errorf("%d permits in the shared account, %+v", b.overflow.permits, b.Stat())
		}
		reads[0].end()
		reads = append(reads, begin(t, b, "n5", 1)) // has an account of its own now
		reads[4].end()
		if b.overflow.permits != 1 || b.byName["n5"] == nil || b.byName["n5"].permits != 1 {
			t.Errorf("%+v", b.Callers())
		}
		endAll(reads...)
		b.SetMode(Enforce)
	})
}

// The shared account is a caller as any other: it waits, is charged, and recovers.
func TestOverflowAccount(t *testing.T) {
	bubble(t, Options{Limit: 1, MaxCallers: 1}, func(t *testing.T, b *Bulkhead) {
		holder := begin(t, b, "a", 1)
		var reads []*read
		for i := range 8 {
			reads = append(reads, beginFor(t, b, fmt.Sprint("sybil", i), 1, time.Second))
		}
		b.check(t)
		time.Sleep(2 * time.Second)
		var refused *RefusedError
		if _, err := b.TryAcquire("sybil9", 1); !errors.As(err, &refused) || refused.Caller != Overflow {
			t.Errorf("%+v", err)
		}
		if got := demeritOf(b, Overflow); got < 3 || got > 4 {
			t.Errorf("demerit %v, want the clamp of 1 + 3 less a second's decay", got)
		}
		b.check(t)
		time.Sleep(61 * time.Second)
		b.check(t)
		if s := b.Stat(); s.Callers != 1 || s.Penalised != 0 {
			t.Errorf("%+v", s)
		}
		endAll(append(reads, holder)...)
	})
}

func TestManyCallersKeepTheHeapFlat(t *testing.T) {
	callers := 1_000_000
	if testing.Short() || raceDetector {
		callers = 100_000
	}
	b := mustNew(t, Options{Limit: 10, MaxWaiting: -1})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var early uint64
	hold, err := b.Acquire(t.Context(), "hold", 10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range callers {
		if permit, err := b.TryAcquire(fmt.Sprintf("%0100d", i), 1); err == nil {
			permit.Release()
		}
		if i == callers/20 {
			early = heap()
		}
	}
	hold.Release()
	if now := heap(); now > early+early/10+100_000 {
		t.Errorf("heap grew from %d to %d bytes", early, now)
	}
	if s := b.Stat(); s.Callers > DefaultMaxCallers+1 {
		t.Errorf("%d callers", s.Callers)
	}
	b.checkRest(t)
}

func TestActiveForAWindowFromLastSeen(t *testing.T) {
	bubble(t, Options{Limit: 2}, func(t *testing.T, b *Bulkhead) {
		for range 3 {
			begin(t, b, "a", 1).end()
			time.Sleep(3 * time.Second)
			b.check(t)
		}
		r := begin(t, b, "b", 1)
		time.Sleep(2*time.Second - 1)
		if b.Stat().Active != 2 {
			t.Errorf("%+v", b.Callers())
		}
		time.Sleep(time.Nanosecond)
		if b.Stat().Active != 1 {
			t.Errorf("%+v", b.Callers())
		}
		r.end()
	})
}

func TestLongNamesAreCut(t *testing.T) {
	bubble(t, Options{Limit: 2}, func(t *testing.T, b *Bulkhead) {
		r := begin(t, b, strings.Repeat("x", 1<<20), 1)
		if got := len(b.Callers()[0].Name); got != maxName {
			t.Errorf("%d bytes kept", got)
		}
		r.end()
	})
}

// Windows and penalties follow the time that passed and nothing else, so a pause of ten
// minutes takes ten minutes off a penalty, and no more.
func TestLongPause(t *testing.T) {
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		penalise(t, b, "p", 4)
		before := demeritOf(b, "p")
		time.Sleep(time.Second)
		if got := demeritOf(b, "p"); got < before-0.3-1e-6 || got > before-0.3+1e-6 {
			t.Errorf("%v became %v in a second", before, got)
		}
		if b.Stat().Active != 2 {
			t.Errorf("%+v", b.Stat())
		}
		time.Sleep(10 * time.Minute)
		if s := b.Stat(); s.Active != 0 || s.Penalised != 0 || demeritOf(b, "p") != 0 {
			t.Errorf("%+v", s)
		}
	})
}
