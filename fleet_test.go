package pgyield_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/adaptive"
	"github.com/pgyield/pgyield/fleet"
)

func TestFleetOptions(t *testing.T) {
	const base = "host=db user=u pool_max_conns=10 "
	for _, c := range []struct {
		params  string
		options pgyield.Options
		want    string
	}{
		{"yield_fleet=shop", pgyield.Options{}, "Fleet.Limit (yield_fleet_limit) is 0"},
		{"yield_fleet_limit=5", pgyield.Options{}, "Fleet.Name (yield_fleet) is empty"},
		{"yield_fleet=shop yield_fleet_limit=5 yield_adapt=off", pgyield.Options{}, "yield_adapt=off"},
		{"", pgyield.Options{Fleet: pgyield.FleetOptions{Name: "a:b", Limit: 5}}, `Name is "a:b"`},
		{"", pgyield.Options{Fleet: pgyield.FleetOptions{Name: "shop", Limit: -1}}, "yield_fleet_limit) is -1"},
		{"", pgyield.Options{Fleet: pgyield.FleetOptions{Name: "shop", Limit: 5, Lease: time.Millisecond}}, "Lease is 1ms"},
		{"", pgyield.Options{Fleet: pgyield.FleetOptions{Name: "shop", Limit: 5, PollRate: -1}}, "PollRate is -1"},
	} {
		config, err := pgyield.ParseConfig(base + c.params)
		if err != nil {
			t.Fatal(err)
		}
		pool, err := pgyield.NewWithOptions(t.Context(), config, c.options)
		if err == nil {
			pool.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v, want %q", c.params, c.options.Fleet, err, c.want)
		}
	}
}

// TestFleetLimit keeps apart what the fleet gives and what pressure allows.
func TestFleetLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, member := pgyield.NewFleetLimit(t, 16, fleet.Options{Name: "shop", Limit: 12})
		var limiter adaptive.Limiter = l
		want := func(what string, limit, ceiling int) {
			t.Helper()
			limiter.EndPeriod()
			if floor, start, got := limiter.Bounds(); limiter.Limit() != limit || got != ceiling || start != ceiling || floor != 1 {
				t.Errorf("%s: limit %d, floor %d, start %d, ceiling %d; want a limit of %d and a ceiling of %d", what, limiter.Limit(), floor, start, got, limit, ceiling)
			}
		}
		see := func(names ...string) {
			member.Name()
			member.Observe(time.Now(), fleet.View{Names: names})
		}
		hungry := func(beat string) string { return member.Prefix() + "0a1b2c3d:" + beat + ":6:9:c:6" }
		want("before the first poll", 1, 1)
		see()
		want("after the first", 1, 1)
		see()
		want("alone", 12, 12)
		limiter.SetLimit(6)
		want("cut", 6, 12)
		for _, beat := range []string{"1", "2", "3"} {
			see(hungry(beat))
		}
		want("another one came, with all the demand", 1, 1)
		limiter.SetLimit(1) // a cut that can cut no more
		see()
		want("it left: the cut stays", 6, 12)
		limiter.SetLimit(7)
		want("climbs", 7, 12)
		for limit := 8; limit <= 12; limit++ {
			limiter.SetLimit(limit)
		}
		for _, beat := range []string{"4", "5", "6"} {
			see(hungry(beat))
		}
		want("climbed to the ceiling, it follows it", 1, 1)
		see()
		want("and back", 12, 12)
		time.Sleep(time.Minute)
		want("polls fail: the limit over the last known size", 12, 12)
	})
}

// TestFleetLimitProbes: a probe lasts until the adaptive limit's decision, whatever polls and
// the end of the period come before that, as long as they leave the limit where it is.
func TestFleetLimitProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, member := pgyield.NewFleetLimit(t, 16, fleet.Options{Name: "shop", Limit: 12})
		poll := func() {
			member.Name()
			member.Observe(time.Now(), fleet.View{})
			l.Follow()
		}
		decide := func(how func(int), limit int) {
			l.EndPeriod()
			l.Limit()
			l.Bounds()
			how(limit)
		}
		poll()
		poll()
		decide(l.SetLimit, 1)
		mayRun := func(what string, may bool) (end func()) {
			t.Helper()
			permit, err := l.Bulkhead().TryAcquire("a", 1)
			if (err == nil) != may {
				t.Errorf("%s: a read runs: %t", what, err == nil)
			}
			return permit.Release
		}
		end := mayRun("at a limit of 1", true)
		mayRun("a second one", false)
		decide(l.Probe, 2)
		defer mayRun("a second one, in a probe", true)()
		end()
		poll()
		l.EndPeriod()
		if mayRun("in place of the one that has ended", false); l.Limit() != 2 {
			t.Errorf("the limit is %d in a probe of 2", l.Limit())
		}
		decide(l.SetLimit, 2)
		defer mayRun("once the level stays", true)()
	})
}

