package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/pgyield/pgyield"
)

// rounds are the ways of a read, and of what goes beside it, that are mixed. Whatever
// they end with, permits must not be lost.
var rounds = []func(ctx context.Context, pool *pgyield.Pool) error{
	func(ctx context.Context, pool *pgyield.Pool) error {
		return pool.QueryRow(ctx, "select count(*) from w").Scan(new(int))
	},
	func(ctx context.Context, pool *pgyield.Pool) error {
		return pool.QueryRow(ctx, "select n from w limit 1").Scan(new(net.IP)) // a scan error
	},
	func(ctx context.Context, pool *pgyield.Pool) error {
		rows, err := pool.Query(ctx, "select n from w limit 20")
		if err != nil {
			return err
		}
		defer rows.Close()
		for i := 0; rows.Next() && i < rand.IntN(30); i++ {
		}
		return nil
	},
	func(ctx context.Context, pool *pgyield.Pool) error {
		_, err := pool.Exec(ctx, "select 1/(n-n) from w")
		return err
	},
	func(ctx context.Context, pool *pgyield.Pool) error {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(4000))*time.Microsecond)
		defer cancel()
		_, err := pool.Exec(ctx, "select pg_sleep(0.002) from w limit 1")
		return err
	},
	func(ctx context.Context, pool *pgyield.Pool) error {
		b := &pgx.Batch{}
		b.Queue("select n from w limit 1")
		b.Queue("select count(*) from w").QueryRow(func(row pgx.Row) error { return row.Scan(new(int)) })
		return pool.SendBatch(ctx, b).Close()
	},
	func(ctx context.Context, pool *pgyield.Pool) error {
		tx, err := pool.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx)
		if rand.IntN(2) == 0 {
			_, _ = tx.Exec(ctx, "select broken")
		}
		return tx.Commit(ctx)
	},
	func(ctx context.Context, pool *pgyield.Pool) error {
		c, err := pool.AcquireRead(ctx)
		if err != nil {
			return err
		}
		defer c.Release()
		return c.QueryRow(ctx, "select count(*) from w").Scan(new(int))
	},
	func(ctx context.Context, pool *pgyield.Pool) error {
		_, err := pool.Exec(ctx, "insert into w values (1)")
		return err
	},
	func(ctx context.Context, pool *pgyield.Pool) error {
		if rand.IntN(50) == 0 {
			_, err := pool.Exec(ctx, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() limit 1")
			return err
		}
		return pool.QueryRow(ctx, "select 1").Scan(new(int))
	},
	func(ctx context.Context, pool *pgyield.Pool) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%v", p)
			}
		}()
		return pool.QueryRow(ctx, "select n from w limit 1").Scan(panicker{})
	},
	func(ctx context.Context, pool *pgyield.Pool) error {
		if rand.IntN(200) == 0 {
			pool.Reset()
		}
		return pool.Ping(ctx)
	},
}

type panicker struct{}

func (panicker) Scan(any) error { panic("scan") }

func TestTenThousandMixedRoundsLeaveNothing(t *testing.T) {
	onServers(t, func(t *testing.T, dsn string) {
		leaks := goleak.IgnoreCurrent()
		config, err := pgyield.ParseConfig(withParams(dsn, "pool_max_conns=8"))
		if err != nil {
			t.Fatal(err)
		}
		config.AfterRelease = func(*pgx.Conn) bool { return rand.IntN(100) > 0 }
		pool, err := pgyield.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		execAll(t, pool, "create table w (n int)", "insert into w select generate_series(1, 50)")
		var left atomic.Int64
		left.Store(10_000)
		var workers sync.WaitGroup
		for i := range 24 {
			workers.Go(func() {
				ctx := pgyield.WithCaller(t.Context(), fmt.Sprint("caller ", i%5))
				for left.Add(-1) >= 0 {
					_ = rounds[rand.IntN(len(rounds))](ctx, pool) // most fail on purpose
				}
			})
		}
		workers.Wait()
		wholeLimitUsable(t, pool)
		pool.Close()
		if s := pool.ReadStat(); s.Running() != 0 || s.Waiting() != 0 {
			t.Errorf("%d run and %d wait after Close", s.Running(), s.Waiting())
		}
		goleak.VerifyNone(t, leaks)
	})
}

// In a storm of cancels the server never runs more reads than the limit: a permit is
// kept until the cancelled query is over.
func TestCancelStormStaysWithinTheLimit(t *testing.T) {
	onServers(t, func(t *testing.T, dsn string) {
		const limit = 3
		pool := newPool(t, dsn, "pool_max_conns=10", "yield_adapt=off", fmt.Sprint("yield_read_limit=", limit))
		watcher := connectTo(t, dsn)
		stop := background(t.Context(), 20, func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Duration(20+rand.IntN(30))*time.Millisecond)
			defer cancel()
			_, _ = pool.Exec(ctx, "select pg_sleep(10) /* storm */")
		})
		most := 0
		for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
			var n int
			if err := watcher.QueryRow(t.Context(), "select count(*) from pg_stat_activity where state = 'active' and query like '%storm%' and pid <> pg_backend_pid()").Scan(&n); err != nil {
				t.Fatal(err)
			}
			most = max(most, n)
		}
		stop()
		if most > limit {
			t.Errorf("%d reads ran at once, want at most %d", most, limit)
		}
		if most == 0 {
			t.Error("no read was seen: the test proves nothing")
		}
		wholeLimitUsable(t, pool)
	})
}

