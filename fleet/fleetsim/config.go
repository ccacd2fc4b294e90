package fleetsim

import (
	"fmt"
	"math"
	"time"

	"github.com/pgyield/pgyield/fleet"
)

// Kind says who holds the limit.
type Kind int

const (
	// Pooled is one limit, whichever member a read comes to.
	Pooled Kind = iota
	// Split divides the limit evenly over the members, for good.
	Split
	// Shared is a fleet.
	Shared
	// Strict is a fleet without slack.
	Strict
)

// Config describes a run. Kind, Limit, Members, Rate and Hold matter most; every other
// zero field takes its default.
type Config struct {
	Kind    Kind
	Limit   int
	Members int
	// Rate is the fresh reads a second of all members, Hold the mean time one runs.
	Rate float64
	Hold time.Duration
	// Weights are the members' parts of the rate, in any unit. Default: equal parts.
	Weights []float64
	// MaxWait is how long a read may wait for a permit, at most. 0: not at all.
	MaxWait time.Duration
	// Retries is how often a refused read is tried again, at a member at random, after an
	// exponential time of the mean RetryAfter. 0: at once.
	Retries    int
	RetryAfter time.Duration

	// Heartbeat is how often a member polls, Tick how often it asks for its ceiling
	// besides. Default 250 ms each.
	Heartbeat, Tick time.Duration
	// PollRate and Lease are the fleet's. Default: a PollRate that does not bind; the
	// fleet's own lease.
	PollRate float64
	Lease    time.Duration
	// Sessions is how many sessions the server has, by which the members pace their polls
	// where PollRate is not given. Default: unknown.
	Sessions int
	// Noise are names of other sessions that every poll sees besides the members'.
	Noise []string

	// Warmup is left out of the result. Length is what is counted. Default 5 s and 60 s.
	Warmup, Length time.Duration
	Seed           uint64
	// Changes happen during the run, at times since its beginning.
	Changes []Change
	// Inspect, when set, is called at each tick of the member Watch with the time since
	// the beginning of the run.
	Watch   int
	Inspect func(at time.Duration, members []Snapshot)
}

// Change is what happens to one member at a time.
type Change struct {
	At     time.Duration
	Member int
	Do     Action
	// Weight is its new part of the rate, for Load.
	Weight float64
}

// Action is the kind of a Change.
type Action int

const (
	// Load changes a member's part of the rate.
	Load Action = iota
	// Start starts a member, which is not there before it.
	Start
	// Kill ends a member with what it runs.
	Kill
	// Deafen ends a member's polls while its reads and its session's name live on.
	Deafen
	// Hear lets it poll again.
	Hear
)

// Snapshot is the state of a member at one moment.
type Snapshot struct {
	Up                        bool
	Running, Waiting, Ceiling int
	Stat                      fleet.Stat // zero unless Kind is Shared or Strict
}

// Result is what a run counted after its warm-up.
type Result struct {
	// Reads are the fresh ones, Refusals the tries that were refused, Lost the reads of
	// which every try was.
	Reads, Refusals, Lost int
	// Refused is Refusals over all tries.
	Refused float64
	// MeanWait and P99Wait are over all tries, those that gave up too.
	MeanWait, P99Wait time.Duration
	// Running is the mean over time. Over is the part of the time in which more ran than
	// the limit, Peak the most that ran.
	Running, Over float64
	Peak          int
	// Excess is the most by which what runs within the members' ceilings passed the limit,
	// the warm-up included: reads beneath which a ceiling shrank, and which nobody touches,
	// are not in it. For fleets alone.
	Excess int
	// Polls is how many were sent a second.
	Polls float64
}

func (c Config) validated() (Config, error) {
	for _, f := range []struct {
		name  string
		value int
		most  int
	}{{"Limit", c.Limit, fleet.MaxLimit}, {"Members", c.Members, fleet.MaxMembers}} {
		if f.value < 1 || f.value > f.most {
			return c, fmt.Errorf("pgyield: fleetsim: %s is %d, must be from 1 to %d", f.name, f.value, f.most)
		}
	}
	if math.IsNaN(c.Rate) || c.Rate < 0 || c.Rate > 1e6 {
		return c, fmt.Errorf("pgyield: fleetsim: Rate is %v, must be from 0 to 1e6", c.Rate)
	}
	if c.Retries < 0 || c.Retries > 1000 {
		return c, fmt.Errorf("pgyield: fleetsim: Retries is %d, must be from 0 to 1000", c.Retries)
	}
	for _, f := range []struct {
		name      string
		value     *time.Duration
		byDefault time.Duration
	}{
		{"Hold", &c.Hold, 100 * time.Millisecond},
		{"MaxWait", &c.MaxWait, 0},
		{"RetryAfter", &c.RetryAfter, 0},
		{"Heartbeat", &c.Heartbeat, 250 * time.Millisecond},
		{"Tick", &c.Tick, 250 * time.Millisecond},
		{"Warmup", &c.Warmup, 5 * time.Second},
		{"Length", &c.Length, time.Minute},
	} {
		if *f.value == 0 {
			*f.value = f.byDefault
		}
		if *f.value < 0 || *f.value > 24*time.Hour {
			return c, fmt.Errorf("pgyield: fleetsim: %s is %v, must be from 0 to 24h", f.name, *f.value)
		}
	}
	if c.PollRate == 0 && c.Sessions == 0 {
		c.PollRate = 100_000
	}
	if len(c.Weights) == 0 {
		c.Weights = make([]float64, c.Members)
		for i := range c.Weights {
			c.Weights[i] = 1
		}
	}
	if len(c.Weights) != c.Members {
		return c, fmt.Errorf("pgyield: fleetsim: Weights has %d numbers, must have one for each of the %d members", len(c.Weights), c.Members)
	}
	for i, w := range c.Weights {
		if math.IsNaN(w) || w < 0 || math.IsInf(w, 0) {
			return c, fmt.Errorf("pgyield: fleetsim: Weights[%d] is %v, must be a finite number of at least 0", i, w)
		}
	}
	for _, change := range c.Changes {
		if change.Member < 0 || change.Member >= c.Members {
			return c, fmt.Errorf("pgyield: fleetsim: a change is of member %d, must be from 0 to %d", change.Member, c.Members-1)
		}
	}
	return c, nil
}
