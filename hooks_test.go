package pgyield_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield"
)

// A hook runs with the context of the call that it runs for. What it does there is its
// own: it is neither the call's statement nor the call's time.
func TestHooksAreNotTheirCall(t *testing.T) {
	const insert = "insert into t values (1)"
	s := fixed("2")
	s.handler = slowWrites
	s.configure = func(c *pgyield.Config) {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, insert) // the same text as the call's
			tx, e := conn.Begin(ctx)
			return errors.Join(err, e, tx.Rollback(ctx))
		}
	}
	for name, tt := range map[string]struct {
		want time.Duration // the call's sample: connect and hook (55 ms), then its own
		call func(f *fixture) error
	}{
		"statement": {65 * time.Millisecond, func(f *fixture) error { return second(f.Exec(f.ctx, insert)) }},
		"transaction": {90 * time.Millisecond, func(f *fixture) error {
			tx, err := f.Begin(f.ctx)
			if err != nil {
				return err
			}
			return errors.Join(second(tx.Exec(f.ctx, insert)), tx.Commit(f.ctx))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s.run(t, func(f *fixture) {
				if err := tt.call(f); err != nil {
					f.Fatal(err)
				}
				got := pgyield.TakeWrites(f.Pool)
				if got.Count != 2 { // the hook's insert and the call
					f.Fatalf("%d samples, want 2", got.Count)
				}
				if slowest := got.Quantile(1); slowest < tt.want*94/100 || slowest > tt.want*106/100 {
					f.Errorf("the call's sample is %v, want %v", slowest, tt.want)
				}
			})
		})
	}
}

// A connection made from an acquired connection's config has the same tracer. It is not
// the pool's: it holds no permit, and its writes are not the pool's.
func TestConnectionOfAnotherMaking(t *testing.T) {
	s := fixed("1")
	tracer := &fullTracer{}
	s.configure = func(c *pgyield.Config) { c.ConnConfig.Tracer = tracer }
	s.run(t, func(f *fixture) {
		c, err := f.AcquireRead(f.ctx)
		if err != nil {
			f.Fatal(err)
		}
		defer c.Release()
		other, err := pgx.ConnectConfig(f.ctx, c.Conn().Config())
		if err != nil {
			f.Fatal(err)
		}
		defer other.Close(f.ctx)
		if err := second(other.Exec(f.ctx, "insert into t values (1)")); err != nil {
			f.Error(err)
		}
		if got := pgyield.TakeWrites(f.Pool); got.Count != 0 {
			f.Errorf("%d samples of a connection that is not the pool's, want none", got.Count)
		}
		if len(tracer.seen()) == 0 {
			f.Error("the other connection is not traced")
		}
		var long sync.WaitGroup
		long.Go(func() { _, _ = other.Exec(f.ctx, "select pg_sleep(3)") })
		synctest.Wait()
		if d := took(func() { _, err = f.Exec(f.ctx, read) }); err != nil || d > stall {
			f.Errorf("a nested read took %v, error %v, want a stall of at most %v: the permit was idle", d, err, stall)
		}
		long.Wait()
	})
}
