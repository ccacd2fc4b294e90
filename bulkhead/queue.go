package bulkhead

import (
	"context"
	"errors"
	"time"
)

// waiter is a read that waits. It is in the queue until it is settled: granted,
// refused, or given up. All that is decided under the lock, so a grant and a cancel
// cannot both win. Afterwards only its own goroutine looks at it.
type waiter struct {
	account *account
	ctx     context.Context
	cost    int
	seq     uint64 // arrival number
	since   time.Duration

	inCaller node[waiter] // in account.waiting
	inQueue  node[waiter] // in queue.all

	ready  chan struct{} // holds one token once the read is settled
	permit Permit
	err    error
	timer  *time.Timer // for MaxWait
}

// queue is the reads that wait, and the order in which they go.
type queue struct {
	all  list[waiter] // in the order of arrival
	seq  uint64
	cost int64

	// head was chosen to go next and does not fit yet. It keeps its place, whoever
	// comes, so that it waits for no more than the reads that run now.
	head *waiter

	turn accountHeap[byTurn] // callers with waiting reads that are not penalised
	last accountHeap[byLast] // and those that are
	over accountHeap[byOver] // both, for who makes room in a full queue; else empty
}

// earlier is the order among callers: the least running cost, then the first to come.
// Callers under their share come before those at or over it by the same comparison,
// for the share is the same for all.
func earlier(a, b *account) bool {
	if a.running != b.running {
		return a.running < b.running
	}
	return a.firstSeq < b.firstSeq
}

type byTurn struct{}

func (byTurn) before(a, b *account) bool { return earlier(a, b) }
func (byTurn) place(a *account) *int32   { return &a.inTurn }

type byLast struct{}

func (byLast) before(a, b *account) bool { return earlier(a, b) }
func (byLast) place(a *account) *int32   { return &a.inLast }

type byOver struct{}

func (byOver) before(a, b *account) bool {
	x, y := a.besidesNewest(), b.besidesNewest()
	if x != y {
		return x > y
	}
	return a.waiting.back.owner.seq > b.waiting.back.owner.seq
}
func (byOver) place(a *account) *int32 { return &a.inOver }

// besidesNewest is the demand of a without its newest waiter: at or over the share,
// that waiter is what takes the caller past it.
func (a *account) besidesNewest() int64 {
	return a.demand() - int64(a.waiting.back.owner.cost)
}

// enqueue makes a read of a wait.
func (b *Bulkhead) enqueue(ctx context.Context, a *account, cost int, now time.Duration) *waiter {
	w, _ := b.waiters.Get().(*waiter)
	if w == nil {
		w = &waiter{ready: make(chan struct{}, 1)}
		w.inCaller.owner, w.inQueue.owner = w, w
	}
	b.seq++
	w.account, w.ctx, w.cost, w.seq, w.since = a, ctx, cost, b.seq, now
	if b.all.n == 0 {
		b.waitingSince = now
	}
	a.waiting.pushBack(&w.inCaller)
	b.all.pushBack(&w.inQueue)
	a.queued += int64(cost)
	b.queue.cost += int64(cost)
	if !a.starving {
		a.starving, a.unserved = true, now
	}
	b.place(a, now)
	return w
}

// settle takes w out of the queue with its outcome and wakes its goroutine.
func (b *Bulkhead) settle(w *waiter, permit Permit, err error, now time.Duration) {
	a := w.account
	if b.head == w {
		b.head = nil
	}
	b.stalls.passOver(w)
	w.inCaller.leave()
	w.inQueue.leave()
	a.queued -= int64(w.cost)
	b.queue.cost -= int64(w.cost)
	w.permit, w.err = permit, err
	b.place(a, now)
	w.ready <- struct{}{} // has room: a read is settled once
}

