package integration_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgyield/pgyield"
)

// nestedLoop reads over 1,000 rows with a read inside the loop.
func nestedLoop(ctx context.Context, db database) error {
	rows, err := db.Query(ctx, "select generate_series(1, 1000)")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n, found int
		if err := errors.Join(rows.Scan(&n), db.QueryRow(ctx, "select k from small where k = $1", n%10).Scan(&found)); err != nil {
			return err
		}
	}
	return rows.Err()
}

// At limit 1 a program that reads in a loop over rows is done about as fast as on
// pgxpool, once its first stall is over.
func TestNestedLoopsAtLimitOne(t *testing.T) {
	onServers(t, func(t *testing.T, dsn string) {
		// Twice the goroutines, so that pgxpool itself cannot run out of connections.
		ours := newPool(t, dsn, "pool_max_conns=20", "yield_read_limit=1", "yield_adapt=off")
		plain, err := pgxpool.New(t.Context(), withParams(dsn, "pool_max_conns=20"))
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		execAll(t, ours, "create table small as select generate_series(0, 9) as k")
		loops := func(db database, n int) time.Duration {
			start := time.Now()
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					if err := nestedLoop(t.Context(), db); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			return time.Since(start)
		}
		loops(plain, 1) // statements are prepared
		loops(ours, 1)
		for _, n := range []int{1, 8} {
			// One after the other, each pays its stall: 100 ms for the check to see it.
			base, got := loops(plain, n), loops(ours, n)
			t.Logf("%d loops of 1,000 rows: pgxpool %v, pgyield at limit 1 %v, %d overdrafts", n, base, got, ours.ReadStat().Overdrafts())
			// At limit 1 loops run one by one, so their work does not overlap.
			if most := time.Duration(n)*(150*time.Millisecond+2*loops(plain, 1)) + base; got > most {
				t.Errorf("%d loops took %v, want at most %v (pgxpool: %v)", n, got, most, base)
			}
		}
		wholeLimitUsable(t, ours)
	})
}

func TestOtherNestingsAtLimitOne(t *testing.T) {
	onServers(t, func(t *testing.T, dsn string) {
		config, err := pgyield.ParseConfig(withParams(dsn, "pool_max_conns=6", "yield_read_limit=1", "yield_adapt=off"))
		if err != nil {
			t.Fatal(err)
		}
		var pool *pgyield.Pool
		inner := func(ctx context.Context) error {
			return pool.QueryRow(ctx, "select count(*) from pg_class").Scan(new(int))
		}
		type inHook struct{}
		config.PrepareConn = func(ctx context.Context, _ *pgx.Conn) (bool, error) {
			if ctx.Value(inHook{}) != nil {
				return true, nil
			}
			return true, inner(context.WithValue(ctx, inHook{}, true))
		}
		if pool, err = pgyield.NewWithConfig(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		quiet := context.WithValue(t.Context(), inHook{}, true)
		for name, program := range map[string]func() error{
			"PrepareConn": func() error { return inner(t.Context()) },
			"batch callback": func() error {
				b := &pgx.Batch{}
				b.Queue("select relname from pg_class limit 3").Query(func(pgx.Rows) error { return inner(quiet) })
				return pool.SendBatch(quiet, b).Close()
			},
			"read-only transaction": func() error {
				tx, err := pool.BeginTx(quiet, pgx.TxOptions{AccessMode: pgx.ReadOnly})
				if err != nil {
					return err
				}
				return errors.Join(inner(quiet), tx.Commit(quiet))
			},
		} {
			start := time.Now()
			if err := program(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("%s took %v", name, took)
			}
		}
		wholeLimitUsable(t, pool)
	})
}

// A read waits on the server for a lock of a transaction whose next step is a read: only
// BusyStall can tell.
func TestReadBlockedByAWaitingTransaction(t *testing.T) {
	onServers(t, func(t *testing.T, dsn string) {
		pool := newPool(t, dsn, "pool_max_conns=6", "yield_read_limit=1", "yield_adapt=off", "yield_busy_stall=1s")
		execAll(t, pool, "create table locked (n int)")
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "lock table locked in access exclusive mode"); err != nil {
			t.Fatal(err)
		}
		blocked := make(chan error, 1)
		go func() { blocked <- pool.QueryRow(t.Context(), "select count(*) from locked").Scan(new(int)) }()
		eventually(t, 5*time.Second, "the read waits for the lock", func() bool { return pool.ReadStat().Running() == 1 })
		start := time.Now()
		if err := pool.QueryRow(t.Context(), "select count(*) from pg_class").Scan(new(int)); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < 500*time.Millisecond || took > 5*time.Second {
			t.Errorf("the transaction's read waited %v, want BusyStall of 1 s", took)
		}
		if err := errors.Join(tx.Commit(t.Context()), <-blocked); err != nil {
			t.Error(err)
		}
		if got := pool.ReadStat().Overdrafts(); got != 1 {
			t.Errorf("%d overdrafts, want 1", got)
		}
	})
}
