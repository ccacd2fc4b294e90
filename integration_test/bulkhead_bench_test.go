package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/pgyield/pgyield/bulkhead"
)

// gate is what is compared: take one of the permits for a caller, and give it back.
type gate struct {
	name  string
	cycle func(ctx context.Context, caller string) error
}

// gates are the bulkhead and the plain weighted semaphore, which knows no callers.
func gates(b *testing.B, permits int) []gate {
	b.Helper()
	sem := semaphore.NewWeighted(int64(permits))
	bulk := newBulkhead(b, bulkhead.Options{Limit: permits})
	return []gate{
		{"semaphore", func(ctx context.Context, _ string) error {
			if err := sem.Acquire(ctx, 1); err != nil {
				return err
			}
			sem.Release(1)
			return nil
		}},
		{"bulkhead", func(ctx context.Context, caller string) error {
			permit, err := bulk.Acquire(ctx, caller, 1)
			if err != nil {
				return err
			}
			permit.Release()
			return nil
		}},
	}
}

func newBulkhead(b *testing.B, o bulkhead.Options) *bulkhead.Bulkhead {
	b.Helper()
	bulk, err := bulkhead.New(o)
	if err != nil {
		b.Fatal(err)
	}
	return bulk
}

func callerNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("tenant-%06d", i)
	}
	return names
}

// BenchmarkBulkheadUncontended takes and gives back a permit for one of 100 callers
// that nobody else wants. Run with -count, so that the two alternate in one run.
func BenchmarkBulkheadUncontended(b *testing.B) {
	names, ctx := callerNames(100), b.Context()
	for _, g := range gates(b, 10) {
		b.Run(g.name, func(b *testing.B) {
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

// BenchmarkBulkheadContended lets 64 goroutines take turns on 4 permits.
func BenchmarkBulkheadContended(b *testing.B) {
	const goroutines = 64
	names := callerNames(goroutines)
	for _, g := range gates(b, 4) {
		b.Run(g.name, func(b *testing.B) {
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
	sem := semaphore.NewWeighted(1)
	sem.TryAcquire(1)
	bulk := newBulkhead(b, bulkhead.Options{Limit: 1})
	if _, err := bulk.TryAcquire("holder", 1); err != nil {
		b.Fatal(err)
	}
	b.Run("semaphore", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if sem.TryAcquire(1) {
				b.Fatal("let in")
			}
		}
	})
	b.Run("bulkhead", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := bulk.TryAcquire("holder", 1); err == nil {
				b.Fatal("let in")
			}
		}
	})
}

// BenchmarkBulkheadCallers takes and gives back a permit while so many callers are
// tracked, for one of them at random.
func BenchmarkBulkheadCallers(b *testing.B) {
	for _, n := range []int{10, 1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			names, ctx := callerNames(n), b.Context()
			bulk := newBulkhead(b, bulkhead.Options{Limit: 10, MaxCallers: n})
			for _, name := range names {
				permit, err := bulk.Acquire(ctx, name, 1)
				if err != nil {
					b.Fatal(err)
				}
				permit.Release()
			}
			random := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				permit, err := bulk.Acquire(ctx, names[random.IntN(n)], 1)
				if err != nil {
					b.Fatal(err)
				}
				permit.Release()
			}
		})
	}
}
