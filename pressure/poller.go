package pressure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrClosed is returned by a poller that was closed.
var ErrClosed = errors.New("pgyield: the pressure monitor is closed")

// ErrBackoff is returned while a poller waits before it connects again.
var ErrBackoff = errors.New("pgyield: the pressure monitor waits before it connects again")

// Poller is the [Source] for Postgres, 13 and later. It holds one connection of its
// own, made at the first poll and made again when lost, and runs one statement a
// poll, without state of the session, so that a bouncer in transaction mode may stand
// between; the statement is prepared only where none does. At most one poll is in flight. All
// methods are safe for concurrent use.
type Poller struct {
	config  *pgx.ConnConfig
	options Options
	net     *transport
	closed  chan struct{}
	once    sync.Once

	// turn is held by the one poll in flight. It guards the fields below it.
	turn      chan struct{}
	conn      *pgx.Conn
	elder     *attempt // the connection that earlier polls have begun to make; nil: none
	query     queryKind
	marked    bool   // a poll has left our mark in conn's session
	direct    bool   // conn leads to one server process, so that the poll may be prepared
	prepared  string // the text of the prepared poll; empty: none
	shared    bool   // a prepared poll was once forgotten, or another client's: none is prepared any more
	retryAt   time.Time
	backoff   time.Duration
	maintain  time.Time // when Maintain is due
	maintains time.Duration
	dying     []<-chan struct{} // clean-ups of lost connections
	said      map[string]bool   // what was logged, so that it is logged once

	mu   sync.Mutex // guards stat alone; never held over I/O; taken after turn
	stat Stat
}

// maxDying bounds the lost connections that are being cleaned up at a time. A
// server that answers connects but hangs on every poll would gather more.
const maxDying = 3

// NewPoller returns a poller of the server that config names. The config, made by
// pgx.ParseConfig, is copied; its tracer and hooks are not used. Nothing is
// connected yet.
func NewPoller(config *pgx.ConnConfig, options Options) (*Poller, error) {
	if config == nil || config.DialFunc == nil || config.LookupFunc == nil {
		return nil, errors.New("pgyield: the pressure monitor's config must be made by pgx.ParseConfig")
	}
	options, err := options.Normalize()
	if err != nil {
		return nil, err
	}
	p := &Poller{
		config: config.Copy(), options: options, net: newTransport(), closed: make(chan struct{}),
		turn: make(chan struct{}, 1), said: map[string]bool{},
	}
	return p, nil
}

// Sample polls the server once; it connects first where there is no connection. It
// waits for a poll in flight. It fails at once, with [ErrBackoff], while it is too
// early for another connect.
func (p *Poller) Sample(ctx context.Context) (Sample, error) {
	select {
	case <-p.closed:
		return Sample{}, ErrClosed
	case <-ctx.Done():
		return Sample{}, fmt.Errorf("pgyield: polling for write pressure: %w", ctx.Err())
	case p.turn <- struct{}{}:
	}
	defer func() { <-p.turn }()
	if p.net.ctx.Err() != nil {
		return Sample{}, ErrClosed // the turn was free because Close had ended
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.net.ctx, cancel)()

	sample, err := p.poll(ctx)
	select {
	case <-p.closed:
		return Sample{}, ErrClosed
	default:
	}
	if err != nil && ctx.Err() != nil {
		// The caller gave up: that says nothing about the server.
		return Sample{}, fmt.Errorf("pgyield: polling for write pressure: %w", err)
	}
	p.record(sample, err)
	if err != nil && !errors.Is(err, ErrBackoff) {
		err = fmt.Errorf("pgyield: polling for write pressure: %w", err)
	}
	return sample, err
}