// place files a caller where its running cost, its first waiter and its penalty say.
func (b *Bulkhead) place(a *account, now time.Duration) {
	if a.waiting.n == 0 {
		a.lifted, a.passed = false, 0
		b.turn.remove(a)
		b.last.remove(a)
		b.over.remove(a)
		b.due.remove(a)
		if !a.busy() {
			b.rest(a, now)
		}
		return
	}
	a.firstSeq = a.waiting.front.owner.seq
	if b.maxWaiting > 0 {
		b.over.put(a)
	}
	if !b.penalised(a, now) || a.lifted || b.starved(a, now) {
		b.last.remove(a)
		b.due.remove(a)
		b.turn.put(a)
		return
	}
	b.turn.remove(a)
	b.last.put(a)
	a.dueAt = a.score.PenalisedUntil(b.policy).Sub(b.base)
	if a.running == 0 {
		a.dueAt = min(a.dueAt, a.unserved+b.policy.MaxDuration)
	}
	a.dueAt = max(a.dueAt, now+1)
	b.due.put(a)
}

// starved reports whether a penalised caller has had nothing for as long as a penalty
// can last. Then it has its turn once: going last must not mean never, and a caller
// whose reads run into their deadlines unserved renews its own penalty.
func (b *Bulkhead) starved(a *account, now time.Duration) bool {
	return a.running == 0 && a.starving && now-a.unserved >= b.policy.MaxDuration
}

// liftTurns is how often, in limits, callers at or over their share may go before a
// penalised one below its own. Then it has its turn by running cost as any other, until
// none of its reads wait.
//
// Two equal callers that together want more than there is both run into deadlines, and
// both are penalised. The first to be free again would otherwise have all it wants, be
// denied nothing, and so keep the other penalised for as long as the load lasts.
const liftTurns = 2

// passOver notes that a waiter of a goes before the penalised callers.
func (b *Bulkhead) passOver(a *account, now time.Duration) {
	if a.inTurn == 0 || b.last.len() == 0 {
		return
	}
	share, first := b.share(), b.last.first()
	if a.running < share || first.running >= share {
		return
	}
	if first.passed++; first.passed >= liftTurns*b.whole() {
		first.passed, first.lifted = 0, true
		b.place(first, now)
	}
}

// next returns the waiter that goes next.
func (b *Bulkhead) next() *waiter {
	switch {
	case b.head != nil:
		return b.head
	case b.turn.len() > 0:
		return b.turn.first().waiting.front.owner
	default:
		return b.last.first().waiting.front.owner
	}
}

// dispatch grants permits while the next waiter fits.
func (b *Bulkhead) dispatch(now time.Duration) {
	for b.all.n > 0 && b.running < b.room() && b.fewer() {
		w := b.next()
		switch {
		case b.gaveUp(w, now):
		case b.fits(w.cost):
			b.passOver(w.account, now)
			b.grantWaiter(w, 0, now)
		default:
			b.head = w
			return
		}
	}
}

// grantWaiter gives w a permit; slot is the stall slot it takes, if any.
func (b *Bulkhead) grantWaiter(w *waiter, slot int, now time.Duration) {
	permit := b.grant(w.account, w.cost, slot, now)
	b.waited++
	b.waits.observe(now - w.since)
	b.settle(w, permit, nil, now)
}

// gaveUp settles w without a permit if its time is over. Its own goroutine would do
// the same, but may not have run yet.
func (b *Bulkhead) gaveUp(w *waiter, now time.Duration) bool {
	if err := w.ctx.Err(); err != nil {
		b.abandon(w, err, now)
		return true
	}
	if b.maxWait > 0 && now-w.since >= b.maxWait {
		b.refuseWaiter(w, ReasonMaxWait, now)
		return true
	}
	return false
}

// abandon settles a waiter whose context is done.
func (b *Bulkhead) abandon(w *waiter, err error, now time.Duration) {
	a := w.account
	b.abandoned++
	b.settle(w, Permit{}, &contextError{err: err, waited: now - w.since}, now)
	if errors.Is(err, context.DeadlineExceeded) {
		b.charge(a, now)
	}
}

// makeRoom reports whether a full queue has room for a read of a, after the newest
// waiter of the caller most over its share has gone for it.
func (b *Bulkhead) makeRoom(a *account, now time.Duration) bool {
	if b.maxWaiting <= 0 || b.all.n < b.maxWaiting {
		return true
	}
	share := int64(b.share())
	if a.demand() >= share {
		return false
	}
	worst := b.over.first()
	if worst.besidesNewest() < share {
		return false
	}
	b.refuseWaiter(worst.waiting.back.owner, ReasonEvicted, now)
	return true
}
