package bulkhead

import (
	"math"
	"math/bits"
	"time"
)

// Overdraft is why a read goes above the limit.
type Overdraft int

const (
	// StallSlot: all running permits are idle, so their holders may be waiting for the
	// very reads that wait behind them.
	StallSlot Overdraft = iota
	// BusyStall: nothing moved for long, so a running read may be waiting for
	// something (a lock) that a waiting program holds.
	BusyStall
)

// String returns the overdraft's name.
func (o Overdraft) String() string {
	if o == BusyStall {
		return "busy_stall"
	}
	return "stall_slot"
}

const (
	maxBusyWait = 60 * time.Second
	// maxStallSlots is how deep stalls can nest: rows open inside rows inside rows.
	maxStallSlots = 62
	// turnAfter is how many StallAfter the stalled permits must make no progress,
	// while others use their slot, before an older waiter has it.
	turnAfter = 3
	never     = time.Duration(math.MaxInt64)
)

// stalls is the state of the two ways above the limit.
//
// A stall slot opens for the newest waiter: of the reads that wait, the nested one came
// last, after its holder had got its permit. It then stays for reads that arrive, which
// are the next nested ones. Older waiters do not take it, for they would mostly be
// further loops, and the next to stall. When a permit that was stalled as the slot
// opened is given back, the slot closes: the limit works again.
//
// If the slot's own read stalls too (rows inside rows), another opens above it. Slots
// are numbered from 1 in the order of opening, and a permit notes the first that opened
// while it was stalled; giving it back closes that one and those above.
//
// The nested read need not be the newest: an unrelated one may have come after it. So
// when the slot lies unused for StallAfter, or when the stalled permits make no progress
// while arrivals keep taking it, the waiters have it in turn, from newer to older.
type stalls struct {
	open int    // slots that exist
	held uint64 // bit n: slot n is taken

	freed     time.Duration // when a slot was last given back
	turn      bool          // the next use is an older waiter's, not an arrival's
	lastTurn  time.Duration
	cursor    *waiter // the next older waiter to have it
	usedUntil uint64  // arrivals up to this one were there when a slot was last taken

	busyWait time.Duration // what BusyStall has grown to
	askAfter [2]time.Duration

	timer *time.Timer
	armed bool
}

// free returns the lowest slot that is not taken, or 0.
func (s *stalls) free() int {
	if n := bits.TrailingZeros64(^(s.held | 1)); n <= s.open {
		return n
	}
	return 0
}

func (s *stalls) take(slot int, seq uint64) {
	s.held |= 1 << slot
	s.usedUntil = seq
}

// passOver keeps the cursor on a read that still waits.
func (s *stalls) passOver(w *waiter) {
	if s.cursor == w {
		s.cursor = older(w)
	}
}

func older(w *waiter) *waiter {
	if w.inQueue.prev == nil {
		return nil
	}
	return w.inQueue.prev.owner
}

// openFor reports whether a read that arrives may have a stall slot.
func (b *Bulkhead) openFor() bool {
	return b.mode == Enforce && b.closed == nil && !b.stalls.turn && b.stalls.free() != 0
}

// leaveStall undoes what a permit that is given back meant to the stall slots.
func (b *Bulkhead) leaveStall(s *slot, now time.Duration) {
	if s.stall != 0 {
		b.stalls.held &^= 1 << s.stall
		b.stalls.freed = now
	}
	if s.level != 0 {
		b.closeSlots(s.level - 1)
	}
}

// closeSlots closes the slots above keep. Reads in them run on as any other.
func (b *Bulkhead) closeSlots(keep int) {
	if b.stalls.open <= keep {
		return
	}
	b.stalls.open = keep
	b.stalls.held &= 1<<(keep+1) - 1
	if keep == 0 {
		b.stalls.turn, b.stalls.cursor, b.stalls.usedUntil = false, nil, 0
	}
	for n := b.permits.front; n != nil; n = n.next {
		s := n.owner
		if s.level > keep {
			s.level = 0
		}
		if s.stall > keep {
			s.stall = 0
		}
	}
}

// openSlot returns a slot for a stalled gate: one that is free, else a new one, which
// all permits that run now are stalled below.
func (b *Bulkhead) openSlot() int {
	if slot := b.stalls.free(); slot != 0 {
		return slot
	}
	b.stalls.open++
	for n := b.permits.front; n != nil; n = n.next {
		if n.owner.level == 0 {
			n.owner.level = b.stalls.open
		}
	}
	return b.stalls.open
}

