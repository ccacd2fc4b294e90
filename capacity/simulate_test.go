package capacity_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pgyield/pgyield/capacity"
)

// moments is a mean with its standard error, from batches: within one run, values
// depend on each other, but long batches hardly do.
type moments struct{ sum, squares, n float64 }

func (m *moments) add(x float64) { m.sum, m.squares, m.n = m.sum+x, m.squares+x*x, m.n+1 }

func (m *moments) mean() float64 { return m.sum / m.n }

func (m *moments) err() float64 {
	return math.Sqrt(max(0, m.squares/m.n-m.mean()*m.mean()) / (m.n - 1))
}

// agrees reports whether want is within five standard errors, which chance alone leaves
// about once in 10^5 comparisons of batches so many; seeds are fixed besides.
func (m *moments) agrees(want float64) bool {
	return math.Abs(m.mean()-want) <= 5*m.err()+1e-12
}

func check(t *testing.T, what string, m *moments, want float64) {
	t.Helper()
	if !m.agrees(want) {
		t.Errorf("%s: simulated %.6f with a standard error of %.6f, the formula says %.6f", what, m.mean(), m.err(), want)
	}
}

// simulated is what reads met, by batch.
type simulated struct{ waits, refused, wait, over moments }

// simulate runs reads through a first-come queue of permits. Patience draws how long a
// read will wait; level is the wait of which the chance to be longer is counted.
func simulate(random *rand.Rand, permits int, erlangs float64, hold, patience func() float64, level float64) simulated {
	const batches, each = 40, 12_000
	var s simulated
	free := make(times, permits) // when each permit becomes free
	now := 0.0
	for batch := -2; batch < batches; batch++ { // the first two fill the queue
		waits, refused, wait, over := 0.0, 0.0, 0.0, 0.0
		for range each {
			now += random.ExpFloat64() / erlangs
			// In order of arrival, the next permit to become free is this read's,
			// unless it will not wait for it.
			offered := max(0, free[0]-now)
			will := patience()
			if offered > 0 {
				waits++
			}
			if offered > will {
				refused++
			} else {
				free[0] = now + offered + hold()
				heap.Fix(&free, 0)
			}
			spent := min(offered, will)
			wait += spent
			if spent > level {
				over++
			}
		}
		if batch >= 0 {
			s.waits.add(waits / each)
			s.refused.add(refused / each)
			s.wait.add(wait / each)
			s.over.add(over / each)
		}
	}
	return s
}

type times []float64

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *times) Push(x any)        { *t = append(*t, x.(float64)) }
func (t *times) Pop() any          { panic("unused") }

func TestQueuesAgainstSimulation(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 11))
	exponential := random.ExpFloat64
	never, at, always := func() float64 { return 0 }, func(d float64) func() float64 { return func() float64 { return d } }, func() float64 { return math.Inf(1) }
	mean := func(m float64) func() float64 { return func() float64 { return m * random.ExpFloat64() } }
	for _, c := range []struct {
		name           string
		permits        int
		erlangs        float64
		hold, patience func() float64
		queue          capacity.Queue
	}{
		{"B", 24, 18, exponential, never, capacity.Queue{Waits: -1, Refused: must(capacity.ErlangB(24, 18))}},
		{"B, every hold alike", 4, 3, at(1), never, capacity.Queue{Waits: -1, Refused: must(capacity.ErlangB(4, 3))}},
		{"C", 8, 6, exponential, always, must(capacity.ErlangC(8, 6))},
		{"A, light", 8, 6, exponential, mean(0.7), must(capacity.ErlangA(8, 6, 0.7))},
		{"A, overloaded", 8, 12, exponential, mean(2), must(capacity.ErlangA(8, 12, 2))},
		{"deadline, light", 8, 6, exponential, at(0.4), must(capacity.Deadline(8, 6, 0.4))},
		{"deadline, at the limit", 8, 8, exponential, at(0.5), must(capacity.Deadline(8, 8, 0.5))},
		{"deadline, overloaded", 8, 12, exponential, at(0.5), must(capacity.Deadline(8, 12, 0.5))},
	} {
		const level = 0.2
		s := simulate(random, c.permits, c.erlangs, c.hold, c.patience, level)
		check(t, c.name+": refused", &s.refused, c.queue.Refused)
		if c.queue.Waits >= 0 {
			check(t, c.name+": waits", &s.waits, c.queue.Waits)
			check(t, c.name+": mean wait", &s.wait, c.queue.MeanWait)
			check(t, c.name+": waits longer", &s.over, c.queue.Over(level))
			p := 1 - c.queue.Over(level)
			if got := must(c.queue.WaitQuantile(p)); !near(got, level, 1e-9) {
				t.Errorf("%s: quantile %v is %v, want %v", c.name, p, got, level)
			}
		}
	}
}

// poissonDraw counts arrivals in a unit of time.
func poissonDraw(random *rand.Rand, mean float64) (n int) {
	for at := random.ExpFloat64(); at < mean; at += random.ExpFloat64() {
		n++
	}
	return n
}

func TestPoissonAgainstSimulation(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const mean, limit = 22.1075, 25
	var tail, above, excess moments
	for range 50 {
		over, sum, extra := 0.0, 0.0, 0.0
		const each = 4000
		for range each {
			n := poissonDraw(random, mean)
			if n > limit {
				over++
				sum += float64(n)
				extra += float64(n - limit)
			}
		}
		tail.add(over / each)
		above.add(sum / over)
		excess.add(extra / each)
	}
	check(t, "tail", &tail, must(capacity.Tail(limit+1, mean)))
	check(t, "mean above", &above, must(capacity.MeanAbove(limit+1, mean)))
	check(t, "excess", &excess, must(capacity.Excess(limit, mean)))
}

// TestRetryAgainstSimulation lets refused reads come back after an exponential while so
// long that the tries are independent, as the model says they are.
func TestRetryAgainstSimulation(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const permits, erlangs, retries = 10, 9.0, 2
	want := must(capacity.Split{Erlangs: erlangs, Limit: permits, Retries: retries}.Solve())
	var refusals, lost moments
	type again struct {
		at    float64
		tries int
	}
	var pending []again // a heap by hand would be faster; few are pending
	free := make(times, permits)
	next, now := random.ExpFloat64()/erlangs, 0.0
	for batch := -2; batch < 40; batch++ {
		r, l, end := 0.0, 0.0, now+600
		for now < end {
			read := again{next, 0}
			first := -1
			for i, p := range pending {
				if p.at < read.at {
					read, first = p, i
				}
			}
			if first >= 0 {
				pending[first] = pending[len(pending)-1]
				pending = pending[:len(pending)-1]
			} else {
				next += random.ExpFloat64() / erlangs
			}
			now = read.at
			if free[0] <= now {
				free[0] = now + random.ExpFloat64()
				heap.Fix(&free, 0)
				continue
			}
			r++
			if read.tries == retries {
				l++
				continue
			}
			pending = append(pending, again{now + 20*random.ExpFloat64(), read.tries + 1})
		}
		if batch >= 0 {
			refusals.add(r / 600)
			lost.add(l / 600)
		}
	}
	check(t, "refusals", &refusals, want.Refusals)
	check(t, "lost", &lost, want.Lost)
}
