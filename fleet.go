package pgyield

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pgyield/pgyield/adaptive"
	"github.com/pgyield/pgyield/bulkhead"
	"github.com/pgyield/pgyield/fleet"
	"github.com/pgyield/pgyield/pressure"
)

// FleetOptions make a pool share one read limit with other processes' pools on the same
// server: see package fleet. The zero value is a pool by itself.
type FleetOptions struct {
	// Name is the fleet's (`yield_fleet`): pools with the same name share one limit. 1 to
	// 21 letters and digits of ASCII, '_', '.', '-'.
	Name string
	// Limit is how much cost all its pools together may run (`yield_fleet_limit`). It
	// should be the same for all. At least 1.
	Limit int
	// Size is how many pools to expect where they cannot be seen (`yield_fleet_size`):
	// behind a bouncer that shares the monitor's session, or while no poll has succeeded
	// for the lease. The pool then keeps to Limit / Size; before its second poll it
	// runs one read. Default 1.
	Size int
	// Lease is how long a pool that is not heard of keeps its share. Default 5 s.
	Lease time.Duration
	// PollRate is how many polls a second the server sees from the whole fleet at most.
	// Default 20, or fewer where a poll is dear: see [fleet.Options].
	PollRate float64
	// Strict keeps the pool to its share, without slack: see [fleet.Options].
	Strict bool
}

// fleetPeriod is how often the monitor of a small fleet's pool polls by default: more often
// than pressure alone needs, since demand moves faster.
const fleetPeriod = 250 * time.Millisecond

// check refuses what could not work; the rest is for package fleet to check.
func (o FleetOptions) check(fixed bool) error {
	switch {
	case o.Name == "" && o != (FleetOptions{}):
		return errors.New("pgyield: Options.Fleet.Name (yield_fleet) is empty, must be set where other fleet options are")
	case o.Name == "":
		return nil
	case fixed:
		return fmt.Errorf("pgyield: Options.Fleet.Name (yield_fleet) is %q, must be empty with FixedLimit (yield_adapt=off), "+
			"for the monitor carries the fleet", o.Name)
	case o.Limit < 1 || o.Limit > fleet.MaxLimit:
		return fmt.Errorf("pgyield: Options.Fleet.Limit (yield_fleet_limit) is %d, must be from 1 to %d", o.Limit, fleet.MaxLimit)
	}
	return nil
}

// fleetLimit stands between the bulkhead and the adaptive limit of a pool in a fleet. It
// keeps apart what the fleet gives the pool (the ceiling, and what keeps it even with the
// others under pressure) and what pressure lets it use (allowed), so that a ceiling that
// falls and rises again with the others' demand takes the limit with it at once, and undoes
// no cut.
type fleetLimit struct {
	bulkhead *bulkhead.Bulkhead
	member   *fleet.Member
	floor    int

	mu      sync.Mutex                          // guards the fields below; taken before the bulkhead's own
	allowed int                                 // math.MaxInt: pressure holds nothing back
	ceiling int                                 // at least 1: a pool that waits for its turn is paused besides
	even    int                                 // what it may run beside the others that pressure holds back
	behind  int                                 // what they run, where that is more; else 0
	holds   bool                                // the adaptive limit does not climb, for a little more has pressed
	told    struct{ limit, floor, ceiling int } // to the adaptive limit, last
	turn    *time.Timer
	stopped bool
}

// newFleet returns the pool's part in its fleet, nil when it is in none. Until its second
// poll the pool may run one read.
func newFleet(p *Pool, s settings, period time.Duration) (*fleetLimit, error) {
	o := s.Fleet
	if o.Name == "" {
		return nil, nil
	}
	l := &fleetLimit{bulkhead: p.bulkhead, floor: s.Bulkhead.Floor, allowed: math.MaxInt, even: math.MaxInt}
	member, err := fleet.New(fleet.Options{
		Name: o.Name, Limit: o.Limit, Most: s.Bulkhead.Ceiling, Size: o.Size, Lease: o.Lease,
		Period: period, PollRate: o.PollRate, Strict: o.Strict,
		Load: (&fleetLoad{bulkhead: p.bulkhead, held: l.held}).take, Logger: s.Logger,
	})
	if err != nil {
		return nil, err
	}
	l.member = member
	l.follow(time.Now())
	return l, nil
}

// follow moves the bounds to what the fleet gives now. Where it gives nothing, because
// it is not the pool's turn, the bulkhead is paused. A turn is over at its time and not
// with a period, so that while one pool is late to stop the next does not run besides.
func (l *fleetLimit) follow(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ceiling := l.member.Ceiling(now)
	l.ceiling = max(1, ceiling)
	l.even, l.behind = l.member.Even(now)
	ceiling = min(ceiling, l.even)
	// 1 <= floor <= ceiling, or all are 0: it cannot fail.
	_ = l.bulkhead.SetBounds(min(l.floor, ceiling), ceiling, ceiling)
	if limit := min(l.allowed, ceiling); limit != l.bulkhead.Limit() { // else a probe would be over
		l.bulkhead.SetLimit(limit)
	}
	if next := l.member.NextTurn(now); !next.IsZero() && !l.stopped {
		l.followIn(max(next.Sub(now), time.Millisecond))
	}
}

