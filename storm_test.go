package pgyield_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/intent"
	"github.com/pgyield/pgyield/internal/pgfake"
)

// storm makes much go wrong until it is over.
type storm struct{ over atomic.Bool }

// one reports whether a thing of which one in n goes wrong does.
func (s *storm) one(n int) bool { return !s.over.Load() && rand.IntN(n) == 0 }

// serve is a server in a storm.
func (s *storm) serve(ctx context.Context, q pgfake.Query) pgfake.Result {
	if s.over.Load() {
		return pgfake.Default(ctx, q)
	}
	if err := pgfake.Sleep(ctx, time.Duration(rand.IntN(20))*time.Millisecond); err != nil {
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond) // it takes its time to stop
		return pgfake.Result{Err: err}
	}
	if s.one(10) {
		return pgfake.Fail("22012", "division by zero")
	}
	return pgfake.Default(ctx, q)
}

// deeds are what programs do with a pool, well or badly.
var deeds = []func(ctx context.Context, f *fixture){
	func(ctx context.Context, f *fixture) { _, _ = f.Exec(ctx, read) },
	func(ctx context.Context, f *fixture) { _, _ = f.Exec(ctx, "insert into t values (1)") },
	func(ctx context.Context, f *fixture) {
		_ = f.QueryRow(ctx, "insert into t values (1) returning 1").Scan(nil)
	},
	func(ctx context.Context, f *fixture) { _ = f.QueryRow(ctx, read).Scan(failing{}) },
	func(ctx context.Context, f *fixture) { _ = f.QueryRow(ctx, read).Scan(panicker{}) },
	func(ctx context.Context, f *fixture) {
		_, _ = f.Exec(pgyield.WithIntent(ctx, intent.Read), read, panicker{})
	},
	func(ctx context.Context, f *fixture) { _ = f.Ping(ctx) },
	func(ctx context.Context, f *fixture) {
		rows, err := f.Query(ctx, read)
		if err != nil {
			return
		}
		defer rows.Close()
		for rows.Next() {
			_ = f.QueryRow(ctx, read).Scan(nil)
		}
	},
	func(ctx context.Context, f *fixture) {
		b := &pgx.Batch{}
		if rand.IntN(2) == 0 {
			b.BeginTx(pgx.TxOptions{AccessMode: pgx.ReadOnly})
		}
		b.Queue(read).Query(func(rows pgx.Rows) error { rows.Next(); return f.QueryRow(ctx, read).Scan(nil) })
		b.Queue(read).QueryRow(func(pgx.Row) error {
			if rand.IntN(4) == 0 {
				panic("callback")
			}
			return nil
		})
		br := f.SendBatch(ctx, b)
		if tx := br.Tx(); tx != nil {
			defer tx.Rollback(ctx) //nolint:errcheck // it may be closed
		}
		defer br.Close()
		if rand.IntN(2) == 0 {
			_, _ = br.Exec()
		}
	},
	func(ctx context.Context, f *fixture) {
		b := &pgx.Batch{}
		b.BeginTx(pgx.TxOptions{})
		b.Queue("insert into t values (1)")
		br := f.SendBatch(ctx, b)
		defer br.Tx().Commit(ctx) //nolint:errcheck // it may be closed
		_ = br.Close()
	},
	func(ctx context.Context, f *fixture) {
		mode := []pgx.TxAccessMode{pgx.ReadOnly, pgx.ReadWrite}[rand.IntN(2)]
		tx, err := f.BeginTx(ctx, pgx.TxOptions{AccessMode: mode})
		if err != nil {
			return
		}
		defer tx.Rollback(ctx) //nolint:errcheck // it may be closed
		if sub, err := tx.Begin(ctx); err == nil {
			_, _ = sub.Exec(ctx, "insert into t values (1)")
			_ = f.QueryRow(ctx, read).Scan(nil)
			_ = sub.Commit(ctx)
		}
		if rand.IntN(2) == 0 {
			_, _ = tx.Query(ctx, read) //nolint:rowserrcheck // left open on purpose
		}
		_ = tx.Commit(ctx)
	},
	func(ctx context.Context, f *fixture) {
		c, err := f.AcquireRead(pgyield.WithCost(ctx, 1+rand.IntN(20)))
		if err != nil {
			return
		}
		defer c.Release()
		_ = c.QueryRow(ctx, read).Scan(nil)
		if rand.IntN(4) == 0 {
			_ = c.Conn().Close(ctx)
		}
	},
	func(ctx context.Context, f *fixture) {
		c, err := f.Acquire(ctx)
		if err != nil {
			return
		}
		if rand.IntN(4) == 0 {
			_ = c.Hijack().Close(f.ctx)
			return
		}
		defer c.Release()
		_, _ = c.Exec(ctx, "update t set n = 1")
	},
	func(_ context.Context, f *fixture) {
		if rand.IntN(10) == 0 {
			f.fake.KillAll()
		}
	},
	func(_ context.Context, f *fixture) {
		if rand.IntN(10) == 0 {
			f.Reset()
		}
	},
	func(_ context.Context, f *fixture) { f.SetMode(pgyield.Mode(rand.IntN(3))) },
}

