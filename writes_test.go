package pgyield_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/internal/pgfake"
)

// slowWrites takes 10 ms over DML, 20 ms over a commit, 5 ms over a begin, and 40 ms
// over anything else.
func slowWrites(ctx context.Context, q pgfake.Query) pgfake.Result {
	d := 40 * time.Millisecond
	switch q.SQL {
	case "insert into t values (1)", "insert into t values (1) returning 1":
		d = 10 * time.Millisecond
	case "commit":
		d = 20 * time.Millisecond
	case "begin":
		d = 5 * time.Millisecond
	}
	if strings.HasPrefix(q.SQL, "copy ") {
		d = 0 // pgx holds a mutex meanwhile, with which virtual time stands still
	}
	if err := pgfake.Sleep(ctx, d); err != nil {
		return pgfake.Result{Err: err}
	}
	return pgfake.Default(ctx, q)
}

// A write's sample is what its writer waited for: the connection, the statements that
// write, the commit; not what the program did meanwhile, and nothing that does not write.
func TestOwnWrites(t *testing.T) {
	const insert = "insert into t values (1)"
	pooled := func(f *fixture, work func(tx pgx.Tx) error) error {
		tx, err := f.Begin(f.ctx)
		if err != nil {
			return err
		}
		return errors.Join(work(tx), tx.Commit(f.ctx))
	}
	for name, tt := range map[string]struct {
		want time.Duration // the median sample; 0: no sample
		call func(f *fixture) error
	}{
		"insert":           {10 * time.Millisecond, func(f *fixture) error { return second(f.Exec(f.ctx, insert)) }},
		"insert returning": {10 * time.Millisecond, func(f *fixture) error { return f.QueryRow(f.ctx, insert+" returning 1").Scan(nil) }},
		"insert returning, by a program that thinks between rows": {10 * time.Millisecond, func(f *fixture) error {
			rows, err := f.Query(f.ctx, insert+" returning 1")
			if err != nil {
				return err
			}
			for rows.Next() {
				time.Sleep(time.Second)
				if _, err := rows.Values(); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
			return rows.Err()
		}},
		"insert returning, closed after a while": {10 * time.Millisecond, func(f *fixture) error {
			rows, err := f.Query(f.ctx, insert+" returning 1")
			time.Sleep(time.Second)
			rows.Close()
			time.Sleep(time.Second)
			rows.Close()
			return errors.Join(err, rows.Err())
		}},
		"read":              {0, func(f *fixture) error { return second(f.Exec(f.ctx, read)) }},
		"trivial":           {0, func(f *fixture) error { return second(f.Exec(f.ctx, "select 1")) }},
		"advisory lock":     {0, func(f *fixture) error { return second(f.Exec(f.ctx, "select pg_advisory_lock(1)")) }},
		"ddl":               {0, func(f *fixture) error { return second(f.Exec(f.ctx, "create table u ()")) }},
		"empty transaction": {0, func(f *fixture) error { return pooled(f, func(pgx.Tx) error { return nil }) }},
		"reading transaction": {0, func(f *fixture) error {
			return pooled(f, func(tx pgx.Tx) error { return second(tx.Exec(f.ctx, read)) })
		}},
		"transaction": {35 * time.Millisecond, func(f *fixture) error { // begin, insert, commit
			return pooled(f, func(tx pgx.Tx) error { return second(tx.Exec(f.ctx, insert)) })
		}},
		"transaction with think time": {45 * time.Millisecond, func(f *fixture) error {
			return pooled(f, func(tx pgx.Tx) error {
				time.Sleep(time.Second)
				_, err := tx.Exec(f.ctx, insert)
				time.Sleep(time.Second)
				return errors.Join(err, second(tx.Exec(f.ctx, read)), second(tx.Exec(f.ctx, insert)))
			})
		}},
		"rolled back": {0, func(f *fixture) error {
			tx, err := f.Begin(f.ctx)
			if err != nil {
				return err
			}
			return errors.Join(second(tx.Exec(f.ctx, insert)), tx.Rollback(f.ctx), second(f.Exec(f.ctx, read)))
		}},
		"acquired connection": {10 * time.Millisecond, func(f *fixture) error {
			return f.AcquireFunc(f.ctx, func(c *pgyield.Conn) error { return second(c.Exec(f.ctx, insert)) })
		}},
		"batch": {20 * time.Millisecond, func(f *fixture) error {
			b := &pgx.Batch{}
			b.Queue(insert)
			b.Queue(insert)
			return f.SendBatch(f.ctx, b).Close()
		}},
		"copy that waits for a connection": {100 * time.Millisecond, func(f *fixture) error {
			f.holdAll(100 * time.Millisecond)
			return second(f.CopyFrom(f.ctx, pgx.Identifier{"t"}, []string{"n"}, pgx.CopyFromRows([][]any{{"x"}})))
		}},
		"wait for a connection": {110 * time.Millisecond, func(f *fixture) error {
			f.holdAll(100 * time.Millisecond)
			return second(f.Exec(f.ctx, insert))
		}},
		"wait for a connection, of a transaction": {135 * time.Millisecond, func(f *fixture) error {
			f.holdAll(100 * time.Millisecond)
			return pooled(f, func(tx pgx.Tx) error { return second(tx.Exec(f.ctx, insert)) })
		}},
		"wait for a connection, of Acquire": {110 * time.Millisecond, func(f *fixture) error {
			f.holdAll(100 * time.Millisecond)
			return f.AcquireFunc(f.ctx, func(c *pgyield.Conn) error { return second(c.Exec(f.ctx, insert)) })
		}},
		"no connection in time": {50 * time.Millisecond, func(f *fixture) error {
			f.holdAll(100 * time.Millisecond)
			ctx, cancel := context.WithTimeout(f.ctx, 50*time.Millisecond)
			defer cancel()
			return ignore(second(f.Exec(ctx, insert)), context.DeadlineExceeded)
		}},
		"out of time from the start": {0, func(f *fixture) error {
			ctx, cancel := context.WithTimeout(f.ctx, time.Millisecond)
			defer cancel()
			time.Sleep(10 * time.Millisecond)
			return ignore(second(f.Exec(ctx, insert)), context.DeadlineExceeded)
		}},
		"cancelled before it has a connection": {0, func(f *fixture) error {
			f.holdAll(100 * time.Millisecond)
			ctx, cancel := context.WithCancel(f.ctx)
			time.AfterFunc(time.Millisecond, cancel)
			return ignore(second(f.Exec(ctx, insert)), context.Canceled)
		}},
		"on an idle connection": {10 * time.Millisecond, func(f *fixture) error {
			f.holdAll(100 * time.Millisecond)
			err := f.AcquireFunc(f.ctx, func(*pgyield.Conn) error { return nil }) // its wait is no later write's
			idle := f.AcquireAllIdle(f.ctx)
			err = errors.Join(err, second(idle[0].Exec(f.ctx, insert)))
			for _, c := range idle {
				c.Release()
			}
			return err
		}},
		"through Unwrap": {10 * time.Millisecond, func(f *fixture) error {
			f.holdAll(100 * time.Millisecond)
			err := f.AcquireFunc(f.ctx, func(*pgyield.Conn) error { return nil })
			return errors.Join(err, second(f.Unwrap().Exec(f.ctx, insert)))
		}},
		"rows never read": {0, func(f *fixture) error {
			return f.AcquireFunc(f.ctx, func(c *pgyield.Conn) error { return second(c.Query(f.ctx, insert+" returning 1")) })
		}},
		"cut off while it runs": {5 * time.Millisecond, func(f *fixture) error {
			ctx, cancel := context.WithTimeout(f.ctx, 5*time.Millisecond)
			defer cancel()
			return ignore(second(f.Exec(ctx, insert)), context.DeadlineExceeded)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := fixed("2")
			s.handler = slowWrites
			s.run(t, func(f *fixture) {
				if err := tt.call(f); err != nil {
					f.Fatal(err)
				}
				time.Sleep(time.Second)
				f.noTraffic()
				got := pgyield.TakeWrites(f.Pool)
				wantCount := 1
				if tt.want == 0 {
					wantCount = 0
				}
				if got.Count != wantCount {
					f.Fatalf("%d samples, want %d", got.Count, wantCount)
				}
				if median := got.Median(); wantCount > 0 && (median < tt.want*94/100 || median > tt.want*106/100) {
					f.Errorf("the sample is %v, want %v", median, tt.want)
				}
			})
		})
	}
}

// holdAll holds every connection of the pool for d.
func (f *fixture) holdAll(d time.Duration) {
	f.Helper()
	for range f.Config().MaxConns {
		c, err := f.Unwrap().Acquire(f.ctx)
		if err != nil {
			f.Fatal(err)
		}
		time.AfterFunc(d, c.Release)
	}
}
