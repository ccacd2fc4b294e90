package bulkhead

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"unsafe"
)

func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("not applicable: the race detector allocates, and makes sync.Pool forget")
	}
	b := mustNew(t, Options{Limit: 1})
	ctx := t.Context()
	measure := func(what string, most float64, f func()) {
		t.Helper()
		if got := testing.AllocsPerRun(1000, f); got > most {
			t.Errorf("%s: %v allocations, want at most %v", what, got, most)
		}
	}
	measure("uncontended", 0, func() {
		p, _ := b.Acquire(ctx, "a", 1)
		p.Idle()
		p.Busy()
		p.Release()
	})
	holder, _ := b.Acquire(ctx, "a", 1)
	measure("refused", 1, func() {
		if _, err := b.TryAcquire("a", 1); err == nil {
			t.Error("let in")
		}
	})
	holder.Release()

	// Two goroutines want one permit, so nearly every read waits; what waits is used
	// again.
	var wg sync.WaitGroup
	before := b.Stat().Waited
	const reads = 2000
	allocated := testing.AllocsPerRun(1, func() {
		for range 2 {
			wg.Go(func() {
				for range reads {
					p, _ := b.Acquire(ctx, "a", 1)
					runtime.Gosched()
					p.Release()
				}
			})
		}
		wg.Wait()
	})
	if waited := b.Stat().Waited - before; waited < reads/10 || allocated > reads/10 {
		t.Errorf("%v allocations for %d waits", allocated, waited)
	}
	b.checkRest(t)
}

// With many callers what a read costs is cache misses: one for its account.
func TestAccountIsOneCacheLine(t *testing.T) {
	if size := unsafe.Sizeof(account{}); size > 64 {
		t.Errorf("an account takes %d bytes, want at most 64", size)
	}
}

func BenchmarkIdleBusy(bb *testing.B) {
	b := mustNew(bb, Options{Limit: 1})
	p, err := b.Acquire(context.Background(), "a", 1)
	if err != nil {
		bb.Fatal(err)
	}
	bb.ReportAllocs()
	for bb.Loop() {
		p.Idle()
		p.Busy()
	}
}