// Whatever goes wrong, and however much at once: at rest every permit is back, nothing
// counts as on its way, and pgxpool has its connections.
func TestStorm(t *testing.T) {
	for name, configure := range map[string]func(*pgyield.Config, *storm){
		"plain": func(*pgyield.Config, *storm) {},
		"hooks": func(c *pgyield.Config, s *storm) {
			c.MaxConnLifetime = 100 * time.Millisecond
			c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, "insert into t values (1)")
				return err
			}
			c.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) {
				if s.one(4) {
					return !s.one(2), errTest
				}
				return !s.one(10), nil
			}
			c.AfterRelease = func(*pgx.Conn) bool { return !s.one(4) }
		},
	} {
		for _, limit := range []string{"1", "3"} {
			t.Run(name+", limit "+limit, func(t *testing.T) {
				weather := &storm{}
				s := setup{params: []string{"pool_max_conns=6", "yield_adapt=off", "yield_read_limit=" + limit}}
				s.handler = weather.serve
				s.configure = func(c *pgyield.Config) { configure(c, weather) }
				s.run(t, func(f *fixture) {
					f.brave(16, 100)
					weather.over.Store(true)
					f.SetMode(pgyield.Enforce)
					time.Sleep(time.Minute)
					f.noTraffic()
					if got := f.Stat().AcquiredConns(); got != 0 {
						f.Errorf("at rest %d connections are out", got)
					}
					f.wholeLimitUsable()
				})
			})
		}
	}
}

// brave runs programs of random deeds, each with little time.
func (f *fixture) brave(programs, rounds int) {
	var all sync.WaitGroup
	for range programs {
		all.Go(func() {
			for range rounds {
				ctx, cancel := context.WithTimeout(f.ctx, time.Duration(rand.IntN(200))*time.Millisecond)
				_ = panics(func() { deeds[rand.IntN(len(deeds))](ctx, f) })
				cancel()
			}
		})
	}
	all.Wait()
}

// A pool may be closed at any moment: every deed ends, and nothing is left. The bubble
// sees to the goroutines.
func TestCloseInAStorm(t *testing.T) {
	for _, adapt := range []string{"on", "off"} {
		for range 10 {
			weather := &storm{}
			s := setup{params: []string{"pool_max_conns=6", "yield_read_limit=2", "yield_adapt=" + adapt}, handler: weather.serve}
			s.run(t, func(f *fixture) {
				closed := make(chan struct{})
				time.AfterFunc(time.Duration(rand.IntN(1000))*time.Millisecond, func() {
					f.Close()
					close(closed)
				})
				f.brave(16, 20)
				<-closed // a second Close would wait on a mutex, with which virtual time stands still
			})
		}
	}
}
