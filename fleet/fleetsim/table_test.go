package fleetsim_test

import (
	"testing"
	"time"

	"github.com/pgyield/pgyield/capacity"
	"github.com/pgyield/pgyield/fleet/fleetsim"
)

// run simulates, and wants no error.
func run(t *testing.T, c fleetsim.Config) fleetsim.Result {
	t.Helper()
	r, err := fleetsim.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// length is how long a run counts. At 95 % crowds last for seconds, so that shorter runs
// differ much.
func length() time.Duration {
	if testing.Short() {
		return 3 * time.Minute
	}
	return 10 * time.Minute
}

var uneven = []float64{70, 10, 10, 10}

// TestRefused compares, for reads of 100 ms that may not wait, one limit, the same limit
// divided for good, and a fleet that polls every 250 ms.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		config fleetsim.Config
		load   float64
		// most is how many times as many as one limit the fleet may refuse, atMost how
		// many it may refuse where one limit refuses hardly any.
		most, atMost float64
	}{
		{"4 members, uneven, 60 %", fleetsim.Config{Limit: 40, Members: 4, Weights: uneven}, 0.6, 0, 0.003},
		{"4 members, uneven, 95 %", fleetsim.Config{Limit: 40, Members: 4, Weights: uneven}, 0.95, 1.2, 0},
		{"20 members, 60 %", fleetsim.Config{Limit: 100, Members: 20}, 0.6, 0, 0.003},
		{"20 members, 95 %", fleetsim.Config{Limit: 100, Members: 20}, 0.95, 1.4, 0},
		{"50 members, 95 %", fleetsim.Config{Limit: 200, Members: 50}, 0.95, 2.2, 0},
	} {
		c.config.Rate, c.config.Seed = c.load*float64(c.config.Limit)*10, 7
		results := map[fleetsim.Kind]fleetsim.Result{}
		for _, kind := range []fleetsim.Kind{fleetsim.Pooled, fleetsim.Split, fleetsim.Shared, fleetsim.Strict} {
			c.config.Kind = kind
			if c.config.Length = length(); kind == fleetsim.Strict || kind == fleetsim.Split {
				c.config.Length /= 3 // they are steadier
			}
			results[kind] = run(t, c.config)
		}
		pool, split, fleet, strict := results[fleetsim.Pooled], results[fleetsim.Split], results[fleetsim.Shared], results[fleetsim.Strict]
		t.Logf("%s: refused %.2f %% by one limit, %.1f %% split, %.2f %% fleet, %.1f %% strict; fleet over the limit %.1f %% of the time, peak %d",
			c.name, 100*pool.Refused, 100*split.Refused, 100*fleet.Refused, 100*strict.Refused, 100*fleet.Over, fleet.Peak)
		if fleet.Refused > max(c.most*pool.Refused, c.atMost) {
			t.Errorf("%s: the fleet refuses %.4f, one limit %.4f", c.name, fleet.Refused, pool.Refused)
		}
		if fleet.Over > 0.15 || 2*fleet.Peak > 3*c.config.Limit {
			t.Errorf("%s: over the limit for %.3f of the time, peak %d", c.name, fleet.Over, fleet.Peak)
		}
		if strict.Over > 0 || pool.Over > 0 || split.Over > 0 {
			t.Errorf("%s: one limit, a split or a strict fleet ran more than the limit", c.name)
		}
		formula := capacity.Split{Erlangs: c.load * float64(c.config.Limit), Limit: c.config.Limit, Shards: c.config.Members, Weights: c.config.Weights}
		for shards, got := range map[int]float64{1: pool.Refused, c.config.Members: split.Refused} {
			formula.Shards = shards
			if shards == 1 {
				formula.Weights = nil
			} else {
				formula.Weights = c.config.Weights
			}
			want, err := formula.Solve()
			if err != nil {
				t.Fatal(err)
			}
			if d := got - want.Refused; d > 0.012 || d < -0.012 {
				t.Errorf("%s, %d limits: simulated %.4f, the formula says %.4f", c.name, shards, got, want.Refused)
			}
		}
	}
}

// TestWaits is the same for reads that may wait.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		name   string
		config fleetsim.Config
		load   float64
	}{
		{"4 members, uneven, 60 %", fleetsim.Config{Limit: 40, Members: 4, Weights: uneven}, 0.6},
		{"4 members, uneven, 95 %", fleetsim.Config{Limit: 40, Members: 4, Weights: uneven}, 0.95},
		{"20 members, 95 %", fleetsim.Config{Limit: 100, Members: 20}, 0.95},
	} {
		c.config.Rate, c.config.Length, c.config.Seed = c.load*float64(c.config.Limit)*10, length()/2, 7
		c.config.MaxWait = 10 * time.Second
		var results [3]fleetsim.Result
		for i, kind := range []fleetsim.Kind{fleetsim.Pooled, fleetsim.Split, fleetsim.Shared} {
			c.config.Kind = kind
			results[i] = run(t, c.config)
		}
		pool, split, fleet := results[0], results[1], results[2]
		t.Logf("%s: mean and p99 wait: one limit %v, %v; split %v, %v; fleet %v, %v; fleet over %.1f %% of the time, peak %d", c.name,
			ms(pool.MeanWait), ms(pool.P99Wait), ms(split.MeanWait), ms(split.P99Wait), ms(fleet.MeanWait), ms(fleet.P99Wait), 100*fleet.Over, fleet.Peak)
		if fleet.MeanWait > split.MeanWait/3 || fleet.P99Wait > split.P99Wait {
			t.Errorf("%s: waits of the fleet are not far below those of the split", c.name)
		}
		if c.load < 0.9 && fleet.MeanWait > time.Millisecond || 2*fleet.Peak > 3*c.config.Limit {
			t.Errorf("%s: mean wait %v, peak %d", c.name, fleet.MeanWait, fleet.Peak)
		}
		want, err := capacity.Deadline(c.config.Limit, c.load*float64(c.config.Limit), 100)
		if err != nil {
			t.Fatal(err)
		}
		got, mean := pool.MeanWait.Seconds(), 0.1*want.MeanWait
		if d := got - mean; d > 0.3*mean+1e-4 || d < -0.3*mean-1e-4 {
			t.Errorf("%s: one limit's mean wait is %v s, the formula says %v s", c.name, got, mean)
		}
	}
}

func ms(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
