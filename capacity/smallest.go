package capacity

import "fmt"

// Smallest returns the smallest limit, of at least 1, at which measure is at most target.
// Measure must not rise with the limit: a probability of refusal, a mean wait, a
// quantile. It is an error when no limit up to most does.
func Smallest(target float64, most int, measure func(limit int) (float64, error)) (int, error) {
	if err := first(checkFloat("Smallest", "target", target, 1e308), checkInt("Smallest", "most", most, 1, MaxLimit)); err != nil {
		return 0, err
	}
	fits := func(limit int) (bool, error) {
		value, err := measure(limit)
		return value <= target, err
	}
	low, high := 0, 1 // low does not fit, or is 0
	for {
		ok, err := fits(high)
		if err != nil {
			return 0, err
		}
		if ok {
			break
		}
		if high == most {
			return 0, fmt.Errorf("pgyield: capacity: Smallest: no limit up to %d reaches the target %v", most, target)
		}
		low, high = high, min(2*high, most)
	}
	for high-low > 1 {
		middle := low + (high-low)/2
		ok, err := fits(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	return high, nil
}
