package bulkhead

import "time"

// Limit returns how much cost may run at once, 0 in a pause.
func (b *Bulkhead) Limit() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit
}

// Bounds returns the floor and the ceiling of the limit and what it started with.
func (b *Bulkhead) Bounds() (floor, start, ceiling int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.floor, b.start, b.ceiling
}

// SetLimit moves the limit, within floor and ceiling. Lowering it cancels nothing, and
// nothing is let in until what runs fits again; raising it lets in every waiter that
// now fits. With no ceiling given, a higher limit raises the ceiling.
func (b *Bulkhead) SetLimit(limit int) {
	b.change(func(time.Duration) { b.setLimit(limit) })
}

// setLimit moves the limit, within floor and ceiling, and ends a probe.
func (b *Bulkhead) setLimit(limit int) {
	limit = min(limit, maxCost)
	if b.ceilingFollows {
		b.ceiling = max(b.ceiling, limit)
	}
	b.limit, b.probe = min(max(limit, b.floor), b.ceiling), probe{}
}

// SetBounds sets the floor, the start and the ceiling, and moves the limit between
// them. It returns an error, and changes nothing, unless 1 <= floor <= start <= ceiling
// or all three are 0, which pauses the bulkhead until they are set again.
func (b *Bulkhead) SetBounds(floor, start, ceiling int) error {
	if floor != 0 || start != 0 || ceiling != 0 {
		if err := checkBounds(floor, start, "Start", ceiling); err != nil {
			return err
		}
	}
	b.change(func(now time.Duration) {
		b.setPause(ceiling == 0, now)
		b.floor, b.start, b.ceiling = min(floor, maxCost), min(start, maxCost), min(ceiling, maxCost)
		b.ceilingFollows = false
		if b.limit < b.floor || b.limit > b.ceiling {
			b.setLimit(b.limit)
		}
	})
	return nil
}

// Mode returns the mode.
func (b *Bulkhead) Mode() Mode {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mode
}

// SetMode switches the mode, at once and while reads run. Leaving [Enforce], waiting
// reads go; entering it, what runs counts, and nothing is let in until it fits. A mode
// that does not exist is taken for Enforce.
func (b *Bulkhead) SetMode(mode Mode) {
	if mode != Shadow && mode != Off {
		mode = Enforce
	}
	b.change(func(now time.Duration) {
		b.mode = mode
		if mode == Enforce {
			return
		}
		b.closeSlots(0)
		for b.all.n > 0 {
			if w := b.next(); !b.gaveUp(w, now) {
				b.grantWaiter(w, 0, now)
			}
		}
	})
}

// change changes what decides who runs, and lets in who now fits.
func (b *Bulkhead) change(how func(now time.Duration)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.advance(b.now())
	how(now)
	b.dispatch(now)
	b.arm(now)
}

// EndPeriod reports whether reads contended since it was last called, and starts the
// next period: the limit held a read back (it waited, or was refused), or reads now
// wait or run at the limit. A refusal by a caller's own cap is not contention. In mode
// [Shadow] a read counts as held back that Enforce would have held back; in [Off]
// nothing contends.
func (b *Bulkhead) EndPeriod() (contended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	contended = b.mode != Off && (b.held || b.all.n > 0 || b.running >= b.whole() || !b.fewer())
	b.held = b.all.n > 0 // those have begun to wait in the next period too
	return contended
}

// Close ends the queue: every waiting and every later read gets cause, or [ErrClosed]
// if it is nil. Permits that run are given back as ever. Only the first call counts.
func (b *Bulkhead) Close(cause error) {
	if cause == nil {
		cause = ErrClosed
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed != nil {
		return
	}
	now := b.advance(b.now())
	b.closed = cause
	if b.stalls.timer != nil {
		b.stalls.timer.Stop()
	}
	for b.all.n > 0 {
		b.settle(b.all.front.owner, Permit{}, cause, now)
	}
}
