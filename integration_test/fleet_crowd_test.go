package integration_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/pgtest"
	"github.com/pgyield/pgyield/pressure"
)

// manyConns is a server of the test's own with that many sessions.
func manyConns(t testing.TB, conns string) *pgtest.Server {
	t.Helper()
	return pgtest.New(t, pgtest.Options{Settings: map[string]string{"max_connections": conns}})
}

// crowdPool makes one of many pools: with two connections at most beside its monitor's.
func crowdPool(t testing.TB, dsn, params string, options pgyield.Options) *pgyield.Pool {
	t.Helper()
	config, err := pgyield.ParseConfig(withParams(dsn, "pool_max_conns=2", "yield_read_ceiling=2", params))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgyield.NewWithOptions(t.Context(), config, options)
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// TestFleetCrowd has 300 pools share a limit of 40: each is served in its turn, and what
// runs together stays at the limit.
func TestFleetCrowd(t *testing.T) {
	const pools, limit = 300, 40
	dsn := manyConns(t, "1000").DSN()
	// More polls than by default, so that all have seen all soon, and no more than a slow
	// machine can answer beside the reads, in the time it wants for that; turns are by the server's clock.
	options := pgyield.Options{Fleet: pgyield.FleetOptions{PollRate: 60}, Pressure: pressure.Options{Timeout: 30 * time.Second}}
	var list []*pgyield.Pool
	var served [pools]atomic.Int64
	var stops []func()
	for i := range pools {
		pool := crowdPool(t, dsn, "yield_fleet=crowd yield_fleet_limit=40", options)
		list = append(list, pool)
		stops = append(stops, background(t.Context(), 1, func(ctx context.Context) {
			if _, err := pool.Exec(ctx, "select pg_sleep(0.05)"); err == nil {
				served[i].Add(1)
			} else if ctx.Err() == nil {
				t.Error(err)
			}
		}))
	}
	defer func() { // all at once: one by one the others would go on
		var all sync.WaitGroup
		for i, stop := range stops {
			all.Go(func() {
				stop()
				list[i].Close()
			})
		}
		all.Wait()
	}()
	polled := func() (string, bool) {
		connected, polled, failed := 0, 0, uint64(0)
		for _, p := range list {
			s := p.ReadStat().Polls()
			if s.Connected {
				connected++
			}
			if s.PollsOK >= 3 {
				polled++
			}
			failed += s.PollsFailed
		}
		return fmt.Sprintf("%d are connected, %d have polled, %d polls failed", connected, polled, failed), polled == pools
	}
	comesTrue(t, 3*time.Minute, "all have polled three times", polled)
	w := startWatch(t, withParams(dsn))
	for i := range served {
		served[i].Store(0)
	}
	begun := time.Now()
	comesTrue(t, 3*time.Minute, "each is served", func() (string, bool) {
		for i := range served {
			if served[i].Load() == 0 {
				return "", false
			}
		}
		return "", true
	})
	time.Sleep(5*time.Second - time.Since(begun)) // of which turns take 4
	// For moments there are, besides, reads whose turn has ended beneath them: more of them where
	// a machine is slow to end them.
	s := w.since(t, limit, begun)
	t.Logf("of %d, %.1f ran on average and %d at most (%d looks)", limit, s.mean, s.peak, s.looks)
	if s.mean > limit+2 || s.peak > limit*2 {
		t.Errorf("%.1f ran on average and %d at most, on a limit of %d", s.mean, s.peak, limit)
	}
}
