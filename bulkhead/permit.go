package bulkhead

import (
	"sync/atomic"
	"time"
)

// Permit is the right of one read to run. It is a small value to be copied freely; all
// copies are the same permit. The zero Permit is none: its methods do nothing.
type Permit struct {
	slot *slot
	gen  uint64
}

// slot is the state of one running permit. Slots are used again; gen tells a permit
// from earlier ones of the same slot, so that a late or second Release is harmless.
type slot struct {
	bulkhead *Bulkhead // never changes

	// activity is read and written without the lock. From the top: 20 bits of gen; 5
	// bits that count the Idle calls that read the clock; 1 bit: idle; 38 bits: since
	// when, in µs since the bulkhead was made, modulo 2^38, 0: not known.
	activity atomic.Uint64

	// Guarded by the bulkhead's lock:
	gen     uint64
	account *account
	cost    int
	granted time.Duration
	level   int // stalled since this stall slot opened; 0: not known to be stalled
	stall   int // the stall slot that it is in; 0: none
	running node[slot]
}

const (
	stampBits = 38
	stampMask = 1<<stampBits - 1
	idleBit   = 1 << stampBits
	readsOne  = 1 << (stampBits + 1)
	readsMax  = 31 * readsOne
	// stampsAhead is how far, in µs, a stamp may be ahead of the time that it is
	// compared with: goroutines read the clock before they take the lock.
	stampsAhead = 60_000_000

	genShift = 44
	genMask  = 1<<(64-genShift) - 1
)

// Release gives the permit back. Only the first call does.
func (p Permit) Release() {
	if p.slot == nil {
		return
	}
	b := p.slot.bulkhead
	now := b.now()
	b.mu.Lock()
	if p.slot.gen == p.gen {
		now = b.advance(now)
		b.release(p.slot, now)
		b.arm(now)
	}
	b.mu.Unlock()
}

// Idle notes that the holder has no call in the driver in progress: it is between
// rows, between statements, or in the program's own code. Costs a few ns and takes no
// lock. A permit starts busy; Idle on an idle or released permit does nothing.
func (p Permit) Idle() {
	if p.slot == nil {
		return
	}
	stamp := uint64(0)
	for {
		old := p.slot.activity.Load()
		if old>>genShift != p.gen&genMask || old&idleBit != 0 {
			return
		}
		// Reading the clock costs more than all the rest, so a permit that goes idle
		// often (a row each time) stops doing it. Whoever looks for stalls then takes
		// it for idle from that moment on, which delays a stall slot by at most
		// StallAfter.
		next := old&^uint64(stampMask) | idleBit
		if old&readsMax < readsMax {
			if stamp == 0 {
				stamp = toStamp(p.slot.bulkhead.now())
			}
			next = (next + readsOne) | stamp
		}
		if p.slot.activity.CompareAndSwap(old, next) {
			return
		}
	}
}

// Busy notes that the holder calls the driver again. As cheap as [Permit.Idle]; does
// nothing on a busy or released permit.
func (p Permit) Busy() {
	if p.slot == nil {
		return
	}
	for {
		old := p.slot.activity.Load()
		if old>>genShift != p.gen&genMask || old&idleBit == 0 {
			return
		}
		if p.slot.activity.CompareAndSwap(old, old&^uint64(idleBit|stampMask)) {
			return
		}
	}
}

// idleSince returns since when the permit has been idle, or false if it is busy.
func (s *slot) idleSince(now time.Duration) (time.Duration, bool) {
	old := s.activity.Load()
	if old&idleBit == 0 {
		return 0, false
	}
	if old&stampMask == 0 {
		s.activity.CompareAndSwap(old, old|toStamp(now)) // else it moved, just now
		return now, true
	}
	ago := (toStamp(now) - old) & stampMask >> 1
	if ago > stampMask>>1-stampsAhead {
		ago = 0 // stamped after now was read
	}
	return now - time.Duration(ago)*time.Microsecond, true
}

// toStamp converts a time to a stamp: µs since the bulkhead was made, modulo 2^37 (38
// hours), with a 1 behind so that it is never 0.
func toStamp(now time.Duration) uint64 {
	return uint64(now/time.Microsecond)<<1&stampMask | 1
}

// grant makes a permit. Whoever calls it has decided that the read may run.
func (b *Bulkhead) grant(a *account, cost, stall int, now time.Duration) Permit {
	var s *slot
	if n := len(b.free); n > 0 {
		s, b.free = b.free[n-1], b.free[:n-1]
	} else {
		s = &slot{bulkhead: b}
		s.running.owner = s
	}
	cost = b.charged(cost)
	s.account, s.cost, s.granted, s.level, s.stall = a, cost, now, 0, stall
	b.permits.pushBack(&s.running)
	b.running += cost
	a.running += cost
	a.permits++
	a.starving = false
	b.probe.filled = b.probe.filled || b.probe.from > 0 && b.running >= b.limit
	b.admitted++
	b.lastMove = now
	return Permit{slot: s, gen: s.gen}
}

// maxFree bounds the slots kept for use again. More run only in a burst.
const maxFree = 1024

// release takes a permit back and lets in who now fits.
func (b *Bulkhead) release(s *slot, now time.Duration) {
	a := s.account
	s.gen++
	s.activity.Store(s.gen << genShift) // Idle and Busy of the old permit miss from here on
	s.running.leave()
	b.running -= s.cost
	a.running -= s.cost
	a.permits--
	if a.permits == 0 && (a.waiting.n > 0 || a.starving) {
		a.unserved = now
	}
	b.released++
	b.countHeld(now - s.granted)
	b.lastMove = now
	b.stalls.busyWait = b.busyStall
	if s.level != 0 || s.stall != 0 {
		b.leaveStall(s, now)
	}
	s.account = nil
	if len(b.free) < maxFree {
		b.free = append(b.free, s)
	}
	if a.waiting.n > 0 {
		b.place(a, now)
	} else if a.permits == 0 {
		b.rest(a, now)
	}
	a.seen = now
	if b.all.n > 0 {
		b.dispatch(now)
	}
}

// countHeld adds to what is known of how long permits are held.
func (b *Bulkhead) countHeld(held time.Duration) {
	b.heldTime += held
	if b.released == 1 {
		b.heldMean = float64(held)
		return
	}
	b.heldMean += (float64(held) - b.heldMean) / 16
}
