package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgyield/pgyield/adaptive"
	"github.com/pgyield/pgyield/pressure"
)

// readGate is the plainest limit that adaptive can move: a counter and a condition.
type readGate struct {
	mu         sync.Mutex
	free       *sync.Cond
	limit      int
	running    int
	waiting    int
	held       bool
	done       int
	time       time.Duration
	start, low int
	closed     bool
}

func newReadGate(low, start int) *readGate {
	g := &readGate{limit: start, start: start, low: low}
	g.free = sync.NewCond(&g.mu)
	return g
}

func (g *readGate) acquire() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.running >= g.limit && !g.closed {
		g.held = true
		g.waiting++
		g.free.Wait()
		g.waiting--
	}
	g.running++
	return !g.closed
}

func (g *readGate) release(took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.done++
	g.time += took
	g.free.Broadcast()
}

func (g *readGate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.free.Broadcast()
}

func (g *readGate) Limit() int { g.mu.Lock(); defer g.mu.Unlock(); return g.limit }

func (g *readGate) SetLimit(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = n
	g.free.Broadcast()
}

func (g *readGate) EndPeriod() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := g.held || g.waiting > 0 || g.running >= g.limit
	g.held = false
	return held
}

func (g *readGate) Bounds() (floor, start, ceiling int) { return g.low, g.start, g.start }

// mixedLoad is a mixed load on a real server: small write transactions at a fixed rate,
// each timed from the moment it was due, and greedy reads through a gate.
type mixedLoad struct {
	t      testing.TB
	pool   *pgxpool.Pool
	gate   *readGate
	writes pressure.Writes
	inWork atomic.Int64
	rate   atomic.Int64 // writes per second

	readSQL atomic.Pointer[string]
	readers sync.WaitGroup
	writers sync.WaitGroup
	stop    context.CancelFunc
	ctx     context.Context

	mu        sync.Mutex
	latencies []time.Duration
	reads     int
}

// heavyAggregate takes some 0.4 s of one core.
const heavyAggregate = "select sum(sqrt(n::float8) * ln(n + 1)) from pressure_big"

