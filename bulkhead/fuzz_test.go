package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// FuzzModel runs a sequence of operations on a bulkhead and on the naive model beside
// it, in virtual time, and compares after each step who runs, who waits, and why who
// was denied. Two bytes are one operation.
func FuzzModel(f *testing.F) {
	f.Add([]byte{0x04, 0, 0, 0, 1, 0, 5, 0, 20, 0, 4, 0})
	// a read of 5 heads the line and is cancelled
	f.Add([]byte{0x0a, 0, 0x07, 1, 0x04, 2, 0x00, 3, 0x00, 3, 0x03, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) < 4 || len(ops) > 400 {
			t.Skip()
		}
		synctest.Test(t, func(t *testing.T) { newDuel(t, ops[0], ops[1]).run(ops[2:]) })
	})
}

// TestModel is FuzzModel on long random sequences, which a fuzzer that starts from
// nothing needs long to find.
func TestModel(t *testing.T) {
	rounds := 100
	if testing.Short() || raceDetector {
		rounds = 30
	}
	for seed := range rounds {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		ops := make([]byte, 400)
		for i := range ops {
			ops[i] = byte(random.Uint32())
		}
		synctest.Test(t, func(t *testing.T) { newDuel(t, ops[0], ops[1]).run(ops[2:]) })
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

// tick is the step of time. Contexts and waits end between two ticks, everything else
// happens on one, so no two events that depend on each other's order are simultaneous.
const tick = time.Millisecond

// duel is a bulkhead and the model of it.
type duel struct {
	t     *testing.T
	b     *Bulkhead
	m     *model
	base  time.Time
	reads map[*modelRead]*duelRead
	ids   int
	ended map[time.Duration]bool // when contexts end: each at its own time

	stallSlots, busyStalls uint64
	idleFor                time.Duration // how long all was idle and nobody let in
}

// duelRead is a read on the real side.
type duelRead struct {
	cancel context.CancelFunc
	permit Permit
	err    error
	done   chan struct{}
}

func newDuel(t *testing.T, size, kind byte) *duel {
	o := Options{Limit: 1 + int(size%12), Ceiling: 16}
	switch kind % 4 {
	case 1:
		o.MaxWaiting = 1 + int(kind/4%6)
	case 2:
		o.MaxWaiting = -1
	case 3:
		o.MaxWait = time.Duration(5+int(kind/4))*tick + tick/4
	}
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &duel{
		t: t, b: b, base: time.Now(), reads: map[*modelRead]*duelRead{}, ended: map[time.Duration]bool{},
		m: &model{
			limit: o.Limit, ceiling: o.Ceiling, maxWaiting: o.MaxWaiting, maxWait: o.MaxWait,
			window: b.window, callers: map[string]*modelCaller{},
		},
	}
}

func (d *duel) run(ops []byte) {
	defer d.close()
	for ; len(ops) >= 2; ops = ops[2:] {
		d.step(ops[0], int(ops[1]))
		synctest.Wait()
		d.compare(fmt.Sprintf("operation %d, %d", ops[0]%10, ops[1]))
	}
}

func (d *duel) step(op byte, arg int) {
	switch op % 10 {
	case 0, 1, 2:
		d.acquire(op, arg)
	case 3: // cancel
		if n := len(d.m.waiting); n > 0 {
			r := d.m.waiting[arg%n]
			d.reads[r].cancel()
			d.m.cancel(r)
		}
	case 4, 5: // release, twice to be sure that it is once
		if n := len(d.m.running); n > 0 {
			r := d.m.running[arg%n]
			d.reads[r].permit.Release()
			d.reads[r].permit.Release()
			d.m.release(r)
		}
	case 6:
		d.setLimit(arg)
	case 7:
		d.advance(1 + arg%64)
	case 8:
		if arg >= 128 {
			d.leap(time.Duration(arg) * 100 * tick)
			return
		}
		d.idle(arg, true)
	case 9:
		d.idle(arg, false)
	}
}

// setLimit sets a limit, in one of four cases as a probe, or in one of eight pauses.
func (d *duel) setLimit(arg int) {
	limit, bounds := 1+arg%16, [3]int{1, 1, 16}
	if arg >= 224 {
		limit, bounds = 0, [3]int{}
	}
	if d.m.limit == 0 || limit == 0 {
		if err := d.b.SetBounds(bounds[0], bounds[1], bounds[2]); err != nil {
			d.t.Fatal(err)
		}
		d.m.ceiling = bounds[2]
		d.m.setLimit(bounds[0], false) // those who wait go by this first
	}
	probe := arg >= 160 && arg < 224
	if probe {
		d.b.Probe(limit)
	} else {
		d.b.SetLimit(limit)
	}
	d.m.setLimit(limit, probe)
}

func (d *duel) acquire(op byte, arg int) {
	d.ids++
	cost := []int{1, 1, 1, 2, 5, 20, 1, 3}[arg>>3&7]
	r := &modelRead{id: d.ids, caller: string(rune('a' + arg&7%5)), cost: cost}
	ctx, cancel := context.WithCancel(context.Background())
	if op%10 == 2 && arg >= 64 {
		cancel()
		ends := d.m.now + time.Duration(arg/4)*tick + tick/2
		for d.ended[ends] {
			ends += tick
		}
		d.ended[ends], r.ends = true, ends
		ctx, cancel = context.WithDeadline(context.Background(), d.base.Add(ends))
	}
	real := &duelRead{cancel: cancel, done: make(chan struct{})}
	d.reads[r] = real
	mayWait := d.m.maxWaiting >= 0
	if op%10 == 1 && arg >= 192 {
		mayWait = false
		real.permit, real.err = d.b.TryAcquire(r.caller, cost)
		close(real.done)
	} else {
		go func() {
			defer close(real.done)
			real.permit, real.err = d.b.Acquire(ctx, r.caller, cost)
		}()
	}
	synctest.Wait()
	if d.overdrawn(r) {
		return
	}
	d.m.arrive(r, mayWait)
	d.advance(1) // so that arrivals differ
}

// overdrawn notices that r took the reserved stall slot as it arrived.
func (d *duel) overdrawn(r *modelRead) bool {
	s := d.b.Stat()
	if s.StallSlots == d.stallSlots {
		return false
	}
	d.stallSlots = s.StallSlots
	if d.m.callers[r.caller] == nil {
		d.m.callers[r.caller] = &modelCaller{}
	}
	if len(d.m.waiting) == 0 && d.m.fits(r) {
		d.t.Fatal("a stall slot went to a read that fits")
	}
	d.m.active()
	d.m.callers[r.caller].seen = d.m.now
	d.m.held = true
	d.m.grant(r)
	return true
}

func (d *duel) idle(arg int, idle bool) {
	if len(d.m.running) == 0 {
		return
	}
	r := d.m.running[arg%len(d.m.running)]
	if idle {
		d.reads[r].permit.Idle()
		if !r.idle {
			r.idle, r.idleFrom = true, d.m.now
		}
		return
	}
	d.reads[r].permit.Busy()
	r.idle = false
}

// leap advances far, for windows and penalties, when nothing that takes turns happens.
func (d *duel) leap(by time.Duration) {
	if len(d.m.waiting) > 0 {
		return
	}
	time.Sleep(by)
	d.m.now += by
}

func (d *duel) advance(ticks int) {
	for range ticks {
		// Waits end at a quarter (MaxWait) and a half (contexts) past the tick.
		for _, part := range []time.Duration{tick / 4, tick / 4, tick / 2} {
			time.Sleep(part)
			synctest.Wait()
			d.m.now += part
			d.m.expire()
			d.judgeOverdraft()
		}
		d.compare("a tick")
		d.liveness()
	}
}

// judgeOverdraft lets the model follow a read that the timer let in above the limit, if
// that was right.
func (d *duel) judgeOverdraft() {
	s := d.b.Stat()
	if s.StallSlots == d.stallSlots && s.BusyStalls == d.busyStalls {
		return
	}
	if s.StallSlots+s.BusyStalls != d.stallSlots+d.busyStalls+1 {
		d.t.Fatalf("two overdrafts at once: %+v", s)
	}
	if s.StallSlots > d.stallSlots && !d.m.allIdle(d.b.stallAfter) {
		d.t.Fatal("a stall slot opened while a permit was not idle for long enough")
	}
	still := d.b.busyStall
	if d.m.limit == 0 && len(d.m.running) == 0 {
		still = time.Minute
		if s.StallSlots > d.stallSlots {
			d.t.Fatal("a stall slot opened in a pause with nothing running")
		}
	}
	if s.BusyStalls > d.busyStalls && d.m.now-max(d.m.lastMove, d.m.waitingSince) < still {
		d.t.Fatal("a busy stall although something moved")
	}
	d.stallSlots, d.busyStalls = s.StallSlots, s.BusyStalls
	for _, r := range d.m.waiting {
		if d.finished(r) && d.reads[r].err == nil {
			d.m.leave(r)
			d.m.grant(r)
			return
		}
	}
	d.t.Fatal("an overdraft was counted and nobody went")
}

// liveness fails if all is idle, a read waits, and nobody is let in for twice as long
// as it may take.
func (d *duel) liveness() {
	if len(d.m.waiting) == 0 || !d.m.allIdle(0) || d.m.lastMove == d.m.now || d.m.limit == 0 && len(d.m.running) == 0 {
		d.idleFor = 0
		return
	}
	if d.idleFor += tick; d.idleFor > 2*d.b.stallAfter+2*tick {
		d.t.Fatalf("stuck: %d idle permits, %d waiters", len(d.m.running), len(d.m.waiting))
	}
}

func (d *duel) finished(r *modelRead) bool {
	select {
	case <-d.reads[r].done:
		return true
	default:
		return false
	}
}

// compare fails unless both sides have the same reads in the same state.
func (d *duel) compare(after string) {
	d.t.Helper()
	d.b.check(d.t)
	for r, real := range d.reads {
		outcome := "waiting"
		if d.finished(r) {
			outcome = outcomeOf(real.err)
		}
		if outcome != r.outcome {
			d.t.Fatalf("after %s: read %d of %q, cost %d: %s, want %s", after, r.id, r.caller, r.cost, outcome, r.outcome)
		}
		if r.done {
			delete(d.reads, r)
			real.cancel()
		}
	}
	s := d.b.Stat()
	if s.Running != d.m.used() || s.Waiting != len(d.m.waiting) || s.Active != d.m.active() || s.Limit != d.m.limit {
		d.t.Fatalf("after %s: %+v, want running %d, waiting %d, active %d, limit %d",
			after, s, d.m.used(), len(d.m.waiting), d.m.active(), d.m.limit)
	}
	for _, c := range d.b.Callers() {
		if want := d.m.demerit(d.m.callers[c.Name]); c.Demerit < want-1e-6 || c.Demerit > want+1e-6 {
			d.t.Fatalf("after %s: demerit of %q %v, want %v", after, c.Name, c.Demerit, want)
		}
	}
	if got, want := d.b.EndPeriod(), d.m.contended(); got != want {
		d.t.Fatalf("after %s: contended %v, want %v", after, got, want)
	}
}

func outcomeOf(err error) string {
	var refused *RefusedError
	switch {
	case err == nil:
		return "granted"
	case errors.As(err, &refused):
		return string(refused.Reason)
	case errors.Is(err, context.Canceled):
		return context.Canceled.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded.Error()
	default:
		return err.Error()
	}
}

// close ends every read, and checks that nothing is left.
func (d *duel) close() {
	if d.t.Failed() {
		d.b.Close(nil)
	}
	for r, real := range d.reads {
		real.cancel()
		<-real.done
		if real.err == nil {
			real.permit.Release()
		}
		delete(d.reads, r)
	}
	if !d.t.Failed() {
		d.setLimit(0)
		d.b.checkRest(d.t)
	}
}
