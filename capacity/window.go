package capacity

// Window is a limit on a rate that is counted in windows and starts anew with each.
type Window struct {
	// Rate is the mean number of fresh reads in a window, over all shards.
	Rate float64
	// Limit is how many a window admits, over all shards.
	Limit int
	// Shards is how many counters divide the limit, and reads, evenly and at random
	// between them. 0 means 1.
	Shards int
	// Retries is how often a refused read is tried again, at a shard at random and in a
	// window of its own.
	Retries int
}

// Refusals returns what the limit refuses in a window on average, over all shards.
func (w Window) Refusals() (Retried, error) {
	if w.Shards == 0 {
		w.Shards = 1
	}
	err := first(checkFloat("Window", "Rate", w.Rate, MaxLoad), checkInt("Window", "Limit", w.Limit, 0, MaxLimit),
		checkInt("Window", "Shards", w.Shards, 1, MaxLimit), checkInt("Window", "Retries", w.Retries, 0, MaxRetries))
	if err != nil {
		return Retried{}, err
	}
	return Retry(w.Rate, w.Retries, func(attempts float64) (float64, error) {
		if attempts == 0 {
			if w.Limit < w.Shards {
				return float64(w.Shards-w.Limit) / float64(w.Shards), nil
			}
			return 0, nil
		}
		sum := 0.0
		for _, p := range parts(w.Limit, w.Shards) {
			sum += float64(p.shards) * excess(float64(p.limit), attempts/float64(w.Shards))
		}
		return min(1, sum/attempts), nil
	})
}

// part is a number of shards that have the same limit.
type part struct{ shards, limit int }

// parts divides a limit as evenly as whole numbers go: some shards have one more.
func parts(limit, shards int) []part {
	low, more := limit/shards, limit%shards
	if more == 0 {
		return []part{{shards, low}}
	}
	return []part{{more, low + 1}, {shards - more, low}}
}
