// Package peers_test measures package bulkhead beside what one would use instead. It
// stands by itself so that its figures need neither a server nor the rest of the module.
package peers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	failsafe "github.com/failsafe-go/failsafe-go/bulkhead"
	"golang.org/x/sync/semaphore"

	"github.com/pgyield/pgyield/bulkhead"
)

// gate is what is compared. Only pgyield's knows callers; the others are given their
// name and let it be.
type gate struct {
	name string
	// cycle takes a permit, waits for it if it must, and gives it back.
	cycle func(ctx context.Context, caller string) error
	// try takes a permit if one is free, and keeps it.
	try func(caller string) bool
}

// gates are those that are compared, the baseline first.
func gates(tb testing.TB, permits int) []gate {
	tb.Helper()
	bulk, err := bulkhead.New(bulkhead.Options{Limit: permits})
	if err != nil {
		tb.Fatal(err)
	}
	return []gate{
		ofSemaphore(permits),
		ofFailsafeBulkhead(permits),
		ofFailsafeAdaptive(permits),
		{
			name: "pgyield",
			cycle: func(ctx context.Context, caller string) error {
				permit, err := bulk.Acquire(ctx, caller, 1)
				if err != nil {
					return err
				}
				permit.Release()
				return nil
			},
			try: func(caller string) bool {
				_, err := bulk.TryAcquire(caller, 1)
				return err == nil
			},
		},
	}
}

func ofSemaphore(permits int) gate {
	sem := semaphore.NewWeighted(int64(permits))
	return gate{
		name: "semaphore",
		cycle: func(ctx context.Context, _ string) error {
			if err := sem.Acquire(ctx, 1); err != nil {
				return err
			}
			sem.Release(1)
			return nil
		},
		try: func(string) bool { return sem.TryAcquire(1) },
	}
}

func ofFailsafeBulkhead(permits int) gate {
	bulk := failsafe.New[any](uint(permits))
	return gate{
		name: "failsafe-bulkhead",
		cycle: func(ctx context.Context, _ string) error {
			if err := bulk.AcquirePermit(ctx); err != nil {
				return err
			}
			bulk.ReleasePermit()
			return nil
		},
		try: func(string) bool { return bulk.TryAcquirePermit() },
	}
}

// ofFailsafeAdaptive keeps its limit where it is, so that all gates have the same.
func ofFailsafeAdaptive(permits int) gate {
	n := uint(permits)
	limiter := adaptivelimiter.NewBuilder[any]().WithLimits(n, n, n).Build()
	return gate{
		name: "failsafe-adaptive",
		cycle: func(ctx context.Context, _ string) error {
			permit, err := limiter.AcquirePermit(ctx)
			if err != nil {
				return err
			}
			permit.Record()
			return nil
		},
		try: func(string) bool {
			_, ok := limiter.TryAcquirePermit()
			return ok
		},
	}
}

// floor is no gate: it only reads the clock and takes a lock as often as pgyield's gate
// must, and allocates what a refusal tells. What it takes, no such gate can save.
func floor(tb testing.TB) gate {
	tb.Helper()
	var mu sync.Mutex
	var seen time.Duration
	var told *bulkhead.RefusedError
	begun := time.Now()
	look := func() {
		now := time.Since(begun)
		mu.Lock()
		seen = now
		mu.Unlock()
	}
	tb.Cleanup(func() { runtime.KeepAlive(seen); runtime.KeepAlive(told) })
	return gate{
		name: "clock-lock-and-allocation",
		cycle: func(context.Context, string) error {
			look()
			look()
			return nil
		},
		try: func(caller string) bool {
			look()
			told = &bulkhead.RefusedError{Caller: caller}
			return false
		},
	}
}

func callerNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("tenant-%06d", i)
	}
	return names
}

