package fleetsim

import "math"

// waits are kept as counts by length, the lengths 2 % apart from a microsecond on.
type waits struct {
	counts [1400]int
	n      int
	sum    float64
}

const waitStep = 1.02

func (w *waits) add(wait float64) {
	i := 0
	if wait > 1e-6 {
		i = 1 + min(len(w.counts)-2, int(math.Log(wait/1e-6)/math.Log(waitStep)))
	}
	w.counts[i]++
	w.n++
	w.sum += wait
}

func (w *waits) mean() float64 {
	if w.n == 0 {
		return 0
	}
	return w.sum / float64(w.n)
}

func (w *waits) quantile(p float64) float64 {
	below := 0
	for i, n := range w.counts {
		if below += n; n > 0 && float64(below) >= p*float64(w.n) {
			if i == 0 {
				return 0
			}
			return 1e-6 * math.Pow(waitStep, float64(i)-0.5)
		}
	}
	return 0
}
