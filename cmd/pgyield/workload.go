package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgyield/pgyield"
)

// gaugeEvery is how often the state is noted.
const gaugeEvery = 100 * time.Millisecond

// drain is how long writes may go on after the phase's end. What is not done
// then is cut, and counts with the time it has taken so far.
const drain = 3 * time.Second

// pool is what the load needs of pgxpool and pgyield alike.
type pool interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// target is the pool under load.
type target struct {
	pool  pool
	close func()
	gate  func() *gate
}

func openPlain(ctx context.Context, db *database, conns int) (target, error) {
	config, err := db.poolConfig(conns)
	if err != nil {
		return target{}, err
	}
	p, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return target{}, err
	}
	return target{pool: p, close: p.Close, gate: func() *gate { return nil }}, nil
}

func openYield(ctx context.Context, db *database, conns int) (target, error) {
	config, err := db.poolConfig(conns)
	if err != nil {
		return target{}, err
	}
	p, err := pgyield.NewWithConfig(ctx, config)
	if err != nil {
		return target{}, err
	}
	return target{pool: p, close: p.Close, gate: func() *gate {
		s := p.ReadStat()
		return &gate{Limit: s.Limit(), Running: s.Running(), Waiting: s.Waiting(), Pressing: s.Pressing()}
	}}, nil
}

// load is one phase in the making.
type load struct {
	db            *database
	target        target
	name          string
	rate, readers int
	lead, length  time.Duration // reads join after lead
	begun         time.Time     // of the demo

	mu       sync.Mutex // guards what follows
	out      *phase
	inFlight map[*work]struct{} // writes
}

// run puts the load on the target and returns what it saw.
func (l *load) run(ctx context.Context, show *console) (*phase, error) {
	what := "writes, " + l.name
	if l.readers > 0 {
		what = "writes and reads, " + l.name
	}
	bar := show.progress(what, int(l.length/gaugeEvery))
	from := time.Since(l.begun)
	l.out = &phase{Name: l.name, From: from, To: from + l.length, Lead: l.lead}
	l.inFlight = make(map[*work]struct{})

	inPhase, endPhase := context.WithTimeout(ctx, l.length)
	defer endPhase()
	writing, stopWrites := context.WithTimeout(ctx, l.length+drain)
	defer stopWrites()

	var all sync.WaitGroup
	for range l.readers {
		all.Go(func() {
			if pause(inPhase, l.lead) {
				l.readLoop(inPhase)
			}
		})
	}
	all.Go(func() { l.gauges(inPhase, bar) })
	l.writeLoop(inPhase, writing)
	all.Wait()

	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.inFlight {
		w.Took = time.Since(l.begun) - w.Begun
		l.out.Writes = append(l.out.Writes, *w)
	}
	if ctx.Err() != nil {
		bar.done(ctx.Err())
		return nil, ctx.Err()
	}
	err := l.verdict()
	bar.done(err)
	return l.out, err
}

// verdict fails a phase that measured nothing but errors.
func (l *load) verdict() error {
	for _, w := range l.out.Writes {
		if w.Done {
			return nil
		}
	}
	if l.out.FirstErr != nil {
		return l.out.FirstErr
	}
	return errors.New("pgyield: demo: no write ended")
}

// writeLoop begins a write at each due time until inPhase ends, and waits for
// them. A write that is begun late counts from when it was due: otherwise a slow
// database would slow the load down and look better than it is.
func (l *load) writeLoop(inPhase, writing context.Context) {
	var writes sync.WaitGroup
	begin := time.Now()
	every := time.Second / time.Duration(l.rate)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := 0; ; i++ {
		due := begin.Add(time.Duration(i) * every)
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
		case <-inPhase.Done():
			writes.Wait()
			return
		}
		writes.Go(func() { l.writeOnce(writing, due) })
	}
}

func (l *load) writeOnce(ctx context.Context, due time.Time) {
	w := &work{Begun: due.Sub(l.begun)}
	l.mu.Lock()
	l.inFlight[w] = struct{}{}
	l.mu.Unlock()
	err := l.db.write(ctx, l.target.pool, 1+rand.IntN(accounts), rand.IntN(100))
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return // cut: it stays in flight
	}
	delete(l.inFlight, w)
	if err != nil {
		l.failed(err)
		return
	}
	w.Took, w.Done = time.Since(due), true
	l.out.Writes = append(l.out.Writes, *w)
}

// failed counts an error. l.mu must be held.
func (l *load) failed(err error) {
	l.out.Errors++
	if l.out.FirstErr == nil {
		l.out.FirstErr = err
	}
}

// readLoop reads as fast as it is let.
func (l *load) readLoop(ctx context.Context) {
	for ctx.Err() == nil {
		begun := time.Now()
		err := l.db.read(ctx, l.target.pool)
		w := work{Begun: begun.Sub(l.begun), Took: time.Since(begun), Done: err == nil}
		l.mu.Lock()
		var refused *pgyield.RefusedError
		switch {
		case errors.As(err, &refused):
			l.out.Refused = append(l.out.Refused, w.Begun+w.Took)
		case err != nil && ctx.Err() == nil:
			l.failed(err)
		default:
			l.out.Reads = append(l.out.Reads, w)
		}
		l.mu.Unlock()
		if err == nil || ctx.Err() != nil {
			continue
		}
		again := 50 * time.Millisecond
		if refused != nil {
			again = refused.RetryAfter
		}
		pause(ctx, again)
	}
}

// pause waits for d and says whether ctx is still good.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (l *load) gauges(ctx context.Context, bar *progress) {
	ticker := time.NewTicker(gaugeEvery)
	defer ticker.Stop()
	for n := 1; ; n++ {
		g := gauge{At: time.Since(l.begun), Gate: l.target.gate()}
		l.mu.Lock()
		g.WritesInFlight = len(l.inFlight)
		l.out.Gauges = append(l.out.Gauges, g)
		l.mu.Unlock()
		bar.set(n)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
