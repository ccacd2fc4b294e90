package bulkhead

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pgyield/pgyield/demerit"
)

// maxCost bounds costs and limits, so that no sum of them overflows. More counts as
// this much.
const maxCost = 1 << 30

// Bulkhead limits how much cost runs at once. Make one with [New].
type Bulkhead struct {
	// These never change:
	base        time.Time // the clock's zero; carries a monotonic reading
	maxPermits  int
	maxWaiting  int
	maxWait     time.Duration
	window      time.Duration
	stallAfter  time.Duration
	busyStall   time.Duration
	mayOverdraw func(Overdraft, int) bool
	maxCallers  int
	policy      demerit.Policy
	waiters     sync.Pool // of *waiter, whose goroutines are done with them

	// mu guards everything below and is held only for arithmetic.
	mu     sync.Mutex
	clock  time.Duration // the latest time seen
	mode   Mode
	closed error

	limit, floor, start, ceiling int  // all 0: paused
	ceilingFollows               bool // no ceiling was given
	probe                        probe
	pause                        pause

	running int        // cost
	permits list[slot] // that run
	free    []*slot
	held    bool // in this period the limit held a read back

	accounts
	queue
	stalls stalls
	counters

	lastMove     time.Duration // when a permit was last granted or given back
	waitingSince time.Duration // when the queue was last empty
}

// New returns a Bulkhead in mode [Enforce], or an error that names the option out of
// range, its value and its bound.
func New(options Options) (*Bulkhead, error) {
	o, err := options.validated()
	if err != nil {
		return nil, err
	}
	b := &Bulkhead{
		base:        time.Now(),
		maxPermits:  o.MaxPermits,
		maxWaiting:  o.MaxWaiting,
		maxWait:     o.MaxWait,
		window:      o.Window,
		stallAfter:  o.StallAfter,
		busyStall:   o.BusyStall,
		mayOverdraw: o.MayOverdraw,
		maxCallers:  o.MaxCallers,
		policy:      o.Demerit,

		limit:          min(o.Limit, maxCost),
		floor:          min(o.Floor, maxCost),
		start:          min(o.Limit, maxCost),
		ceiling:        min(o.Ceiling, maxCost),
		ceilingFollows: options.Ceiling == 0,
	}
	b.byName = map[string]*account{}
	b.overflow = newAccount(Overflow)
	b.stalls.busyWait = o.BusyStall
	return b, nil
}

// now is the monotonic time since the bulkhead was made. Steps of the wall clock do
// not move it.
func (b *Bulkhead) now() time.Duration { return time.Since(b.base) }

// Acquire takes a permit of the given cost for a caller and waits for it if it must.
// The caller is any string; "" is a caller as any other. A cost above the limit counts
// as the whole limit; less than 1 is an error.
//
// It returns a [*RefusedError] if the read was refused, an error that wraps ctx.Err()
// if the context ended first, and Close's cause after [Bulkhead.Close]. Whatever the
// error, no permit is held and no SQL was sent.
func (b *Bulkhead) Acquire(ctx context.Context, caller string, cost int) (Permit, error) {
	if cost < 1 {
		return Permit{}, costError(cost)
	}
	if err := ctx.Err(); err != nil {
		return Permit{}, &contextError{err: err}
	}
	now := b.now()
	b.mu.Lock()
	may := unasked
	if b.mayOverdraw == nil {
		may = allowed
	}
	d := b.admit(ctx, caller, cost, now, b.maxWaiting >= 0, may)
	if d.ask {
		permits := b.permits.n
		b.mu.Unlock()
		may = denied
		if b.mayOverdraw(StallSlot, permits) {
			may = allowed
		}
		now = b.now()
		b.mu.Lock()
		d = b.admit(ctx, caller, cost, now, true, may)
	}
	b.mu.Unlock()
	if d.waiter == nil {
		return d.permit, d.err
	}
	return b.wait(ctx, d.waiter)
}

