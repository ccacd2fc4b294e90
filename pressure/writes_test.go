package pressure

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestQuantilesAreNear(t *testing.T) {
	for _, scale := range []time.Duration{10 * time.Microsecond, time.Millisecond, 130 * time.Millisecond, 20 * time.Second} {
		rng := rand.New(rand.NewPCG(uint64(scale), 1))
		var w Writes
		all := make([]time.Duration, 0, 5000)
		for range cap(all) {
			d := time.Duration(float64(scale) * math.Exp(0.5*rng.NormFloat64()))
			d = max(d, 1<<minExponent)
			all = append(all, d)
			w.Observe(d)
		}
		slices.Sort(all)
		stats := w.Take()
		if stats.Count != len(all) {
			t.Fatalf("%v: %d writes of %d", scale, stats.Count, len(all))
		}
		for _, q := range []float64{0.01, 0.5, 0.9, 0.95, 0.99, 1} {
			want := float64(all[int(math.Ceil(q*float64(len(all))))-1])
			if got := float64(stats.Quantile(q)); math.Abs(got/want-1) > 0.032 {
				t.Errorf("%v, quantile %v: %v, truth %v", scale, q, time.Duration(got), time.Duration(want))
			}
		}
	}
}

func TestExtremeLatenciesAreCounted(t *testing.T) {
	var w Writes
	for _, d := range []time.Duration{-time.Second, 0, 1, time.Hour, math.MaxInt64, math.MinInt64} {
		w.Observe(d)
	}
	s := w.Take()
	if s.Count != 6 || s.Quantile(0.5) > 10*time.Microsecond || s.Quantile(1) < 2*time.Minute {
		t.Errorf("%d writes, median %v, highest %v", s.Count, s.Quantile(0.5), s.Quantile(1))
	}
	if (WriteStats{}).P90() != 0 || w.Take().Count != 0 {
		t.Error("no writes are not none")
	}
}

func TestBucketsGrow(t *testing.T) {
	for b := range buckets {
		if got := bucketOf(int64(bucketValue(b))); got != b {
			t.Fatalf("the value of bucket %d lies in bucket %d", b, got)
		}
	}
}

// TestTakeLosesNothing takes while others observe, all into one bucket. It goes on until
// so many takes have met writes that one which reads and then clears, and so loses what
// comes between, is found out: two cores do not pass that small gap unseen for long.
func TestTakeLosesNothing(t *testing.T) {
	var w Writes
	var writers sync.WaitGroup
	var observed atomic.Int64
	stop := make(chan struct{})
	const goroutines, meetings = 4, 10_000
	for range goroutines {
		writers.Go(func() {
			n := int64(0)
			defer func() { observed.Add(n) }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				for range 100 {
					w.Observe(time.Millisecond)
				}
				n += 100
			}
		})
	}
	taken := int64(0)
	for met, end := 0, time.Now().Add(20*time.Second); met < meetings && time.Now().Before(end); {
		if n := w.Take().Count; n > 0 {
			taken += int64(n)
			met++
		}
	}
	close(stop)
	writers.Wait()
	if taken += int64(w.Take().Count); taken != observed.Load() {
		t.Errorf("%d of %d writes arrived", taken, observed.Load())
	}
}

func TestAddChangesNeither(t *testing.T) {
	var w Writes
	w.Observe(time.Millisecond)
	a := w.Take()
	w.Observe(time.Second)
	b := w.Take()
	sum := a.Add(b)
	if sum.Count != 2 || a.Count != 1 || b.Count != 1 || a.Quantile(1) > 2*time.Millisecond || b.Quantile(0) < 900*time.Millisecond {
		t.Errorf("sum %d, a %v, b %v", sum.Count, a.Quantile(1), b.Quantile(0))
	}
	if got := a.Add(WriteStats{}); got.Count != 1 {
		t.Errorf("a plus nothing is %d", got.Count)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	var w Writes
	if n := testing.AllocsPerRun(1000, func() { w.Observe(time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	var w Writes
	b.ReportAllocs()
	for b.Loop() {
		w.Observe(3 * time.Millisecond)
	}
}

func BenchmarkObserveParallel(b *testing.B) {
	var w Writes
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w.Observe(3 * time.Millisecond)
		}
	})
}

func BenchmarkTake(b *testing.B) {
	var w Writes
	b.ReportAllocs()
	for b.Loop() {
		w.Observe(3 * time.Millisecond)
		w.Take()
	}
}
