package bulkhead

import (
	"context"
	"math"
	"slices"
	"time"
)

// model is the bulkhead as one would write it without a care for speed: lists that are
// scanned whole, and every question answered from the start. Overdrafts are not
// predicted but judged: the test tells the model which read went, and the model says
// whether it might.
type model struct {
	limit, ceiling         int
	probed                 int // what may run once the limit was filled; 0: no probe
	filled                 bool
	maxWaiting             int
	maxWait                time.Duration
	window                 time.Duration
	now                    time.Duration
	running                []*modelRead
	waiting                []*modelRead // in the order of arrival
	head                   *modelRead
	callers                map[string]*modelCaller
	held                   bool
	lastMove, waitingSince time.Duration
}

type modelRead struct {
	id       int
	caller   string
	cost     int // as asked; while running, as charged
	since    time.Duration
	ends     time.Duration // the context's deadline
	idle     bool
	idleFrom time.Duration
	outcome  string // "", "granted", "waiting", or why it was denied
	done     bool
}

type modelCaller struct {
	seen       time.Duration
	value      float64
	lastDenial time.Duration
	wantedAt   time.Duration
	wanted     bool
	unserved   time.Duration
	starving   bool
	passed     int
	lifted     bool
}

func (m *model) demerit(c *modelCaller) float64 {
	elapsed := m.now - c.lastDenial
	if elapsed >= 60*time.Second {
		return 0
	}
	return max(0, c.value-0.3*elapsed.Seconds())
}

func (m *model) penalised(name string) bool { return m.demerit(m.callers[name]) >= 3 }

func (m *model) cost(name string) (running, waiting int) {
	for _, r := range m.running {
		if r.caller == name {
			running += r.cost
		}
	}
	for _, r := range m.waiting {
		if r.caller == name {
			waiting += r.cost
		}
	}
	return running, waiting
}

func (m *model) used() (cost int) {
	for _, r := range m.running {
		cost += r.cost
	}
	return cost
}

func (m *model) active() (n int) {
	for name, c := range m.callers {
		if running, waiting := m.cost(name); running+waiting > 0 || m.now-c.seen < m.window {
			n++
		} else {
			c.starving, c.lifted, c.passed = false, false, 0
		}
	}
	return n
}

func (m *model) share() int {
	return int(math.Ceil(float64(m.whole()) / float64(max(1, m.active()))))
}

// room is the limit, but in a probe that has been filled.
func (m *model) room() int {
	if m.probed > 0 && m.filled {
		return m.probed
	}
	return m.limit
}

// whole is the limit, where it is not 0 but as a measure.
func (m *model) whole() int { return max(1, m.room()) }

func (m *model) fits(r *modelRead) bool { return m.used()+min(r.cost, m.whole()) <= m.room() }

// setLimit sets the limit, or raises it for one filling.
func (m *model) setLimit(limit int, probe bool) {
	from := m.limit
	m.limit, m.probed, m.filled = limit, 0, false
	if probe && limit > from {
		m.probed = from
	}
	m.dispatch()
}

// next scans for the read that goes next.
func (m *model) next() *modelRead {
	if m.head != nil {
		return m.head
	}
	var best *modelRead
	var bestLast bool
	var bestRunning int
	for _, r := range m.waiting {
		running, _ := m.cost(r.caller)
		last := m.last(r.caller)
		better := best == nil || !last && bestLast || last == bestLast && running < bestRunning
		if better { // an earlier arrival that is as good stays
			best, bestLast, bestRunning = r, last, running
		}
	}
	return best
}

func (m *model) last(caller string) bool {
	c := m.callers[caller]
	running, _ := m.cost(caller)
	starved := running == 0 && c.starving && m.now-c.unserved >= 60*time.Second
	return m.penalised(caller) && !c.lifted && !starved
}

// passOver lifts the penalised caller that runs least once it was passed over for long.
func (m *model) passOver(by *modelRead) {
	var first *modelRead
	least := 0
	for _, r := range m.waiting {
		if running, _ := m.cost(r.caller); m.last(r.caller) && (first == nil || running < least) {
			first, least = r, running
		}
	}
	running, _ := m.cost(by.caller)
	if first == nil || m.last(by.caller) || running < m.share() || least >= m.share() {
		return
	}
	c := m.callers[first.caller]
	if c.passed++; c.passed >= 2*m.whole() {
		c.passed, c.lifted = 0, true
	}
}

func (m *model) dispatch() {
	for len(m.waiting) > 0 && m.used() < m.room() {
		r := m.next()
		if !m.fits(r) {
			m.head = r
			return
		}
		m.passOver(r)
		m.leave(r)
		m.grant(r)
	}
}

func (m *model) leave(r *modelRead) {
	if m.head == r {
		m.head = nil
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(o *modelRead) bool { return o == r })
	c := m.callers[r.caller]
	c.seen = m.now
	if _, waiting := m.cost(r.caller); waiting == 0 {
		c.lifted, c.passed = false, 0
	}
}

