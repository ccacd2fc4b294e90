package capacity_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/pgyield/pgyield/capacity"
)

// TestStaticSplit gives, in percent, what one limit refuses and what the same limit
// refuses when processes divide it once and for all.
func TestStaticSplit(t *testing.T) {
	uneven := []float64{70, 10, 10, 10}
	for _, c := range []struct {
		name        string
		split       capacity.Split
		load        float64
		pool, parts float64
		places      int
	}{
		{"4 members, uneven, 60 %", capacity.Split{Limit: 40, Weights: uneven}, 0.6, 0.08, 32, 0},
		{"4 members, uneven, 95 %", capacity.Split{Limit: 40, Weights: uneven}, 0.95, 9.0, 45, 0},
		{"20 members, 60 %", capacity.Split{Limit: 100, Shards: 20}, 0.6, 0, 11, 0},
		{"20 members, 95 %", capacity.Split{Limit: 100, Shards: 20}, 0.95, 4.8, 26, 0},
		{"50 members, 95 %", capacity.Split{Limit: 200, Shards: 50}, 0.95, 2.9, 29, 0},
	} {
		c.split.Erlangs = c.load * float64(c.split.Limit)
		parts := 100 * must(c.split.Solve()).Refused
		pool := 100 * must(capacity.ErlangB(c.split.Limit, c.split.Erlangs))
		if math.Abs(pool-c.pool) > 0.15 || math.Abs(parts-c.parts) > 0.8 {
			t.Errorf("%s: one limit refuses %.3f %%, the parts %.2f %%; want %v and %v", c.name, pool, parts, c.pool, c.parts)
		}
	}
}

func TestSplitMixesQueues(t *testing.T) {
	s := capacity.Split{Erlangs: 10, Limit: 11, Shards: 3, MaxWait: 0.5}
	out := must(s.Solve())
	big, small := must(capacity.Deadline(4, 10./3, 0.5)), must(capacity.Deadline(3, 10./3, 0.5))
	mean := func(f func(q capacity.Queue) float64) float64 { return (2*f(big) + f(small)) / 3 }
	for what, c := range map[string]struct{ got, want float64 }{
		"refused":   {out.Refused, mean(func(q capacity.Queue) float64 { return q.Refused })},
		"mean wait": {out.MeanWait, mean(func(q capacity.Queue) float64 { return q.MeanWait })},
		"over":      {out.Over(0.1), mean(func(q capacity.Queue) float64 { return q.Over(0.1) })},
		"refusals":  {out.Refusals, 10 * out.Refused},
	} {
		if !near(c.got, c.want, 1e-12) {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	p70 := must(out.WaitQuantile(0.7))
	if p70 <= 0 || p70 >= 0.5 || !near(out.Over(p70), 0.3, 1e-6) {
		t.Errorf("70 %% of waits are at most %v, yet %v are longer", p70, out.Over(p70))
	}
	// Weights that are all alike are no weights.
	s.Weights = []float64{2, 2, 2}
	if got := must(s.Solve()); !near(got.Refused, out.Refused, 1e-12) {
		t.Errorf("with equal weights %v is refused, without %v", got.Refused, out.Refused)
	}
}

// TestRetryLoop checks that what Retry returns is where the loop stands still.
func TestRetryLoop(t *testing.T) {
	for _, retries := range []int{0, 1, 3, 1000} {
		for _, rate := range []float64{0.1, 10, 16, 40} {
			r := must(capacity.Retry(rate, retries, func(a float64) (float64, error) { return capacity.ErlangB(16, a) }))
			p := must(capacity.ErlangB(16, r.Attempts))
			if !near(r.Attempts-r.Refusals, rate-r.Lost, 1e-8) {
				t.Errorf("rate %v, %d retries: %v admitted, but %v not lost", rate, retries, r.Attempts-r.Refusals, rate-r.Lost)
			}
			if !near(r.Refusals, r.Attempts*p, 1e-6) || r.Attempts < rate || r.Attempts > rate*float64(retries+1) {
				t.Errorf("rate %v, %d retries: %+v does not stand still, refusal is %v there", rate, retries, r, p)
			}
		}
	}
}

func TestSmallest(t *testing.T) {
	calls := 0
	b := func(limit int) (float64, error) { calls++; return capacity.ErlangB(limit, 800) }
	got := must(capacity.Smallest(0.01, capacity.MaxLimit, b))
	if want := must(capacity.PermitsFor(800, 0.01)); got != want {
		t.Errorf("Smallest = %d, PermitsFor = %d", got, want)
	}
	if calls > 25 {
		t.Errorf("%d calls for a limit of %d: not a bisection", calls, got)
	}
	wait := func(limit int) (float64, error) {
		q, err := capacity.ErlangC(limit, 8)
		return q.MeanWait, err
	}
	got = must(capacity.Smallest(0.1, 100, wait))
	if must(wait(got)) > 0.1 || must(wait(got-1)) <= 0.1 {
		t.Errorf("%d is not the smallest limit with a mean wait of 0.1", got)
	}
	if got := must(capacity.Smallest(1, 100, wait)); got != 9 {
		t.Errorf("Smallest = %d, want the first limit that settles", got)
	}
}

// Six processes that divide a limit of 24 between them refuse almost six times as much as
// one limit of 24 would.
func ExampleSplit() {
	split := capacity.Split{Erlangs: 18, Limit: 24, Shards: 6}
	out, err := split.Solve()
	if err != nil {
		fmt.Println(err)
		return
	}
	penalty, _ := split.Penalty()
	fmt.Printf("refused: %.1f %%, %.1f times what one limit refuses\n", 100*out.Refused, penalty)
	// Output: refused: 20.6 %, 5.8 times what one limit refuses
}

// The limit at which at most one read in a hundred waits longer than its own holding time.
func ExampleSmallest() {
	limit, err := capacity.Smallest(0.01, 1000, func(limit int) (float64, error) {
		queue, err := capacity.ErlangC(limit, 12)
		return queue.Over(1), err
	})
	fmt.Println(limit, err)
	// Output: 16 <nil>
}