func newMixedLoad(t testing.TB, dsn string, gate *readGate) *mixedLoad {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 40
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	l := &mixedLoad{t: t, pool: pool, gate: gate}
	l.ctx, l.stop = context.WithCancel(context.Background())
	for _, sql := range []string{
		"create table if not exists pressure_accounts (id int primary key, n bigint not null) with (fillfactor = 50)",
		"insert into pressure_accounts select i, 0 from generate_series(1, 10000) i on conflict do nothing",
		"create table if not exists pressure_history (id int, at timestamptz)",
		"create table if not exists pressure_big as select i as n from generate_series(1, 1800000) i",
		"alter table pressure_big set (parallel_workers = 0)",
		"vacuum analyze pressure_big",
	} {
		if _, err := pool.Exec(l.ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	sql := heavyAggregate
	l.readSQL.Store(&sql)
	t.Cleanup(l.close)
	return l
}

// close ends the load and waits for it.
func (l *mixedLoad) close() {
	l.stop()
	l.gate.close()
	l.readers.Wait()
	l.writers.Wait()
	l.pool.Close()
}

// write starts the writes: open loop, so that a slow server cannot slow demand.
func (l *mixedLoad) write(rate int) {
	l.rate.Store(int64(rate))
	l.writers.Go(func() {
		due := time.Now()
		for i := 0; l.ctx.Err() == nil; i++ {
			r := l.rate.Load()
			if r == 0 {
				time.Sleep(10 * time.Millisecond)
				due = time.Now()
				continue
			}
			due = due.Add(time.Second / time.Duration(r))
			time.Sleep(time.Until(due))
			at := due
			l.writers.Go(func() { l.writeOne(at, i) })
		}
	})
}

func (l *mixedLoad) writeOne(due time.Time, i int) {
	l.inWork.Add(1)
	defer l.inWork.Add(-1)
	err := pgx.BeginFunc(l.ctx, l.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(l.ctx, "update pressure_accounts set n = n + 1 where id = $1", i*7919%10000+1); err != nil {
			return err
		}
		_, err := tx.Exec(l.ctx, "insert into pressure_history values ($1, now())", i)
		return err
	})
	if err != nil {
		return
	}
	took := time.Since(due)
	l.writes.Observe(took)
	l.mu.Lock()
	l.latencies = append(l.latencies, took)
	l.mu.Unlock()
}

// read starts n greedy readers.
func (l *mixedLoad) read(n int) {
	for range n {
		l.readers.Go(func() {
			for l.ctx.Err() == nil && l.gate.acquire() {
				began := time.Now()
				_, err := l.pool.Exec(l.ctx, *l.readSQL.Load())
				l.gate.release(time.Since(began))
				if err == nil {
					l.mu.Lock()
					l.reads++
					l.mu.Unlock()
				}
			}
		})
	}
}

func (l *mixedLoad) activity() pressure.Activity {
	g := l.gate
	g.mu.Lock()
	a := pressure.Activity{Running: g.running, Waiting: g.waiting, ReadsDone: g.done}
	if g.done > 0 {
		a.ReadTime = g.time / time.Duration(g.done)
	}
	g.done, g.time = 0, 0
	g.mu.Unlock()
	a.Writes, a.WritesRunning = l.writes.Take(), int(l.inWork.Load())
	return a
}

// loadFigures are what a stretch of the load measured.
type loadFigures struct {
	p50, p95, p99 time.Duration
	writes, reads float64 // per second
}

// measure lets the load go on for a time and returns what it measured.
func (l *mixedLoad) measure(d time.Duration) loadFigures {
	l.mu.Lock()
	l.latencies, l.reads = nil, 0
	l.mu.Unlock()
	time.Sleep(d)
	l.mu.Lock()
	defer l.mu.Unlock()
	f := loadFigures{writes: float64(len(l.latencies)) / d.Seconds(), reads: float64(l.reads) / d.Seconds()}
	if n := len(l.latencies); n > 0 {
		slices.Sort(l.latencies)
		f.p50, f.p95, f.p99 = l.latencies[n/2], l.latencies[n*95/100], l.latencies[n*99/100]
	}
	return f
}

func (f loadFigures) String() string {
	return fmt.Sprintf("p50 %v p95 %v p99 %v, %.0f writes/s, %.1f reads/s", f.p50.Round(10*time.Microsecond),
		f.p95.Round(10*time.Microsecond), f.p99.Round(10*time.Microsecond), f.writes, f.reads)
}

// limitPath records where a limit went.
type limitPath struct {
	mu    sync.Mutex
	began time.Time
	steps []string
	last  adaptive.Decision
	all   []adaptive.Decision
}

func (p *limitPath) take(d adaptive.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.From != d.To {
		p.steps = append(p.steps, fmt.Sprintf("%.2fs %d->%d %s", time.Since(p.began).Seconds(), d.From, d.To, d.Reason))
	}
	p.last = d
	p.all = append(p.all, d)
}

func (p *limitPath) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.steps, "\n")
}

// begin forgets the path up to now.
func (p *limitPath) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began, p.steps, p.all = time.Now(), nil, nil
}

// share returns in which share of the periods since begin the condition held.
func (p *limitPath) share(holds func(adaptive.Decision) bool) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, d := range p.all {
		if holds(d) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(p.all)))
}

// adapt starts an adaptive limit over the load's gate, with a poller or, where dsn
// is empty, with own writes alone.
func (l *mixedLoad) adapt(dsn string, options adaptive.Options) (*adaptive.Limit, *limitPath) {
	l.t.Helper()
	p := &limitPath{began: time.Now()}
	var source pressure.Source
	if dsn != "" {
		poller, _ := newTestPoller(l.t, dsn, options.Pressure)
		source = poller
	}
	options.Activity, options.OnDecision = l.activity, p.take
	limit, err := adaptive.New(l.gate, source, options)
	if err != nil {
		l.t.Fatal(err)
	}
	limit.Start()
	l.t.Cleanup(limit.Stop)
	return limit, p
}
