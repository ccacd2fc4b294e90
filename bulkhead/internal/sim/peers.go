package sim

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pgyield/pgyield/bulkhead"
	"github.com/pgyield/pgyield/demerit"
)

// Bulkhead is the real one as a Gate.
type Bulkhead struct{ *bulkhead.Bulkhead }

// Acquire implements [Gate].
func (b Bulkhead) Acquire(ctx context.Context, caller string, cost int) (func(), error) {
	permit, err := b.Bulkhead.Acquire(ctx, caller, cost)
	return permit.Release, err
}

var errRefused = errors.New("refused")

// Peer is a gate with a single queue in the order of arrival, as simple as can be. With
// Caps it is fair the other way: each caller is held to its share of the limit (less
// its demerits), whether or not others want more, a read waits while its caller is at
// its cap, and every denial is charged and no penalty ends before it has decayed.
type Peer struct {
	Limit      int
	MaxWaiting int // 0: any number; negative: none
	Caps       bool
	Window     time.Duration // how long a caller counts as active, with Caps

	mu      sync.Mutex
	running int
	callers map[string]*peerCaller
	queue   []*peerRead
}

type peerCaller struct {
	running, waiting int
	seen             time.Time
	score            demerit.Score
}

type peerRead struct {
	caller *peerCaller
	cost   int
	turn   chan struct{}
}

// endless is a penalty without an end of its own.
var endless = demerit.Policy{MaxDuration: time.Hour}

// Acquire implements [Gate].
func (p *Peer) Acquire(ctx context.Context, caller string, cost int) (func(), error) {
	p.mu.Lock()
	c := p.callers[caller]
	if c == nil {
		if p.callers == nil {
			p.callers = map[string]*peerCaller{}
		}
		c = &peerCaller{}
		p.callers[caller] = c
	}
	c.seen = time.Now()
	r := &peerRead{caller: c, cost: min(cost, p.Limit), turn: make(chan struct{})}
	release := func() { p.release(r) }
	if len(p.queue) == 0 || p.Caps {
		if p.fits(r) {
			p.grant(r)
			p.mu.Unlock()
			return release, nil
		}
	}
	if p.MaxWaiting < 0 || p.MaxWaiting > 0 && len(p.queue) >= p.MaxWaiting {
		p.deny(c)
		p.mu.Unlock()
		return nil, errRefused
	}
	p.queue = append(p.queue, r)
	c.waiting++
	p.mu.Unlock()

	select {
	case <-r.turn:
		return release, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.queue, r)
	if i < 0 { // granted in the same moment
		return release, nil
	}
	p.queue = slices.Delete(p.queue, i, i+1)
	c.waiting--
	p.deny(c)
	p.dispatch()
	return nil, ctx.Err()
}

func (p *Peer) fits(r *peerRead) bool {
	if p.running+r.cost > p.Limit {
		return false
	}
	if !p.Caps || r.caller.running == 0 {
		return true
	}
	active := 0
	for _, c := range p.callers {
		if c.running+c.waiting > 0 || time.Since(c.seen) < p.Window {
			active++
		}
	}
	share := (p.Limit + active - 1) / active
	return r.caller.running+r.cost <= endless.Cap(share, r.caller.score.At(endless, time.Now()))
}

func (p *Peer) deny(c *peerCaller) {
	if p.Caps {
		c.score = c.score.Deny(endless, p.Limit, time.Now())
	}
}

func (p *Peer) grant(r *peerRead) {
	p.running += r.cost
	r.caller.running += r.cost
}

func (p *Peer) release(r *peerRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running -= r.cost
	r.caller.running -= r.cost
	p.dispatch()
}

// dispatch lets in the first that fits its caller's cap, in the order of arrival.
func (p *Peer) dispatch() {
	for i := 0; i < len(p.queue) && p.running < p.Limit; {
		r := p.queue[i]
		if !p.fits(r) {
			if !p.Caps || p.running+r.cost > p.Limit {
				return // it is next, and keeps its place
			}
			i++
			continue
		}
		p.queue = slices.Delete(p.queue, i, i+1)
		r.caller.waiting--
		p.grant(r)
		close(r.turn)
	}
}
