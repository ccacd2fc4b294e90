package bulkhead

import (
	"testing"
	"time"
)

// check fails t unless everything that the bulkhead keeps twice agrees, and no permit
// is idle that the next waiter fits in.
func (b *Bulkhead) check(t testing.TB) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.advance(b.now())
	b.checkPermits(t)
	b.checkQueue(t, now)
	b.checkAccounts(t, now)
	b.checkStalls(t)
	if t.Failed() {
		t.FailNow()
	}
}

func (b *Bulkhead) checkPermits(t testing.TB) {
	t.Helper()
	running, byAccount := 0, map[*account]int{}
	for n := b.permits.front; n != nil; n = n.next {
		running += n.owner.cost
		byAccount[n.owner.account] += n.owner.cost
	}
	if running != b.running {
		t.Errorf("running %d, permits cost %d", b.running, running)
	}
	for a, cost := range byAccount {
		if a.running != cost {
			t.Errorf("%q: running %d, permits cost %d", a.name, a.running, cost)
		}
	}
	if b.admitted-b.released != uint64(b.permits.n) {
		t.Errorf("admitted %d, released %d, running %d", b.admitted, b.released, b.permits.n)
	}
}

func (b *Bulkhead) checkQueue(t testing.TB, now time.Duration) {
	t.Helper()
	count, cost, seq := 0, int64(0), uint64(0)
	byAccount := map[*account]int{}
	for n := b.all.front; n != nil; n = n.next {
		w := n.owner
		count++
		cost += int64(w.cost)
		byAccount[w.account]++
		if w.seq <= seq {
			t.Errorf("arrivals out of order: %d after %d", w.seq, seq)
		}
		seq = w.seq
	}
	if count != b.all.n || cost != b.queue.cost {
		t.Errorf("queue of %d, cost %d: counted %d, %d", b.all.n, b.queue.cost, count, cost)
	}
	for a, n := range byAccount {
		if a.waiting.n != n {
			t.Errorf("%q: waiting %d, counted %d", a.name, a.waiting.n, n)
		}
		last := b.penalised(a, now) && !a.lifted && !b.starved(a, now)
		if (a.inLast != 0) != last || (a.inTurn != 0) == last || (a.inDue != 0) != last {
			t.Errorf("%q: last %v, filed in turn %d, last %d, due %d", a.name, last, a.inTurn, a.inLast, a.inDue)
		}
		if (a.inOver != 0) != (b.maxWaiting > 0) {
			t.Errorf("%q: filed in over: %d", a.name, a.inOver)
		}
	}
	if b.turn.len()+b.last.len() != len(byAccount) {
		t.Errorf("%d + %d callers filed, %d wait", b.turn.len(), b.last.len(), len(byAccount))
	}
	checkHeap(t, "turn", &b.turn)
	checkHeap(t, "last", &b.last)
	checkHeap(t, "over", &b.over)
	checkHeap(t, "due", &b.due)
	checkHeap(t, "keep", &b.keep)
	checkHeap(t, "expiry", &b.expiry)
	if b.maxWaiting > 0 && b.all.n > b.maxWaiting {
		t.Errorf("%d wait, at most %d may", b.all.n, b.maxWaiting)
	}
	if b.all.n > 0 {
		w := b.next()
		if b.fits(w.cost) && b.fewer() {
			t.Errorf("running %d of %d, and a read of %d waits", b.running, b.limit, w.cost)
		}
		if b.mode != Enforce {
			t.Errorf("reads wait in mode %v", b.mode)
		}
	}
	if b.head != nil && b.head.inQueue.in == nil {
		t.Error("the head does not wait")
	}
	if b.stalls.cursor != nil && b.stalls.cursor.inQueue.in == nil {
		t.Error("the cursor does not wait")
	}
}

func checkHeap[O order](t testing.TB, name string, h *accountHeap[O]) {
	t.Helper()
	for i, a := range h.items {
		if int(*h.order.place(a)) != i+1 {
			t.Errorf("heap %s: place %d at %d", name, *h.order.place(a), i)
		}
		if i > 0 && h.order.before(a, h.items[(i-1)/2]) {
			t.Errorf("heap %s: item %d is before its parent", name, i)
		}
	}
}

func (b *Bulkhead) checkAccounts(t testing.TB, now time.Duration) {
	t.Helper()
	actives := 0
	visit := func(a *account) {
		active := a.busy() || now-a.seen < b.window
		if a.active != active && (a != b.overflow || a.seen > 0) {
			t.Errorf("%q: active %v, busy %v, seen %v ago", a.name, a.active, a.busy(), now-a.seen)
		}
		if a.active {
			actives++
		}
		filed := a.idle.in != nil || a.inKeep != 0
		if filed != a.filed && a != b.overflow || filed && a.busy() || !filed && !a.busy() && a.inExpiry == 0 && a != b.overflow {
			t.Errorf("%q: busy %v, filed as idle %v (%v), to expire %v", a.name, a.busy(), filed, a.filed, a.inExpiry != 0)
		}
		if a.inExpiry != 0 && a.expireAt > a.seen+b.window {
			t.Errorf("%q: expires at %v, last seen %v", a.name, a.expireAt, a.seen)
		}
		if a.permits == 0 && a.running != 0 || a.waiting.n == 0 && a.queued != 0 {
			t.Errorf("%q: running %d without permits or queued %d without waiters", a.name, a.running, a.queued)
		}
		if b.value(a, now) > 0 && !a.busy() && a.inKeep == 0 && a != b.overflow {
			t.Errorf("%q: has a demerit and is not kept for it", a.name)
		}
		if a.wants.in != nil && b.penalised(a, now) {
			t.Errorf("%q: penalised, and holds others to a share", a.name)
		}
	}
	for name, a := range b.byName {
		if a.name != name {
			t.Errorf("%q filed as %q", a.name, name)
		}
		visit(a)
	}
	visit(b.overflow)
	if actives != b.actives {
		t.Errorf("%d callers active, counted %d", b.actives, actives)
	}
	if len(b.byName) > b.maxCallers {
		t.Errorf("%d callers, at most %d", len(b.byName), b.maxCallers)
	}
}

func (b *Bulkhead) checkStalls(t testing.TB) {
	t.Helper()
	held := uint64(0)
	for n := b.permits.front; n != nil; n = n.next {
		s := n.owner
		if s.stall > 0 {
			if held&(1<<s.stall) != 0 {
				t.Errorf("two reads in stall slot %d", s.stall)
			}
			held |= 1 << s.stall
		}
		if s.level > b.stalls.open || s.stall > b.stalls.open {
			t.Errorf("%d stall slots open: level %d, slot %d", b.stalls.open, s.level, s.stall)
		}
	}
	if held != b.stalls.held {
		t.Errorf("stall slots %b held, counted %b", b.stalls.held, held)
	}
	if b.stalls.open > 0 && b.permits.n == 0 {
		t.Errorf("%d stall slots open with nothing stalled", b.stalls.open)
	}
}

// checkRest fails t unless the bulkhead is as new: nothing runs or waits and the whole
// limit is usable.
func (b *Bulkhead) checkRest(t testing.TB) {
	t.Helper()
	b.check(t)
	s := b.Stat()
	if s.Running != 0 || s.Permits != 0 || s.Waiting != 0 || s.Admitted != s.Released {
		t.Fatalf("not at rest: %+v", s)
	}
	p, err := b.TryAcquire("rest", s.Limit)
	if err != nil {
		t.Fatalf("the whole limit is not usable: %v", err)
	}
	p.Release()
}
