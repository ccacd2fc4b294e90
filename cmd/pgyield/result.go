package main

import (
	"math"
	"slices"
	"time"
)

// The phases of the demo, in their order.
const (
	phaseIdle  = "no reads"
	phasePlain = "pgxpool"
	phaseYield = "pgyield"
)

// result is what the demo saw. All times in it count from Begun.
type result struct {
	Server               string
	Rate, Readers, Conns int
	Lead, Settle         time.Duration // see the flags
	Begun                time.Time
	Phases               []*phase
	Samples              []serverSample
}

// phase is one load on one pool.
type phase struct {
	Name      string
	From, To  time.Duration
	Lead      time.Duration // reads join after it
	Writes    []work
	Reads     []work
	Refused   []time.Duration // when reads were refused
	Gauges    []gauge
	Decisions []decision // that moved the limit
	Errors    int
	FirstErr  error // of Errors
}

// decision is a move of the limit.
type decision struct {
	At     time.Duration `json:"at"`
	From   int           `json:"from"`
	To     int           `json:"to"`
	Reason string        `json:"reason"`
	when   time.Time
}

// work is one write or read that was begun.
type work struct {
	Begun time.Duration // for a write: when it should have begun
	Took  time.Duration // since then, the wait for a connection included
	Done  bool          // false: it was still running when the phase was over
}

// gauge is the state at one moment.
type gauge struct {
	At             time.Duration
	WritesInFlight int
	Gate           *gate // nil for plain pgxpool
}

// gate is what pgyield says of its limit.
type gate struct {
	Limit, Running, Waiting int
	Pressing                bool
}

// serverSample is what a poll of the server says.
type serverSample struct {
	At          time.Duration
	WALSyncMean time.Duration // over the last two seconds; 0: unknown or no sync
}

// row is a line of the table.
type row struct {
	Phase         string
	P50, P95, P99 time.Duration
	AtLeast       bool    // writes were still running at the end: P99 may be higher
	WriteRate     float64 // ended a second since the reads joined: later, a backlog
	// that is worked off would make it more than was asked for
	ReadRate   float64
	Refused    int
	Path       []int // the limit's values, one after the other; nil for plain pgxpool
	Unfinished int
	Errors     int
}

// summary reduces a phase to its row, less its lead and the settle time.
func (p *phase) summary(settle time.Duration) row {
	joined := p.From + p.Lead
	from := joined + settle
	r := row{Phase: p.Name, Errors: p.Errors}
	var took []time.Duration
	writes := 0
	for _, w := range p.Writes {
		end := w.Begun + w.Took
		if w.Done && end >= joined && end < p.To {
			writes++
		}
		if w.Begun < from {
			continue
		}
		took = append(took, w.Took)
		if !w.Done {
			r.Unfinished++
		}
	}
	slices.Sort(took)
	r.P50, r.P95, r.P99 = quantile(took, 0.5), quantile(took, 0.95), quantile(took, 0.99)
	r.AtLeast = r.Unfinished > 0
	r.WriteRate = float64(writes) / (p.To - joined).Seconds()
	reads := 0
	for _, w := range p.Reads {
		if end := w.Begun + w.Took; w.Done && end >= from && end < p.To {
			reads++
		}
	}
	r.ReadRate = float64(reads) / (p.To - from).Seconds()
	for _, at := range p.Refused {
		if at >= from {
			r.Refused++
		}
	}
	r.Path = p.path()
	return r
}

// path is the limit over the whole phase, equal neighbours merged.
func (p *phase) path() []int {
	var path []int
	for _, g := range p.Gauges {
		if g.Gate == nil {
			continue
		}
		if len(path) == 0 || path[len(path)-1] != g.Gate.Limit {
			path = append(path, g.Gate.Limit)
		}
	}
	return path
}

// quantile is the smallest of the sorted values that at least the share q does
// not exceed; 0 when there is none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
