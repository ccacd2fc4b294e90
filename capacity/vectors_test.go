package capacity_test

import (
	"math"
	"testing"

	"github.com/pgyield/pgyield/capacity"
)

// must returns the value, which the test's own input cannot make an error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// digits reports whether got, rounded to as many decimals, is want.
func digits(got, want float64, decimals int) bool {
	scale := math.Pow(10, float64(decimals))
	return math.Round(got*scale) == math.Round(want*scale)
}

// TestStudy computes the figures of a study of a rate limit of 150 a second that served
// 129.01 and refused 7.27 a second. The study's excess, the mean above a border less the
// border, times the probability, is exact only where the border is one above the limit
// and the limit itself is subtracted; else it is off by one.
func TestStudy(t *testing.T) {
	const served, refused = 129.01, 7.27
	once := must(capacity.FreshRate(served, refused, 0))
	retried := must(capacity.FreshRate(served, refused, 1))
	shard := retried / 6
	study := func(border int, subtract, mean float64) float64 {
		return (must(capacity.MeanAbove(border, mean)) - subtract) * must(capacity.Tail(border, mean))
	}
	for _, c := range []struct {
		what      string
		got, want float64
		decimals  int
	}{
		{"fresh rate, no retry", once, 136.28, 2},
		{"P(N >= 151)", must(capacity.Tail(151, once)), 0.11279, 5},
		{"E[N | N >= 151]", must(capacity.MeanAbove(151, once)), 156.438, 3},
		{"study, one pool", study(151, 151, once), 0.6133, 4},
		{"exact excess, one pool", must(capacity.Excess(150, once)), 0.72612, 5},
		{"exact excess, by the conditional mean", study(151, 150, once), 0.72612, 5},
		{"rate with one retry (132.64 when cut)", retried, 132.645, 3},
		{"study, one pool and one retry: exact, times the tries", 2 * study(151, 150, retried), 0.7266, 4},
		{"per shard", shard, 22.1075, 4},
		{"study, per shard", study(26, 26, shard), 0.57109, 5},
		{"study, six shards and two tries", 12 * study(26, 26, shard), 6.8531, 4},
		{"exact, six shards and two tries", 12 * must(capacity.Excess(25, shard)), 9.61, 2},
		{"Erlang B, pooled", must(capacity.ErlangB(24, 18)), 0.035256, 6},
		{"Erlang B, one of six shards", must(capacity.ErlangB(4, 3)), 0.206107, 6},
	} {
		if !digits(c.got, c.want, c.decimals) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}
