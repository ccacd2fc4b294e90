package capacity_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/pgyield/pgyield/capacity"
)

// near reports whether got is want within a relative error.
func near(got, want, relative float64) bool {
	return got == want || math.Abs(got-want) <= relative*math.Abs(want)
}

// poisson returns the tail from k, the mean above k and the excess over k by summing
// the distribution with 300 bits.
func poisson(k int, mean float64) (tail, above, excess float64) {
	const bits = 300
	float := func(x float64) *big.Float { return new(big.Float).SetPrec(bits).SetFloat64(x) }
	// Without the factor e^-mean, which the total replaces.
	term, total, from, weighted, over := float(1), float(0), float(0), float(0), float(0)
	end := int(mean) + k + 60*int(math.Sqrt(mean+float64(k)+1)) + 200
	for n := 0; n <= end; n++ {
		total.Add(total, term)
		if n >= k {
			from.Add(from, term)
			weighted.Add(weighted, new(big.Float).SetPrec(bits).Mul(term, float(float64(n))))
			over.Add(over, new(big.Float).SetPrec(bits).Mul(term, float(float64(n-k))))
		}
		term.Mul(term, float(mean))
		term.Quo(term, float(float64(n+1)))
	}
	div := func(a, b *big.Float) float64 {
		q, _ := new(big.Float).SetPrec(bits).Quo(a, b).Float64()
		return q
	}
	return div(from, total), div(weighted, from), div(over, total)
}

func TestPoissonAgainstSum(t *testing.T) {
	for _, mean := range []float64{1e-6, 0.3, 1, 2.5, 20, 136.28, 900, 3000} {
		for _, sigmas := range []float64{-8, -3, -1, -0.1, 0, 0.1, 1, 3, 8, 20} {
			k := int(math.Round(mean + sigmas*math.Sqrt(mean)))
			if k < 0 {
				continue
			}
			tail, above, excess := poisson(k, mean)
			for _, c := range []struct {
				name      string
				got, want float64
			}{
				{"Tail", must(capacity.Tail(k, mean)), tail},
				{"MeanAbove", must(capacity.MeanAbove(k, mean)), above},
				{"Excess", must(capacity.Excess(k, mean)), excess},
			} {
				if !near(c.got, c.want, 1e-11) {
					t.Errorf("%s(%d, %v) = %v, want %v", c.name, k, mean, c.got, c.want)
				}
			}
		}
	}
}

// TestPoissonIdentities holds where summing with many bits would take too long.
func TestPoissonIdentities(t *testing.T) {
	for _, mean := range []float64{1e5, 1e6, 1e6 + 0.5} {
		for _, sigmas := range []float64{-6, -1, 0, 1, 6} {
			k := int(mean + sigmas*math.Sqrt(mean))
			tail, next := must(capacity.Tail(k, mean)), must(capacity.Tail(k+1, mean))
			// One more of the limit refuses as many fewer as windows reach it.
			step := must(capacity.Excess(k, mean)) - must(capacity.Excess(k+1, mean))
			if math.Abs(step-next) > 1e-9 {
				t.Errorf("Excess(%d) falls by %v at mean %v, want the tail %v", k, step, mean, next)
			}
			above := must(capacity.MeanAbove(k, mean))
			if got, want := (above-float64(k))*tail, must(capacity.Excess(k, mean)); !near(got, want, 1e-6) {
				t.Errorf("(MeanAbove - k) Tail = %v at k %d, mean %v, want the excess %v", got, k, mean, want)
			}
			// A normal distribution with a continuity correction is close at such means.
			z := (float64(k) - 0.5 - mean) / math.Sqrt(mean)
			if want := math.Erfc(z/math.Sqrt2) / 2; math.Abs(sigmas) <= 1 && math.Abs(tail-want) > 1e-3 {
				t.Errorf("Tail(%d, %v) = %v, the normal approximation says %v", k, mean, tail, want)
			}
		}
	}
	if got := must(capacity.MeanAbove(100_000, 1)); !near(got, 100_000.00001, 1e-12) {
		t.Errorf("mean above a border no window reaches: %v", got)
	}
}

// chain solves the queue as the Markov chain it is: states 0.. by number of reads, up to
// where no probability is left. Patience in mean holding times, +Inf for endless.
type chain struct{ p []float64 }

func solveChain(permits int, erlangs, patience float64) chain {
	logs, l := []float64{0}, 0.0
	top, waiting := 0.0, math.Inf(-1)
	for k := 1; k < 4_000_000; k++ {
		leave := float64(min(k, permits)) + float64(max(0, k-permits))/patience
		l += math.Log(erlangs / leave)
		logs = append(logs, l)
		top = max(top, l)
		if k >= permits {
			waiting = max(waiting, l)
		}
		if k > permits && l < waiting-60 {
			break
		}
	}
	sum := 0.0
	for i := range logs {
		logs[i] = math.Exp(logs[i] - top)
		sum += logs[i]
	}
	for i := range logs {
		logs[i] /= sum
	}
	return chain{logs}
}

