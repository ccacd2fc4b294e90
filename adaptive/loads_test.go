package adaptive

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// load is one that is followed for long.
type load struct {
	name  string
	blame bool // reads are to blame
	view  func() *view
	begin func(w *watcher) // once there is a baseline
	// live is the load's course; nil: it stays as it began.
	live func(w *watcher)

	hour   bool    // else a third of one
	swings int     // at most, besides experiments
	floors int     // how often the operator may hear of the floor
	mean   float64 // of the limit: at least, or at most where reads are to blame
}

// slower makes writes slow for a reason that reads have no part in.
func slower(w *watcher, factor float64) { w.m.slowness = func() float64 { return factor } }

// turns lets two courses take turns of that length, or of half as much to half as much
// again where it is long enough: a rule that looks for seconds at a time may fall into
// step with a load that keeps exact time.
func turns(length time.Duration, a, b func(w *watcher)) func(w *watcher) {
	return func(w *watcher) {
		for _, course := range []func(*watcher){a, b} {
			course(w)
			d := length
			if length > time.Second {
				d = length/2 + time.Duration(w.m.rng.Int64N(int64(length)))
			}
			w.run(d, nil)
		}
	}
}

// experiments is how often the limit may go to its floor and back in that time where
// reads are not to blame: twice for each time that cuts have waited for HoldMax, and a
// few times more while they have waited for less.
func experiments(d time.Duration) int { return 2 * (int(d/DefaultHoldMax) + 4) }

// longLoads are those that a limit of 16 follows. Where reads are to blame one swing is
// the beginning: from the height to the floor.
func longLoads() []load {
	loads := []load{
		{name: "pressure that one read makes", blame: true, hour: true, swings: 1, floors: 1, mean: 1.1, begin: func(w *watcher) {
			w.m.slowness = func() float64 {
				if len(w.m.running) > 0 {
					return 2
				}
				return 1
			}
		}},
		{name: "overload, seen on the server too", blame: true, swings: 1, floors: 1, mean: 1.1, view: func() *view { return &view{} }},
		{name: "pressure that reads cannot cure", hour: true, mean: 14.5, begin: func(w *watcher) { slower(w, 3) }},
		{
			name: "the same, seen on the server too", mean: 14.5,
			view:  func() *view { return &view{sync: func() time.Duration { return time.Millisecond }} },
			begin: func(w *watcher) { slower(w, 3) },
		},
		{name: "one bad period in twenty", hour: true, mean: 11.5, floors: 2, begin: func(w *watcher) {
			w.m.slowness = spikes(w.m)
		}},
	}
	slow, well := func(w *watcher) { slower(w, 3) }, func(w *watcher) { slower(w, 1) }
	for _, length := range []time.Duration{time.Second, 5 * time.Second, 20 * time.Second} {
		loads = append(loads, load{
			name: fmt.Sprintf("%v slow and %v well, without the reads", length, length), mean: 12, floors: 1, live: turns(length, slow, well),
		})
	}
	for _, length := range []time.Duration{250 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second} {
		loads = append(loads, inTurn(length, false), inTurn(length, true))
	}
	return loads
}

// inTurn is a load under which writes of this program and a signal of the server press
// in turn.
func inTurn(length time.Duration, blame bool) load {
	own := true
	if !blame {
		return load{
			name: fmt.Sprintf("own writes and WAL syncs in turn, for %v each, without the reads", length), mean: 10, floors: 3,
			view: func() *view {
				return &view{sync: func() time.Duration {
					if own {
						return 200 * time.Microsecond
					}
					return time.Millisecond
				}}
			},
			live: turns(length, func(w *watcher) { own = true; slower(w, 3) }, func(w *watcher) { own = false; slower(w, 1) }),
		}
	}
	return load{
		name: fmt.Sprintf("own writes and lock waits in turn, for %v each, because of the reads", length), blame: true, swings: 1, floors: 1, mean: 1.2,
		view: func() *view {
			v := &view{sync: func() time.Duration { return 200 * time.Microsecond }}
			v.locks = func() float64 {
				if own {
					return 0
				}
				return 2 * (slow(v.m.busy()) - 1)
			}
			return v
		},
		live: turns(length, func(w *watcher) { own = true; slower(w, 1) }, func(w *watcher) {
			own = false
			w.m.slowness = func() float64 { return 1 / slow(w.m.busy()) }
		}),
	}
}

