package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgyield/pgyield"
)

// arm is one way to run reads beside writes.
type arm struct {
	name  string
	open  func(ctx context.Context, db *database, conns int) (target, error)
	alone bool // without reads
	// learns: it finds its limit by itself, and so is given writes alone to learn from and
	// time to settle. A fixed one needs neither.
	learns bool
	// measure replaces the scenario's where it is set: only pgyield's own tries of a level
	// that pressed are so rare that a short measurement would not hold them, and what it is
	// compared with is measured for long enough to see what else happens on the machine.
	measure time.Duration
	// takesParams: it is opened with parameters of the user's.
	takesParams bool
}

// check finds out what would keep the arm's pool from being opened, with no server at hand.
func (a arm) check(conns int) error {
	if !a.takesParams {
		return nil
	}
	opened, err := a.open(context.Background(), &database{dsn: "host=127.0.0.1 port=1"}, conns)
	if err != nil {
		return err
	}
	opened.close()
	return nil
}

// Names of arms that targets refer to.
const (
	armIdle     = "no reads"
	armPlain    = "pgxpool"
	armYield    = "pgyield"
	armShadow   = "pgyield shadow"
	armFailsafe = "failsafe-go"
	armAIMD     = "AIMD on read time"
)

// tolerances are pgyield's besides its default: 3, and what it takes here to be let run the
// reads of a pool of two.
var tolerances = []int{3, 6}

const tolerantPrefix = "pgyield tolerance "

func armTolerant(tolerance int) string { return fmt.Sprint(tolerantPrefix, tolerance) }

// statics are the sizes of the separate read pool.
var statics = []int{1, 2, 4, 8, 16}

func armStatic(k int) string { return fmt.Sprintf("read pool of %d", k) }

// peers are the arms that a user might take instead.
var peers = []string{armPlain, armFailsafe, armAIMD}

// allArms are the arms of a steady load. pgyield's are told its parameters.
func allArms(params string) []arm {
	const short = 8 * time.Second
	arms := []arm{
		{name: armIdle, open: openPlain, alone: true},
		{name: armPlain, open: openPlain},
	}
	for _, k := range statics {
		arms = append(arms, arm{name: armStatic(k), open: openSplit(k)})
	}
	shadow := yieldArm(armShadow, params, pgyield.Options{Mode: pgyield.Shadow})
	shadow.measure = short
	arms = append(arms,
		arm{name: armFailsafe, open: openFailsafe, learns: true, measure: short},
		arm{name: armAIMD, open: openAIMD, learns: true, measure: short},
		yieldArm(armYield, params, pgyield.Options{}), shadow)
	for _, n := range tolerances {
		tolerant := yieldArm(armTolerant(n), fmt.Sprintf("%s yield_tolerance=%d", params, n), pgyield.Options{})
		tolerant.measure = 2 * short
		arms = append(arms, tolerant)
	}
	return arms
}

// measured sets for how long those arms are measured that pgyield is compared with.
func measured(arms []arm, long time.Duration) []arm {
	for i, a := range arms {
		if a.name == armIdle || a.name == armStatic(1) || a.name == armStatic(2) {
			arms[i].measure = long
		}
	}
	return arms
}

// some selects arms by name.
func some(arms []arm, names ...string) []arm {
	var out []arm
	for _, name := range names {
		for _, a := range arms {
			if a.name == name {
				out = append(out, a)
			}
		}
	}
	return out
}

func yieldArm(name, params string, o pgyield.Options) arm {
	return yieldArmOf(name, func(int) string { return params }, o)
}

// yieldArmOf is for parameters that depend on the size of the pool.
func yieldArmOf(name string, params func(conns int) string, o pgyield.Options) arm {
	return arm{
		name: name, learns: true, takesParams: true,
		open: func(ctx context.Context, db *database, conns int) (target, error) {
			return openYieldWith(ctx, db, conns, params(conns), o)
		},
	}
}

// openSplit keeps reads to a pool of their own, of a size that never changes.
func openSplit(k int) func(context.Context, *database, int) (target, error) {
	return func(ctx context.Context, db *database, conns int) (target, error) {
		t, err := openPlain(ctx, db, conns)
		if err != nil {
			return t, err
		}
		config, err := db.poolConfig(k)
		if err != nil {
			return target{}, err
		}
		config.MinConns = config.MaxConns
		reads, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			t.close()
			return target{}, err
		}
		writesClose := t.close
		t.reads, t.conns = reads, reads
		t.close = func() { reads.Close(); writesClose() }
		return t, nil
	}
}

// ceilingOf is pgyield's default ceiling for a pool: peers get the same.
func ceilingOf(conns int) int { return conns - max(1, conns/5) }

// openFailsafe puts failsafe-go's adaptive limiter before reads. Its windows are shorter
// than by default (1 to 30 s, 50 reads), else it would not have decided anything yet when
// the measurement ends: analytic reads are few.
func openFailsafe(ctx context.Context, db *database, conns int) (target, error) {
	t, err := openPlain(ctx, db, conns)
	if err != nil {
		return t, err
	}
	most := uint(ceilingOf(conns)) //nolint:gosec // conns is at least 2
	limiter := adaptivelimiter.NewBuilder[any]().WithLimits(1, most, most).
		WithRecentWindow(time.Second, 2*time.Second, 8).Build()
	t.around = func(ctx context.Context, read func() error) error {
		permit, err := limiter.AcquirePermit(ctx)
		if err != nil {
			return err
		}
		if err := read(); err != nil {
			permit.Drop()
			return err
		}
		permit.Record()
		return nil
	}
	t.gate = func() *gate {
		return &gate{Limit: limiter.Limit(), Running: limiter.Inflight(), Waiting: limiter.Queued()}
	}
	return t, nil
}

// aimd is the textbook's limiter on the reads' own time: a read in time adds one to the
// limit while it is used, one that is late takes a tenth off.
type aimd struct {
	late time.Duration
	most float64

	mu      sync.Mutex // guards what follows
	limit   float64
	running int
	changed chan struct{} // closed when a read may go
}

func (a *aimd) acquire(ctx context.Context) error {
	for {
		a.mu.Lock()
		if a.running < int(a.limit) {
			a.running++
			a.mu.Unlock()
			return nil
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (a *aimd) release(took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case took > a.late:
		a.limit = max(1, a.limit*0.9)
	case 2*a.running >= int(a.limit):
		a.limit = min(a.most, a.limit+1)
	}
	a.running--
	close(a.changed)
	a.changed = make(chan struct{})
}

// openAIMD puts that limiter before reads; a second is late.
func openAIMD(ctx context.Context, db *database, conns int) (target, error) {
	t, err := openPlain(ctx, db, conns)
	if err != nil {
		return t, err
	}
	a := &aimd{late: time.Second, most: float64(ceilingOf(conns)), limit: float64(ceilingOf(conns)), changed: make(chan struct{})}
	t.around = func(ctx context.Context, read func() error) error {
		if err := a.acquire(ctx); err != nil {
			return err
		}
		begun := time.Now()
		defer func() { a.release(time.Since(begun)) }()
		return read()
	}
	t.gate = func() *gate {
		a.mu.Lock()
		defer a.mu.Unlock()
		return &gate{Limit: int(a.limit), Running: a.running}
	}
	return t, nil
}
