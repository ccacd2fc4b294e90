package capacity

import (
	"fmt"
	"math"
)

// MaxLimit is the largest limit that is computed, and MaxLoad the largest load in
// erlangs or arrivals a window: about the reach of the arithmetic, and far above any
// database's.
const (
	MaxLimit = 10_000_000
	MaxLoad  = 1e9
)

// MaxRetries is the largest number of retries that is modelled.
const MaxRetries = 1000

func checkFloat(where, name string, value, high float64) error {
	if math.IsNaN(value) || value < 0 || value > high {
		return fmt.Errorf("pgyield: capacity: %s: %s is %v, must be a finite number from 0 to %g", where, name, value, high)
	}
	return nil
}

func checkInt(where, name string, value, low, high int) error {
	if value < low || value > high {
		return fmt.Errorf("pgyield: capacity: %s: %s is %d, must be from %d to %d", where, name, value, low, high)
	}
	return nil
}

// first returns the first error there is.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
