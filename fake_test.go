package pgyield_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/internal/pgfake"
)

// fixture is a Pool on a fake server, in a bubble of virtual time.
type fixture struct {
	*testing.T
	*pgyield.Pool
	fake *pgfake.Server
	ctx  context.Context
}

// setup says what a fixture is made of.
type setup struct {
	params    []string
	handler   pgfake.Handler
	configure func(*pgyield.Config)
	options   pgyield.Options
}

// read is the statement that the tests read with: it touches a table, so it is gated.
const read = "select generate_series(1, 3)"

// fixed is a pool of 10 with a fixed limit of n.
func fixed(n string, params ...string) setup {
	return setup{params: append([]string{"pool_max_conns=10", "yield_adapt=off", "yield_read_limit=" + n}, params...)}
}

// run runs test on a Pool in a bubble, and checks at the end that all permits are back
// and no goroutine is left (the bubble does that).
func (s setup) run(t *testing.T, test func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fake := pgfake.New(pgfake.Options{Handler: s.handler})
		defer fake.Close()
		config := fake.Config(t, s.params...)
		if s.configure != nil {
			s.configure(config)
		}
		pool, err := pgyield.NewWithOptions(t.Context(), config, s.options)
		if err != nil {
			t.Fatal(err)
		}
		f := &fixture{T: t, Pool: pool, fake: fake, ctx: t.Context()}
		defer func() {
			pool.Close()
			f.atRest()
			f.noTraffic()
		}()
		test(f)
	})
}

// atRest fails the test unless every permit is back.
func (f *fixture) atRest() {
	f.Helper()
	synctest.Wait()
	if s := f.ReadStat(); s.Running() != 0 || s.Waiting() != 0 {
		f.Errorf("at rest %d run and %d wait, want none", s.Running(), s.Waiting())
	}
}

// noTraffic fails the test when a call counts as on its way, or a write as running.
func (f *fixture) noTraffic() {
	f.Helper()
	if waiting, running := pgyield.Traffic(f.Pool); waiting != 0 || running != 0 {
		f.Errorf("at rest %d calls wait for a connection and %d writes run, want none", waiting, running)
	}
}

// wholeLimitUsable fails the test unless as many reads as the limit run at once, and
// not one more.
func (f *fixture) wholeLimitUsable() {
	f.Helper()
	f.atRest()
	limit := f.ReadStat().Limit()
	for range limit + 1 {
		go f.Exec(f.ctx, "select pg_sleep(0.05)") //nolint:errcheck // only its permit matters
	}
	synctest.Wait()
	if s := f.ReadStat(); s.Running() != limit || s.Waiting() != 1 {
		f.Errorf("%d reads run and %d wait, want %d and 1", s.Running(), s.Waiting(), limit)
	}
	time.Sleep(time.Second)
	f.atRest()
}

// fill takes the whole limit with reads that run for d in the driver.
func (f *fixture) fill(d time.Duration) {
	f.Helper()
	limit := f.ReadStat().Limit()
	for range limit {
		go f.Exec(f.ctx, "select pg_sleep($1)", d.Seconds()) //nolint:errcheck // only its permit matters
	}
	synctest.Wait()
	if got := f.ReadStat().Running(); got != limit {
		f.Fatalf("%d reads run, want %d", got, limit)
	}
}

// took returns how long f took.
func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// drain reads rows to their end.
func drain(rows interface {
	Next() bool
	Err() error
},
) error {
	for rows.Next() {
	}
	return rows.Err()
}

// panics runs f and returns what it panicked with.
func panics(f func()) (what any) {
	defer func() { what = recover() }()
	f()
	return nil
}

var errTest = errors.New("test")
