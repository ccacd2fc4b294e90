package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/adaptive"
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

// target is what is under load.
type target struct {
	pool   pool                                               // of the writes
	reads  pool                                               // of the reads; nil: the same
	conns  *pgxpool.Pool                                      // those that reads use
	around func(ctx context.Context, read func() error) error // a limiter before the reads; nil: none
	close  func()
	gate   func() *gate
	taken  func() []decision // and forgotten; nil: the target decides nothing
}

// readPool is the pool that reads go to.
func (t *target) readPool() pool {
	if t.reads != nil {
		return t.reads
	}
	return t.pool
}

func (t *target) read(ctx context.Context, read func(pool) error) error {
	p := t.readPool()
	if t.around == nil {
		return read(p)
	}
	return t.around(ctx, func() error { return read(p) })
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
	return target{pool: p, conns: p, close: p.Close, gate: func() *gate { return nil }}, nil
}

func openYield(ctx context.Context, db *database, conns int) (target, error) {
	return openYieldWith(ctx, db, conns, "", pgyield.Options{})
}

// openYieldWith opens a pool with options and `yield_*` parameters of a connection string.
func openYieldWith(ctx context.Context, db *database, conns int, params string, o pgyield.Options) (target, error) {
	config, err := db.poolConfigWith(conns, params)
	if err != nil {
		return target{}, err
	}
	var made decisions
	o.OnDecision = made.add
	p, err := pgyield.NewWithOptions(ctx, config, o)
	if err != nil {
		return target{}, err
	}
	t := targetOf(p)
	t.taken = made.take
	return t, nil
}

// targetOf is a pool of pgyield under load.
func targetOf(p *pgyield.Pool) target {
	return target{pool: p, conns: p.Unwrap(), close: p.Close, gate: func() *gate {
		s := p.ReadStat()
		return &gate{Limit: s.Limit(), Running: s.Running(), Waiting: s.Waiting(), Pressing: s.Pressing()}
	}}
}

// decisions collects those that moved a limit.
type decisions struct {
	mu   sync.Mutex // guards made
	made []adaptive.Decision
}

func (d *decisions) add(made adaptive.Decision) {
	if made.From == made.To {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made = append(d.made, made)
}

func (d *decisions) take() []decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]decision, len(d.made))
	for i, m := range d.made {
		out[i] = decision{when: m.At, From: m.From, To: m.To, Reason: m.Reason}
	}
	d.made = nil
	return out
}

// load is one phase in the making.
type load struct {
	db            *database
	target        target
	name          string
	rate, readers int
	lead, length  time.Duration // reads join after lead
	begun         time.Time     // of all phases

	// write is one write transaction, read one read, told how long ago the phase began.
	write func(ctx context.Context, p pool) error
	read  func(ctx context.Context, p pool, at time.Duration) error
	pause time.Duration // of a reader between two reads

	writeFor time.Duration                   // writes are due until then; 0: to the end
	beside   func(ctx context.Context) error // other load, from besideAt on; nil: none
	besideAt time.Duration
	quiet    bool // no bar

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
	bar := &progress{}
	if !l.quiet {
		bar = show.progress(what, int(l.length/gaugeEvery))
	}
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
	if l.beside != nil {
		all.Go(func() {
			if !pause(inPhase, l.besideAt) {
				return
			}
			if err := l.beside(inPhase); err != nil {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.failed(err)
			}
		})
	}
	all.Go(func() { l.gauges(inPhase, bar) })
	due, endDue := inPhase, context.CancelFunc(func() {})
	if l.writeFor > 0 {
		due, endDue = context.WithTimeout(inPhase, l.writeFor)
	}
	defer endDue()
	l.writeLoop(due, writing)
	all.Wait()
	if l.target.taken != nil {
		for _, d := range l.target.taken() {
			d.At = d.when.Sub(l.begun)
			l.out.Decisions = append(l.out.Decisions, d)
		}
	}

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
	return errors.New("pgyield: no write ended")
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
	err := l.write(ctx, l.target.pool)
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
		err := l.target.read(ctx, func(p pool) error { return l.read(ctx, p, begun.Sub(l.begun)-l.out.From) })
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
		if err == nil && l.pause > 0 {
			pause(ctx, l.pause)
		}
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