func TestErlangAgainstChain(t *testing.T) {
	for _, n := range []int{1, 2, 4, 24, 300} {
		for _, rho := range []float64{0.05, 0.5, 0.9, 0.99, 1, 1.01, 1.5, 4} {
			erlangs := rho * float64(n)
			// Erlang B: the chain cut at n.
			sum, term := 1.0, 1.0
			for k := n; k >= 1; k-- {
				term *= float64(k) / erlangs
				sum += term
			}
			want := 1 / sum
			if got := must(capacity.ErlangB(n, erlangs)); !near(got, want, 1e-12) {
				t.Errorf("ErlangB(%d, %v) = %v, want %v", n, erlangs, got, want)
			}
			for _, patience := range []float64{1e-3, 0.1, 1, 7, 1000, math.Inf(1)} {
				if math.IsInf(patience, 1) && rho >= 1 {
					continue
				}
				var q capacity.Queue
				if math.IsInf(patience, 1) {
					q = must(capacity.ErlangC(n, erlangs))
				} else {
					q = must(capacity.ErlangA(n, erlangs, patience))
				}
				waits, length := 0.0, 0.0
				for k, p := range solveChain(n, erlangs, patience).p {
					if k >= n {
						waits += p
						length += p * float64(k-n)
					}
				}
				refused := length / patience / erlangs
				if !near(q.Waits, waits, 1e-9) || !near(q.MeanWait, length/erlangs, 1e-8) || !near(q.Refused, refused, 1e-8) {
					t.Errorf("permits %d, erlangs %v, patience %v: waits %v, mean %v, refused %v; the chain says %v, %v, %v",
						n, erlangs, patience, q.Waits, q.MeanWait, q.Refused, waits, length/erlangs, refused)
				}
			}
		}
	}
}

// TestLimits compares each queue with the simpler one that it turns into.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		n int
		a float64
	}{{1, 0.5}, {10, 8}, {10, 10}, {10, 30}, {1000, 990}} {
		b := must(capacity.ErlangB(c.n, c.a))
		for _, q := range []capacity.Queue{
			must(capacity.ErlangA(c.n, c.a, 1e-9)), must(capacity.Deadline(c.n, c.a, 1e-9)),
			must(capacity.ErlangA(c.n, c.a, 0)), must(capacity.Deadline(c.n, c.a, 0)),
		} {
			if !near(q.Refused, b, 1e-5) {
				t.Errorf("%d permits, %v erlangs, no patience: refused %v, ErlangB says %v", c.n, c.a, q.Refused, b)
			}
		}
		if c.a >= float64(c.n) {
			continue
		}
		want := must(capacity.ErlangC(c.n, c.a))
		for _, q := range []capacity.Queue{
			must(capacity.ErlangA(c.n, c.a, 1e9)), must(capacity.Deadline(c.n, c.a, 1e5)),
		} {
			if !near(q.Waits, want.Waits, 1e-6) || !near(q.MeanWait, want.MeanWait, 1e-6) || q.Refused > 1e-6 {
				t.Errorf("%d permits, %v erlangs, long patience: %+v, ErlangC says %+v", c.n, c.a, q, want)
			}
			for _, p := range []float64{0, 0.5, 0.9, 0.99, 0.9999} {
				got, want := must(q.WaitQuantile(p)), must(want.WaitQuantile(p))
				if !near(got, want, 1e-5) {
					t.Errorf("%d permits, %v erlangs, quantile %v: %v, ErlangC says %v", c.n, c.a, p, got, want)
				}
			}
		}
	}
}

func TestQuantileOfErlangC(t *testing.T) {
	q := must(capacity.ErlangC(24, 22))
	for _, p := range []float64{0.6, 0.9, 0.99, 0.999999} {
		want := max(0, math.Log(q.Waits/(1-p))/2) // the wait is exponential at rate 24 - 22
		if got := must(q.WaitQuantile(p)); !near(got, want, 1e-12) {
			t.Errorf("quantile %v: %v, want %v", p, got, want)
		}
	}
}

// TestExtremes goes to 10^6 erlangs and 10^5 permits. In overload, what is refused is
// what does not fit; just at the limit, the asymptotic forms hold.
func TestExtremes(t *testing.T) {
	const n, a = 100_000, 1e6
	if got := must(capacity.ErlangB(n, a)); !near(got, 1-n/a, 1e-5) || got < 1-n/a {
		t.Errorf("ErlangB = %v, want a little above %v", got, 1-n/a)
	}
	for _, patience := range []float64{1e-6, 1e-3, 1, 1e3, 1e6} {
		for _, q := range []capacity.Queue{must(capacity.ErlangA(n, a, patience)), must(capacity.Deadline(n, a, patience))} {
			if !near(q.Refused, 0.9, 1e-5) || q.Refused < 0.9-1e-9 || q.Waits < 0.8 {
				t.Errorf("patience %v: %+v, want 0.9 refused", patience, q)
			}
		}
	}
	// At load = permits, ErlangB is sqrt(2 / (pi n)) (1 + O(1/sqrt n)).
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		if got, want := must(capacity.ErlangB(n, float64(n))), math.Sqrt(2/math.Pi/float64(n)); !near(got, want, 1/math.Sqrt(float64(n))) {
			t.Errorf("ErlangB(%d, %d) = %v, want about %v", n, n, got, want)
		}
	}
	// Half and Whitt: with n = a + beta sqrt(a), ErlangC tends to
	// 1 / (1 + beta Phi(beta) / phi(beta)).
	const beta = 1.0
	phi, cumulative := math.Exp(-beta*beta/2)/math.Sqrt(2*math.Pi), math.Erfc(-beta/math.Sqrt2)/2
	a1 := 1e6
	if got, want := must(capacity.ErlangC(1_001_000, a1)).Waits, 1/(1+beta*cumulative/phi); !near(got, want, 2e-3) {
		t.Errorf("ErlangC at 10^6 erlangs = %v, want about %v", got, want)
	}
	if got := must(capacity.PermitsFor(1e6, 0.001)); must(capacity.ErlangB(got, 1e6)) > 0.001 || must(capacity.ErlangB(got-1, 1e6)) <= 0.001 {
		t.Errorf("PermitsFor(10^6, 0.001) = %d is not the smallest", got)
	}
}
