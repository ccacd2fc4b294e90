package main

import (
	"math"
	"slices"
	"time"
)

// window is the time that one point of a chart stands for.
const window = 500 * time.Millisecond

// line is one line of a chart: a value for each window of the demo, NaN where
// there is none.
type line struct {
	Name   string    `json:"name"`
	Values []float64 `json:"-"`
}

// grid is the windows of the whole demo, up to a full step of the time axis, so
// that its labels, which are spread evenly, fall on round numbers.
type grid int

func gridOf(res *result) grid {
	const perLabel = int(labelEvery / window)
	labels := int(res.Phases[len(res.Phases)-1].To/labelEvery) + 1
	return grid(labels*perLabel) + 1
}

func (g grid) index(at time.Duration) int {
	return min(max(int(at/window), 0), int(g)-1)
}

// values makes a line of f's answers for the windows that p covers.
func (g grid) values(p *phase, f func(i int) float64) []float64 {
	out := make([]float64, g)
	for i := range out {
		out[i] = math.NaN()
		middle := time.Duration(i)*window + window/2
		if middle >= p.From && middle < p.To {
			out[i] = f(i)
		}
	}
	return out
}

// writeQuantile is the latency in ms of the writes that ended in each window.
func (g grid) writeQuantile(p *phase, q float64) []float64 {
	ended := make([][]time.Duration, g)
	for _, w := range p.Writes {
		if w.Done {
			i := g.index(w.Begun + w.Took)
			ended[i] = append(ended[i], w.Took)
		}
	}
	return g.values(p, func(i int) float64 {
		if len(ended[i]) == 0 {
			return math.NaN()
		}
		slices.Sort(ended[i])
		return float64(quantile(ended[i], q)) / float64(time.Millisecond)
	})
}

// readRate is the reads a second, over two seconds that end with each window: a
// read takes long, so that a shorter time shows only noise.
func (g grid) readRate(p *phase) []float64 {
	const span = int(2 * time.Second / window)
	ended := make([]float64, g)
	for _, r := range p.Reads {
		if r.Done {
			ended[g.index(r.Begun+r.Took)]++
		}
	}
	first := g.index(p.From)
	return g.values(p, func(i int) float64 {
		from := max(i-span+1, first)
		sum := 0.0
		for _, n := range ended[from : i+1] {
			sum += n
		}
		return sum / (float64(i-from+1) * window.Seconds())
	})
}

// gauge is the mean of what f reads from the gauges of each window.
func (g grid) gauge(p *phase, f func(gauge) (float64, bool)) []float64 {
	sum, n := make([]float64, g), make([]float64, g)
	for _, state := range p.Gauges {
		if value, ok := f(state); ok {
			i := g.index(state.At)
			sum[i] += value
			n[i]++
		}
	}
	return g.values(p, func(i int) float64 { return sum[i] / n[i] }) // 0/0 is NaN
}

// gated is gauge for what only pgyield has.
func (g grid) gated(p *phase, f func(*gate) (float64, bool)) []float64 {
	return g.gauge(p, func(state gauge) (float64, bool) {
		if state.Gate == nil {
			return 0, false
		}
		return f(state.Gate)
	})
}

// walSync is the mean WAL sync time in ms in all phases.
func (g grid) walSync(res *result) []float64 {
	out := make([]float64, g)
	for i := range out {
		out[i] = math.NaN()
	}
	for _, s := range res.Samples {
		if s.WALSyncMean > 0 {
			out[g.index(s.At)] = float64(s.WALSyncMean) / float64(time.Millisecond)
		}
	}
	return out
}

// over divides the values by their median in the idle phase; nil when that is
// unknown.
func (g grid) over(values []float64, idle *phase) []float64 {
	var base []float64
	for _, v := range g.values(idle, func(i int) float64 { return values[i] }) {
		if !math.IsNaN(v) {
			base = append(base, v)
		}
	}
	if len(base) == 0 {
		return nil
	}
	slices.Sort(base)
	middle := base[len(base)/2]
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v / middle
	}
	return out
}

// merge lays lines that do not overlap over each other.
func merge(lines ...[]float64) []float64 {
	out := slices.Clone(lines[0])
	for _, values := range lines[1:] {
		for i, v := range values {
			if !math.IsNaN(v) {
				out[i] = v
			}
		}
	}
	return out
}