// TestFleetLimitMovesBeneath lets a poll move the limit after the adaptive one was told it,
// and before its decision comes: that is by what it was told.
func TestFleetLimitMovesBeneath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			what                  string
			allowed               int // 0: nothing is held back
			crowded, crowdedAfter bool
			change                func(told int) int
			want                  int // alone, after it
		}{
			{"a cut to what the fleet takes away", 0, false, true, func(told int) int { return told / 2 }, 6},
			{"a cut above it", 10, false, true, func(told int) int { return told - 1 }, 9},
			{"a cut beneath what it gives", 8, true, false, func(told int) int { return told / 2 }, 1},
			{"a climb to the ceiling, which rises", 0, true, false, func(told int) int { return told + 1 }, 12},
			{"a climb, while a cut stands", 6, false, true, func(told int) int { return told + 1 }, 7},
			{"lowered by the ceiling alone", 0, false, true, func(int) int { return 3 }, 12},
		} {
			l, member := pgyield.NewFleetLimit(t, 16, fleet.Options{Name: "shop", Limit: 12})
			beat := 0
			be := func(crowded bool) {
				for range 3 {
					beat++
					names := []string{}
					if crowded { // a share of 3 is left
						names = append(names, fmt.Sprintf("%s0a1b2c3d:%d:7:0:7:7", member.Prefix(), beat))
					}
					member.Name()
					member.Observe(time.Now(), fleet.View{Names: names})
				}
				l.Follow()
			}
			be(false)
			if c.allowed > 0 {
				l.Limit()
				l.Bounds()
				l.SetLimit(c.allowed)
			}
			be(c.crowded)
			told := l.Limit()
			if c.what == "lowered by the ceiling alone" {
				be(c.crowdedAfter)
				l.Bounds()
			} else {
				l.Bounds()
				be(c.crowdedAfter)
			}
			l.SetLimit(c.change(told))
			be(false)
			if got := l.Limit(); got != c.want {
				t.Errorf("%s: told %d, set %d, it is at %d, want %d", c.what, told, c.change(told), got, c.want)
			}
		}
	})
}

// TestFleetLimitKeepsEven: beside others that pressure holds to less it comes down to them,
// and what pressure allows it is not forgotten for that.
func TestFleetLimitKeepsEven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, member := pgyield.NewFleetLimit(t, 16, fleet.Options{Name: "shop", Limit: 32})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if permit, err := l.Bulkhead().Acquire(ctx, "", 1); err == nil {
					<-ctx.Done()
					permit.Release()
				}
			})
		}
		defer wg.Wait()
		defer cancel()
		synctest.Wait()
		beat := 0
		see := func(held string) {
			for range 3 {
				beat++
				var names []string
				if held != "" {
					for _, id := range []string{"00000001", "00000002", "00000003"} {
						names = append(names, fmt.Sprintf("%s%s:%d:4:8:k:8%s", member.Prefix(), id, beat, held))
					}
				}
				member.Name()
				member.Observe(time.Now(), fleet.View{Names: names})
			}
			l.Follow()
		}
		set := func(limit int) {
			l.EndPeriod()
			l.Limit()
			l.Bounds()
			l.SetLimit(limit)
		}
		want := func(what string, limit int, behind bool) {
			t.Helper()
			if got, lags := l.Limit(), l.Beside(false); got != limit || lags != behind {
				t.Errorf("%s: limit %d, behind %v; want %d, %v", what, got, lags, limit, behind)
			}
		}
		see(":8")
		set(7)
		want("cut", 7, false)
		see(":3")
		want("the others are held to 3", 4, false)
		see(":3=")
		want("and stay there", 3, false)
		set(4)
		see(":3")
		want("one more than they is tried", 4, false)
		see(":8")
		want("they climb: what pressure allows is 7 as before", 7, true)
		set(8)
		want("it has come up to them since", 8, false)
		set(4)
		see(":3")
		set(5)
		see(":8")
		want("a climb to beside the others is no climb to the ceiling", 5, true)
	})
}
