package capacity_test

import (
	"math"
	"strings"
	"testing"

	"github.com/pgyield/pgyield/capacity"
)

// TestErrors wants each to name the field, the value and the bound.
func TestErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	free := func(float64) (float64, error) { return 0, nil }
	only := func(_ any, err error) error { return err }
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"tail k":            {only(capacity.Tail(-1, 1)), []string{"k is -1", "from 0"}},
		"tail mean":         {only(capacity.Tail(1, nan)), []string{"mean is NaN"}},
		"above":             {only(capacity.MeanAbove(1, inf)), []string{"mean is +Inf", "1e+09"}},
		"excess":            {only(capacity.Excess(1, -0.5)), []string{"mean is -0.5", "from 0"}},
		"excess limit":      {only(capacity.Excess(capacity.MaxLimit+1, 1)), []string{"limit is 10000001", "10000000"}},
		"B permits":         {only(capacity.ErlangB(-2, 1)), []string{"permits is -2"}},
		"B erlangs":         {only(capacity.ErlangB(2, -1)), []string{"erlangs is -1"}},
		"C erlangs":         {only(capacity.ErlangC(2, inf)), []string{"ErlangC", "erlangs is +Inf"}},
		"A patience":        {only(capacity.ErlangA(2, 1, inf)), []string{"patience is +Inf"}},
		"A negative":        {only(capacity.ErlangA(2, 1, -1)), []string{"patience is -1"}},
		"deadline":          {only(capacity.Deadline(2, 1, nan)), []string{"maxWait is NaN"}},
		"permits target":    {only(capacity.PermitsFor(2, 0)), []string{"refused is 0", "above 0"}},
		"permits load":      {only(capacity.PermitsFor(nan, 0.1)), []string{"erlangs is NaN"}},
		"retry rate":        {only(capacity.Retry(nan, 1, free)), []string{"rate is NaN"}},
		"retries":           {only(capacity.Retry(1, -1, free)), []string{"retries is -1", "1000"}},
		"fresh":             {only(capacity.FreshRate(1, -1, 0)), []string{"refused is -1"}},
		"fresh retries":     {only(capacity.FreshRate(1, 1, -1)), []string{"retries is -1"}},
		"window rate":       {only(capacity.Window{Rate: -3}.Refusals()), []string{"Window", "Rate is -3"}},
		"window limit":      {only(capacity.Window{Limit: -3}.Refusals()), []string{"Limit is -3"}},
		"window shards":     {only(capacity.Window{Shards: -3}.Refusals()), []string{"Shards is -3"}},
		"split erlangs":     {only(capacity.Split{Erlangs: inf}.Solve()), []string{"Erlangs is +Inf"}},
		"split limit":       {only(capacity.Split{Limit: -1}.Solve()), []string{"Limit is -1"}},
		"split shards":      {only(capacity.Split{Shards: -1}.Solve()), []string{"Shards is -1"}},
		"split wait":        {only(capacity.Split{MaxWait: -1}.Solve()), []string{"MaxWait is -1"}},
		"weights":           {only(capacity.Split{Shards: 3, Weights: []float64{1}}.Solve()), []string{"Weights has 1", "3 shards"}},
		"weight":            {only(capacity.Split{Weights: []float64{1, nan}}.Solve()), []string{"Weights[1] is NaN"}},
		"no weight":         {only(capacity.Split{Weights: []float64{0, 0}}.Solve()), []string{"sum of Weights is 0"}},
		"smallest target":   {only(capacity.Smallest(nan, 10, nil)), []string{"target is NaN"}},
		"smallest most":     {only(capacity.Smallest(1, 0, nil)), []string{"most is 0"}},
		"smallest too hard": {only(capacity.Smallest(0, 10, func(int) (float64, error) { return 1, nil })), []string{"up to 10", "target 0"}},
		"quantile":          {only(capacity.Queue{}.WaitQuantile(1)), []string{"p is 1", "below 1"}},
	} {
		if c.err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range append(c.want, "pgyield: capacity: ") {
			if !strings.Contains(c.err.Error(), want) {
				t.Errorf("%s: %q does not say %q", name, c.err, want)
			}
		}
	}
}

// TestEdges are inputs at the ends of the ranges, which have exact answers.
func TestEdges(t *testing.T) {
	for name, c := range map[string]struct{ got, want float64 }{
		"nobody is refused nothing":    {must(capacity.ErlangB(1, 0)), 0},
		"no permits refuse all":        {must(capacity.ErlangB(0, 1)), 1},
		"no permits, patience":         {must(capacity.ErlangA(0, 1, 3)).Refused, 1},
		"no permits, mean wait":        {must(capacity.Deadline(0, 1, 3)).MeanWait, 3},
		"no load waits for nothing":    {must(capacity.ErlangA(4, 0, 3)).Waits, 0},
		"overload never settles":       {must(capacity.ErlangC(4, 4)).MeanWait, math.Inf(1)},
		"overload's quantile":          {must(must(capacity.ErlangC(4, 5)).WaitQuantile(0.5)), math.Inf(1)},
		"a tail from 0":                {must(capacity.Tail(0, 5)), 1},
		"no arrivals":                  {must(capacity.Tail(1, 0)), 0},
		"mean above with no arrivals":  {must(capacity.MeanAbove(3, 0)), 3},
		"excess over 0":                {must(capacity.Excess(0, 5)), 5},
		"no wait is beyond a deadline": {must(capacity.Deadline(4, 6, 2)).Over(2), 0},
		"a window that admits nothing": {must(capacity.Window{Rate: 5, Retries: 2}.Refusals()).Refusals, 15},
		"an idle split":                {must(capacity.Split{Limit: 4, Shards: 2}.Solve()).Refused, 0},
		"more shards than permits":     {must(capacity.Split{Erlangs: 1e-9, Limit: 1, Shards: 2}.Solve()).Refused, 0.5},
		"one shard, no penalty":        {must(capacity.Split{Erlangs: 3, Limit: 4}.Penalty()), 1},
	} {
		if !near(c.got, c.want, 1e-8) && math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

// TestNoPermits: all wait for as long as they may, and are refused.
func TestNoPermits(t *testing.T) {
	deadline, err := capacity.Deadline(0, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	palm, err := capacity.ErlangA(0, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	// A shard of three has none: a third of the reads wait 30 and are refused.
	split, err := capacity.Split{Limit: 2, Shards: 3, Erlangs: 0.3, MaxWait: 30}.Solve()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		q                capacity.Queue
		at, over, p, end float64
	}{
		"deadline": {deadline, 2, 1, 0.99, 3},
		"palm":     {palm, 3, math.Exp(-1), 1 - math.Exp(-2), 6},
		"split":    {split.Queue, 29, 1. / 3, 0.9, 30},
	} {
		quantile, err := c.q.WaitQuantile(c.p)
		if over := c.q.Over(c.at); err != nil || math.Abs(over-c.over) > 1e-6 || math.Abs(quantile-c.end) > 1e-6*c.end {
			t.Errorf("%s: P(wait > %v) = %v, want %v; quantile %v, want %v, %v", name, c.at, over, c.over, quantile, c.end, err)
		}
	}
}