// slotDue returns when a stall slot is due at the earliest: when all running permits
// will have been idle for StallAfter, those now busy counted as idle from now.
func (b *Bulkhead) slotDue(now time.Duration) time.Duration {
	if b.resting() {
		return never
	}
	due := b.stalls.askAfter[StallSlot]
	free := b.stalls.free() != 0
	switch {
	case free && !b.stalls.turn:
		due = max(due, b.stalls.freed+b.stallAfter)
	case !free && b.stalls.open >= maxStallSlots:
		return never
	}
	for n := b.permits.front; n != nil; n = n.next {
		since, idle := n.owner.idleSince(now)
		if !idle {
			since = now
		}
		due = max(due, since+b.stallAfter)
	}
	return due
}

// busyDue returns when a busy stall is due at the earliest.
func (b *Bulkhead) busyDue() time.Duration {
	wait := b.stalls.busyWait
	if b.resting() {
		wait = max(wait, maxBusyWait)
	}
	return max(max(b.lastMove, b.waitingSince)+wait, b.stalls.askAfter[BusyStall])
}

// watchProgress gives older waiters a turn at the slot when it is in use while none of
// the permits that it opened for moves.
func (b *Bulkhead) watchProgress(now time.Duration) {
	if b.stalls.open == 0 || b.stalls.turn || now-b.stalls.lastTurn < b.stallAfter {
		return
	}
	for n := b.permits.front; n != nil; n = n.next {
		if n.owner.level == 0 {
			continue
		}
		if since, idle := n.owner.idleSince(now); !idle || now-since < turnAfter*b.stallAfter {
			return
		}
	}
	b.stalls.turn = true
}

// arm sees to it that the stalls are looked after while reads wait. The timer is set to
// the earliest moment at which one can be due and set again from there, so waiting and
// releasing do not pay for it. A permit given back while the limit is passed can make a
// stall due earlier than the timer: that one is noticed up to StallAfter late.
func (b *Bulkhead) arm(now time.Duration) {
	if b.all.n == 0 || b.closed != nil {
		return
	}
	if b.stalls.armed && (!b.stalls.turn || b.stalls.free() == 0) {
		return
	}
	due := min(b.slotDue(now), b.busyDue())
	if due <= now {
		due = now + time.Millisecond // only after a refused or vanished candidate
	}
	b.stalls.armed = true
	if b.stalls.timer == nil {
		b.stalls.timer = time.AfterFunc(due-now, b.onTimer)
		return
	}
	b.stalls.timer.Reset(due - now)
}

// onTimer grants the overdraft that is due, if any, and sets the timer again.
func (b *Bulkhead) onTimer() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.advance(b.now())
	if kind, due := b.overdraftDue(now); due {
		if b.mayOverdraw != nil {
			permits := b.permits.n
			b.mu.Unlock()
			may := b.mayOverdraw(kind, permits)
			b.mu.Lock()
			now = b.advance(b.now())
			var still Overdraft
			if still, due = b.overdraftDue(now); still != kind {
				due = false // it is asked for by itself when the timer fires next
			}
			if !may {
				due = false
				b.stalls.askAfter[kind] = now + b.stallAfter
			}
		}
		if due {
			b.overdraw(kind, now)
		}
	}
	b.stalls.armed = false
	b.arm(now)
}

// overdraftDue returns the overdraft that is due now.
func (b *Bulkhead) overdraftDue(now time.Duration) (Overdraft, bool) {
	if b.mode != Enforce || b.closed != nil || b.all.n == 0 {
		return 0, false
	}
	b.watchProgress(now)
	if b.slotDue(now) <= now {
		return StallSlot, true
	}
	return BusyStall, b.busyDue() <= now
}

// overdraw lets one waiter go above the limit.
func (b *Bulkhead) overdraw(kind Overdraft, now time.Duration) {
	if kind == BusyStall {
		// In the fair order: any waiter may be the one, and so each has its turn.
		for b.all.n > 0 {
			if w := b.next(); !b.gaveUp(w, now) {
				b.busyStalls++
				b.stalls.busyWait = min(2*b.stalls.busyWait, max(maxBusyWait, b.busyStall))
				b.grantWaiter(w, 0, now)
				return
			}
		}
		return
	}
	for b.all.n > 0 {
		w := b.stalledWaiter()
		if b.gaveUp(w, now) {
			continue
		}
		if b.stalls.turn {
			b.stalls.turn, b.stalls.lastTurn = false, now
		}
		slot := b.openSlot()
		b.stalls.take(slot, b.seq)
		b.stalls.cursor = older(w)
		b.stallSlots++
		b.grantWaiter(w, slot, now)
		return
	}
}

// stalledWaiter returns the waiter that a stall slot is for: the newest if it came after
// the slot was last taken, else the one next older than the last that had it.
func (b *Bulkhead) stalledWaiter() *waiter {
	newest := b.all.back.owner
	if b.stalls.cursor == nil || !b.stalls.turn && newest.seq > b.stalls.usedUntil {
		return newest
	}
	return b.stalls.cursor
}
