package fleet

import (
	"testing"
	"time"
)

func (b *bench) sum() (sum int) {
	for _, m := range b.members {
		sum += m.Ceiling(b.now)
	}
	return sum
}

// TestStartTogether has members whose first polls all look before any name is set.
func TestStartTogether(t *testing.T) {
	b := newBench(t, 4, Options{Limit: 16})
	for i, m := range b.members {
		b.loads[i] = Load{Running: 1, Waiting: 29}
		b.names[i] = m.Name()
		m.Observe(b.now, View{ServerTime: b.now})
	}
	if got := b.sum(); got != 4 {
		t.Errorf("members that have seen nobody yet may run %d, want one each", got)
	}
	for range 3 {
		b.now = b.now.Add(500 * time.Millisecond)
		for i := range b.members {
			b.poll(i)
			if got := b.sum(); got > 16 {
				t.Errorf("together they may run %d of 16", got)
			}
		}
	}
	for i := range b.members {
		b.want(i, 4)
	}
}

// TestBackOneByOne loses the server, and with it all names, for longer than the lease.
// TestShortOutage: after a poll that failed the others' names may be gone, however soon the
// next one succeeds.
func TestShortOutage(t *testing.T) {
	b := newBench(t, 4, Options{Limit: 40, Lease: 5 * time.Second, Period: 250 * time.Millisecond})
	for i := range b.loads {
		b.loads[i] = Load{Running: 10, Waiting: 29}
	}
	for range 10 {
		b.round()
	}
	clear(b.names)
	for _, m := range b.members {
		m.Missed()
	}
	for i := range b.members {
		b.now = b.now.Add(100 * time.Millisecond)
		b.poll(i)
		if got := b.sum(); got > 40 {
			t.Errorf("%d are back: together they may run %d of 40", i+1, got)
		}
	}
	// The server is gone again before all are back: who was known still counts.
	clear(b.names)
	b.members[0].Missed()
	b.poll(0)
	b.now = b.now.Add(6 * time.Second)
	b.want(0, 10)
}

func TestBackOneByOne(t *testing.T) {
	for name, back := range map[string]int{"all come back": 4, "one is gone for good": 3} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 4, Options{Limit: 16, Lease: 5 * time.Second})
			for i := range b.loads {
				b.loads[i] = Load{Running: 4, Waiting: 29}
			}
			for range 5 {
				b.round()
			}
			clear(b.names)
			b.now = b.now.Add(8 * time.Second)
			for n := 1; n <= back; n++ { // are back
				for range 2 {
					for i := range n {
						b.now = b.now.Add(100 * time.Millisecond)
						b.poll(i)
						if got := b.sum(); got > 16 {
							t.Errorf("%d are back: together they may run %d of 16", n, got)
						}
					}
				}
			}
			if back == 4 {
				b.want(0, 4)
				return
			}
			for range 6 {
				b.now = b.now.Add(time.Second)
				for i := range back {
					b.poll(i)
				}
			}
			if got := b.members[0].Ceiling(b.now) + b.members[1].Ceiling(b.now) + b.members[2].Ceiling(b.now); got != 16 {
				t.Errorf("the three that are left may run %d, want all of 16", got)
			}
		})
	}
}
