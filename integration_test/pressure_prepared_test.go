package integration_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/pressure"
)

// TestPressurePollIsPrepared on the server that it meets directly, with names or without,
// and says the same there as unprepared.
func TestPressurePollIsPrepared(t *testing.T) {
	eachPressureVersion(t, func(t *testing.T, dsn string) {
		for _, fleet := range []bool{false, true} {
			prepared := countPrepared(t, dsn, fleet)
			if prepared != 1 {
				t.Errorf("fleet %t: %d prepared statements", fleet, prepared)
			}
		}
	})
}

// TestPressurePollIsNotPreparedBehindABouncer, even where the bouncer could.
func TestPressurePollIsNotPreparedBehindABouncer(t *testing.T) {
	if n := countPrepared(t, startBouncer(t, serverDSN(t)), false); n != 0 {
		t.Errorf("%d prepared statements", n)
	}
}

// countPrepared polls for more than a second and returns how many prepared statements
// upkeep, which runs on the monitor's connection, finds there then.
func countPrepared(t *testing.T, dsn string, fleet bool) (found int) {
	t.Helper()
	runs := 0
	options := pressure.Options{
		MaintainEvery: time.Second,
		Maintain: func(ctx context.Context, conn *pgx.Conn) error {
			runs++
			return conn.QueryRow(ctx, "select count(*) from pg_prepared_statements where name <> ''").Scan(&found)
		},
	}
	if fleet {
		options.Name, options.NamePrefix, options.Mark = func() string { return "pgyield/p/x" }, "pgyield/p/", "0a0a0a0a"
	}
	poller, logged := newTestPoller(t, dsn, options)
	for runs < 2 {
		s := mustSample(t, poller)
		if !s.NextXID.Known || !s.LockWaiters.Known || s.ServerTime.IsZero() {
			t.Fatalf("the sample is %+v", s)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if s := poller.Stat(); s.PollsFailed > 0 || s.MaintainError != nil || s.Connects != 1 {
		t.Errorf("%+v; the log:\n%s", s, logged)
	}
	return found
}
