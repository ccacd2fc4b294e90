package capacity

import "math"

// Retried is a load whose refused reads come back, all in the unit of the rate that was
// given.
type Retried struct {
	// Attempts is the rate at which the limit is asked, retries included.
	Attempts float64
	// Refusals is the rate of refusals, each try counted; Lost is the rate of reads of
	// which every try was refused.
	Refusals, Lost float64
	// Probability is the chance that one try is refused.
	Probability float64
}

// Retry returns what becomes of a rate of fresh reads when each that is refused is tried
// again, up to retries times. Refused gives the probability of refusal at a rate of
// attempts; it must not fall as the rate rises.
//
// Retries add load, and load adds refusals: the result is where that loop settles. Where
// it could settle at more than one point, it is the lowest, which a load that grew from
// nothing reaches. Tries of one read count as independent: a retry that comes back within
// the same burst, or to the same full shard, is refused more often.
func Retry(rate float64, retries int, refused func(attempts float64) (float64, error)) (Retried, error) {
	if err := first(checkFloat("Retry", "rate", rate, MaxLoad), checkInt("Retry", "retries", retries, 0, MaxRetries)); err != nil {
		return Retried{}, err
	}
	// From the fresh rate the iteration climbs, and cannot pass the lowest point.
	attempts := rate
	for range 10_000 {
		p, err := refused(attempts)
		if err != nil {
			return Retried{}, err
		}
		next := rate * tries(p, retries)
		if next-attempts <= 1e-13*next {
			return Retried{
				Attempts: next, Refusals: next * p,
				Lost: rate * math.Pow(p, float64(retries+1)), Probability: p,
			}, nil
		}
		attempts = next
	}
	// Two points are about to meet and the climb is slow: where it stands is within
	// what the model can tell.
	p, err := refused(attempts)
	return Retried{attempts, attempts * p, rate * math.Pow(p, float64(retries+1)), p}, err
}

// tries is the mean number of tries of one read: 1 + p + ... + p^retries.
func tries(p float64, retries int) float64 {
	sum := 0.0
	for range retries + 1 {
		sum = 1 + p*sum
	}
	return sum
}

// FreshRate returns the rate of fresh reads behind what was observed, when each read that
// ended refused was tried retries + 1 times: the served, and the refusals over the tries.
func FreshRate(served, refused float64, retries int) (float64, error) {
	err := first(checkFloat("FreshRate", "served", served, MaxLoad), checkFloat("FreshRate", "refused", refused, MaxLoad),
		checkInt("FreshRate", "retries", retries, 0, MaxRetries))
	return served + refused/float64(max(retries, 0)+1), err
}
