package capacity

import "math"

// maxPatience bounds a patience, in mean holding times: ten years of 30 ms reads.
const maxPatience = 1e10

// ErlangA returns the queue of reads whose patience is exponential with the given mean,
// in mean holding times: one whose patience ends before it has a permit gives up. With a
// patience of 0 it is ErlangB. Load may be above the permits. (C. Palm, 1957.)
func ErlangA(permits int, erlangs, patience float64) (Queue, error) {
	err := first(checkErlang("ErlangA", permits, erlangs), checkFloat("ErlangA", "patience", patience, maxPatience))
	if err != nil {
		return Queue{}, err
	}
	if q, ok := atOnce(permits, erlangs, patience); ok {
		return q, nil
	}
	if permits == 0 { // all wait until their patience ends
		return Queue{
			Waits: 1, Refused: 1, MeanWait: patience,
			over: func(t float64) float64 { return math.Exp(-t / patience) }, longest: math.Inf(1),
		}, nil
	}
	d := newPalm(float64(permits), erlangs, patience)
	waits := waiting{permits, erlangs, d.logS()}.probability()
	whole := d.integral(d.weight, 0)
	givesUp := func(v float64) float64 { return -math.Expm1(-v/patience) * d.weight(v) }
	refused := min(1, waits*d.integral(givesUp, 0)/whole)
	return Queue{
		Waits: waits, Refused: refused,
		// What waits gives up at one over the patience each (Little's law).
		MeanWait: refused * patience,
		over: func(t float64) float64 {
			return waits * math.Exp(-t/patience) * d.integral(d.weight, t) / whole
		},
		longest: math.Inf(1),
	}, nil
}

// Deadline returns the queue of reads that all give up after waiting for maxWait, in
// mean holding times. It is the model of a pool's MaxWait. (The M/M/n+D queue.)
func Deadline(permits int, erlangs, maxWait float64) (Queue, error) {
	err := first(checkErlang("Deadline", permits, erlangs), checkFloat("Deadline", "maxWait", maxWait, maxPatience))
	if err != nil {
		return Queue{}, err
	}
	if q, ok := atOnce(permits, erlangs, maxWait); ok {
		return q, nil
	}
	if permits == 0 {
		return Queue{Waits: 1, Refused: 1, MeanWait: maxWait, over: surely, longest: maxWait}, nil
	}
	n := float64(permits)
	drift := erlangs - n // V's density is e^(drift v) up to maxWait, then falls as e^(-n v)
	end := drift * maxWait
	// All weights are scaled by e^-max(end, 0), so that none overflows.
	scale := max(end, 0)
	body := func(t float64) float64 { // of V in [t, maxWait]
		if end == 0 {
			return maxWait - t
		}
		if drift < 0 {
			return math.Exp(drift*t-scale) * -math.Expm1(drift*(maxWait-t)) / -drift
		}
		return -math.Expm1(drift*(t-maxWait)) / drift
	}
	beyond := math.Exp(end-scale) / n
	whole := body(0) + beyond
	waits := waiting{permits, erlangs, math.Log(n*whole) + scale}.probability()
	over := func(t float64) float64 { return waits * (body(t) + beyond) / whole }
	return Queue{
		Waits: waits, Refused: waits * beyond / whole, MeanWait: meanOver(over, maxWait, math.Abs(drift)), over: over, longest: maxWait,
	}, nil
}

// meanOver integrates over from 0 to end. Rate is the rate at which over decays or
// falls off: panels shrink towards both ends to resolve it.
func meanOver(over func(float64) float64, end, rate float64) float64 {
	fine := 0
	for x := rate * end; x > 1 && fine < 60; x /= 2 {
		fine++
	}
	sum, half := 0.0, end/2
	right := half
	for i := 0; i <= fine; i++ {
		left := right / 2
		if i == fine {
			left = 0
		}
		sum += integrate(over, left, right)
		sum += integrate(over, end-right, end-left)
		right = left
	}
	return sum
}

// atOnce answers the cases in which nobody waits: nobody comes, or nobody may.
func atOnce(permits int, erlangs, patience float64) (Queue, bool) {
	switch {
	case erlangs == 0 && permits > 0:
		return Queue{}, true
	case patience == 0:
		return Queue{Refused: erlangB(permits, erlangs)}, true
	}
	return Queue{}, false
}

// palm is the density of the wait of a read with endless patience, given that it waits,
// among reads with exponential patience: e^(load patience (1 - e^(-v/patience)) - n v),
// scaled to 1 at its peak.
type palm struct {
	n, load, patience float64
	peak              float64   // where it is highest
	cuts              []float64 // panels between them resolve it
}

func newPalm(n, load, patience float64) *palm {
	d := &palm{n: n, load: load, patience: patience}
	if load > n {
		d.peak = patience * -math.Log(n/load)
	}
	const gone = -45 // e^gone is below what a float's sum notices
	right := 1 / n
	for d.shape(d.peak+right) > gone {
		right *= 2
	}
	right = where(func(x float64) float64 { return d.shape(d.peak + x) }, gone, 0, right)
	left := d.peak
	if left > 0 && d.shape(0) < gone {
		left = where(func(x float64) float64 { return d.shape(d.peak - x) }, gone, 0, d.peak)
	}
	const panels = 40
	low, width := d.peak-left, (left+right)/panels
	if low <= 1e-12*d.peak {
		// Near 0 the patience, which may be far shorter than the waits, shapes what is
		// integrated: panels that double from very small ones see it whatever its size.
		low = 0
		d.cuts = append(d.cuts, 0)
		for x := width * 0x1p-40; x < width; x *= 2 {
			d.cuts = append(d.cuts, x)
		}
	} else {
		d.cuts = append(d.cuts, low)
	}
	for i := 1; i <= panels; i++ {
		d.cuts = append(d.cuts, low+float64(i)*width)
	}
	return d
}

// shape is ln of the density at v, less that at the peak. Written as what the drift and
// the bend of the exponential take away, it is a sum of negative terms: nothing cancels.
func (d *palm) shape(v float64) float64 {
	x := v - d.peak
	return -max(0, d.n-d.load)*x - min(d.n, d.load)*d.patience*bend(-x/d.patience)
}

func (d *palm) weight(v float64) float64 { return math.Exp(d.shape(v)) }

// integral integrates f from low on.
func (d *palm) integral(f func(float64) float64, low float64) float64 {
	sum := 0.0
	for i := 1; i < len(d.cuts); i++ {
		if d.cuts[i] > low {
			sum += integrate(f, max(low, d.cuts[i-1]), d.cuts[i])
		}
	}
	return sum
}

// logS is ln of n times the integral of the density scaled to 1 at no wait.
func (d *palm) logS() float64 {
	rise := 0.0
	if d.load > d.n {
		// patience (load - n - n ln(load/n))
		rise = d.patience * d.n * sag(d.load/d.n-1)
	}
	return rise + math.Log(d.n*d.integral(d.weight, 0))
}
