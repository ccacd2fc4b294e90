package fleet

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// pour divides as the definition says: one at a time, to whoever wants more and has
// least; what is left, to all in turn.
func pour(limit int, demands []int) []int {
	parts := make([]int, len(demands))
	for ; limit > 0; limit-- {
		least := -1
		for i, d := range demands {
			if parts[i] < max(d, 1) && (least < 0 || parts[i] < parts[least]) {
				least = i
			}
		}
		if least < 0 {
			break
		}
		parts[least]++
	}
	for i := 0; limit > 0 && len(parts) > 0; i, limit = (i+1)%len(parts), limit-1 {
		parts[i]++
	}
	return parts
}

func TestDivideAgainstPouring(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		demands := make([]int, random.IntN(12))
		for i := range demands {
			demands[i] = random.IntN(20) * random.IntN(2)
		}
		limit := random.IntN(60)
		got, want := divide(limit, demands), pour(limit, demands)
		if !slices.Equal(got, want) {
			t.Fatalf("divide(%d, %v) = %v, want %v", limit, demands, got, want)
		}
	}
	if got := divide(1_000_000, []int{maxNumber, maxNumber, 5}); got[0]+got[1]+got[2] != 1_000_000 || got[2] != 5 {
		t.Errorf("large demands: %v", got)
	}
}

func TestCrowdPlans(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 300 {
		limit := 1 + random.IntN(12)
		demands := make([]int, 1+random.IntN(40))
		for i := range demands {
			demands[i] = random.IntN(9) * random.IntN(2)
		}
		served := make([]bool, len(demands))
		for step := range 400 {
			sum := 0
			now := at.Add(time.Duration(step) * turn / 4)
			for self := range demands {
				p := divideLimit(limit, demands, self)
				part := p.shares[self]
				if p.turns.has(now) {
					part++
				}
				served[self] = served[self] || part > 0
				sum += part
			}
			if sum != limit {
				t.Fatalf("limit %d over %v sums to %d", limit, demands, sum)
			}
		}
		if i := slices.Index(served, false); i >= 0 {
			t.Fatalf("limit %d over %v: member %d never had a turn", limit, demands, i)
		}
	}
}

// TestTurnsChangeWhenTheySay walks from change to change: between two nothing changes.
func TestTurnsChangeWhenTheySay(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 777, time.UTC)
	for _, r := range []rotation{{0, 300, 40}, {299, 300, 40}, {3, 4, 1}, {0, 2, 1}, {5, 7, 6}, {1, 7, 3}} {
		for range 50 {
			next, had := r.changes(at), r.has(at)
			if !next.After(at) || r.has(next) == had || r.has(next.Add(-1)) != had || r.has(at.Add(next.Sub(at)/2)) != had {
				t.Fatalf("%+v at %v: has %v, says that it changes at %v", r, at, had, next)
			}
			at = next
		}
	}
	for _, r := range []rotation{{}, {0, 4, 4}, {0, 4, 0}} {
		if next := r.changes(at); !next.IsZero() {
			t.Errorf("%+v changes at %v, and never does", r, next)
		}
	}
}
