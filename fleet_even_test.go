package pgyield_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/adaptive"
	"github.com/pgyield/pgyield/bulkhead"
	"github.com/pgyield/pgyield/fleet"
	"github.com/pgyield/pgyield/pressure"
)

// pressed is a fleet whose writes take 150 ms more while more reads than half of its limit
// run in all of it.
type pressed struct {
	limit   int
	readers []int // that each member has at all times
	seed    uint64
}

// pressedMember is a member with writes of its own.
type pressedMember struct {
	gate  *bulkhead.Bulkhead
	limit *adaptive.Limit

	mu      sync.Mutex // guards writing
	writing int
	writes  pressure.Writes

	// As of the last period.
	released uint64
	held     time.Duration
}

func (m *pressedMember) activity() pressure.Activity {
	s := m.gate.Stat()
	done, held := s.Released-m.released, s.HeldTime-m.held
	m.released, m.held = s.Released, s.HeldTime
	m.mu.Lock()
	defer m.mu.Unlock()
	a := pressure.Activity{Running: s.Running, Waiting: s.Waiting, Writes: m.writes.Take(), WritesRunning: m.writing, ReadsDone: int(done)}
	if done > 0 {
		a.ReadTime = held / time.Duration(done)
	}
	return a
}

func (m *pressedMember) write(takes time.Duration) {
	add := func(n int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.writing += n
	}
	add(1)
	time.Sleep(takes)
	add(-1)
	m.writes.Observe(takes)
}

// run calls look ten times a second with the members' limits, and how many reads run.
func (p pressed) run(t *testing.T, length time.Duration, look func(at time.Duration, limits []int, running int)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		members := make([]*pressedMember, len(p.readers))
		polls := make([]func(), len(p.readers))
		bus := crowd{names: make([]string, len(p.readers))}
		for i := range members {
			members[i] = &pressedMember{}
			l, member := pgyield.NewFleetLimit(t, p.limit, fleet.Options{Name: "shop", Limit: p.limit, Period: 250 * time.Millisecond})
			polls[i] = func() {
				bus.poll(i, member)
				l.Follow()
			}
			members[i].gate = l.Bulkhead()
			var err error
			members[i].limit, err = adaptive.New(l, nil, adaptive.Options{
				Activity: members[i].activity, Pressure: pressure.Options{OwnWrites: 75 * time.Millisecond},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		running := func() (n int) {
			for _, m := range members {
				n += m.gate.Stat().Running
			}
			return n
		}
		for i, m := range members {
			chance := rand.New(rand.NewPCG(p.seed, uint64(i)))
			phase := time.Duration(chance.Float64() * float64(adaptive.DefaultPeriod))
			wg.Go(func() {
				for time.Sleep(phase / 2); ctx.Err() == nil; time.Sleep(time.Duration((0.95 + 0.1*chance.Float64()) * float64(250*time.Millisecond))) {
					polls[i]()
				}
			})
			wg.Go(func() {
				time.Sleep(phase)
				m.limit.Start()
			})
			for range p.readers[i] {
				wg.Go(func() {
					time.Sleep(time.Second)
					for {
						permit, err := m.gate.Acquire(ctx, "", 1)
						if err != nil {
							return
						}
						time.Sleep(50 * time.Millisecond)
						permit.Release()
					}
				})
			}
			for w := range 8 {
				chance := rand.New(rand.NewPCG(p.seed, uint64(1000*i+w+100)))
				wg.Go(func() {
					for ctx.Err() == nil {
						takes := time.Duration(math.Exp(0.3*chance.NormFloat64()) * float64(2*time.Millisecond))
						if running() > p.limit/2 {
							takes += 150 * time.Millisecond
						}
						m.write(takes)
						time.Sleep(time.Duration((0.9 + 0.2*chance.Float64()) * float64(100*time.Millisecond)))
					}
				})
			}
		}
		for begun := time.Now(); time.Since(begun) < length; {
			time.Sleep(100*time.Millisecond + 1)
			synctest.Wait()
			now := make([]int, len(members))
			for i, m := range members {
				now[i] = m.gate.Stat().Limit
			}
			look(time.Since(begun), now, running())
		}
		cancel()
		for _, m := range members {
			m.limit.Stop()
		}
		wg.Wait()
	})
}

// TestFleetStaysEven overloads members whose own limits decide each by itself, and lets a
// minute pass: on average they are within a fifth of each other, at each moment mostly so,
// or within one permit, for limits are whole numbers. Left alone some stayed at up to eight times what
// others had.
func TestFleetStaysEven(t *testing.T) {
	seeds := uint64(2)
	if testing.Short() {
		seeds = 1
	}
	for _, c := range []struct{ limit, members int }{{32, 4}, {80, 4}, {32, 2}, {100, 10}} {
		var looks, uneven, over, sum, worst float64
		for seed := range seeds {
			p := pressed{limit: c.limit, seed: seed}
			for range c.members {
				p.readers = append(p.readers, c.limit/c.members+4)
			}
			means := make([]float64, c.members)
			p.run(t, 70*time.Second, func(at time.Duration, limits []int, running int) {
				if at < 10*time.Second {
					return
				}
				looks++
				if low, high := slices.Min(limits), slices.Max(limits); float64(high) > 1.2*float64(low) && high > low+1 {
					uneven++
				}
				if running > c.limit/2 {
					over++
				}
				for i, limit := range limits {
					means[i] += float64(limit)
					sum += float64(limit)
				}
			})
			worst = max(worst, slices.Max(means)/slices.Min(means))
		}
		uneven, over, sum = uneven/looks, over/looks, sum/looks
		t.Logf("%d members, limit %d: means within %.2f, apart for %.1f %% of the time; limits sum to %.1f; more than half runs for %.1f %%",
			c.members, c.limit, worst, 100*uneven, sum, 100*over)
		if worst > 1.2 || uneven > 0.25 {
			t.Errorf("%d members of %d: means are apart by %.2f, want at most 1.2; apart for %.2f of the time, want at most 0.25", c.members, c.limit, worst, uneven)
		}
		if half := float64(c.limit) / 2; sum < 0.55*half || sum > half || over > 0.1 {
			t.Errorf("%d members of %d: the limits sum to %.1f, and for %.2f of the time more than %v reads run", c.members, c.limit, sum, over, half)
		}
	}
}

// TestFleetEvenLeavesDemand: members that want little are no measure for one that wants a lot.
func TestFleetEvenLeavesDemand(t *testing.T) {
	var greedy, all, looks float64
	for seed := range uint64(4) {
		pressed{limit: 32, readers: []int{40, 2, 2, 2}, seed: seed}.run(t, 40*time.Second, func(at time.Duration, limits []int, running int) {
			if at > 10*time.Second {
				greedy, all, looks = greedy+float64(limits[0]), all+float64(running), looks+1
			}
		})
	}
	t.Logf("the one with demand has %.1f, all run %.1f", greedy/looks, all/looks)
	if greedy/looks < 5 || all/looks < 9 {
		t.Errorf("the one with demand has %.1f, all run %.1f of the 16 that do no harm", greedy/looks, all/looks)
	}
}
