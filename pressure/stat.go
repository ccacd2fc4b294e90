package pressure

import (
	"slices"
	"time"
)

// pollBounds are the upper bounds of the poll time histogram's buckets, in seconds.
var pollBounds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}

// Histogram is a snapshot of durations in seconds.
type Histogram struct {
	// Bounds are the buckets' upper bounds, Counts how many durations lie in each
	// and below the bound before it excluded; the last count has no bound.
	Bounds []float64
	Counts []uint64
	Sum    float64
}

// Count returns how many durations were recorded.
func (h Histogram) Count() uint64 {
	var n uint64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

func (h *Histogram) observe(d time.Duration) {
	if h.Counts == nil {
		h.Bounds, h.Counts = pollBounds, make([]uint64, len(pollBounds)+1)
	}
	i, _ := slices.BinarySearch(h.Bounds, d.Seconds())
	h.Counts[i]++
	h.Sum += d.Seconds()
}

// Stat is a snapshot of a [Poller].
type Stat struct {
	// PollsOK and PollsFailed count polls; one that was not attempted because the
	// poller waits before the next connect is not counted.
	PollsOK, PollsFailed uint64
	// Connects counts connections made.
	Connects uint64
	// PollTime is the round trip of the polls that succeeded.
	PollTime Histogram
	// Connected is true while the monitor holds a connection that works.
	Connected bool
	// Version, Role and Standby are those of the server last seen.
	Version int
	Role    string
	Standby bool
	// Blind is true when some signal cannot be read because the role may not see
	// other sessions; BlindSignals are their names.
	Blind        bool
	BlindSignals []string
	// Refused are the parts of the poll that the server refused.
	Refused []string
	// LastError is the last poll's error; nil when it succeeded.
	LastError error
	// MaintainError is the last error of Options.Maintain; nil when it succeeded.
	MaintainError error
}

// Stat returns a snapshot. It is safe for concurrent use, and does not wait for a
// poll in flight.
func (p *Poller) Stat() Stat {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stat
	s.PollTime.Bounds = slices.Clone(s.PollTime.Bounds)
	s.PollTime.Counts = slices.Clone(s.PollTime.Counts)
	s.BlindSignals = slices.Clone(s.BlindSignals)
	s.Refused = slices.Clone(s.Refused)
	return s
}