// held is what pressure lets the pool run; 0: it holds nothing back.
func (l *fleetLimit) held() (limit int, holds bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.allowed >= l.ceiling {
		return 0, false
	}
	return l.allowed, l.holds
}

// followIn follows again after a time. The caller holds the lock.
func (l *fleetLimit) followIn(after time.Duration) {
	if l.turn == nil {
		l.turn = time.AfterFunc(after, func() { l.follow(time.Now()) })
		return
	}
	l.turn.Reset(after)
}

// stop ends the turns.
func (l *fleetLimit) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped = true; l.turn != nil {
		l.turn.Stop()
	}
}

// Limit, SetLimit, EndPeriod and Bounds make it an [adaptive.Limiter], which knows
// nothing of turns: a pause is none of its cuts. What Limit and Bounds tell is remembered:
// by that the adaptive limit decides, and the fleet may move both before its decision comes.
func (l *fleetLimit) Limit() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told.limit = max(1, l.bulkhead.Limit())
	return l.told.limit
}

// SetLimit takes what pressure allows. A limit that has climbed to the ceiling is held
// back by nothing but the fleet; one that the ceiling alone has lowered to there has not
// climbed.
func (l *fleetLimit) SetLimit(limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bulkhead.SetLimit(l.allow(limit))
}

// Probe makes it an [adaptive.Prober].
func (l *fleetLimit) Probe(limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bulkhead.Probe(l.allow(limit))
}

// allow takes what pressure allows, and returns what may run then. The caller holds the lock.
func (l *fleetLimit) allow(limit int) int {
	switch from := max(l.told.floor, min(l.told.limit, l.told.ceiling)); {
	case limit < from:
		l.allowed = limit
	case limit > from && limit >= l.told.ceiling && l.told.ceiling >= l.ceiling:
		l.allowed = math.MaxInt
	case limit > from:
		l.allowed = max(l.allowed, limit)
	}
	return min(l.allowed, l.ceiling, l.even)
}

func (l *fleetLimit) EndPeriod() (contended bool) {
	l.follow(time.Now()) // it changes with time too, where polls fail
	return l.bulkhead.EndPeriod()
}

// Beside makes it an [adaptive.Sharer]. What the others run is as old as the last poll; what
// the pool may run by now is not.
func (l *fleetLimit) Beside(holds bool) (behind bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = holds
	return min(l.allowed, l.ceiling) < l.behind
}

func (l *fleetLimit) Bounds() (floor, start, ceiling int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	floor, start, ceiling = l.bulkhead.Bounds()
	floor, start, ceiling = max(1, floor), max(1, start), max(1, ceiling)
	l.told.floor, l.told.ceiling = floor, ceiling
	return floor, start, ceiling
}

// fleetSource is a poller that paces itself by the size of the fleet, and tells the
// member what each poll saw.
type fleetSource struct {
	poller *pressure.Poller
	limit  *fleetLimit
	due    time.Time // used by the one Sample in flight
}

// Paced: the fleet's pace is the poll's.
func (s *fleetSource) Paced() {}

var _ adaptive.Paced = (*fleetSource)(nil)

// Sample waits until the fleet's turn of polls has come to this pool, and polls.
func (s *fleetSource) Sample(ctx context.Context) (pressure.Sample, error) {
	pause := time.NewTimer(time.Until(s.due))
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return pressure.Sample{}, fmt.Errorf("pgyield: polling for write pressure: %w", ctx.Err())
	case <-pause.C:
	}
	sample, err := s.poller.Sample(ctx)
	now := time.Now()
	if err != nil {
		s.limit.member.Missed()
	} else {
		s.limit.member.Observe(now, fleet.View{
			Names: sample.Names, Sessions: sample.Sessions, ServerTime: sample.ServerTime, Mark: sample.Mark, Marked: sample.Marked,
		})
		s.limit.follow(now)
	}
	every := s.limit.member.PollEvery()
	sample.Every = every
	s.due = now.Add(time.Duration(float64(every) * (0.95 + 0.1*rand.Float64()))) //nolint:gosec // jitter
	return sample, err
}

// fleetLoad tells the member what the bulkhead does.
type fleetLoad struct {
	bulkhead *bulkhead.Bulkhead
	held     func() (limit int, holds bool)
	last     bulkhead.Stat
	at       time.Time
}

// take is called once a poll, by the one poll in flight.
func (l *fleetLoad) take() fleet.Load {
	s, now := l.bulkhead.Stat(), time.Now()
	load := fleet.Load{Running: s.Running, Waiting: s.Waiting}
	if s.Mode == bulkhead.Enforce { // else the limit is not what it runs by
		load.Held, load.Holds = l.held()
	}
	if done := s.Released - l.last.Released; done > 0 && !l.at.IsZero() {
		held := (s.HeldTime - l.last.HeldTime) / time.Duration(done) //nolint:gosec // a count of reads
		load.Unmet = fleet.Unmet(int(s.Refused-l.last.Refused), held, now.Sub(l.at))
	}
	l.last, l.at = s, now
	return load
}
