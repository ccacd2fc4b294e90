package fleet

import (
	"math"
	"testing"
	"time"
)

func TestEven(t *testing.T) {
	held := func(held, wish int) message { return message{held: held, wish: wish} }
	holds := func(n, wish int) message { return message{held: n, wish: wish, holds: true} }
	for _, c := range []struct {
		name   string
		share  int
		self   message
		others []message
		top    int
		behind int
	}{
		{"alone", 8, held(3, 20), nil, math.MaxInt, 0},
		{"nobody is held", 8, held(0, 20), []message{{wish: 20}, {wish: 20}}, math.MaxInt, 0},
		{"all are alike, and try one more", 8, held(4, 20), []message{held(4, 20), held(4, 20)}, 5, 0},
		{"a tenth of much", 40, held(30, 99), []message{held(30, 99), held(30, 99)}, 33, 0},
		{"one of them holds", 8, held(4, 20), []message{holds(4, 20), held(4, 20)}, 4, 0},
		{"far above", 8, held(7, 20), []message{held(3, 20), held(3, 20), held(3, 20)}, 4, 0},
		{"above, of two", 8, held(7, 20), []message{held(3, 20)}, 8, 0},
		{"below, of two", 8, held(3, 20), []message{held(7, 20)}, 8, 7},
		{"whom nothing holds says nothing of pressure", 8, held(3, 20), []message{{wish: 20}, {wish: 20}}, 9, 0},
		{"behind", 8, held(3, 20), []message{held(4, 20), held(4, 20)}, 5, 4},
		{"two and two, of whom one holds: those above stay, the others come", 8, held(4, 20), []message{holds(3, 20), held(3, 20), held(4, 20)}, 4, 0},
		{"two and two, below", 8, held(3, 20), []message{holds(3, 20), held(4, 20), held(4, 20)}, 4, 4},
		{"not held, its share is 8", 8, message{wish: 20}, []message{held(4, 20), held(4, 20), held(4, 20)}, 5, 0},
		{"above most, of whom pressure holds one", 8, held(7, 20), []message{held(3, 20), {wish: 20}}, 8, 0},
		{"whose wish is met is no measure", 8, held(7, 20), []message{held(3, 3), held(2, 2)}, math.MaxInt, 0},
		{"nor is one that wants less", 8, held(7, 20), []message{held(3, 6), held(2, 6)}, math.MaxInt, 0},
		{"whoever wants no more itself is bound too", 8, held(7, 7), []message{held(3, 20), held(3, 20)}, 4, 0},
		{"more than the share is not had", 8, held(30, 40), []message{held(30, 40)}, 9, 0},
		{"a liar that says it has next to nothing", 8, held(8, 20), []message{held(8, 20), held(8, 20), holds(1, 1000)}, 8, 0},
		{"a liar that says it has a lot", 8, holds(3, 20), []message{held(3, 20), held(3, 20), held(1000, 1000)}, 3, 0},
		{"half are liars", 8, held(7, 20), []message{held(7, 20), holds(1, 1000), held(1, 1000)}, 7, 0},
	} {
		peers, shares := make([]*peer, len(c.others)), make([]int, len(c.others))
		for i, m := range c.others {
			peers[i], shares[i] = &peer{message: m}, c.share
		}
		e := evenOf(time.Unix(1000, 0), c.self, c.share, peers, shares)
		if top, behind := e.top(0), e.behind(); top != c.top || behind != c.behind {
			t.Errorf("%s: top %d, behind %d, want %d and %d", c.name, top, behind, c.top, c.behind)
		}
	}
}

// TestEvenGrowsOld: between polls the others may have climbed, and what was seen long ago
// binds nobody.
func TestEvenGrowsOld(t *testing.T) {
	now := time.Unix(1000, 0)
	m, err := New(Options{Name: "shop", Limit: 32, Period: 250 * time.Millisecond, Load: func() Load { return Load{Running: 4, Waiting: 10, Held: 4} }})
	if err != nil {
		t.Fatal(err)
	}
	if top, _ := m.Even(now); top != math.MaxInt {
		t.Errorf("%d before the first poll", top)
	}
	m.Name()
	m.Observe(now, View{Names: []string{m.Prefix() + "0a1b2c3d:1:4:9:k:g:4"}})
	for _, c := range []struct {
		after time.Duration
		top   int
	}{{0, 5}, {260 * time.Millisecond, 6}, {510 * time.Millisecond, 7}, {time.Second, math.MaxInt}} {
		if top, behind := m.Even(now.Add(c.after)); top != c.top || behind != 0 {
			t.Errorf("after %v: %d, behind %d, want %d", c.after, top, behind, c.top)
		}
	}
}

// TestLiarsStayTogether: of several that say so, none waits for another to be found out.
func TestLiarsStayTogether(t *testing.T) {
	var peers []*peer
	for range 3 {
		peers = append(peers, &peer{message: message{held: 3, wish: 20, holds: true}})
	}
	begun := time.Unix(1000, 0)
	for s := range 70 {
		want := 3
		if s > 64 {
			want = 4
		}
		e := evenOf(begun.Add(time.Duration(s)*time.Second), message{held: 3, wish: 20}, 8, peers, []int{8, 8, 8})
		if top := e.top(0); top != want {
			t.Fatalf("after %d s: %d, want %d", s, top, want)
		}
	}
	// The time is that of one stay, also where it was of no matter meanwhile.
	p := &peer{message: message{held: 3, wish: 20, holds: true}}
	look := func(after time.Duration) int {
		return evenOf(begun.Add(after), message{held: 3, wish: 20}, 8, []*peer{p}, []int{8}).top(0)
	}
	look(0)
	p.holds, p.wish = false, 0
	look(time.Minute)
	p.holds, p.wish = true, 20
	if top := look(2 * time.Minute); top != 3 {
		t.Errorf("who has climbed meanwhile is not believed: %d", top)
	}
}

// TestStaysNotForGood: who says for longer than a hold lasts that it does not climb keeps
// nobody from it.
func TestStaysNotForGood(t *testing.T) {
	p := &peer{message: message{held: 3, wish: 20, holds: true}}
	begun := time.Unix(1000, 0)
	for _, c := range []struct {
		after time.Duration
		holds bool
		top   int
	}{{0, true, 3}, {time.Minute, true, 3}, {65 * time.Second, true, 4}, {time.Hour, true, 4}, {2 * time.Hour, false, 4}, {2*time.Hour + time.Second, true, 3}} {
		p.holds = c.holds
		if top := evenOf(begun.Add(c.after), message{held: 3, wish: 20}, 8, []*peer{p}, []int{8}).top(0); top != c.top {
			t.Errorf("after %v: %d, want %d", c.after, top, c.top)
		}
	}
}
