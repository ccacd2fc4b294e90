package bulkhead

import (
	"math/rand/v2"
	"time"
)

// refusal makes the error for a read that is not let in, and counts it.
func (b *Bulkhead) refusal(a *account, reason Reason, cost int, waited time.Duration) *RefusedError {
	b.refused[reason.index()]++
	return &RefusedError{
		Reason: reason, Caller: a.name,
		Limit: b.limit, Running: b.running, Waiting: b.all.n,
		Waited: waited, RetryAfter: b.retryAfter(cost),
	}
}

// refuse refuses a read that has not waited.
func (b *Bulkhead) refuse(a *account, reason Reason, cost int, now time.Duration) error {
	err := b.refusal(a, reason, cost, 0)
	if !a.busy() {
		b.rest(a, now)
	}
	b.charge(a, now)
	b.wanted(a, now)
	return err
}

// refuseWaiter refuses a read that waits.
func (b *Bulkhead) refuseWaiter(w *waiter, reason Reason, now time.Duration) {
	a := w.account
	b.settle(w, Permit{}, b.refusal(a, reason, w.cost, now-w.since), now)
	b.charge(a, now)
	b.wanted(a, now)
}

// charge adds a demerit to a for a read that was denied (and is no longer counted in
// its demand), if the read would have taken it past its share while another caller is
// active. What a caller is refused below its share is not its doing, and alone it can
// harm nobody.
func (b *Bulkhead) charge(a *account, now time.Duration) {
	if b.mode != Enforce || b.actives < 2 || a.demand() < int64(b.share()) {
		return
	}
	a.score = a.score.Deny(b.policy, max(1, b.ceiling), b.time(now))
	if !a.scoring {
		a.scoring = true
		b.scored.pushBack(&a.scored)
	}
	if b.penalised(a, now) {
		a.wants.leave()
	}
	switch {
	case a.waiting.n > 0:
		b.place(a, now)
	case !a.busy(): // it was filed as one without this demerit
		b.rest(a, now)
	}
}

// wanted notes that a was refused, for [Bulkhead.capped].
func (b *Bulkhead) wanted(a *account, now time.Duration) {
	if b.penalised(a, now) {
		return // what a penalised caller wants holds nobody to a share
	}
	a.wantedAt = now
	if b.wanting.back == &a.wants {
		return
	}
	a.wants.leave()
	b.wanting.pushBack(&a.wants)
}

// capped reports whether a read that fits, but may not wait, is more than its caller
// may have running. Alone, or while nobody else wants more, a caller may borrow up to
// the limit. A caller with nothing running may always run one read.
func (b *Bulkhead) capped(a *account, cost int, now time.Duration) bool {
	return a.permits > 0 && b.othersWant(a, now) &&
		a.running+cost > b.policy.Cap(b.share(), b.value(a, now))
}

// othersWant reports whether another caller, not penalised, was refused lately. Two
// penalised callers so do not hold each other down: at equal demand above the limit
// both would be, and neither would use what is free.
func (b *Bulkhead) othersWant(a *account, now time.Duration) bool {
	for n := b.wanting.back; n != nil; n = n.prev { // at most two: a is in it once
		if now-n.owner.wantedAt >= b.window {
			return false
		}
		if n.owner != a {
			return true
		}
	}
	return false
}

const (
	firstHeld     = 100 * time.Millisecond // how long a read is taken to run before one has ended
	minRetryAfter = time.Millisecond
	maxRetryAfter = 30 * time.Second
)

// retryAfter estimates when a read of this cost that comes back would find room: the
// queue before it drains at the limit's cost per mean time that a permit is held, once a
// pause is over. The jitter keeps those that are refused together from coming back together.
func (b *Bulkhead) retryAfter(cost int) time.Duration {
	held := b.heldMean
	if held == 0 {
		held = float64(firstHeld)
	}
	rounds := float64(b.queue.cost+int64(b.charged(cost))) / float64(b.whole())
	d := min(max(held*rounds+float64(b.pause.left(b.clock)), float64(minRetryAfter)), float64(maxRetryAfter))
	return time.Duration(d * (0.75 + 0.5*rand.Float64()))
}
