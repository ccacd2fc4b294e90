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
//
// What a read touches that neither waits nor is refused stands in the account itself:
// 64 bytes, one cache line. With many callers it is the memory that takes the time, and
// so the rest is apart.
type account struct {
	*record
	seen     time.Duration
	running  int          // cost
	waiting  list[waiter] // in the order of arrival
	permits  int32
	inExpiry int32 // place in accounts.expiry
	active   bool  // counted among the active callers
	filed    bool  // idle, and filed in stale, keep or due
	scoring  bool  // in scored: the score may not be zero
	starving bool
	lifted   bool // penalised, and has its turn all the same, see liftTurns
}

// record is the rest of an account.
type record struct {
	name string
	// unserved is since when a caller with waiting reads has had nothing running; it
	// means something while reads wait or starving is set.
	unserved time.Duration
	firstSeq uint64 // arrival number of the first waiter, as the heaps know it
	passed   int    // how often others past their share went before it, below its own
	queued   int64  // cost of the waiters
	score    demerit.Score
	idle     node[account] // in stale
	wants    node[account] // in wanting
	scored   node[account] // in scored
	wantedAt time.Duration
	expireAt time.Duration // key in expiry: not after the account stops being active
	dueAt    time.Duration // when an event of this account is due
	rank     float64       // demerit rank, for keep

	inTurn, inLast, inDue, inKeep, inOver int32 // places in the heaps
}

// accounts is the table of callers and the orders in which they are looked for.
type accounts struct {
	byName   map[string]*account
	overflow *account // shared by the callers for which there is no place
	actives  int

	// expiry holds the active callers that were idle once and have no demerit, by when
	// they may stop being active. Being seen does not move a caller in it: that is made
	// up for when its time comes, once in a window, so that taking and giving back
	// permits touches no other account.
	expiry  accountHeap[byExpiry]
	stale   list[account] // idle, not active, no demerit: longest so first
	keep    accountHeap[byRank]
	due     accountHeap[byDue]
	wanting list[account] // not penalised and refused: in the order of that refusal
	scored  list[account]
}

type byExpiry struct{}

func (byExpiry) before(a, b *account) bool { return a.expireAt < b.expireAt }
func (byExpiry) place(a *account) *int32   { return &a.inExpiry }

type byRank struct{}

func (byRank) before(a, b *account) bool { return a.rank < b.rank }
func (byRank) place(a *account) *int32   { return &a.inKeep }

type byDue struct{}

func (byDue) before(a, b *account) bool { return a.dueAt < b.dueAt }
func (byDue) place(a *account) *int32   { return &a.inDue }

func newAccount(name string) *account {
	a := &account{record: &record{name: name}}
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
	if !a.scoring {
		return 0
	}
	return a.score.At(b.policy, b.time(now))
}

func (b *Bulkhead) penalised(a *account, now time.Duration) bool {
	return a.scoring && b.policy.Penalised(b.value(a, now))
}

// share is how much of the limit one active caller can have.
func (b *Bulkhead) share() int {
	n := max(1, b.actives)
	return (b.whole() + n - 1) / n
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
	if a.filed {
		b.unfile(a)
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
	if len(b.byName) < b.maxCallers {
		a = newAccount(strings.Clone(caller))
	} else if a = b.dispensable(); a != nil {
		b.forget(a)
		a.name = strings.Clone(caller)
	} else {
		return b.overflow
	}
	b.byName[a.name] = a
	return a
}

// dispensable returns the idle account that is missed least, or nil.
func (b *Bulkhead) dispensable() *account {
	if b.stale.n > 0 {
		return b.stale.front.owner
	}
	for b.expiry.len() > 0 {
		a := b.expiry.first()
		if a.expireAt == a.seen+b.window && !b.elsewhere(a) {
			return a
		}
		b.refresh(a)
	}
	if b.keep.len() > 0 {
		return b.keep.first()
	}
	return nil
}

// elsewhere reports whether an account that is still in expiry is busy, or idle with a
// demerit and filed for that.
func (b *Bulkhead) elsewhere(a *account) bool { return a.busy() || a.filed }

// refresh moves an account in expiry to where it belongs.
func (b *Bulkhead) refresh(a *account) {
	if b.elsewhere(a) {
		b.expiry.remove(a)
		return
	}
	a.expireAt = a.seen + b.window
	b.expiry.put(a)
}

// forget drops what is known of an idle account.
func (b *Bulkhead) forget(a *account) {
	delete(b.byName, a.name)
	b.unfile(a)
	b.expiry.remove(a)
	a.wants.leave()
	b.clear(a)
	b.deactivate(a)
}

// unfile takes an account from where idle ones are.
func (b *Bulkhead) unfile(a *account) {
	a.filed = false
	a.idle.leave()
	b.keep.remove(a)
	b.due.remove(a)
}

func (b *Bulkhead) deactivate(a *account) {
	if a.active {
		a.active = false
		b.actives--
	}
	a.starving, a.lifted, a.passed = false, false, 0
}

// rest files an account that is no longer busy.
func (b *Bulkhead) rest(a *account, now time.Duration) {
	a.seen = now
	switch {
	case a == b.overflow: // which is never given to another caller
		a.filed = true
		b.scheduleIdle(a, now)
	case b.value(a, now) > 0:
		a.filed = true
		a.rank = a.score.Rank(b.policy, b.base)
		b.keep.put(a)
		b.scheduleIdle(a, now)
	case a.inExpiry == 0:
		a.expireAt = now + b.window
		b.expiry.put(a)
	}
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
	for b.expiry.len() > 0 && b.expiry.first().expireAt <= now {
		a := b.expiry.first()
		if a.seen+b.window > now || b.elsewhere(a) {
			b.refresh(a)
			continue
		}
		b.expiry.remove(a)
		b.deactivate(a)
		a.filed = true
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
	a.score, a.scoring = demerit.Score{}, false
	a.scored.leave()
}
