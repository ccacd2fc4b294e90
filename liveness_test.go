package pgyield_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/intent"
	"github.com/pgyield/pgyield/internal/pgfake"
)

// stall is what the first nested read of a program at the limit costs, at most.
const stall = 200 * time.Millisecond

const thousand = "select generate_series(1, 1000)"

// nestedLoop reads over n rows, with a read inside the loop.
func nestedLoop(f *fixture, sql string) error {
	rows, err := f.Query(f.ctx, sql)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var outer, inner int
		if err := errors.Join(rows.Scan(&outer), f.QueryRow(f.ctx, read).Scan(&inner)); err != nil {
			return err
		}
	}
	return rows.Err()
}

func TestNestedReadsAtLimitOne(t *testing.T) {
	fixed("1").run(t, func(f *fixture) {
		var err error
		d := took(func() { err = nestedLoop(f, thousand) })
		if err != nil {
			f.Fatal(err)
		}
		if d > stall {
			f.Errorf("a loop of 1,000 nested reads took %v, want one stall of at most %v", d, stall)
		}
		if got := f.ReadStat().Overdrafts(); got == 0 {
			f.Error("no overdraft was counted")
		}
		f.wholeLimitUsable()
	})
}

func TestEightNestedLoopsAtLimitOne(t *testing.T) {
	s := fixed("1")
	s.params[0] = "pool_max_conns=20"
	s.run(t, func(f *fixture) {
		var loops sync.WaitGroup
		d := took(func() {
			for range 8 {
				loops.Go(func() {
					if err := nestedLoop(f, "select generate_series(1, 100)"); err != nil {
						f.Error(err)
					}
				})
			}
			loops.Wait()
		})
		if d > 8*stall {
			f.Errorf("8 loops took %v, want at most %v", d, 8*stall)
		}
		f.wholeLimitUsable()
	})
}

