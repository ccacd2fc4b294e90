package pgyield

import (
	"sync"
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
// The last connection never goes to a read while a call without a permit waits for one,
// and else only to end a stall that nothing else can: when no writes flow, or when nothing
// has moved for as long as lastConn asks.
func (p *Pool) mayOverdraw(kind bulkhead.Overdraft, permits int) bool {
	free := p.maxConns - permits
	switch {
	case free < 1:
		return false
	case free > 1:
		return true
	case p.traffic.waiting.Load() > 0:
		return false
	case p.traffic.quiet():
		return true
	default:
		s := p.bulkhead.Stat()
		return p.last.may(kind, s.Admitted+s.Released, sinceStart())
	}
}

// lastConn says when a read may have the last connection although writes flow.
//
// Where all that run are idle, they may be slow consumers of rows, who move on by
// themselves, or loops that wait for the reads inside them, who do not. A stall slot
// therefore waits for BusyStall once; after it, the reads inside the loops, which follow
// each other closely, have the connection at once. Where they are at work, they are long
// queries far more often than the victims of a lock whose holder waits for a permit (it
// would have to hold it outside of this pool, of which they have all connections but one).
type lastConn struct {
	idleFor time.Duration // how long nothing must have moved, where all are idle

	mu    sync.Mutex
	moves uint64        // permits granted and given back, as of the last question
	since time.Duration // when that was first seen
	until time.Duration // until when loops have it at once; 0: they have not had it yet
}

// busyFor is how long nothing must have moved, where those that run are at work.
const busyFor = time.Minute

func (l *lastConn) may(kind bulkhead.Overdraft, moves uint64, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if moves != l.moves {
		l.moves, l.since = moves, now
	}
	if kind == bulkhead.BusyStall {
		return now-l.since >= max(busyFor, l.idleFor)
	}
	may := l.until != 0 && now < l.until || now-l.since >= l.idleFor
	if may {
		l.until = now + l.idleFor
	}
	return may
}
