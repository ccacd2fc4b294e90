package capacity

import "fmt"

// Split is a load on a limit on concurrency that is divided between shards: processes,
// say, each with its part of one limit, that do not know of each other.
type Split struct {
	// Erlangs is the whole load of fresh reads, Limit the whole limit.
	Erlangs float64
	Limit   int
	// Shards is how many divide the limit, as evenly as whole numbers go. 0 means 1: one
	// pooled limit.
	Shards int
	// Weights are the shards' parts of the load, in any unit. Empty means equal parts;
	// else one weight a shard. The first shards are those that have one more permit.
	Weights []float64
	// MaxWait is how long a read may wait, in mean holding times. 0: not at all.
	MaxWait float64
	// Retries is how often a refused read is tried again, at once: at a shard at random
	// where the parts are equal, else at its own.
	Retries int
}

// Outcome is what a load meets at a limit.
type Outcome struct {
	// Retried counts in erlangs. Its Probability is the chance that one try is refused.
	Retried
	// Queue is what one try meets, over all shards.
	Queue
}

// Solve returns what the load meets.
func (s Split) Solve() (Outcome, error) {
	if s.Shards == 0 {
		s.Shards = max(1, len(s.Weights))
	}
	err := first(checkFloat("Split", "Erlangs", s.Erlangs, MaxLoad), checkInt("Split", "Limit", s.Limit, 0, MaxLimit),
		checkInt("Split", "Shards", s.Shards, 1, 1_000_000), checkFloat("Split", "MaxWait", s.MaxWait, maxPatience),
		checkInt("Split", "Retries", s.Retries, 0, MaxRetries), s.checkWeights())
	if err != nil {
		return Outcome{}, err
	}
	if len(s.Weights) == 0 {
		return s.solve(s.Erlangs, s.portions())
	}
	// Retries stay where they are, so that each shard settles by itself.
	var all mix
	for _, p := range s.portions() {
		one, err := s.solve(s.Erlangs*p.load, []portion{{p.part, 1}})
		if err != nil {
			return Outcome{}, err
		}
		all.add(one)
	}
	return all.outcome(), nil
}

// solve returns what a load meets whose retries go to any of the portions.
func (s Split) solve(erlangs float64, portions []portion) (Outcome, error) {
	var try mix
	retried, err := Retry(erlangs, s.Retries, func(attempts float64) (float64, error) {
		try = mix{}
		for _, p := range portions {
			load := attempts * p.load
			q, err := Deadline(p.limit, load, s.MaxWait)
			if err != nil {
				return 0, err
			}
			load *= float64(p.shards)
			try.add(Outcome{Retried{Attempts: load, Refusals: load * q.Refused}, q})
		}
		return try.outcome().Refused, nil
	})
	return Outcome{retried, try.outcome().Queue}, err
}

func (s Split) checkWeights() error {
	if len(s.Weights) == 0 {
		return nil
	}
	if len(s.Weights) != s.Shards {
		return fmt.Errorf("pgyield: capacity: Split: Weights has %d numbers, must have one for each of the %d shards", len(s.Weights), s.Shards)
	}
	sum := 0.0
	for i, w := range s.Weights {
		if err := checkFloat("Split", fmt.Sprintf("Weights[%d]", i), w, MaxLoad); err != nil {
			return err
		}
		sum += w
	}
	if sum == 0 {
		return fmt.Errorf("pgyield: capacity: Split: the sum of Weights is 0, must be above 0")
	}
	return nil
}

// portion is a number of shards alike: their limit, and their part of the load.
type portion struct {
	part
	load float64
}

func (s Split) portions() []portion {
	var list []portion
	if len(s.Weights) == 0 {
		for _, p := range parts(s.Limit, s.Shards) {
			list = append(list, portion{p, 1 / float64(s.Shards)})
		}
		return list
	}
	sum := 0.0
	for _, w := range s.Weights {
		sum += w
	}
	for i, w := range s.Weights {
		limit := s.Limit / s.Shards
		if i < s.Limit%s.Shards {
			limit++
		}
		list = append(list, portion{part{1, limit}, w / sum})
	}
	return list
}

// mix adds up what shards meet, each by its part of the tries.
type mix []Outcome

func (m *mix) add(o Outcome) { *m = append(*m, o) }

func (m mix) outcome() Outcome {
	var out Outcome
	for _, o := range m {
		out.Attempts += o.Attempts
		out.Refusals += o.Refusals
		out.Lost += o.Lost
	}
	for _, o := range m {
		weight := 1 / float64(len(m)) // of no tries at all, any average will do
		if out.Attempts > 0 {
			weight = o.Attempts / out.Attempts
		}
		if weight == 0 {
			continue // not 0 times an infinite wait
		}
		out.Queue.Refused += weight * o.Queue.Refused
		out.Waits += weight * o.Waits
		out.MeanWait += weight * o.MeanWait
		out.longest = max(out.longest, o.longest)
	}
	out.Probability = out.Refused
	out.over = func(t float64) float64 {
		sum := 0.0
		for _, o := range m {
			if o.Attempts > 0 {
				sum += o.Attempts / out.Attempts * o.Over(t)
			}
		}
		return sum
	}
	return out
}

// Penalty returns how many times as many reads the shards refuse as one pooled limit
// would: 1 is no penalty, infinity that the pooled limit refuses none.
func (s Split) Penalty() (float64, error) {
	split, err := s.Solve()
	if err != nil {
		return 0, err
	}
	s.Shards, s.Weights = 1, nil
	pooled, err := s.Solve()
	switch {
	case err != nil:
		return 0, err
	case split.Refusals == 0:
		return 1, nil
	}
	return split.Refusals / pooled.Refusals, nil
}
