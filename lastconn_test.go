package pgyield_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// small is a pool of which the reads may have all connections but one.
var small = setup{params: []string{"pool_max_conns=4", "yield_adapt=off"}}

// writing runs reads beside a steady flow of writes and returns the longest time that a
// write took.
func (f *fixture) writing(reads func()) (slowest time.Duration) {
	var writes sync.WaitGroup
	done := make(chan struct{})
	writes.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
				slowest = max(slowest, took(func() { _, _ = f.Exec(f.ctx, "insert into t values (1)") }))
			}
		}
	})
	reads()
	close(done)
	writes.Wait()
	return slowest
}

// Queries that outlast BusyStall are at work, however long: the last connection stays
// with the writes that flow.
func TestLongQueriesLeaveWritesAConnection(t *testing.T) {
	small.run(t, func(f *fixture) {
		slowest := f.writing(func() {
			var readers sync.WaitGroup
			for range 16 {
				readers.Go(func() {
					for range 3 {
						_, _ = f.Exec(f.ctx, "select pg_sleep(20)")
					}
				})
			}
			readers.Wait()
		})
		if slowest > time.Millisecond {
			f.Errorf("a write waited %v for long queries", slowest)
		}
	})
}

// Loops that hold all permits, and wait for the reads inside them, have the last
// connection in the end: pgxpool would run them. They pay once, not for each read.
func TestLoopsThatFillTheLimitBesideWrites(t *testing.T) {
	small.run(t, func(f *fixture) {
		var d time.Duration
		slowest := f.writing(func() {
			d = took(func() {
				var loops sync.WaitGroup
				for range 3 {
					loops.Go(func() {
						if err := nestedLoop(f, "select generate_series(1, 100)"); err != nil {
							f.Error(err)
						}
					})
				}
				loops.Wait()
			})
		})
		if d > 6*time.Second {
			f.Errorf("3 loops of 100 nested reads took %v, want BusyStall of 5 s and little more", d)
		}
		if slowest > time.Millisecond {
			f.Errorf("a write waited %v for them", slowest)
		}
		f.wholeLimitUsable()
	})
}

// Writes that wait for connections all the time are no reason to leave a loop and the read
// inside it to themselves, as long as the read leaves them a connection.
func TestLoopBesideWaitingWrites(t *testing.T) {
	s := small
	s.params = append(slices.Clone(s.params), "yield_read_limit=1")
	s.handler = slowWrites
	s.run(t, func(f *fixture) {
		// Not for ever: a loop that stands still goes on when they end, and is then too late.
		ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
		var writers sync.WaitGroup
		for range 8 {
			writers.Go(func() {
				for ctx.Err() == nil {
					_, _ = f.Exec(ctx, "insert into t values (1)")
				}
			})
		}
		time.Sleep(time.Second)
		d := took(func() {
			if err := nestedLoop(f, "select generate_series(1, 20)"); err != nil {
				f.Error(err)
			}
		})
		cancel()
		writers.Wait()
		if d > 2*time.Second {
			f.Errorf("a loop of 20 nested reads took %v beside writes", d)
		}
		f.wholeLimitUsable()
	})
}

// While a write waits for the last connection no overdraft is granted, stall or not: the read
// would only stand in its way.
func TestNoOverdraftWhileAWriteWaits(t *testing.T) {
	s := setup{params: []string{"pool_max_conns=2", "yield_adapt=off"}}
	s.run(t, func(f *fixture) {
		rows, err := f.Query(f.ctx, read) // idle, and the one permit there is
		if err != nil {
			f.Fatal(err)
		}
		defer rows.Close()
		taken, err := f.Unwrap().Acquire(f.ctx) // by something else
		if err != nil {
			f.Fatal(err)
		}
		wrote, nested := make(chan error, 1), make(chan error, 1)
		go func() { wrote <- second(f.Exec(f.ctx, "insert into t values (1)")) }()
		go func() { nested <- second(f.Exec(f.ctx, read)) }()
		time.Sleep(time.Minute)
		if got := f.ReadStat().Overdrafts(); got != 0 {
			f.Errorf("%d overdrafts while a write waits for a connection", got)
		}
		taken.Release()
		if err := errors.Join(<-wrote, <-nested); err != nil {
			f.Error(err)
		}
	})
}
