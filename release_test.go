package pgyield_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/intent"
	"github.com/pgyield/pgyield/internal/pgfake"
)

// panicker panics when it is scanned into, or rewrites.
type panicker struct{}

func (panicker) Scan(any) error { panic("scan") }

func (panicker) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	panic("rewrite")
}

// failing fails when it is scanned into, or rewrites.
type failing struct{}

func (failing) Scan(any) error { return errTest }

func (failing) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return "", nil, errTest
}

// paths are the ways in which a read can end. After each, every permit must be back and
// the whole limit usable.
var paths = map[string]func(f *fixture){
	"rows closed": func(f *fixture) {
		rows, err := f.Query(f.ctx, read)
		if err != nil {
			f.Fatal(err)
		}
		if got := f.ReadStat().Running(); got != 1 {
			f.Errorf("%d run with rows open, want 1", got)
		}
		rows.Next()
		rows.Close()
		rows.Close()
	},
	"rows read to the end": func(f *fixture) {
		rows, err := f.Query(f.ctx, read)
		if err = errors.Join(err, drain(rows)); err != nil {
			f.Fatal(err)
		}
	},
	"rows scan error": func(f *fixture) {
		rows, _ := f.Query(f.ctx, read)
		rows.Next()
		if err := rows.Scan(failing{}); !errors.Is(err, errTest) {
			f.Errorf("Scan error is %v", err)
		}
	},
	"rows scan panic": func(f *fixture) {
		rows, _ := f.Query(f.ctx, read)
		rows.Next()
		if panics(func() { _ = rows.Scan(panicker{}) }) == nil {
			f.Error("no panic")
		}
		rows.Close()
	},
	"values": func(f *fixture) {
		rows, _ := f.Query(f.ctx, read)
		rows.Next()
		if _, err := rows.Values(); err != nil {
			f.Error(err)
		}
		rows.Close()
		_, _ = rows.Values()
	},
	"row scanned": func(f *fixture) {
		var n int
		if err := f.QueryRow(f.ctx, read).Scan(&n); err != nil || n != 1 {
			f.Errorf("got %d, %v", n, err)
		}
	},
	"row scanned twice": func(f *fixture) {
		var n int
		row := f.QueryRow(f.ctx, read)
		_ = row.Scan(&n)
		_ = row.Scan(&n)
	},
	"row without rows": func(f *fixture) {
		var n int
		if err := f.QueryRow(f.ctx, "select n from nothing").Scan(&n); !errors.Is(err, pgx.ErrNoRows) {
			f.Errorf("error is %v, want no rows", err)
		}
	},
	"row scan error": func(f *fixture) {
		if err := f.QueryRow(f.ctx, read).Scan(failing{}); !errors.Is(err, errTest) {
			f.Errorf("Scan error is %v", err)
		}
	},
	"row scan panic": func(f *fixture) {
		if panics(func() { _ = f.QueryRow(f.ctx, read).Scan(panicker{}) }) == nil {
			f.Error("no panic")
		}
	},
	"exec": func(f *fixture) {
		if _, err := f.Exec(f.ctx, read); err != nil {
			f.Error(err)
		}
	},
	"query error": func(f *fixture) {
		rows, err := f.Query(f.ctx, broken)
		if err = errors.Join(err, drain(rows)); err == nil {
			f.Error("no error")
		}
		if err := f.QueryRow(f.ctx, read, "too", "many", "arguments").Scan(); err == nil {
			f.Error("no error")
		}
		if _, err := f.Exec(f.ctx, read, "too", "many"); err == nil {
			f.Error("no error")
		}
	},
	"rewriter error": func(f *fixture) {
		ctx := pgyield.WithIntent(f.ctx, intent.Read)
		if _, err := f.Query(ctx, read, failing{}); !errors.Is(err, errTest) {
			f.Errorf("error is %v", err)
		}
	},
	"rewriter panic": func(f *fixture) {
		ctx := pgyield.WithIntent(f.ctx, intent.Read)
		for _, call := range []func(){
			func() { _, _ = f.Query(ctx, read, panicker{}) },
			func() { _ = f.QueryRow(ctx, read, panicker{}).Scan() },
			func() { _, _ = f.Exec(ctx, read, panicker{}) },
		} {
			if panics(call) == nil {
				f.Error("no panic")
			}
		}
	},
	"cancelled while queued": func(f *fixture) {
		f.fill(time.Second)
		ctx, cancel := context.WithTimeout(f.ctx, 100*time.Millisecond)
		defer cancel()
		_, err := f.Query(ctx, read)
		if !errors.Is(err, context.DeadlineExceeded) {
			f.Errorf("error is %v, want the context's", err)
		}
		time.Sleep(time.Second)
	},
	"cancelled while running": func(f *fixture) {
		ctx, cancel := context.WithTimeout(f.ctx, 100*time.Millisecond)
		defer cancel()
		if _, err := f.Exec(ctx, "select pg_sleep(10)"); !errors.Is(err, context.DeadlineExceeded) {
			f.Errorf("error is %v, want the context's", err)
		}
		time.Sleep(time.Second)
	},
	"context done before": func(f *fixture) {
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		if err := f.QueryRow(ctx, read).Scan(); !errors.Is(err, context.Canceled) {
			f.Errorf("error is %v, want the context's", err)
		}
	},
	"no connection": func(f *fixture) {
		f.fake.Refuse(nil)
		f.fake.KillAll()
		time.Sleep(2 * time.Second) // idle connections are pinged again
		if _, err := f.Query(f.ctx, read); err == nil {
			f.Error("no error of Query")
		}
		if err := f.QueryRow(f.ctx, read).Scan(); err == nil {
			f.Error("no error of QueryRow")
		}
		if _, err := f.BeginTx(f.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly}); err == nil {
			f.Error("no error of BeginTx")
		}
		b := &pgx.Batch{}
		b.Queue(read)
		if err := f.SendBatch(f.ctx, b).Close(); err == nil {
			f.Error("no error of SendBatch")
		}
		if _, err := f.AcquireRead(f.ctx); err == nil {
			f.Error("no error of AcquireRead")
		}
		f.fake.Accept()
	},
	"server closes the connection": func(f *fixture) {
		rows, err := f.Query(f.ctx, read)
		if err != nil {
			f.Fatal(err)
		}
		f.fake.KillAll()
		rows.Close()
	},
	"read-only transaction": func(f *fixture) {
		for _, end := range []func(pgx.Tx) error{
			func(tx pgx.Tx) error { return tx.Commit(f.ctx) },
			func(tx pgx.Tx) error { return tx.Rollback(f.ctx) },
			func(tx pgx.Tx) error {
				return errors.Join(tx.Commit(f.ctx), ignore(tx.Rollback(f.ctx), pgx.ErrTxClosed))
			},
		} {
			tx, err := f.BeginTx(f.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
			if err != nil {
				f.Fatal(err)
			}
			if got := f.ReadStat().Running(); got != 1 {
				f.Errorf("%d run in the transaction, want 1", got)
			}
			var n int
			if err := errors.Join(tx.QueryRow(f.ctx, read).Scan(&n), end(tx)); err != nil {
				f.Error(err)
			}
		}
	},
	"read-only transaction with a cancelled commit": func(f *fixture) {
		tx, err := f.BeginTx(f.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		if err != nil {
			f.Fatal(err)
		}
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		if tx.Commit(ctx) == nil {
			f.Error("no error")
		}
	},
	"nested transaction": func(f *fixture) {
		tx, _ := f.BeginTx(f.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		sub, err := tx.Begin(f.ctx)
		if err != nil {
			f.Fatal(err)
		}
		if err := sub.Commit(f.ctx); err != nil {
			f.Error(err)
		}
		if got := f.ReadStat().Running(); got != 1 {
			f.Errorf("%d run after the savepoint's end, want 1", got)
		}
		if err := tx.Commit(f.ctx); err != nil {
			f.Error(err)
		}
	},
	"batch": func(f *fixture) {
		b := &pgx.Batch{}
		b.Queue(read)
		b.Queue(read)
		br := f.SendBatch(f.ctx, b)
		if got := f.ReadStat().Running(); got != 1 {
			f.Errorf("%d run with the batch open, want 1", got)
		}
		rows, err := br.Query()
		if err = errors.Join(err, drain(rows), br.Close(), br.Close()); err != nil {
			f.Error(err)
		}
	},
	"batch callback panic": func(f *fixture) {
		b := &pgx.Batch{}
		b.Queue(read).Query(func(pgx.Rows) error { panic("callback") })
		if panics(func() { _ = f.SendBatch(f.ctx, b).Close() }) == nil {
			f.Error("no panic")
		}
	},
	"batch rewriter panic": func(f *fixture) {
		b := &pgx.Batch{}
		b.Queue(read, panicker{})
		if panics(func() { _ = f.SendBatch(pgyield.WithIntent(f.ctx, intent.Read), b).Close() }) == nil {
			f.Error("no panic")
		}
	},
	"batch in a read-only transaction": func(f *fixture) {
		b := &pgx.Batch{}
		b.BeginTx(pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
		b.Queue(read)
		br := f.SendBatch(f.ctx, b)
		tx := br.Tx()
		if tx == nil {
			f.Fatal("no transaction")
		}
		if err := br.Close(); err != nil {
			f.Error(err)
		}
		if got := f.ReadStat().Running(); got != 1 {
			f.Errorf("%d run in the transaction, want 1", got)
		}
		if err := tx.Commit(f.ctx); err != nil {
			f.Error(err)
		}
	},
	"acquired connection": func(f *fixture) {
		c, err := f.AcquireRead(f.ctx)
		if err != nil {
			f.Fatal(err)
		}
		var n int
		if err := c.QueryRow(f.ctx, read).Scan(&n); err != nil {
			f.Error(err)
		}
		tx, err := c.Begin(f.ctx)
		if err = errors.Join(err, tx.Rollback(f.ctx)); err != nil {
			f.Error(err)
		}
		if got := f.ReadStat().Running(); got != 1 {
			f.Errorf("%d run with the connection, want 1", got)
		}
		c.Release()
		c.Release()
	},
	"cost without bounds": func(f *fixture) {
		if _, err := f.Exec(pgyield.WithCost(f.ctx, 1000), read); err != nil {
			f.Error(err)
		}
		if _, err := f.Exec(pgyield.WithCost(f.ctx, 0), read); err == nil {
			f.Error("a cost of 0 is no error")
		}
	},
}

// broken is a read that fails on the server.
const broken = "select broken from t"

// unhurried takes a little time over each statement.
func unhurried(ctx context.Context, q pgfake.Query) pgfake.Result {
	if err := pgfake.Sleep(ctx, 20*time.Millisecond); err != nil {
		return pgfake.Result{Err: err}
	}
	if q.SQL == broken {
		return pgfake.Fail("22012", "division by zero")
	}
	return pgfake.Default(ctx, q)
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

func TestEveryPathGivesThePermitBack(t *testing.T) {
	hooks := map[string]func(*pgyield.Config){
		"":                 nil,
		" AfterRelease":    func(c *pgyield.Config) { c.AfterRelease = func(*pgx.Conn) bool { return true } },
		" AfterRelease no": func(c *pgyield.Config) { c.AfterRelease = func(*pgx.Conn) bool { return false } },
		" expired":         func(c *pgyield.Config) { c.MaxConnLifetime = 10 * time.Millisecond },
		" expired and hook": func(c *pgyield.Config) {
			c.MaxConnLifetime = 10 * time.Millisecond
			c.AfterRelease = func(*pgx.Conn) bool { return true }
		},
		" PrepareConn": func(c *pgyield.Config) {
			c.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) { return true, nil }
		},
	}
	for name, path := range paths {
		for hook, configure := range hooks {
			t.Run(name+hook, func(t *testing.T) {
				s := fixed("3")
				s.configure = configure
				s.handler = unhurried // so that a short lifetime ends while a connection is out
				s.run(t, func(f *fixture) {
					path(f)
					f.wholeLimitUsable()
				})
			})
		}
	}
}

// A connection that is being cleaned up fills a slot of the pool, and the server may
// still run the query: its permit must not go to another read.
func TestPermitIsKeptUntilCleanup(t *testing.T) {
	s := fixed("1")
	s.handler = func(ctx context.Context, q pgfake.Query) pgfake.Result {
		if q.SQL == "select slow()" {
			<-ctx.Done()
			time.Sleep(2 * time.Second) // the server takes its time to stop
			return pgfake.Fail("57014", "cancelled")
		}
		return pgfake.Default(ctx, q)
	}
	s.run(t, func(f *fixture) {
		ctx, cancel := context.WithTimeout(f.ctx, time.Second)
		defer cancel()
		if _, err := f.Exec(ctx, "select slow()"); err == nil {
			f.Fatal("no error")
		}
		if got := f.ReadStat().Running(); got != 1 {
			f.Errorf("%d run while the server stops, want 1", got)
		}
		wait := took(func() { _, _ = f.Exec(f.ctx, read) })
		if wait < 2*time.Second || wait > 3*time.Second {
			f.Errorf("the next read waited %v, want the 2 s of the clean-up", wait)
		}
	})
}

// The permit follows the connection, also where AfterRelease makes that asynchronous.
func TestPermitFollowsAfterRelease(t *testing.T) {
	for _, keep := range []bool{true, false} {
		s := fixed("1")
		s.configure = func(c *pgyield.Config) {
			c.AfterRelease = func(*pgx.Conn) bool { time.Sleep(time.Second); return keep }
		}
		s.run(t, func(f *fixture) {
			_, _ = f.Exec(f.ctx, read)
			if got := f.ReadStat().Running(); got != 1 {
				f.Errorf("keep %v: %d run while AfterRelease does, want 1", keep, got)
			}
			if wait := took(func() { _, _ = f.Exec(f.ctx, read) }); wait < time.Second || wait > 1100*time.Millisecond {
				f.Errorf("keep %v: the next read waited %v, want 1 s", keep, wait)
			}
		})
	}
}

// A connection whose socket was taken over is never cleaned up. pgxpool waits for that as
// long as for any other; so do the permit and Close, with and without a hook that decides.
func TestPermitOfAHijackedSocket(t *testing.T) {
	for name, configure := range map[string]func(*pgyield.Config, func(*pgx.Conn)){
		"by the reader": func(*pgyield.Config, func(*pgx.Conn)) {},
		"by the reader, with AfterRelease": func(c *pgyield.Config, _ func(*pgx.Conn)) {
			c.AfterRelease = func(*pgx.Conn) bool { return true }
		},
		"by AfterRelease": func(c *pgyield.Config, hijack func(*pgx.Conn)) {
			c.AfterRelease = func(conn *pgx.Conn) bool { hijack(conn); return false }
		},
	} {
		t.Run(name, func(t *testing.T) {
			hijacked := false
			hijack := func(conn *pgx.Conn) {
				if hijacked {
					return
				}
				hijacked = true
				socket, err := conn.PgConn().Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_ = socket.Conn.Close()
			}
			s := fixed("1")
			s.configure = func(c *pgyield.Config) { configure(c, hijack) }
			s.run(t, func(f *fixture) {
				c, err := f.AcquireRead(f.ctx)
				if err != nil {
					f.Fatal(err)
				}
				if f.Config().AfterRelease == nil || name == "by the reader, with AfterRelease" {
					hijack(c.Conn())
				}
				c.Release()
				time.Sleep(20 * time.Second)
				if got := f.Stat().TotalConns(); got != 0 {
					f.Errorf("pgxpool still has %d connections", got)
				}
				f.wholeLimitUsable()
			})
		})
	}
}