// poll connects where needed, maintains where due, and asks.
func (p *Poller) poll(ctx context.Context) (Sample, error) {
	timed, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	if err := p.connect(timed); err != nil {
		return Sample{}, err
	}
	if p.runMaintain(ctx) {
		// Maintain may have used up the time, or the connection.
		timed, cancel = context.WithTimeout(ctx, p.options.Timeout)
		defer cancel()
		if err := p.connect(timed); err != nil {
			return Sample{}, err
		}
	}
	sample, err := p.ask(timed)
	var answer *pgconn.PgError
	if errors.As(err, &answer) && !p.conn.IsClosed() {
		if !lasting(answer) || shared(answer) {
			return Sample{}, err // it may pass, and the connection is sound
		}
		if p.degrade(timed) {
			sample, err = p.ask(timed)
		}
	}
	if err != nil {
		p.drop(err)
		return Sample{}, err
	}
	p.backoff = 0
	p.learn(sample)
	return sample, nil
}

// ask runs the poll's statement.
func (p *Poller) ask(ctx context.Context) (Sample, error) {
	start := time.Now()
	args := []any{pgx.QueryExecModeExec, pgx.QueryResultFormats{pgx.TextFormatCode}}
	if p.query.names {
		name := p.options.Name()
		args = append(args, name[:min(len(name), maxName)], p.options.NamePrefix)
	}
	if p.query.mark {
		args = append(args, p.options.Mark)
	}
	r, err := p.run(ctx, args)
	if err != nil {
		return Sample{}, err
	}
	if r["server_ts"] == "" {
		return Sample{}, errors.New("the server's answer holds no time")
	}
	s := r.sample()
	s.At, s.RoundTrip = time.Now(), time.Since(start)
	s.Marked, p.marked = p.marked, p.query.mark
	return s, nil
}

// run runs the statement and reads its row.
func (p *Poller) run(ctx context.Context, args []any) (row, error) {
	r, err := p.runPrepared(ctx, args)
	if shared(err) {
		p.direct, p.shared = false, true
	}
	return r, err
}

func (p *Poller) runPrepared(ctx context.Context, args []any) (row, error) {
	statement, err := p.prepare(ctx, p.query.build())
	if err != nil {
		return nil, err
	}
	rows, err := p.conn.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	return scanRow(rows)
}

// learn adapts the next poll to what this one saw.
func (p *Poller) learn(s Sample) {
	if s.Version != 0 && s.Version != p.query.version {
		p.query.version, p.query.parts = s.Version, allParts
	}
	if s.Hidden > 0 && !p.query.locks {
		p.query.locks = true
		p.sayOnce("hidden", "pgyield: the monitor's role cannot see what other sessions wait for; to see more: GRANT pg_monitor TO "+
			pgx.Identifier{p.role()}.Sanitize(), "hidden_sessions", s.Hidden)
	}
}

// drop closes the connection in the background and sets when the next may be made: at
// once the first time, later after ever longer waits. An attempt that ran out of time
// has waited already.
func (p *Poller) drop(why error) {
	if p.conn != nil {
		conn := p.conn
		p.conn = nil
		p.dying = append(p.dying, inBackground(func() { p.hangUp(conn) }))
	}
	p.retryAt = time.Time{}
	switch {
	case ranOut(why):
		return
	case p.backoff == 0:
		p.backoff = p.options.BackoffMin
		return
	}
	wait := time.Duration(float64(p.backoff) * (0.75 + 0.5*rand.Float64()))
	p.retryAt = time.Now().Add(wait)
	p.backoff = min(2*p.backoff, p.options.BackoffMax)
}

// Close ends the poll in flight and the connection, and waits for both. It may be
// called more than once.
func (p *Poller) Close() {
	p.once.Do(func() {
		close(p.closed)
		p.net.cancel() // ends a poll in flight
	})
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if p.elder != nil {
		<-p.elder.done
		p.elder, p.conn = nil, p.elder.conn
	}
	if p.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = p.conn.Close(ctx)
		cancel()
		p.dying = append(p.dying, p.conn.PgConn().CleanupDone())
		p.conn = nil
	}
	p.net.close()
	for _, done := range p.dying {
		<-done
	}
	p.dying = nil
	p.mu.Lock()
	p.stat.Connected = false
	p.mu.Unlock()
}
