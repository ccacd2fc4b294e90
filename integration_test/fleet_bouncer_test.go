package integration_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield"
)

// TestFleetThroughBouncer has three pools reach the server through pgbouncer in transaction
// mode, which shares the monitors' sessions between them.
func TestFleetThroughBouncer(t *testing.T) {
	direct := newDatabase(t)
	through := startBouncer(t, direct)
	start := func(t *testing.T, fleet string, monitor *pgx.ConnConfig) (pools []*pgyield.Pool, logs []*logBuffer) {
		for range 3 {
			config, err := pgyield.ParseConfig(withParams(through, "pool_max_conns=20", "default_query_exec_mode=exec",
				"yield_fleet="+fleet, "yield_fleet_limit=12", "yield_fleet_size=4"))
			if err != nil {
				t.Fatal(err)
			}
			logged := &logBuffer{}
			pool, err := pgyield.NewWithOptions(t.Context(), config, pgyield.Options{
				MonitorConfig: monitor, Logger: slog.New(slog.NewTextHandler(logged, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			pools, logs = append(pools, pool), append(logs, logged)
			// Few: the bouncer has two sessions, and the monitors must get their turns.
			t.Cleanup(background(context.Background(), 2, func(context.Context) {
				_, _ = pool.Exec(context.Background(), "select pg_sleep(0.002)")
			}))
		}
		return pools, logs
	}
	const said = "a bouncer shares the monitor's session"

	t.Run("without MonitorConfig", func(t *testing.T) {
		pools, logs := start(t, "blind", nil)
		comesTrue(t, 30*time.Second, "each has found out", func() (string, bool) {
			for _, p := range pools {
				if !p.ReadStat().Fleet().Shared {
					return "", false
				}
			}
			return "", true
		})
		comesTrue(t, 5*time.Second, "the limit by the size that was told", ceilingsAre(pools, allAre(3)))
		polls := pools[0].ReadStat().Polls().PollsOK
		comesTrue(t, 30*time.Second, "more polls", func() (string, bool) { return "", pools[0].ReadStat().Polls().PollsOK > polls+10 })
		if state, ok := ceilingsAre(pools, allAre(3))(); !ok {
			t.Errorf("later the ceilings are %s, want 3 each", state)
		}
		for i, l := range logs {
			if n := strings.Count(l.String(), said); n != 1 {
				t.Errorf("pool %d says it %d times:\n%s", i, n, l)
			}
		}
	})
	t.Run("with MonitorConfig", func(t *testing.T) {
		monitor, err := pgx.ParseConfig(direct)
		if err != nil {
			t.Fatal(err)
		}
		pools, logs := start(t, "seeing", monitor)
		comesTrue(t, 20*time.Second, "all see each other", func() (string, bool) {
			for _, p := range pools {
				if s := p.ReadStat().Fleet(); s.Members != 3 || s.Share != 4 {
					return "", false
				}
			}
			return "", true
		})
		for i, l := range logs {
			if strings.Contains(l.String(), said) {
				t.Errorf("pool %d takes its own session for a shared one:\n%s", i, l)
			}
		}
	})
}