// With the gate full, probes and locks go at once.
func TestUngatedWithAFullGate(t *testing.T) {
	onServers(t, func(t *testing.T, dsn string) {
		pool := newPool(t, dsn, "pool_max_conns=10", "yield_adapt=off", "yield_read_limit=2")
		stop := background(t.Context(), 6, func(ctx context.Context) { _, _ = pool.Exec(ctx, "select pg_sleep(1)") })
		defer stop()
		eventually(t, 5*time.Second, "the gate is full", func() bool { return pool.ReadStat().Waiting() == 4 })
		for name, call := range map[string]func(ctx context.Context) error{
			"select 1":      func(ctx context.Context) error { return pool.QueryRow(ctx, "select 1").Scan(new(int)) },
			"ping":          pool.Ping,
			"advisory lock": func(ctx context.Context) error { _, err := pool.Exec(ctx, "select pg_advisory_lock(1)"); return err },
			"try lock": func(ctx context.Context) error {
				return pool.QueryRow(ctx, "select pg_try_advisory_lock(2)").Scan(new(bool))
			},
			"unlock": func(ctx context.Context) error {
				return pool.QueryRow(ctx, "select pg_advisory_unlock(2)").Scan(new(bool))
			},
			"listen": func(ctx context.Context) error {
				return pool.AcquireFunc(ctx, func(c *pgyield.Conn) error {
					_, err := c.Exec(ctx, "listen news")
					return errors.Join(err, c.QueryRow(ctx, "select count(*) from pg_class").Scan(new(int)))
				})
			},
			"write": func(ctx context.Context) error { _, err := pool.Exec(ctx, "create temp table x (n int)"); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			if err := call(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
		}
	})
}

func TestCloseWithAFullGate(t *testing.T) {
	onServers(t, func(t *testing.T, dsn string) {
		leaks := goleak.IgnoreCurrent()
		pool, err := pgyield.New(t.Context(), withParams(dsn, "pool_max_conns=10", "yield_read_limit=2"))
		if err != nil {
			t.Fatal(err)
		}
		errs := make(chan error, 20)
		var running sync.WaitGroup
		for range 2 {
			running.Go(func() {
				if _, err := pool.Exec(t.Context(), "select pg_sleep(1)"); err != nil {
					t.Errorf("a running read failed: %v", err)
				}
			})
		}
		eventually(t, 5*time.Second, "the gate is full, and its reads have their connections", func() bool {
			return pool.ReadStat().Running() == 2 && pool.Stat().AcquiredConns() == 2
		})
		for range cap(errs) {
			go func() { errs <- pool.QueryRow(t.Context(), "select count(*) from pg_class").Scan(new(int)) }()
		}
		eventually(t, 5*time.Second, "20 reads wait", func() bool { return pool.ReadStat().Waiting() == cap(errs) })
		closing := make(chan struct{})
		start := time.Now()
		go func() { pool.Close(); close(closing) }()
		for range cap(errs) {
			if err := <-errs; err == nil || err.Error() != "closed pool" {
				t.Errorf("a queued read got %v, want pgxpool's closed error", err)
			}
		}
		if took := time.Since(start); took > 500*time.Millisecond {
			t.Errorf("queued reads got their errors after %v", took)
		}
		<-closing
		running.Wait()
		goleak.VerifyNone(t, leaks)
	})
}

// New succeeds with the server down; queries fail as pgxpool's do; once it is up they
// work, and the monitor polls.
func TestServerDownAtNew(t *testing.T) {
	dsn := newDatabase(t)
	road := newRoad(t, dsn)
	pool := newPool(t, road.dsn(dsn), "pool_max_conns=4")
	if err := pool.QueryRow(t.Context(), "select count(*) from pg_class").Scan(new(int)); err == nil || !strings.Contains(err.Error(), "connect") {
		t.Errorf("with the server down a read gets %v", err)
	}
	if _, err := pool.Exec(t.Context(), "create table w (n int)"); err == nil {
		t.Error("with the server down a write succeeds")
	}
	if s := pool.ReadStat(); s.Running() != 0 || s.Limit() != s.Ceiling() {
		t.Errorf("with the server down %d run, limit %d of %d", s.Running(), s.Limit(), s.Ceiling())
	}
	road.open()
	eventually(t, 10*time.Second, "reads work", func() bool {
		return pool.QueryRow(t.Context(), "select count(*) from pg_class").Scan(new(int)) == nil
	})
	eventually(t, 30*time.Second, "control begins", func() bool {
		s := pool.ReadStat()
		return s.Polls().PollsOK > 0 && !s.Blind()
	})
}
