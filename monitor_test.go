package pgyield_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/adaptive"
	"github.com/pgyield/pgyield/internal/pgfake"
	"github.com/pgyield/pgyield/pressure"
)

const monitorApp = "pgyield monitor"

// The monitor connects as the pool does, with what BeforeConnect changed, and untraced. A
// hook that counts its calls sees the pool's alone.
func TestMonitorConnectsAsThePoolDoes(t *testing.T) {
	tracer := &theirTracer{}
	calls := 0
	s := setup{params: []string{"pool_max_conns=4"}}
	s.configure = func(c *pgyield.Config) {
		c.ConnConfig.Tracer = tracer
		c.BeforeConnect = func(_ context.Context, cc *pgx.ConnConfig) error {
			calls++
			cc.User = "rotated"
			return nil
		}
	}
	s.run(t, func(f *fixture) {
		time.Sleep(2 * time.Second)
		if calls != 0 || f.fake.Dials() != 0 {
			f.Errorf("before the pool connects, %d calls of BeforeConnect and %d dials", calls, f.fake.Dials())
		}
		if err := f.Ping(f.ctx); err != nil {
			f.Error(err)
		}
		time.Sleep(2 * time.Second)
		sessions := f.fake.Sessions()
		i := slices.IndexFunc(sessions, func(s pgfake.Session) bool { return s.Params["application_name"] == monitorApp })
		if i < 0 {
			f.Fatalf("no monitor among %d sessions", len(sessions))
		}
		if got := sessions[i].Params["user"]; got != "rotated" {
			f.Errorf("the monitor connects as %q, want the user that BeforeConnect sets", got)
		}
		if got := tracer.seen(); !slices.Equal(got, []string{"acquire end", "acquire start", "connect end", "connect start", "release"}) {
			f.Errorf("traced %q, want the pool's one connection and nothing of the monitor", got)
		}
		if got := f.Stat().TotalConns(); got != 1 || calls != 1 {
			f.Errorf("%d connections and %d calls of BeforeConnect, want the pool's one", got, calls)
		}
	})
}

// Without a hook it connects at once, so that what is normal is known early.
func TestMonitorStartsAtOnce(t *testing.T) {
	s := setup{params: []string{"pool_max_conns=4"}}
	s.run(t, func(f *fixture) {
		time.Sleep(2 * time.Second)
		if s := f.ReadStat(); f.fake.Dials() == 0 || s.Polls().Connects == 0 {
			f.Errorf("%d dials, %d connects, want the monitor's", f.fake.Dials(), s.Polls().Connects)
		}
	})
}

// A connection that is made while the pool closes must not start it again.
func TestMonitorStaysStopped(t *testing.T) {
	s := setup{params: []string{"pool_max_conns=4"}}
	s.run(t, func(f *fixture) {
		f.Close()
		dials := f.fake.Dials()
		pgyield.StartMonitor(f.Pool)
		time.Sleep(2 * time.Second)
		if got := f.fake.Dials() - dials; got != 0 {
			f.Errorf("%d connects after Close", got)
		}
	})
}

func TestFixedLimitHasNoMonitor(t *testing.T) {
	fixed("2").run(t, func(f *fixture) {
		time.Sleep(10 * time.Second)
		if got := f.fake.Dials(); got != 0 {
			f.Errorf("%d connects with a fixed limit and no query", got)
		}
		if s := f.ReadStat(); s.Limit() != 2 || s.Blind() || s.Pressing() {
			f.Errorf("limit %d, blind %v, pressing %v", s.Limit(), s.Blind(), s.Pressing())
		}
	})
}

// The limit follows the pool's own writes with nothing else to see: the fake server has
// no statistics.
func TestLimitFollowsOwnWrites(t *testing.T) {
	slow := make(chan struct{}, 1) // holds a token while writes suffer
	s := setup{params: []string{"pool_max_conns=20"}}
	var decisions []adaptive.Decision
	s.options.OnDecision = func(d adaptive.Decision) { decisions = append(decisions, d) }
	s.handler = func(ctx context.Context, q pgfake.Query) pgfake.Result {
		if q.SQL == "insert into t values (1)" {
			d := time.Millisecond
			if len(slow) > 0 {
				d = 20 * time.Millisecond
			}
			if err := pgfake.Sleep(ctx, d); err != nil {
				return pgfake.Result{Err: err}
			}
		}
		return pgfake.Default(ctx, q)
	}
	s.run(t, func(f *fixture) {
		ctx, cancel := context.WithCancel(f.ctx)
		for range 4 {
			go func() {
				for ctx.Err() == nil {
					_, _ = f.Exec(ctx, "insert into t values (1)")
					time.Sleep(10 * time.Millisecond)
				}
			}()
		}
		time.Sleep(10 * time.Second) // what is normal is learned
		start := f.ReadStat().Limit()
		slow <- struct{}{}
		for range 32 {
			go func() {
				for ctx.Err() == nil {
					_, _ = f.Exec(ctx, "select pg_sleep(0.2)")
				}
			}()
		}
		time.Sleep(2 * time.Second)
		low := f.ReadStat()
		if low.Limit() > start/4 || low.Lowered() == 0 {
			f.Errorf("2 s after the onset the limit is %d of %d, lowered %d times", low.Limit(), start, low.Lowered())
		}
		<-slow
		time.Sleep(3 * time.Minute)
		if got := f.ReadStat(); got.Limit() != start || got.Raised() == 0 {
			f.Errorf("3 min after relief the limit is %d, want %d; raised %d times", got.Limit(), start, got.Raised())
		}
		cancel()
		time.Sleep(time.Second)
		f.Close() // ends the goroutine that appends
		if len(decisions) == 0 {
			f.Error("OnDecision was never called")
		}
	})
}

