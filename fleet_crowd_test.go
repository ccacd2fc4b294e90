package pgyield_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/bulkhead"
	"github.com/pgyield/pgyield/fleet"
)

// crowd is more pools than their fleet's limit, on a bus in memory.
type crowd struct {
	mu    sync.Mutex
	names []string
}

// poll lets a pool's member poll; what it sees is the bus without its own name.
func (c *crowd) poll(i int, m *fleet.Member) {
	name := m.Name()
	c.mu.Lock()
	c.names[i] = name
	others := make([]string, 0, len(c.names))
	for j, name := range c.names {
		if j != i && name != "" {
			others = append(others, name)
		}
	}
	c.mu.Unlock()
	m.Observe(time.Now(), fleet.View{Names: others, ServerTime: time.Now()})
}

// TestCrowdTakesTurns has 300 pools for a limit of 40, of which each always has reads: at
// every moment the limits sum to 40, what runs besides are reads whose turn ended beneath
// them, and every pool is served in each round.
func TestCrowdTakesTurns(t *testing.T) {
	const pools, limit, hold = 300, 40, 10 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		c := crowd{names: make([]string, pools)}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		gates := make([]*bulkhead.Bulkhead, pools)
		served := make([]atomic.Int64, pools)
		for i := range pools {
			l, member := pgyield.NewFleetLimit(t, 8, fleet.Options{Name: "shop", Limit: limit, PollRate: pools})
			gate := l.Bulkhead()
			gates[i] = gate
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				for period := 0; ctx.Err() == nil; period++ {
					if period%4 == 0 {
						c.poll(i, member)
					}
					l.EndPeriod()
					time.Sleep(250 * time.Millisecond)
				}
			})
			for range 2 {
				wg.Go(func() {
					for {
						permit, err := gate.Acquire(ctx, "", 1)
						if err != nil {
							return
						}
						time.Sleep(hold)
						served[i].Add(1)
						permit.Release()
					}
				})
			}
		}
		time.Sleep(10 * time.Second) // all have seen all
		for i := range served {
			served[i].Store(0)
		}
		peak, looks := 0, 0
		for range 1500 { // two rounds of 300 / 40 * 0.5 s
			time.Sleep(5*time.Millisecond + 1)
			synctest.Wait()
			limits, running := 0, 0
			for _, g := range gates {
				s := g.Stat()
				limits, running = limits+s.Limit, running+s.Running
			}
			if limits != limit {
				t.Errorf("the limits sum to %d, want %d", limits, limit)
			}
			peak, looks = max(peak, running), looks+1
		}
		least := served[0].Load()
		for i := range served {
			least = min(least, served[i].Load())
		}
		t.Logf("%d looks: at most %d run on a limit of %d, every pool has run at least %d reads", looks, peak, limit, least)
		// One turn begins each 12.5 ms; the read of the one before may be at its end.
		if peak > limit+2 || least < 80 {
			t.Errorf("%d ran at once; a pool ran only %d reads in its two turns", peak, least)
		}
		cancel()
		wg.Wait()
	})
}
