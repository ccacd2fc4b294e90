package fleet

import (
	"fmt"
	"log/slog"
	"math"
	"time"
)

// Defaults and bounds of [Options].
const (
	DefaultLease    = 5 * time.Second
	DefaultPollRate = 20.0
	DefaultPeriod   = 500 * time.Millisecond

	// MaxLimit is the largest limit a fleet can share.
	MaxLimit = 1_000_000
	// MaxMembers is how many members a member looks at; names beyond are ignored.
	MaxMembers = 2000
)

// Load is what a member does at the moment. All count cost, as the limit does.
type Load struct {
	// Running is what runs, Waiting what waits for a permit.
	Running, Waiting int
	// Unmet is what would run, besides, had nothing been refused since the last call:
	// see [Unmet]. Where reads may not wait, it is the only sign of a share too small.
	Unmet int
	// Held is what pressure lets the member run; 0: it holds nothing back.
	Held int
	// Holds: it does not climb, because a little more has pressed lately.
	Holds bool
}

// Unmet returns how much more would have been running on average over elapsed if refused
// reads had been let in, each holding its permit for held (Little's law), rounded up.
func Unmet(refused int, held, elapsed time.Duration) int {
	if refused <= 0 || held <= 0 || elapsed <= 0 {
		return 0
	}
	return int(min(maxNumber, math.Ceil(float64(refused)*float64(held)/float64(elapsed))))
}

// Options configure a [Member]. Name, Limit and Load must be given; every other zero field
// takes its default.
type Options struct {
	// Name is the fleet's: members with the same name on the same server, whatever their
	// databases, share one limit. 1 to 21 letters and digits of ASCII, '_', '.', '-'.
	Name string
	// Limit is how much cost all members together may run. It should be the same for all.
	// 1 to 1,000,000.
	Limit int
	// Most is the most that this member can use, its pool's ceiling. Default: Limit.
	Most int
	// Size is how many members to expect while they cannot be seen: where the member
	// never could poll, or a bouncer stands between. It then keeps to Limit / Size, at
	// least one. Default 1.
	Size int

	// Lease is how long a member that is not heard of keeps its share. Default 5 s; 100 ms
	// to 1 h. Where polls are rarer than a third of it, it is three polls.
	Lease time.Duration
	// Period is how often a member polls while the fleet is small. Default 500 ms; 10 ms
	// to 1 min.
	Period time.Duration
	// PollRate is how many polls a second the server should see from the whole fleet at
	// most: members of a large fleet poll more rarely, but each once in 50 s. 0.01 to 100,000.
	// Default 20, or as many as cost the server 1.5 % of a core where that is fewer, since it
	// has many sessions.
	PollRate float64
	// Strict keeps the member to what it is granted, without slack: the limit is then not
	// passed, and many more reads wait or are refused.
	Strict bool

	// ID tells the member from the others: 8 of 0 to 9 and a to z, and no two alike in a
	// fleet. Default: drawn at random; given, a simulation repeats itself.
	ID string

	// Load tells what the member does now. It is called by Name, without a lock held.
	Load func() Load
	// Logger receives what an operator should know, once. Default: nothing is logged.
	Logger *slog.Logger
}

func (o Options) validated() (Options, error) {
	if err := CheckName(o.Name); err != nil {
		return o, err
	}
	if o.ID != "" && (len(o.ID) != idLength || !inBase36(o.ID)) {
		return o, fmt.Errorf("pgyield: fleet: ID is %q, must be %d of 0 to 9 and a to z, or empty to be drawn", o.ID, idLength)
	}
	if o.ID == "" {
		o.ID = newID()
	}
	if o.Load == nil {
		return o, fmt.Errorf("pgyield: fleet: Load is nil, must be given")
	}
	if o.Limit < 1 || o.Limit > MaxLimit {
		return o, fmt.Errorf("pgyield: fleet: Limit is %d, must be from 1 to %d", o.Limit, MaxLimit)
	}
	for _, f := range []struct {
		name      string
		value     *int
		byDefault int
	}{{"Most", &o.Most, o.Limit}, {"Size", &o.Size, 1}} {
		if *f.value < 0 || *f.value > MaxLimit {
			return o, fmt.Errorf("pgyield: fleet: %s is %d, must be from 1 to %d, or 0 for the default (%d)", f.name, *f.value, MaxLimit, f.byDefault)
		}
		if *f.value == 0 {
			*f.value = f.byDefault
		}
	}
	for _, f := range []struct {
		name                 string
		value                *time.Duration
		byDefault, low, high time.Duration
	}{
		{"Lease", &o.Lease, DefaultLease, 100 * time.Millisecond, time.Hour},
		{"Period", &o.Period, DefaultPeriod, 10 * time.Millisecond, time.Minute},
	} {
		if *f.value == 0 {
			*f.value = f.byDefault
		}
		if *f.value < f.low || *f.value > f.high {
			return o, fmt.Errorf("pgyield: fleet: %s is %v, must be from %v to %v, or 0 for the default (%v)", f.name, *f.value, f.low, f.high, f.byDefault)
		}
	}
	if o.PollRate == 0 {
		o.PollRate = DefaultPollRate
	}
	if math.IsNaN(o.PollRate) || o.PollRate < 0.01 || o.PollRate > 100_000 {
		return o, fmt.Errorf("pgyield: fleet: PollRate is %v, must be from 0.01 to 100000 polls a second, or 0 for the default (%v)",
			o.PollRate, DefaultPollRate)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