func (m *model) grant(r *modelRead) {
	r.cost = min(r.cost, m.whole())
	r.outcome = "granted"
	m.running = append(m.running, r)
	m.filled = m.filled || m.used() >= m.limit
	c := m.callers[r.caller]
	c.starving = false
	m.lastMove = m.now
}

// deny ends a read that is no longer counted.
func (m *model) deny(r *modelRead, outcome string, charge, want bool) {
	r.outcome, r.done = outcome, true
	c := m.callers[r.caller]
	running, waiting := m.cost(r.caller)
	if charge && m.active() >= 2 && running+waiting >= m.share() {
		c.value = min(m.demerit(c)+1, float64(max(1, m.ceiling))+3)
		c.lastDenial = m.now
		if m.penalised(r.caller) {
			c.wanted = false
		}
	}
	if want && !m.penalised(r.caller) {
		c.wanted, c.wantedAt = true, m.now
	}
}

func (m *model) arrive(r *modelRead, mayWait bool) {
	c := m.callers[r.caller]
	if c == nil {
		c = &modelCaller{}
		m.callers[r.caller] = c
	}
	m.active() // whoever was away has lost its place in the line of the starved
	c.seen = m.now
	r.since = m.now
	fits := len(m.waiting) == 0 && m.fits(r)
	if !fits {
		m.held = true
	}
	switch {
	case fits && (mayWait || !m.capped(r)):
		m.grant(r)
	case fits:
		m.deny(r, string(ReasonCap), true, true)
	case !mayWait:
		m.deny(r, string(ReasonLimit), true, true)
	case m.maxWaiting > 0 && len(m.waiting) >= m.maxWaiting && !m.makeRoom(r):
		m.deny(r, string(ReasonQueueFull), true, true)
	default:
		if len(m.waiting) == 0 {
			m.waitingSince = m.now
		}
		r.outcome = "waiting"
		m.waiting = append(m.waiting, r)
		if !c.starving {
			c.starving, c.unserved = true, m.now
		}
		m.dispatch()
	}
}

func (m *model) capped(r *modelRead) bool {
	running, _ := m.cost(r.caller)
	if running == 0 {
		return false
	}
	limit, others := m.share(), false
	if m.penalised(r.caller) {
		limit = max(1, limit-int(math.Round(m.demerit(m.callers[r.caller]))))
	}
	for name, c := range m.callers {
		others = others || name != r.caller && c.wanted && m.now-c.wantedAt < m.window
	}
	return others && running+min(r.cost, m.whole()) > limit
}

func (m *model) makeRoom(r *modelRead) bool {
	running, waiting := m.cost(r.caller)
	if running+waiting >= m.share() {
		return false
	}
	var victim *modelRead
	most := -1
	seen := map[string]bool{}
	for _, w := range slices.Backward(m.waiting) { // the newest of each caller
		if seen[w.caller] {
			continue
		}
		seen[w.caller] = true
		running, waiting := m.cost(w.caller)
		if besides := running + waiting - w.cost; besides > most {
			victim, most = w, besides
		}
	}
	if victim == nil || most < m.share() {
		return false
	}
	m.leave(victim)
	m.deny(victim, string(ReasonEvicted), true, true)
	return true
}

func (m *model) release(r *modelRead) {
	r.done = true
	m.running = slices.DeleteFunc(m.running, func(o *modelRead) bool { return o == r })
	c := m.callers[r.caller]
	c.seen = m.now
	if running, _ := m.cost(r.caller); running == 0 {
		c.unserved = m.now
	}
	m.lastMove = m.now
	m.dispatch()
}

func (m *model) cancel(r *modelRead) {
	m.leave(r)
	m.deny(r, context.Canceled.Error(), false, false)
	m.dispatch()
}

// expire ends the waits whose time is over now.
func (m *model) expire() {
	for _, r := range slices.Clone(m.waiting) {
		switch {
		case r.outcome != "waiting":
		case r.ends != 0 && r.ends <= m.now:
			m.leave(r)
			m.deny(r, context.DeadlineExceeded.Error(), true, false)
			m.dispatch()
		case m.maxWait > 0 && m.now-r.since >= m.maxWait:
			m.leave(r)
			m.deny(r, string(ReasonMaxWait), true, true)
			m.dispatch()
		}
	}
}

func (m *model) contended() bool {
	held := m.held || len(m.waiting) > 0 || m.used() >= m.whole()
	m.held = len(m.waiting) > 0
	return held
}

// allIdle reports whether every running permit has been idle for d.
func (m *model) allIdle(d time.Duration) bool {
	for _, r := range m.running {
		if !r.idle || m.now-r.idleFrom < d {
			return false
		}
	}
	return true
}
