package bulkhead

import (
	"slices"
	"strings"
	"time"
)

// Overflow is the name in [Caller] of the account that callers share for which there is
// no place ([Options].MaxCallers).
const Overflow = "(overflow)"

// waitBounds are the buckets of waits: up to so long, in seconds.
var waitBounds = [...]float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

// counters is what a Bulkhead counts.
type counters struct {
	admitted, waited, released uint64
	abandoned                  uint64
	refused                    [len(reasons)]uint64
	stallSlots, busyStalls     uint64

	heldTime time.Duration
	heldMean float64 // ns, of the last dozen or so
	waits    waits
}

// waits is a histogram of the waits of reads that waited and were let in.
type waits struct {
	counts [len(waitBounds) + 1]uint64 // not cumulative; the last: longer than all bounds
	sum    time.Duration
}

func (w *waits) observe(waited time.Duration) {
	i, _ := slices.BinarySearch(waitBounds[:], waited.Seconds())
	w.counts[i]++
	w.sum += waited
}

// Histogram counts how long admitted reads waited, 0 for those that did not.
type Histogram struct {
	Bounds []float64 // upper bounds of the buckets, in seconds, inclusive, ascending
	Counts []uint64  // cumulative: Counts[i] reads waited at most Bounds[i]
	Count  uint64    // all admitted reads
	Sum    float64   // of all waits, in seconds
}

// Stat is a snapshot of a [Bulkhead]. The counters only grow.
type Stat struct {
	Mode                         Mode
	Limit, Floor, Start, Ceiling int

	Running int // cost of the permits that run
	Permits int // their number
	Waiting int // reads that wait

	Callers   int // accounts kept, the shared one included while it is used
	Active    int // of those: running, waiting or lately seen
	Penalised int // of those: penalised

	Admitted   uint64            // permits granted
	Waited     uint64            // of those: after a wait
	Released   uint64            // permits given back
	Refused    uint64            // reads refused
	RefusedBy  map[Reason]uint64 // the same, by reason; every reason is there
	Abandoned  uint64            // reads whose context ended while they waited
	StallSlots uint64            // reads let in above the limit by a stall slot
	BusyStalls uint64            // and by a busy stall

	HeldTime time.Duration // sum of how long the released permits were held
	Waits    Histogram
}

// Overdrafts is how many reads were let in above the limit.
func (s Stat) Overdrafts() uint64 { return s.StallSlots + s.BusyStalls }

// Stat returns a snapshot. It shares nothing with the bulkhead.
func (b *Bulkhead) Stat() Stat {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.advance(b.now())
	s := Stat{
		Mode: b.mode, Limit: b.limit, Floor: b.floor, Start: b.start, Ceiling: b.ceiling,
		Running: b.running, Permits: b.permits.n, Waiting: b.all.n,
		Callers: len(b.byName), Active: b.actives,
		Admitted: b.admitted, Waited: b.waited, Released: b.released, Abandoned: b.abandoned,
		RefusedBy:  make(map[Reason]uint64, len(reasons)),
		StallSlots: b.stallSlots, BusyStalls: b.busyStalls,
		HeldTime: b.heldTime,
	}
	if b.overflow.active || b.overflow.busy() {
		s.Callers++
	}
	for i, reason := range reasons {
		s.RefusedBy[reason] = b.refused[i]
		s.Refused += b.refused[i]
	}
	for n := b.scored.front; n != nil; {
		a := n.owner
		n = n.next
		switch value := b.value(a, now); {
		case value == 0:
			b.clear(a)
		case b.policy.Penalised(value):
			s.Penalised++
		}
	}
	s.Waits = b.histogram()
	return s
}

func (b *Bulkhead) histogram() Histogram {
	h := Histogram{
		Bounds: slices.Clone(waitBounds[:]),
		Counts: make([]uint64, len(waitBounds)),
		Count:  b.admitted,
		Sum:    b.waits.sum.Seconds(),
	}
	count := b.admitted - b.waited
	for i := range waitBounds {
		count += b.waits.counts[i]
		h.Counts[i] = count
	}
	return h
}

// Caller is a snapshot of what is known of one caller.
type Caller struct {
	Name      string
	Running   int     // cost of its permits that run
	Permits   int     // their number
	Waiting   int     // its reads that wait
	Demerit   float64 // live value
	Penalised bool
	Cap       int  // the cost that it may run before others go first
	Active    bool // running, waiting or lately seen
}

// Callers returns a snapshot of the callers that are kept, by name.
func (b *Bulkhead) Callers() []Caller {
	callers := b.callers()
	slices.SortFunc(callers, func(x, y Caller) int { return strings.Compare(x.Name, y.Name) })
	return callers
}

func (b *Bulkhead) callers() []Caller {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.advance(b.now())
	callers := make([]Caller, 0, len(b.byName)+1)
	share := b.share()
	add := func(a *account) {
		value := b.value(a, now)
		callers = append(callers, Caller{
			Name: a.name, Running: a.running, Permits: int(a.permits), Waiting: a.waiting.n,
			Demerit: value, Penalised: b.policy.Penalised(value), Cap: b.policy.Cap(share, value),
			Active: a.active,
		})
	}
	for _, a := range b.byName {
		add(a)
	}
	if b.overflow.active || b.overflow.busy() || b.value(b.overflow, now) > 0 {
		add(b.overflow)
	}
	return callers
}
