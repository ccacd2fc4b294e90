package integration_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgyield/pgyield"
)

// sleeper is a read that holds its permit and costs the server nothing.
const sleeper = "select pg_sleep(0.05)"

// busy keeps n reads going on a pool until stopped.
func busy(t testing.TB, pool *pgyield.Pool, n int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := pool.Exec(ctx, sleeper); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(stop)
	return stop
}

// comesTrue waits until what holds, which it must within the time.
func comesTrue(t testing.TB, within time.Duration, what string, holds func() (state string, ok bool)) {
	t.Helper()
	begun := time.Now()
	for {
		state, ok := holds()
		if ok {
			t.Logf("%s after %v: %s", what, time.Since(begun).Round(10*time.Millisecond), state)
			return
		}
		if time.Since(begun) > within {
			t.Fatalf("%s: not within %v: %s", what, within, state)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// ceilingsAre tells whether the pools' ceilings are the wanted ones.
func ceilingsAre(pools []*pgyield.Pool, want func(ceilings []int) bool) func() (string, bool) {
	return func() (string, bool) {
		var got []int
		for _, p := range pools {
			got = append(got, p.ReadStat().Ceiling())
		}
		return fmt.Sprint(got), want(got)
	}
}

func allAre(n int) func([]int) bool {
	return func(list []int) bool {
		for _, x := range list {
			if x != n {
				return false
			}
		}
		return true
	}
}

const member = "pool_max_conns=20 yield_fleet_limit=12"

// TestFleet shares a limit of 12 between pools: evenly when all are busy, all to one when
// the others idle, anew when one ends; two fleets and a pool by itself do not touch.
func TestFleet(t *testing.T) {
	onServers(t, func(t *testing.T, dsn string) {
		params := append(strings.Fields(member), "yield_fleet=shop")
		pools := []*pgyield.Pool{newPool(t, dsn, params...), newPool(t, dsn, params...), newPool(t, dsn, params...)}
		other := newPool(t, dsn, append(strings.Fields(member), "yield_fleet=shop2")...)
		alone := newPool(t, dsn, "pool_max_conns=20")
		busy(t, other, 30)
		busy(t, alone, 30)
		busy(t, pools[0], 30)
		comesTrue(t, 10*time.Second, "one busy pool has most", ceilingsAre(pools[:1], func(c []int) bool { return c[0] >= 10 }))
		var stops []func()
		for _, p := range pools[1:] {
			stops = append(stops, busy(t, p, 30))
		}
		comesTrue(t, 10*time.Second, "even shares", ceilingsAre(pools, allAre(4)))
		sum := func() (running int) {
			for _, p := range pools {
				running += p.ReadStat().Running()
			}
			return running
		}
		comesTrue(t, 2*time.Second, "the limit", func() (string, bool) { n := sum(); return fmt.Sprint(n, " run"), n <= 12 })
		for range 50 {
			if n := sum(); n > 15 {
				t.Errorf("%d run, on a limit of 12", n)
			}
			time.Sleep(20 * time.Millisecond)
		}
		stops[1]()
		pools[2].Close()
		comesTrue(t, 10*time.Second, "shares of two", ceilingsAre(pools[:2], allAre(6)))
		for pool, want := range map[*pgyield.Pool]int{other: 12, alone: 16} {
			comesTrue(t, 5*time.Second, "those beside it have all of their own", func() (string, bool) {
				s := pool.ReadStat()
				return fmt.Sprintf("%d of %d", s.Running(), s.Ceiling()), s.Ceiling() == want && s.Running() == want
			})
		}
	})
}