// TestLongLoads: what must hold of every period does, the limit hardly ever swings
// between its ends, reads get what they can have, and the operator hears of a floor once.
func TestLongLoads(t *testing.T) {
	for i, c := range longLoads() {
		var v *view
		if c.view != nil {
			v = c.view()
		}
		long, swings := 20*time.Minute, c.swings
		if c.hour {
			long = time.Hour
		}
		if !c.blame {
			swings += experiments(long)
		}
		watched(t, uint64(i), wide, Options{}, v, func(w *watcher) {
			w.m.sleeping = !c.blame
			w.warm()
			w.m.readers = 16
			if c.begin != nil {
				c.begin(w)
			}
			for end := time.Now().Add(long); time.Now().Before(end); {
				if c.live == nil {
					w.run(time.Minute, nil)
					continue
				}
				c.live(w)
			}
			floors, mean := w.said["pgyield: the read limit has been at its floor for long"], w.mean()
			t.Logf("%s: %v, %d swings (%d may be), limit %.1f on average, at its floor %d times", c.name, long, w.swings, swings, mean, floors)
			if w.swings > swings || floors > c.floors || c.blame && mean > c.mean || !c.blame && mean < c.mean {
				t.Errorf("%s: %d swings, limit %.1f on average; the operator hears of the floor %d times; lowered %d times, given back %d",
					c.name, w.swings, mean, floors, w.l.Lowered(), w.l.Counts().GivenBack)
			}
		})
	}
}

// TestEndOfPressure: reads are back at their height after as many calm periods as they
// are short of it, once nothing holds; and what holds ends.
func TestEndOfPressure(t *testing.T) {
	for seed := range uint64(4) {
		watched(t, seed, wide, Options{}, nil, func(w *watcher) {
			w.warm()
			w.m.readers = 16
			w.run(5*time.Minute, nil)
			w.m.sleeping = true
			waited := 0
			w.run(DefaultHoldMax+outlastOwn+time.Minute, func(d Decision) {
				if d.To < 16 && w.l.state.hold.level == 0 {
					waited++
				}
			})
			if w.m.limit != 16 || waited > 16 {
				t.Errorf("the limit is %d, after %d periods in which nothing held", w.m.limit, waited)
			}
		})
	}
}

// FuzzLoads makes up a load, and how it is seen, and holds what must be true of every
// period under any load: see watcher.
func FuzzLoads(f *testing.F) {
	for _, seed := range []string{
		"\x00\x10\x20\x00\x20", "\x00\x10\x20\x01\x00\x08\x01\x04\x20\x05\x01\x20",
		"\x00\x10\x10\x03\x30\x40\x07\x12\x10\x08\x20\x08", "\x00\x10\x08\x09\x01\x08\x09\x02\x08\x09\x03\x10\x09\x00\x10",
		"\x0a\x03\x40\x00\x10\x40\x02\x03\x40\x05\x01\x40", "\x00\x10\x10\x06\x00\x20\x04\x03\x20\x08\xff\x20\x0b\x01\x20",
	} {
		f.Add(uint64(1), []byte(seed), true)
		f.Add(uint64(2), []byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, seed uint64, script []byte, server bool) {
		var v *view
		if server {
			v = &view{}
		}
		watched(t, seed, Bounds{Floor: 1, Start: 8, Ceiling: 16}, Options{}, v, func(w *watcher) {
			for n := 0; len(script) >= 3 && n < 16; n++ {
				w.turn(script[0], int(script[1]), v)
				w.run(time.Duration(script[2]%64)*250*time.Millisecond, nil)
				script = script[3:]
			}
		})
	})
}

// turn changes one thing about the load.
func (w *watcher) turn(what byte, value int, v *view) {
	m := w.m
	switch what % 12 {
	case 0:
		m.readers = value % 24
	case 1:
		m.writeRate = []float64{0, 1, 4, 20, 200, 400}[value%6]
	case 2:
		slower(w, float64(1+value%8)/2)
	case 3:
		m.slowness = stretches(m, 1, func() float64 { return 1 + m.rng.Float64()*float64(value%8) })
	case 4:
		m.others = func() float64 { return float64(value%8) / 2 }
	case 5:
		m.sleeping = value%2 == 1
	case 6:
		m.work = time.Duration([]int{4, 50, 400, 3000}[value%4]) * time.Millisecond
	case 7:
		m.bounds.Ceiling = 1 + value%20
		m.bounds.Floor = 1 + value/20%6
		m.bounds.Start = 1 + value%m.bounds.Ceiling
	case 8: // ticks are missed
		for range value {
			m.step()
			time.Sleep(10 * modelStep)
		}
	case 9:
		if v != nil {
			v.fail, v.stale = nil, value%4 == 2
			if value%4 == 1 {
				v.fail = errors.New("gone")
			}
		}
	case 10:
		wave := time.Duration(1+value%40) * 250 * time.Millisecond
		begun := time.Now()
		m.slowness = func() float64 { return float64(1 + 2*(int(time.Since(begun)/wave)%2)) }
	case 11:
		if v != nil {
			v.locks = func() float64 { return float64(value % 8) }
			v.sync = func() time.Duration { return time.Duration(200+100*(value/8)) * time.Microsecond }
		}
	}
}
