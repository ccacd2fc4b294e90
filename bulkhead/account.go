package bulkhead

import (
	"math"
	"strings"
	"time"

	"github.com/pgyield/pgyield/demerit"
)

// maxName bounds the caller names that are kept, in bytes. Longer ones are told apart
// by their beginning.
const maxName = 256

// account is what is known of one caller. An account is busy (it has permits or
// waiters) or idle; idle ones are kept until their place is needed, so that demerits
// survive, and count as active callers for a while.
type account struct {
	name    string
	running int // cost
	permits int
	waiting list[waiter] // in the order of arrival
	queued  int64        // cost of those
	seen    time.Duration
	active  bool // counted among the active callers
	score   demerit.Score

	// unserved is since when a caller with waiting reads has had nothing running; it
	// means something while starving is set.
	unserved time.Duration
	starving bool

	idle     node[account] // in recent or stale
	wants    node[account] // in wanting
	scored   node[account] // in scored: its score may not be zero
	wantedAt time.Duration
	dueAt    time.Duration // when an event of this account is due
	rank     float64       // demerit rank, for keep

	inTurn, inLast, inDue, inKeep, inOver int // places in the heaps
}

// accounts is the table of callers and the orders in which they are looked for.
type accounts struct {
	byName   map[string]*account
	overflow *account // shared by the callers for which there is no place
	actives  int

	recent  list[account] // idle, active, no demerit: in the order last seen
	stale   list[account] // idle, not active, no demerit
	keep    accountHeap[byRank]
	due     accountHeap[byDue]
	wanting list[account] // not penalised and refused: in the order of that refusal
	scored  list[account]
}

type byRank struct{}

func (byRank) before(a, b *account) bool { return a.rank < b.rank }
func (byRank) place(a *account) *int     { return &a.inKeep }

type byDue struct{}

func (byDue) before(a, b *account) bool { return a.dueAt < b.dueAt }
func (byDue) place(a *account) *int     { return &a.inDue }

func newAccount(name string) *account {
	a := &account{name: name}
	a.idle.owner, a.wants.owner, a.scored.owner = a, a, a
	return a
}

// demand is what a caller has running and waiting, in cost.
func (a *account) demand() int64 { return int64(a.running) + a.queued }

func (a *account) busy() bool { return a.permits > 0 || a.waiting.n > 0 }

// time converts the bulkhead's clock for the demerit arithmetic.
func (b *Bulkhead) time(now time.Duration) time.Time { return b.base.Add(now) }

// value is the live demerit of a: the only way in which scores are read.
func (b *Bulkhead) value(a *account, now time.Duration) float64 {
	if a.scored.in == nil {
		return 0
	}
	return a.score.At(b.policy, b.time(now))
}

func (b *Bulkhead) penalised(a *account, now time.Duration) bool {
	return a.scored.in != nil && b.policy.Penalised(b.value(a, now))
}

// share is how much of the limit one active caller can have.
func (b *Bulkhead) share() int {
	n := max(1, b.actives)
	return (b.limit + n - 1) / n
}

// touch returns the account of a caller that is seen now, out of the orders of idle
// accounts; rest puts it back if it does not become busy.
func (b *Bulkhead) touch(caller string, now time.Duration) *account {
	if len(caller) > maxName {
		caller = caller[:maxName]
	}
	a := b.byName[caller]
	if a == nil {
		a = b.enrol(caller)
	}
	if a.idle.in != nil {
		a.idle.leave()
	} else if !a.busy() {
		b.keep.remove(a)
		b.due.remove(a)
	}
	a.seen = now
	if !a.active {
		a.active = true
		b.actives++
	}
	return a
}

// enrol makes an account for a new caller, in the place of an idle one if the table is
// full: one without demerit, longest unseen first, else the one with the least. Where
// all are busy, callers share one account.
func (b *Bulkhead) enrol(caller string) *account {
	var a *account
	switch {
	case len(b.byName) < b.maxCallers:
		a = newAccount(strings.Clone(caller))
	case b.stale.n > 0:
		a = b.stale.front.owner
	case b.recent.n > 0:
		a = b.recent.front.owner
	case b.keep.len() > 0:
		a = b.keep.first()
	default:
		return b.overflow
	}
	if a.idle.in != nil || a.inKeep != 0 {
		b.forget(a)
		a.name = strings.Clone(caller)
	}
	b.byName[a.name] = a
	return a
}

// forget drops what is known of an idle account.
func (b *Bulkhead) forget(a *account) {
	delete(b.byName, a.name)
	a.idle.leave()
	a.wants.leave()
	a.scored.leave()
	a.score = demerit.Score{}
	b.keep.remove(a)
	b.due.remove(a)
	b.deactivate(a)
}

func (b *Bulkhead) deactivate(a *account) {
	if a.active {
		a.active = false
		b.actives--
	}
	a.starving = false
}

// rest files an account that is no longer busy.
func (b *Bulkhead) rest(a *account, now time.Duration) {
	a.seen = now
	live := b.value(a, now) > 0
	if !live && a != b.overflow {
		b.recent.pushBack(&a.idle)
		return
	}
	if a != b.overflow { // which is never given to another caller
		a.rank = a.score.Rank(b.policy, b.base)
		b.keep.put(a)
	}
	b.scheduleIdle(a, now)
}

// scheduleIdle notes what next happens to an idle account that has a demerit (or is
// the overflow account): it stops being active, or its demerit ends. With neither to
// come it is as any other.
func (b *Bulkhead) scheduleIdle(a *account, now time.Duration) {
	due := time.Duration(math.MaxInt64)
	if a.active {
		due = a.seen + b.window
	}
	if b.value(a, now) > 0 {
		due = min(due, a.score.ClearAt(b.policy).Sub(b.base))
	}
	if due < math.MaxInt64 {
		a.dueAt = max(due, now+1)
		b.due.put(a)
		return
	}
	b.due.remove(a)
	b.keep.remove(a)
	if a != b.overflow {
		b.stale.pushBack(&a.idle)
	}
}

// advance brings everything that time alone changes up to now: who is active, whose
// demerit has ended, who is still penalised. Called first under every lock.
func (b *Bulkhead) advance(now time.Duration) time.Duration {
	now = max(now, b.clock) // two goroutines may lock in another order than they read the time
	b.clock = now
	for b.recent.n > 0 && now-b.recent.front.owner.seen >= b.window {
		a := b.recent.front.owner
		b.deactivate(a)
		a.idle.leave()
		b.stale.pushBack(&a.idle)
	}
	for b.due.len() > 0 && b.due.first().dueAt <= now {
		a := b.due.first()
		if a.waiting.n > 0 {
			b.place(a, now)
			continue
		}
		if a.active && now-a.seen >= b.window {
			b.deactivate(a)
		}
		if b.value(a, now) == 0 {
			b.clear(a)
			a.rank = math.Inf(-1)
			if a.inKeep != 0 {
				b.keep.put(a)
			}
		}
		b.scheduleIdle(a, now)
	}
	return now
}

// clear drops a score that has ended.
func (b *Bulkhead) clear(a *account) {
	a.score = demerit.Score{}
	a.scored.leave()
}
