package pgyield

import (
	"sync/atomic"
	"time"

	"github.com/pgyield/pgyield/bulkhead"
)

// writesSettle is how long after the last write the pool counts as free of writes.
const writesSettle = time.Second

// traffic is what the pool knows of the calls that take no permit on their way to a
// connection. Overdrafts ask it, so that no read takes the last connection from a write.
type traffic struct {
	waiting atomic.Int64 // calls between their arrival and their connection
	running atomic.Int64 // writes on a connection that are being timed
	last    atomic.Int64 // when the last one arrived, since start; 0: none yet
}

// arrival is one such call.
type arrival struct {
	traffic *traffic
	at      time.Duration
	done    bool
}

func (t *traffic) arrive() arrival {
	now := sinceStart()
	t.last.Store(int64(now))
	t.waiting.Add(1)
	return arrival{traffic: t, at: now}
}

// served notes that the call has its connection, or has given up. Once is enough, more
// is harmless.
func (a *arrival) served() {
	if !a.done {
		a.done = true
		a.traffic.waiting.Add(-1)
	}
}

// age is the time since the call arrived.
func (a *arrival) age() time.Duration { return sinceStart() - a.at }

// quiet reports whether no write came for a while.
func (t *traffic) quiet() bool {
	last := t.last.Load()
	return last == 0 || sinceStart()-time.Duration(last) > writesSettle
}

// mayOverdraw decides whether one read above the limit may run beside the running ones.
//
// It never does while a call without a permit waits for a connection. The last
// connection goes to a read only to end a stall that nothing else can: when no writes
// flow, or, as a stall slot opens for slow consumers of rows as well as for nested
// reads, only after nothing moved for BusyStall.
func (p *Pool) mayOverdraw(kind bulkhead.Overdraft, permits int) bool {
	free := p.maxConns - permits
	switch {
	case free < 1 || p.traffic.waiting.Load() > 0:
		return false
	case free > 1:
		return true
	default:
		return kind == bulkhead.BusyStall || p.traffic.quiet()
	}
}