// TryAcquire is [Bulkhead.Acquire] that refuses the read where Acquire would wait.
func (b *Bulkhead) TryAcquire(caller string, cost int) (Permit, error) {
	if cost < 1 {
		return Permit{}, costError(cost)
	}
	now := b.now()
	b.mu.Lock()
	d := b.admit(context.Background(), caller, cost, now, false, denied)
	b.mu.Unlock()
	return d.permit, d.err
}

func costError(cost int) error {
	return fmt.Errorf("pgyield: bulkhead: cost is %d: want at least 1; no SQL was sent", cost)
}

// decision is what becomes of a read that arrives: a permit, a place in the queue, an
// error, or, with ask, the question whether it may go above the limit.
type decision struct {
	permit Permit
	waiter *waiter
	err    error
	ask    bool
}

// answer is what MayOverdraw says to a read that would take a stall slot as it arrives.
type answer int

const (
	unasked answer = iota
	allowed
	denied
)

// admit decides on a read that arrives.
func (b *Bulkhead) admit(ctx context.Context, caller string, cost int, now time.Duration, mayWait bool, may answer) (d decision) {
	now = b.advance(now)
	if b.closed != nil {
		d.err = b.closed
		return d
	}
	cost = min(cost, maxCost)
	fits := b.all.n == 0 && b.fits(cost) && b.fewer()
	slot := 0
	if !fits && mayWait && b.openFor() {
		switch may {
		case unasked:
			d.ask = true
			return d
		case denied:
			b.stalls.askAfter[StallSlot] = now + b.stallAfter
		case allowed:
			slot = b.stalls.free()
			b.stalls.take(slot, b.seq)
			b.stallSlots++
		}
	}
	if !fits && b.mode != Off {
		b.held = true
	}
	a := b.touch(caller, now)
	switch {
	case b.mode != Enforce, slot != 0, fits && (mayWait || !b.capped(a, b.charged(cost), now)):
		d.permit = b.grant(a, cost, slot, now)
		if a.waiting.n > 0 {
			b.place(a, now)
		}
	case fits:
		d.err = b.refuse(a, ReasonCap, cost, now)
	case !mayWait:
		d.err = b.refuse(a, ReasonLimit, cost, now)
	case !b.makeRoom(a, now):
		d.err = b.refuse(a, ReasonQueueFull, cost, now)
	default:
		d.waiter = b.enqueue(ctx, a, cost, now)
		b.dispatch(now) // the read that made room may have stood in the way
		b.arm(now)
	}
	return d
}

// fewer reports whether fewer permits run than may.
func (b *Bulkhead) fewer() bool { return b.maxPermits == 0 || b.permits.n < b.maxPermits }

// wait waits until w is settled or its time is over.
func (b *Bulkhead) wait(ctx context.Context, w *waiter) (Permit, error) {
	settled := false
	var timeout <-chan time.Time
	if b.maxWait > 0 {
		if w.timer == nil {
			w.timer = time.NewTimer(b.maxWait)
		} else {
			w.timer.Reset(b.maxWait)
		}
		timeout = w.timer.C
	}
	select {
	case <-w.ready:
		settled = true
	case <-ctx.Done():
		b.giveUp(w, func(now time.Duration) { b.abandon(w, ctx.Err(), now) })
	case <-timeout:
		b.giveUp(w, func(now time.Duration) { b.refuseWaiter(w, ReasonMaxWait, now) })
	}
	if !settled {
		<-w.ready
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	permit, err, since := w.permit, w.err, w.since
	w.account, w.ctx, w.permit, w.err = nil, nil, Permit{}, nil
	b.waiters.Put(w)
	if err == nil && ctx.Err() != nil {
		// The grant and the context's end raced. A read whose context is done must not
		// run, and the next one can.
		permit.Release()
		return Permit{}, &contextError{err: ctx.Err(), waited: b.now() - since}
	}
	return permit, err
}

// giveUp settles w by the given means unless it is settled already, and lets in who
// waited behind it.
func (b *Bulkhead) giveUp(w *waiter, by func(now time.Duration)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.inQueue.in == nil {
		return
	}
	now := b.advance(b.now())
	by(now)
	b.dispatch(now)
	b.arm(now)
}
