package pressure

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Latencies are counted in buckets of equal relative width: sixteen to each
// doubling, from 8 µs to 137 s, so that a quantile is at most 3.2 % off. What is
// shorter or longer is counted in the first or the last bucket.
const (
	subBits     = 4
	minExponent = 13 // 2^13 ns is 8.2 µs
	maxExponent = 37 // 2^37 ns is 137 s
	buckets     = (maxExponent - minExponent) << subBits
)

// bucketOf returns the bucket of a latency in nanoseconds.
func bucketOf(ns int64) int {
	if ns < 1<<minExponent {
		return 0
	}
	exponent := bits.Len64(uint64(ns)) - 1
	if exponent >= maxExponent {
		return buckets - 1
	}
	sub := int(ns>>(exponent-subBits)) & (1<<subBits - 1)
	return (exponent-minExponent)<<subBits | sub
}

// bucketValue returns the latency that stands for a bucket: its middle.
func bucketValue(bucket int) float64 {
	exponent := bucket>>subBits + minExponent
	sub := bucket & (1<<subBits - 1)
	width := math.Ldexp(1, exponent-subBits)
	return math.Ldexp(1, exponent) + (float64(sub)+0.5)*width
}

// Writes records how long the program's own writes take. The zero value is ready.
// All methods may be called from many goroutines; Observe takes no lock and
// allocates nothing.
type Writes struct {
	counts [buckets]atomic.Uint32
}

// Observe records one write that took d, its wait for a connection included. A
// negative d counts as zero.
func (w *Writes) Observe(d time.Duration) {
	w.counts[bucketOf(int64(d))].Add(1)
}

// Take returns what was recorded since the last Take and starts anew. A write
// observed meanwhile is in this result or in the next, never in both.
func (w *Writes) Take() WriteStats {
	var stats WriteStats
	for i := range w.counts {
		if w.counts[i].Load() == 0 {
			continue
		}
		n := w.counts[i].Swap(0)
		if stats.counts == nil {
			stats.counts = make([]uint32, buckets)
		}
		stats.counts[i] = n
		stats.Count += int(n)
	}
	return stats
}

// WriteStats is the distribution of the write latencies of one period, or, by
// [WriteStats.Add], of several. It is a value: no method changes it. The zero
// value holds no write.
type WriteStats struct {
	// Count is the number of writes.
	Count int

	counts []uint32 // nil when Count is 0; never changed once set
}

// Add returns the distribution of both together.
func (s WriteStats) Add(other WriteStats) WriteStats {
	if other.Count == 0 {
		return s
	}
	if s.Count == 0 {
		return other
	}
	sum := WriteStats{Count: s.Count + other.Count, counts: make([]uint32, buckets)}
	for i := range sum.counts {
		sum.counts[i] = s.counts[i] + other.counts[i]
	}
	return sum
}

// Quantile returns the latency that the share q (0 to 1) of the writes did not
// exceed, at most 3.2 % off; 0 when there are none.
func (s WriteStats) Quantile(q float64) time.Duration {
	if s.Count == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(s.Count)))
	rank = max(1, min(rank, s.Count))
	seen := 0
	for i, n := range s.counts {
		seen += int(n)
		if seen >= rank {
			return time.Duration(bucketValue(i))
		}
	}
	return time.Duration(bucketValue(buckets - 1))
}

// Median returns the latency that half of the writes did not exceed.
func (s WriteStats) Median() time.Duration { return s.Quantile(0.5) }

// P90 returns the latency that nine writes of ten did not exceed.
func (s WriteStats) P90() time.Duration { return s.Quantile(0.9) }

// P95 returns the latency that 95 writes of a hundred did not exceed.
func (s WriteStats) P95() time.Duration { return s.Quantile(0.95) }

// P99 returns the latency that 99 writes of a hundred did not exceed.
func (s WriteStats) P99() time.Duration { return s.Quantile(0.99) }

// weights is a distribution that forgets: counts that decay, for baselines.
type weights struct {
	counts []float64
	total  float64
}

// add decays what is known by keep (0 to 1) and adds the new writes.
func (w *weights) add(s WriteStats, keep float64) {
	if s.Count == 0 {
		return
	}
	if w.counts == nil {
		w.counts = make([]float64, buckets)
	}
	for i := range w.counts {
		w.counts[i] = w.counts[i]*keep + float64(s.counts[i])
	}
	w.total = w.total*keep + float64(s.Count)
}

// p90 is [WriteStats.P90] of the decayed counts.
func (w *weights) p90() time.Duration {
	if w.total == 0 {
		return 0
	}
	seen := 0.0
	for i, n := range w.counts {
		seen += n
		// Decay leaves rounding errors, so the rank is met within a small slack.
		if n > 0 && seen >= 0.9*w.total-1e-9 {
			return time.Duration(bucketValue(i))
		}
	}
	return time.Duration(bucketValue(buckets - 1))
}
