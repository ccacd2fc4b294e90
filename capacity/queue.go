package capacity

import (
	"fmt"
	"math"
)

// Queue is what reads meet at a limit at which they may wait, in the long run. Times are
// in mean holding times. The zero Queue has no waits.
type Queue struct {
	// Waits is the probability that a read waits at all, Refused that it gives up.
	Waits, Refused float64
	// MeanWait is over all reads: those that do not wait, and those that give up, too.
	MeanWait float64

	over    func(t float64) float64 // P(wait > t), for 0 <= t < longest
	longest float64                 // no wait is longer
}

// Over returns the probability that a read waits longer than t, in mean holding times.
func (q Queue) Over(t float64) float64 {
	if q.over == nil || t >= q.longest {
		return 0
	}
	return q.over(max(0, t))
}

// WaitQuantile returns the wait, in mean holding times, that a share of p of all reads
// do not exceed; p is from 0 to below 1. It is 0 where so many do not wait, and infinite
// where the queue never settles.
func (q Queue) WaitQuantile(p float64) (float64, error) {
	if math.IsNaN(p) || p < 0 || p >= 1 {
		return 0, fmt.Errorf("pgyield: capacity: WaitQuantile: p is %v, must be from 0 to below 1", p)
	}
	return quantileOf(q.Over, 1-p), nil
}

// quantileOf returns the least t at which over is at most level.
func quantileOf(over func(float64) float64, level float64) float64 {
	if over(0) <= level {
		return 0
	}
	high := 1.0
	for over(high) > level {
		if high *= 2; high > 1e18 {
			return math.Inf(1)
		}
	}
	low := 0.0
	for high < 1e-300 || low == 0 && over(high/2) <= level {
		high /= 2
		if high < 1e-300 {
			return 0
		}
	}
	return where(over, level, low, high)
}

// waiting is a queue whose reads give up. V is how long a read would wait that never
// does, given that it waits at all: its density is proportional to e^shape. From that
// alone, and from the queue that may not wait, all else follows. (F. Baccelli and G.
// Hebuterne, "On queues with impatient customers", 1981.)
type waiting struct {
	permits int
	erlangs float64
	logS    float64 // ln of the permits times the integral of e^shape, shape(0) = 0
}

// probability returns the chance that a read waits at all.
func (w waiting) probability() float64 {
	b := erlangB(w.permits, w.erlangs)
	if b == 0 {
		return 0
	}
	return 1 / (1 + (1/b-1)*math.Exp(-w.logS))
}

// surely is P(wait > t) where all wait for longer.
func surely(float64) float64 { return 1 }
