package pgyield

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/puddle/v2"

	"github.com/pgyield/pgyield/bulkhead"
	"github.com/pgyield/pgyield/intent"
	"github.com/pgyield/pgyield/pressure"
)

// Pool is a [pgxpool.Pool] whose reads take a permit before they take a connection. It
// has every method of pgxpool's, with the same meaning, and is safe for concurrent use.
type Pool struct {
	inner    *pgxpool.Pool
	config   *Config // the caller's own values, for Config
	maxConns int

	bulkhead   *bulkhead.Bulkhead
	classifier *intent.Classifier
	prepared   prepared
	monitor    *monitor // nil with a fixed limit

	hooked        bool // some hook of the caller's runs inside inner.Acquire
	afterReleases bool // the caller has an AfterRelease hook, which makes Release asynchronous

	statements [3]atomic.Int64 // by intent.Intent
	writes     pressure.Writes
	traffic    traffic
	last       lastConn

	cleanups  sync.WaitGroup // permits that wait for their connection's clean-up
	closeOnce sync.Once
}

// New creates a Pool; see [ParseConfig] for connString. As pgxpool's, it opens no
// connection before it returns and does not fail when the server is down.
func New(ctx context.Context, connString string) (*Pool, error) {
	config, err := ParseConfig(connString)
	if err != nil {
		return nil, err
	}
	return NewWithConfig(ctx, config)
}

// NewWithConfig creates a Pool with the defaults and the `yield_*` parameters of the
// connection string that made config. config must come from [ParseConfig] or
// [pgxpool.ParseConfig]: as pgxpool's, it panics on another one. It is copied; later
// changes to it have no effect.
func NewWithConfig(ctx context.Context, config *Config) (*Pool, error) {
	return NewWithOptions(ctx, config, Options{})
}

// NewWithOptions creates a Pool as [NewWithConfig] does, with options. A wrong option is
// an error that names it and its bound, before anything was started.
func NewWithOptions(ctx context.Context, config *Config, options Options) (*Pool, error) {
	if config.ConnConfig == nil || config.MaxConns < 1 {
		// pgxpool panics, or tells what is wrong, in its own words.
		_, err := pgxpool.NewWithConfig(ctx, config)
		return nil, err
	}
	given, err := paramsOf(config)
	if err != nil {
		return nil, err
	}
	s, err := resolve(options, given, int(config.MaxConns))
	if err != nil {
		return nil, err
	}
	p := &Pool{config: config.Copy(), maxConns: s.maxConns}
	p.classifier, err = intent.New(intent.Options{WritingFunctions: s.WritingFunctions, ReadingFunctions: s.ReadingFunctions})
	if err != nil {
		return nil, err
	}
	if err := p.buildBulkhead(s); err != nil {
		return nil, err
	}
	monitor, err := newMonitor(p, s) // also checks the options of one that is not wanted
	switch {
	case err != nil:
		return nil, err
	case s.FixedLimit:
		monitor.stop() // it has opened nothing
	default:
		p.monitor = monitor
	}
	if p.inner, err = pgxpool.NewWithConfig(ctx, p.innerConfig()); err != nil {
		return nil, err
	}
	if p.monitor != nil && !p.monitor.awaitsPool {
		p.monitor.start()
	}
	return p, nil
}

func (p *Pool) buildBulkhead(s settings) error {
	o := s.Bulkhead
	o.MayOverdraw = p.mayOverdraw
	p.last.idleFor = o.BusyStall
	if o.BusyStall == 0 {
		p.last.idleFor = bulkhead.DefaultBusyStall
	}
	// Whatever the limit counts, reads never hold the last connection of more than one.
	o.MaxPermits = max(1, s.maxConns-1)
	b, err := bulkhead.New(o)
	if err != nil {
		return err
	}
	b.SetMode(s.Mode)
	p.bulkhead = b
	return nil
}

// Close closes the gate and the pool: every waiting and later read gets pgxpool's closed
// error at once, the monitor stops, and Close returns when all connections have been
// returned and closed.
func (p *Pool) Close() {
	p.closeOnce.Do(func() {
		p.bulkhead.Close(puddle.ErrClosedPool)
		if p.monitor != nil {
			p.monitor.stop()
		}
		p.inner.Close()
		p.cleanups.Wait()
	})
}

// Unwrap returns the pool beneath, for what needs pgxpool's concrete type, such as
// [github.com/jackc/pgx/v5/stdlib.OpenDBFromPool]. What runs through it is not gated.
func (p *Pool) Unwrap() *pgxpool.Pool { return p.inner }

// Config returns a copy of the config that the Pool was made with.
func (p *Pool) Config() *Config { return p.config.Copy() }

// Stat returns a snapshot of pgxpool's statistics; [Pool.ReadStat] has the gate's.
func (p *Pool) Stat() *Stat { return p.inner.Stat() }

// SetMode switches what the gate does with reads, at once. Reads that run keep their
// permits; with [Off] or [Shadow], those that wait go. Another value is [Enforce].
func (p *Pool) SetMode(mode Mode) { p.bulkhead.SetMode(mode) }

// Reset closes all connections, but leaves the Pool open.
func (p *Pool) Reset() { p.inner.Reset() }

// startOfTime is what durations since process start are measured from: a duration fits
// an atomic, a time does not.
var startOfTime = time.Now()

func sinceStart() time.Duration { return time.Since(startOfTime) }
