package capacity

import "math"

// Tail returns P(N >= k) for a Poisson N with the given mean: how likely a window sees
// at least k arrivals.
func Tail(k int, mean float64) (float64, error) {
	if err := first(checkInt("Tail", "k", k, 0, MaxLimit), checkFloat("Tail", "mean", mean, MaxLoad)); err != nil {
		return 0, err
	}
	return tail(float64(k), mean), nil
}

// MeanAbove returns E[N | N >= k] for a Poisson N: how many arrivals a window sees that
// sees at least k. For a mean of 0 it is k, the limit as the mean goes to 0.
func MeanAbove(k int, mean float64) (float64, error) {
	if err := first(checkInt("MeanAbove", "k", k, 0, MaxLimit), checkFloat("MeanAbove", "mean", mean, MaxLoad)); err != nil {
		return 0, err
	}
	n := float64(k)
	// E[N; N >= k] = mean P(N >= k-1), so E = mean + mean P(N = k-1) / P(N >= k).
	if n > mean {
		return mean + n/upward(n, mean, 0), nil // neither probability, which may underflow
	}
	if k == 0 {
		return mean, nil
	}
	return mean + mean*math.Exp(logPoisson(n-1, mean))/tail(n, mean), nil
}

// Excess returns E[(N - limit)+] for a Poisson N: the arrivals above the limit that a
// window sees on average.
func Excess(limit int, mean float64) (float64, error) {
	if err := first(checkInt("Excess", "limit", limit, 0, MaxLimit), checkFloat("Excess", "mean", mean, MaxLoad)); err != nil {
		return 0, err
	}
	return excess(float64(limit), mean), nil
}

func tail(k, mean float64) float64 {
	switch {
	case k == 0:
		return 1
	case k > mean:
		return math.Exp(logPoisson(k, mean)) * upward(k, mean, 0)
	}
	return 1 - math.Exp(logPoisson(k-1, mean))*downward(k-1, mean, 0)
}

// excess sums on the side of the limit where little lies, so that no large numbers
// cancel.
func excess(limit, mean float64) float64 {
	if limit >= mean {
		return math.Exp(logPoisson(limit, mean)) * upward(limit, mean, 1)
	}
	return mean - limit + math.Exp(logPoisson(limit, mean))*downward(limit, mean, 1)
}

// upward returns the sum over j >= 0 of P(N = k+j) / P(N = k), each times j to the
// power of moment (0 or 1). It needs k >= mean or so to converge quickly.
func upward(k, mean float64, moment int) float64 {
	sum, term := 0.0, 1.0
	for j := 0.0; ; j++ {
		part := term
		if moment == 1 {
			part *= j
		}
		// The first part of the first moment is 0.
		if sum+part == sum && j > 0 {
			return sum
		}
		sum += part
		term *= mean / (k + j + 1)
	}
}

// downward is upward's mirror: the sum over 0 <= j <= k of P(N = k-j) / P(N = k).
func downward(k, mean float64, moment int) float64 {
	sum, term := 0.0, 1.0
	for j := 0.0; j <= k; j++ {
		part := term
		if moment == 1 {
			part *= j
		}
		if sum+part == sum && j > 0 {
			break
		}
		sum += part
		term *= (k - j) / mean
	}
	return sum
}
