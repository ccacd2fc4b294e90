package fleet

import (
	"fmt"
	"testing"
	"time"
)

func TestAppetite(t *testing.T) {
	for _, c := range []struct {
		name            string
		running, hungry int // of the one that asks
		wish, share     int
		peers           []peer
		shares          []int
		slack, helping  int
	}{
		{"nobody is hungry: all the slack", 5, 0, 20, 10, []peer{{message: message{running: 15, wish: 15}}}, []int{30}, 20, 20},
		{"one is entitled to what it is hungry for", 5, 0, 20, 10, []peer{{message: message{running: 5, hungry: 50, wish: 30}}}, []int{30}, 5, 0},
		{"who runs more than its share makes room", 30, 60, 40, 20, []peer{{message: message{running: 1, hungry: 70, wish: 40}}}, []int{20}, -10, -10},
		{"its own part first, and then evenly", 10, 99, 40, 14, []peer{{message: message{running: 12, hungry: 90, wish: 40}}}, []int{12}, 18, 11},
		{"alone it has all", 0, 0, 0, 40, nil, nil, 40, 40},
		{"a small one may take its own ups and downs", 1, 0, 4, 1, []peer{{message: message{running: 20, wish: 396}}}, []int{39}, 19, 9},
	} {
		peers := make([]*peer, len(c.peers))
		for i := range c.peers {
			peers[i] = &c.peers[i]
		}
		a := appetiteOf(40, c.running, peers, c.shares)
		if got := a.helping(c.hungry, c.wish, c.share-c.running); a.slack != c.slack || got != c.helping {
			t.Errorf("%s: slack %d, helping %d; want %d and %d", c.name, a.slack, got, c.slack, c.helping)
		}
	}
	// All that are hungry together get no more than there is.
	for n := 2; n < 20; n++ {
		var peers []*peer
		for range n - 1 {
			peers = append(peers, &peer{message: message{running: 1, hungry: 100, wish: 100}})
		}
		shares := make([]int, n-1)
		a := appetiteOf(90, 1, peers, shares)
		if got := a.helping(100, 100, 0); n*got > 90-n || n*(got+1) <= 90-n {
			t.Errorf("%d hungry members take %d each of %d", n, got, 90-n)
		}
	}
}

// TestLeftBehind has a member whose process is gone, and of whom two lost connections
// stand: neither moves, so which is the newer cannot be told, and it is dead when the lease is
// over, in whatever order they are seen.
func TestLeftBehind(t *testing.T) {
	r := roster{prefix: prefix("a"), self: "00000000"}
	names := []string{"pgyield:a:0a1b2c3d:5:9:0:9:9", "pgyield:a:0a1b2c3d:8:1:0:1:1"}
	for step := range 20 {
		r.update(start.Add(time.Duration(step)*time.Second), 5*time.Second, []string{names[step%2], names[1-step%2]})
		live := r.live(start.Add(time.Duration(step)*time.Second), 5*time.Second)
		if len(live) > 0 && live[0].running != 9 {
			t.Fatalf("step %d: %d run, want the most that either tells", step, live[0].running)
		}
		if want := step <= 5; (len(live) > 0) != want {
			t.Fatalf("step %d: %d are live", step, len(live))
		}
	}
}

// TestTurnsByTheServersClock has members whose own clocks differ by minutes.
func TestTurnsByTheServersClock(t *testing.T) {
	const n, limit = 9, 3
	b := newBench(t, n, Options{Limit: limit})
	ahead := func(i int) time.Duration { return time.Duration(i) * 77777 * time.Millisecond }
	poll := func(i int) {
		b.names[i] = b.members[i].Name()
		b.members[i].Observe(b.now.Add(ahead(i)), View{Names: b.others(i), ServerTime: b.now})
	}
	for range 3 {
		for i := range n {
			poll(i)
		}
		b.now = b.now.Add(500 * time.Millisecond)
	}
	for step := range 100 {
		b.now = b.now.Add(10 * time.Millisecond)
		list, sum := "", 0
		for i, m := range b.members {
			c := m.Ceiling(b.now.Add(ahead(i)))
			sum += c
			list += fmt.Sprint(c)
		}
		if sum != limit {
			t.Fatalf("step %d: %s sums to %d", step, list, sum)
		}
	}
}
