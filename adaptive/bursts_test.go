package adaptive

import (
	"math"
	"slices"
	"testing"
	"time"
)

// bursts makes writes slow for a window or a few at a time, with calm between: what a server
// does that is as busy with writes as it can be. The share is that of the slow stretches.
func bursts(m *model, share float64) func() float64 {
	const slow = 350 * time.Millisecond // on average
	until, bad, factor := time.Now(), false, 1.0
	length := func(mean time.Duration) time.Duration { return time.Duration(float64(mean) * m.rng.ExpFloat64()) }
	return func() float64 {
		for now := time.Now(); !now.Before(until); {
			if bad = !bad; bad {
				until, factor = until.Add(length(slow)), math.Exp(m.rng.Float64()*math.Log(8))
			} else {
				until, factor = until.Add(length(time.Duration(float64(slow)*(1-share)/share))), 1
			}
		}
		return factor
	}
}

// TestHarmlessReadsBesideBursts: reads that cost nothing, beside writes that are slow by
// themselves time and again, keep half their limit.
func TestHarmlessReadsBesideBursts(t *testing.T) {
	for _, share := range []float64{0.05, 0.1, 0.2, 0.4} {
		var list []float64
		for seed := range uint64(8) {
			modelled(t, seed, narrow, Options{}, func(m *model, l *Limit) {
				m.sleeping, m.writeRate = true, 2000
				m.warm(l)
				m.slowness = bursts(m, share)
				m.readers = 16
				m.run(l, 15*time.Second, nil)
				list = append(list, m.shareAtLeast(l, 10*time.Minute, 2))
			})
		}
		slices.Sort(list)
		t.Logf("slow for %.2f of the time: at half or more %.2f of the time", share, list)
		if list[4] < 0.9 || list[0] < 0.8 {
			t.Errorf("slow for %.2f of the time: at half or more %.2f of the time", share, list)
		}
	}
}

// TestOverloadBesideBursts: the same bursts beside reads that are to blame do not hide it:
// writes take what they take beside one read.
func TestOverloadBesideBursts(t *testing.T) {
	for _, share := range []float64{0.05, 0.1, 0.2, 0.4} {
		var list, limits []float64
		for seed := range uint64(4) {
			modelled(t, seed, wide, Options{}, func(m *model, l *Limit) {
				m.warm(l)
				m.slowness = bursts(m, share)
				m.readers = 16
				m.run(l, 15*time.Second, nil)
				m.harm(0)
				good, sum, n := 0, 0.0, 0
				const windows = 120
				for range windows {
					m.run(l, 5*time.Second, func(d Decision) { sum, n = sum+float64(d.To), n+1 })
					if m.harm(0.95)/idleP95 <= 1.5 {
						good++
					}
				}
				list, limits = append(list, float64(good)/windows), append(limits, math.Round(100*sum/float64(n))/100)
			})
		}
		slices.Sort(list)
		t.Logf("slow for %.2f of the time: p95 within 1.5 in %.2f of the windows; limits %.2f", share, list, limits)
		if list[0] < 0.93 || slices.Max(limits) > 1.1 {
			t.Errorf("slow for %.2f of the time: p95 within 1.5 in %.2f of the windows; limits %.2f", share, list, limits)
		}
	}
}

// stalls holds all writes up for a second in five, for as long whatever runs beside them.
func stalls(m *model) func() float64 {
	begun := time.Now()
	return func() float64 {
		if time.Since(begun)%(5*time.Second) < time.Second {
			return max(1, 10/slow(m.busy()))
		}
		return 1
	}
}

// TestOverloadBesideStalls: rows of slow windows at the floor do not hide that a level above
// it is slow all the time, whether writes are many or few.
func TestOverloadBesideStalls(t *testing.T) {
	for _, rate := range []float64{200, 20, 12} {
		var limits []float64
		for seed := range uint64(4) {
			modelled(t, seed, wide, Options{}, func(m *model, l *Limit) {
				m.writeRate = rate
				m.warm(l)
				m.slowness = stalls(m)
				m.readers = 16
				m.run(l, time.Minute, nil)
				sum, n := 0, 0
				m.run(l, 20*time.Minute, func(d Decision) { sum, n = sum+d.To, n+1 })
				limits = append(limits, math.Round(100*float64(sum)/float64(n))/100)
			})
		}
		t.Logf("%v writes a second: limits %.2f", rate, limits)
		if slices.Max(limits) > 1.5 {
			t.Errorf("%v writes a second: limits %.2f", rate, limits)
		}
	}
}
