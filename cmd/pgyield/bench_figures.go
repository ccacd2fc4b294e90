package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// figures are the numbers of one run, by name.
type figures map[string]float64

// numbersOf reduces a phase to numbers. Times are measured from settle after the reads
// joined.
func numbersOf(p *phase, t timing) figures {
	row := p.summary(t.settle)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	f := figures{
		"writes_per_s": row.WriteRate, "writes_unfinished": float64(row.Unfinished),
		"reads_per_s": row.ReadRate, "refused": float64(row.Refused), "errors": float64(row.Errors),
	}
	if row.P50 > 0 { // else no write was due in that time, and none was fast
		f["write_p50_ms"], f["write_p95_ms"], f["write_p99_ms"] = ms(row.P50), ms(row.P95), ms(row.P99)
	}
	from := p.From + t.lead + t.settle
	limits(p, from, f)
	return f
}

// limits tells of the limit from then on, where the arm has one.
func limits(p *phase, from time.Duration, f figures) {
	sum, n, atStart, atHalf, start, lowest := 0, 0, 0, 0, 0, math.MaxInt
	for _, g := range p.Gauges {
		if g.Gate == nil {
			continue
		}
		if start == 0 {
			start = g.Gate.Limit
		}
		if g.At < from {
			continue
		}
		n++
		sum += g.Gate.Limit
		lowest = min(lowest, g.Gate.Limit)
		if g.Gate.Limit >= start {
			atStart++
		}
		if 2*g.Gate.Limit >= start {
			atHalf++
		}
	}
	if n == 0 {
		return
	}
	f["limit_mean"], f["limit_lowest"] = float64(sum)/float64(n), float64(lowest)
	f["at_start"], f["at_half"] = float64(atStart)/float64(n), float64(atHalf)/float64(n)
	cuts := 0
	for _, d := range p.Decisions {
		if d.To < d.From && d.At >= from {
			cuts++
		}
	}
	f["cuts_per_min"] = float64(cuts) / (p.To - from).Minutes()
}

// gated is true when the arm has a limit.
func gated(p *phase) bool {
	return slices.ContainsFunc(p.Gauges, func(g gauge) bool { return g.Gate != nil })
}

// p95In is the write p95 of the writes due within a stretch of the phase, in ms; NaN
// when none was.
func p95In(p *phase, from, to time.Duration) float64 {
	var took []time.Duration
	for _, w := range p.Writes {
		if at := w.Begun - p.From; at >= from && at < to {
			took = append(took, w.Took)
		}
	}
	if len(took) == 0 {
		return math.NaN()
	}
	slices.Sort(took)
	return float64(quantile(took, 0.95)) / float64(time.Millisecond)
}

// readsIn is the reads per second that ended within a stretch of the phase.
func readsIn(p *phase, from, to time.Duration) float64 {
	n := 0
	for _, r := range p.Reads {
		if at := r.Begun + r.Took - p.From; r.Done && at >= from && at < to {
			n++
		}
	}
	return float64(n) / (to - from).Seconds()
}

// runs are the figures of a scenario's arms, one of each arm a round.
type runs map[string][]figures

func (r runs) has(arm string) bool { return len(r[arm]) > 0 }

// values are a figure's values, round by round.
func (r runs) values(key, arm string) []float64 {
	var out []float64
	for _, f := range r[arm] {
		if v, ok := f[key]; ok {
			out = append(out, v)
		}
	}
	return out
}

func (r runs) median(key, arm string) float64 { return median(r.values(key, arm)) }

// ratio compares two arms of the same round, round by round.
func (r runs) ratio(key, arm, base string) []float64 {
	var out []float64
	for i := range min(len(r[arm]), len(r[base])) {
		a, ok := r[arm][i][key]
		b, too := r[base][i][key]
		if ok && too && b != 0 {
			out = append(out, a/b)
		}
	}
	return out
}

// median is NaN when there is no value.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// claim is what the benchmark should show, and what it showed.
type claim struct {
	Scenario string    `json:"scenario"`
	Measure  string    `json:"measure"`
	Bound    float64   `json:"bound"`
	AtMost   bool      `json:"at_most"` // else at least
	Value    float64   `json:"value"`   // the rounds' median
	Rounds   []float64 `json:"rounds"`
	Met      bool      `json:"met"`
	Beside   []string  `json:"beside,omitempty"`
}

func atMost(measure string, bound float64, rounds []float64) claim {
	return newClaim(measure, bound, true, rounds)
}

func atLeast(measure string, bound float64, rounds []float64) claim {
	return newClaim(measure, bound, false, rounds)
}

func newClaim(measure string, bound float64, most bool, rounds []float64) claim {
	c := claim{Measure: measure, Bound: bound, AtMost: most, Rounds: rounds, Value: median(rounds)}
	c.judge()
	return c
}

func (c *claim) judge() {
	c.Met = c.Value >= c.Bound
	if c.AtMost {
		c.Met = c.Value <= c.Bound
	}
}

// beside notes what another arm reaches.
func (c claim) beside(name string, rounds []float64) claim {
	if len(rounds) > 0 {
		c.Beside = append(c.Beside, fmt.Sprintf("%s: %.3g", name, median(rounds)))
	}
	return c
}
