package capacity

import "math"

// bend returns exp(z) - 1 - z, exact also where z is so small that the plain form would
// leave nothing but rounding.
func bend(z float64) float64 {
	if math.Abs(z) > 0.5 {
		return math.Expm1(z) - z
	}
	term, sum := z*z/2, 0.0
	for n := 3.0; sum+term != sum; n++ {
		sum += term
		term *= z / n
	}
	return sum
}

// sag returns d - ln(1+d) for d > -1, exact also for small d.
func sag(d float64) float64 {
	if math.Abs(d) > 0.1 {
		return d - math.Log1p(d)
	}
	power, sum := d*d, 0.0
	for n := 2.0; ; n++ {
		next := sum + power/n
		if next == sum {
			return sum
		}
		sum = next
		power *= -d
	}
}

// stirling returns ln(k!) less Stirling's approximation of it, (k + 1/2) ln k - k +
// ln(2 pi)/2.
func stirling(k float64) float64 {
	if k < 16 {
		gamma, _ := math.Lgamma(k + 1)
		return gamma - (k+0.5)*math.Log(k) + k - 0.5*math.Log(2*math.Pi)
	}
	r := 1 / (k * k)
	return (1.0/12 - r*(1.0/360-r*(1.0/1260-r*(1.0/1680-r/1188)))) / k
}

// logPoisson returns ln P(N = k) for a Poisson N. The form is C. Loader's saddle-point
// expansion ("Fast and accurate computation of binomial probabilities", 2000): the
// difference of two large logarithms, which would lose nine digits at a mean of 10^6,
// is never formed.
func logPoisson(k, mean float64) float64 {
	switch {
	case k == 0:
		return -mean
	case mean == 0:
		return math.Inf(-1)
	}
	return -stirling(k) - k*sag((mean-k)/k) - 0.5*math.Log(2*math.Pi*k)
}

// gauss are the nodes and weights of Gauss-Legendre quadrature with ten points, for the
// positive half of [-1, 1].
var gauss = [5][2]float64{
	{0.1488743389816312108848260, 0.2955242247147528701738930},
	{0.4333953941292471907992659, 0.2692667193099963550912269},
	{0.6794095682990244062343274, 0.2190863625159820439955349},
	{0.8650633666889845107320967, 0.1494513491505805931457763},
	{0.9739065285171717200779640, 0.0666713443086881375935688},
}

// integrate returns the integral of f, which must be smooth, from low to high.
func integrate(f func(float64) float64, low, high float64) float64 {
	middle, half := (low+high)/2, (high-low)/2
	sum := 0.0
	for _, g := range gauss {
		sum += g[1] * (f(middle-half*g[0]) + f(middle+half*g[0]))
	}
	return sum * half
}

// where returns the x in [low, high] at which falling, which does not rise, passes
// level, to the last bits of x.
func where(falling func(float64) float64, level, low, high float64) float64 {
	for range 200 {
		middle := low + (high-low)/2
		if middle <= low || middle >= high {
			break
		}
		if falling(middle) > level {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}