// A poll that hangs, or a server that accepts and never answers, is asked again within a
// timeout and a period, however long it lasts, by one poll at a time; queries do not wait
// for it, and the limit stays.
func TestMonitorOutlastsASilentServer(t *testing.T) {
	const timeout, pollPeriod = pressure.DefaultTimeout, pressure.DefaultPeriod
	for name, silence := range map[string]func(f *fixture, polls *atomic.Bool){
		"polls hang": func(_ *fixture, polls *atomic.Bool) { polls.Store(true) },
		"nothing answers": func(f *fixture, _ *atomic.Bool) {
			for _, s := range f.fake.Sessions() {
				if s.Params["application_name"] == monitorApp {
					f.fake.Kill(s.PID)
				}
			}
			f.fake.HangStartup()
		},
	} {
		var hang atomic.Bool
		var inFlight atomic.Int32
		var mu sync.Mutex
		var attempts []time.Time // of the monitor, while the server is silent
		attempt := func() {
			mu.Lock()
			defer mu.Unlock()
			attempts = append(attempts, time.Now())
		}
		// A health check holds all idle connections for a moment: a query in that moment would
		// wait for a new one, which a silent server does not give.
		s := setup{params: []string{"pool_max_conns=4", "pool_min_conns=2", "pool_health_check_period=1h"}}
		s.options.MonitorConfig = &pgx.ConnConfig{}
		s.configure = func(c *pgyield.Config) {
			*s.options.MonitorConfig = *c.ConnConfig.Copy()
			dial := c.ConnConfig.DialFunc
			s.options.MonitorConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
				attempt()
				return dial(ctx, network, addr)
			}
		}
		s.handler = func(ctx context.Context, q pgfake.Query) pgfake.Result {
			switch {
			case q.App != monitorApp || !strings.Contains(q.SQL, "in_recovery"):
				return pgfake.Default(ctx, q)
			case !hang.Load():
				return pgfake.Rows([]pgfake.Column{{Name: "server_ts"}}, []any{"1000000"})
			}
			attempt()
			if inFlight.Add(1) > 1 {
				t.Errorf("%s: two polls are in flight", name)
			}
			defer inFlight.Add(-1)
			return pgfake.Hang(ctx)
		}
		s.run(t, func(f *fixture) {
			time.Sleep(3 * time.Second)
			before := f.ReadStat()
			if before.Polls().Connects != 1 {
				f.Fatalf("%s: %d connects before", name, before.Polls().Connects)
			}
			began := time.Now()
			mu.Lock()
			attempts = nil
			mu.Unlock()
			silence(f, &hang)
			for range 60 {
				if d := took(func() {
					_, read := f.Exec(f.ctx, read)
					_, write := f.Exec(f.ctx, "insert into t values (1)")
					if read != nil || write != nil {
						f.Errorf("%s: a read: %v; a write: %v", name, read, write)
					}
				}); d > 10*time.Millisecond {
					f.Errorf("%s: a read and a write took %v", name, d)
				}
				time.Sleep(time.Second)
			}
			mu.Lock()
			last, n := began, len(attempts)
			for _, at := range attempts {
				if d := at.Sub(last); d > timeout+pollPeriod {
					f.Errorf("%s: no attempt from %v to %v", name, last.Sub(began), at.Sub(began))
				}
				last = at
			}
			mu.Unlock()
			if n < 20 {
				f.Errorf("%s: %d attempts in a minute", name, n)
			}
			after := f.ReadStat()
			if after.Limit() != before.Limit() || after.Lowered() > 0 || after.Polls().PollsFailed == 0 {
				f.Errorf("%s: limit %d, was %d; lowered %d times; %+v", name, after.Limit(), before.Limit(), after.Lowered(), after.Polls())
			}
			ok := after.Polls().PollsOK
			hang.Store(false)
			f.fake.Accept()
			time.Sleep(timeout + pollPeriod)
			if s := f.ReadStat().Polls(); s.LastError != nil || s.PollsOK == ok {
				f.Errorf("%s: a timeout and a period after it went on: %+v", name, s)
			}
		})
	}
}