// Figures of gates that do not do the same would mean nothing.
func TestGatesLetInAsMany(t *testing.T) {
	const permits = 4
	for _, g := range gates(t, permits) {
		for range 10 {
			if err := g.cycle(t.Context(), "a"); err != nil {
				t.Fatal(g.name, err)
			}
		}
		in := 0
		for range 10 {
			if g.try("a") {
				in++
			}
		}
		if in != permits {
			t.Errorf("%s let in %d, want %d", g.name, in, permits)
		}
	}
}

// BenchmarkBulkheadUncontended takes and gives back a permit for one of 100 callers
// that nobody else wants.
func BenchmarkBulkheadUncontended(b *testing.B) {
	names, ctx := callerNames(100), b.Context()
	for _, g := range append(gates(b, 10), floor(b)) {
		b.Run("gate="+g.name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if err := g.cycle(ctx, names[i]); err != nil {
					b.Fatal(err)
				}
				if i++; i == len(names) {
					i = 0
				}
			}
		})
	}
}

// BenchmarkBulkheadContended lets 64 goroutines take turns on 4 permits. Nearly every
// one waits. (b.Loop is for one goroutine.)
func BenchmarkBulkheadContended(b *testing.B) {
	const goroutines = 64
	names := callerNames(goroutines)
	for _, g := range gates(b, 4) {
		b.Run("gate="+g.name, func(b *testing.B) {
			b.ReportAllocs()
			ctx := b.Context()
			var wg sync.WaitGroup
			for i := range goroutines {
				n := b.N / goroutines
				if i < b.N%goroutines {
					n++
				}
				wg.Go(func() {
					for range n {
						if err := g.cycle(ctx, names[i]); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// BenchmarkBulkheadRefused asks for a permit when all are taken and none may be waited
// for.
func BenchmarkBulkheadRefused(b *testing.B) {
	for _, g := range gates(b, 1) {
		if !g.try("holder") {
			b.Fatal(g.name, "is not free")
		}
		refuse(b, g)
	}
	refuse(b, floor(b))
}

func refuse(b *testing.B, g gate) {
	b.Run("gate="+g.name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if g.try("holder") {
				b.Fatal("let in")
			}
		}
	})
}

// BenchmarkBulkheadCallers takes and gives back a permit while so many callers are
// tracked. Beside it a map under a mutex, for what the machine's caches take by
// themselves. The callers come in an order that has nothing to do with where they are
// in memory; their names are at hand, as a request's own are.
func BenchmarkBulkheadCallers(b *testing.B) {
	for _, arm := range []struct {
		name string
		make func(b *testing.B, callers int) (cycle func(caller string))
	}{
		{"mutex-and-map", mutexAndMap},
		{"pgyield", manyCallers},
	} {
		for _, n := range []int{10, 1_000, 100_000} {
			b.Run(fmt.Sprintf("gate=%s/callers=%d", arm.name, n), func(b *testing.B) {
				b.ReportAllocs()
				names, cycle := callerNames(n), arm.make(b, n)
				for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
					cycle(names[i])
				}
				i := 0
				for b.Loop() {
					cycle(names[i])
					if i++; i == n {
						i = 0
					}
				}
			})
		}
	}
}

func manyCallers(b *testing.B, callers int) func(caller string) {
	bulk, err := bulkhead.New(bulkhead.Options{Limit: 10, MaxCallers: callers})
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	return func(caller string) {
		permit, err := bulk.Acquire(ctx, caller, 1)
		if err != nil {
			b.Fatal(err)
		}
		permit.Release()
	}
}

// mutexAndMap is the least that counts what each caller has running: two locks, one
// look-up.
func mutexAndMap(*testing.B, int) func(caller string) {
	var mu sync.Mutex
	running := map[string]*int{}
	return func(caller string) {
		mu.Lock()
		n := running[caller]
		if n == nil {
			n = new(int)
			running[strings.Clone(caller)] = n // a table must own its names
		}
		*n++
		mu.Unlock()
		mu.Lock()
		*n--
		mu.Unlock()
	}
}