// nestings are programs that hold a read while they run another. pgxpool runs them; so
// must the gate at limit 1, after at most a stall.
var nestings = map[string]func(f *fixture, inner func() error) error{
	"rows": func(f *fixture, inner func() error) error {
		rows, err := f.Query(f.ctx, read)
		if err != nil {
			return err
		}
		defer rows.Close()
		rows.Next()
		return inner()
	},
	"rows never read": func(f *fixture, inner func() error) error {
		rows, err := f.Query(f.ctx, read)
		if err != nil {
			return err
		}
		defer rows.Close()
		return inner()
	},
	"row not yet scanned": func(f *fixture, inner func() error) error {
		row := f.QueryRow(f.ctx, read)
		return errors.Join(inner(), row.Scan(nil))
	},
	"scanner": func(f *fixture, inner func() error) error {
		return f.QueryRow(f.ctx, read).Scan(scanFunc(inner))
	},
	"scanner of rows": func(f *fixture, inner func() error) error {
		rows, _ := f.Query(f.ctx, read)
		defer rows.Close()
		rows.Next()
		return rows.Scan(scanFunc(inner))
	},
	"batch open": func(f *fixture, inner func() error) error {
		b := &pgx.Batch{}
		b.Queue(read)
		br := f.SendBatch(f.ctx, b)
		return errors.Join(inner(), br.Close())
	},
	"batch callback": func(f *fixture, inner func() error) error {
		b := &pgx.Batch{}
		b.Queue(read).QueryRow(func(row pgx.Row) error { return errors.Join(inner(), row.Scan(nil)) })
		b.Queue(read).Query(func(rows pgx.Rows) error { rows.Next(); return inner() })
		return f.SendBatch(f.ctx, b).Close()
	},
	"batch rows": func(f *fixture, inner func() error) error {
		b := &pgx.Batch{}
		b.Queue(read)
		br := f.SendBatch(f.ctx, b)
		defer br.Close()
		rows, err := br.Query()
		if err != nil {
			return err
		}
		rows.Next()
		defer rows.Close()
		return inner()
	},
	"read-only transaction": func(f *fixture, inner func() error) error {
		tx, err := f.BeginTx(f.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		if err != nil {
			return err
		}
		defer tx.Rollback(f.ctx)
		return errors.Join(tx.QueryRow(f.ctx, read).Scan(nil), inner())
	},
	"rows of a savepoint": func(f *fixture, inner func() error) error {
		tx, err := f.BeginTx(f.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		if err != nil {
			return err
		}
		defer tx.Rollback(f.ctx)
		sub, err := tx.Begin(f.ctx)
		if err != nil {
			return err
		}
		rows, err := sub.Query(f.ctx, read)
		if err != nil {
			return err
		}
		defer rows.Close()
		rows.Next()
		return inner()
	},
	"batch in a read-only transaction": func(f *fixture, inner func() error) error {
		tx, err := f.BeginTx(f.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		if err != nil {
			return err
		}
		defer tx.Rollback(f.ctx)
		b := &pgx.Batch{}
		b.Queue(read).Query(func(rows pgx.Rows) error { rows.Next(); return inner() })
		return tx.SendBatch(f.ctx, b).Close()
	},
	"acquired connection": func(f *fixture, inner func() error) error {
		c, err := f.AcquireRead(f.ctx)
		if err != nil {
			return err
		}
		defer c.Release()
		rows, err := c.Query(f.ctx, read)
		if err != nil {
			return err
		}
		defer rows.Close()
		rows.Next()
		return inner()
	},
	"acquired connection between raw statements": func(f *fixture, inner func() error) error {
		c, err := f.AcquireRead(f.ctx)
		if err != nil {
			return err
		}
		defer c.Release()
		_, err = c.Conn().Exec(f.ctx, read)
		return errors.Join(err, inner())
	},
	"rewriter": func(f *fixture, inner func() error) error {
		_, err := f.Exec(pgyield.WithIntent(f.ctx, intent.Read), read, rewriteFunc(inner))
		return err
	},
}

type scanFunc func() error

func (s scanFunc) Scan(any) error { return s() }

type rewriteFunc func() error

func (r rewriteFunc) RewriteQuery(_ context.Context, _ *pgx.Conn, sql string, args []any) (string, []any, error) {
	return sql, args, r()
}

func TestNestingsAtLimitOne(t *testing.T) {
	for name, nesting := range nestings {
		t.Run(name, func(t *testing.T) {
			fixed("1").run(t, func(f *fixture) {
				var err error
				d := took(func() {
					err = nesting(f, func() error {
						var n int
						return f.QueryRow(f.ctx, read).Scan(&n)
					})
				})
				if err != nil {
					f.Error(err)
				}
				if d > 2*stall {
					f.Errorf("took %v, want at most two stalls of %v", d, stall)
				}
				f.wholeLimitUsable()
			})
		})
	}
}

// hooks that read from the pool itself.
func TestReadsInHooksAtLimitOne(t *testing.T) {
	for name, install := range map[string]func(c *pgyield.Config, read func() error){
		"BeforeConnect": func(c *pgyield.Config, read func() error) {
			c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return read() }
		},
		"AfterConnect": func(c *pgyield.Config, read func() error) {
			c.AfterConnect = func(context.Context, *pgx.Conn) error { return read() }
		},
		"PrepareConn": func(c *pgyield.Config, read func() error) {
			c.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) { return true, read() }
		},
		"BeforeAcquire": func(c *pgyield.Config, read func() error) {
			c.BeforeAcquire = func(context.Context, *pgx.Conn) bool { return read() == nil }
		},
		"ShouldPing": func(c *pgyield.Config, read func() error) {
			c.ShouldPing = func(context.Context, pgyield.ShouldPingParams) bool { return read() != nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			var f *fixture
			var nested atomic.Bool // or each nested read would run the hook again
			s := fixed("1")
			s.configure = func(c *pgyield.Config) {
				install(c, func() error {
					if nested.Swap(true) {
						return nil
					}
					var n int
					return f.QueryRow(f.ctx, read).Scan(&n)
				})
			}
			s.run(t, func(g *fixture) {
				f = g
				var err error
				d := took(func() {
					var n int
					err = f.QueryRow(f.ctx, read).Scan(&n)
				})
				if err != nil || d > 2*stall {
					f.Errorf("took %v, error %v", d, err)
				}
			})
		})
	}
}

// A read that waits in the driver for a lock which a program holds that itself waits for
// a permit: nobody is idle, and nothing moves until BusyStall.
func TestReadThatWaitsForTheLockOfAWaitingProgram(t *testing.T) {
	var lock chan struct{} // made inside the bubble
	s := fixed("1")
	s.handler = func(ctx context.Context, q pgfake.Query) pgfake.Result {
		if q.SQL == "select locked from t" {
			select {
			case <-lock:
			case <-ctx.Done():
				return pgfake.Result{Err: ctx.Err()}
			}
			q.SQL = read
		}
		return pgfake.Default(ctx, q)
	}
	s.run(t, func(f *fixture) {
		lock = make(chan struct{})
		tx, err := f.Begin(f.ctx)
		if err != nil {
			f.Fatal(err)
		}
		go f.Exec(f.ctx, "select locked from t") //nolint:errcheck // only its permit matters
		synctest.Wait()
		d := took(func() { _, err = f.Exec(f.ctx, read) }) // the transaction's next step reads
		if err != nil || d < 5*time.Second || d > 6*time.Second {
			f.Errorf("waited %v, error %v, want BusyStall of 5 s", d, err)
		}
		close(lock)
		if err := tx.Commit(f.ctx); err != nil {
			f.Error(err)
		}
		f.atRest()
	})
}

// A long query inside the driver is at work, not stalled.
func TestLongQueryOpensNoStallSlot(t *testing.T) {
	fixed("1").run(t, func(f *fixture) {
		go f.Exec(f.ctx, "select pg_sleep(3)") //nolint:errcheck // only its permit matters
		synctest.Wait()
		if wait := took(func() { _, _ = f.Exec(f.ctx, read) }); wait < 3*time.Second {
			f.Errorf("a read waited %v beside a query of 3 s at limit 1", wait)
		}
		if got := f.ReadStat().Overdrafts(); got != 0 {
			f.Errorf("%d overdrafts, want none", got)
		}
	})
}

// However slowly reads consume their rows, and however many wait, a write finds a
// connection: the last one is not for them while writes flow.
func TestOverdraftsLeaveWritesAConnection(t *testing.T) {
	for _, conns := range []string{"2", "4", "10"} {
		t.Run(conns, func(t *testing.T) {
			s := setup{params: []string{"pool_max_conns=" + conns, "yield_adapt=off"}}
			s.run(t, func(f *fixture) {
				stop := time.Now().Add(30 * time.Second)
				var readers sync.WaitGroup
				for range 16 {
					readers.Go(func() {
						for time.Now().Before(stop) {
							rows, err := f.Query(f.ctx, read)
							if err != nil {
								f.Error(err)
								return
							}
							for rows.Next() {
								time.Sleep(300 * time.Millisecond)
							}
						}
					})
				}
				var slowest time.Duration
				for time.Now().Before(stop) {
					slowest = max(slowest, took(func() { _, _ = f.Exec(f.ctx, "insert into t values (1)") }))
					time.Sleep(50 * time.Millisecond)
				}
				if slowest > time.Millisecond {
					f.Errorf("a write waited %v for slow consumers of rows", slowest)
				}
				readers.Wait()
			})
		})
	}
}

// With no write about, a nested read may have the last connection, as on pgxpool.
func TestNestedReadMayTakeTheLastConnection(t *testing.T) {
	s := setup{params: []string{"pool_max_conns=2", "yield_adapt=off"}}
	s.run(t, func(f *fixture) {
		if err := nestedLoop(f, read); err != nil {
			f.Error(err)
		}
	})
}
