package fleet

import (
	"math"
	"slices"
	"time"
)

// Members under the same pressure come down by steps of their own: one may be cut once
// where another is cut twice, and each keeps to its own memory of what pressed. Left alone
// they stay apart for as long as they remember. So each tells the others what pressure lets
// it run, and none keeps far above or below the middle of them.
//
// It is the middle and not the mean or the least, and of two in the middle the upper, so
// that names that lie keep nobody down while as many members tell the truth.

// longestStay is for how long a member's word that it does not climb keeps the others from
// climbing: the longest that it holds by default. One that has not tried for longer is
// mistaken, or lies.
const longestStay = 64 * time.Second

// even is what the members have that want more than that.
type even struct {
	own    int  // what this member may run
	middle int  // of all; 0: pressure holds none of them back
	held   int  // the middle of those that it holds back
	stays  bool // one of them does not climb
}

// evenOf is made of all members' messages and shares; self is not among the peers. Whoever
// would be content with less than this member has does not count: it is no measure for it.
func evenOf(now time.Time, self message, share int, peers []*peer, shares []int) even {
	e := even{own: allowed(self, share)}
	var all, held []int
	count := func(m message, n int) {
		all = append(all, n)
		if m.held > 0 {
			held = append(held, n)
		}
	}
	for i, p := range peers {
		stays := p.stays(now) // asked of each: of all that lie, the time runs out at once
		if n, wants := allowed(p.message, shares[i]), max(p.wish, p.running); wants > n && wants >= e.own {
			count(p.message, n)
			e.stays = e.stays || stays
		}
	}
	others := len(all)
	if self.wish > e.own {
		count(self, e.own)
		e.stays = e.stays || self.holds
	}
	if others > 0 && len(held) > 0 {
		e.middle, e.held = middle(all), middle(held)
	}
	return e
}

// stays is asked once an observation.
func (p *peer) stays(now time.Time) bool {
	if !p.holds {
		p.stayed = time.Time{}
		return false
	}
	if p.stayed.IsZero() {
		p.stayed = now
	}
	return now.Sub(p.stayed) <= longestStay
}

func middle(list []int) int {
	slices.Sort(list)
	return list[len(list)/2]
}

// allowed is what a member may run.
func allowed(m message, share int) int {
	if m.held > 0 {
		share = min(m.held, share)
	}
	return max(1, share)
}

// top is how much the member may run beside the others: a tenth more than the middle of
// them, at least one read, and as many more as they may have climbed since that was seen.
// While one of them does not climb, nobody goes on without it.
func (e even) top(climbed int) int {
	switch {
	case e.middle == 0:
		return math.MaxInt
	case e.stays:
		return e.middle
	}
	return max(e.middle+1, e.middle*11/10) + climbed
}

// behind is what the middle of those runs that see the same pressure, where the member may
// run less; else 0.
func (e even) behind() int {
	if e.own < e.held {
		return e.held
	}
	return 0
}

// Even returns how much the member may run so that it is not far above the others that
// pressure holds back too, math.MaxInt where it holds none back; and what the middle of them
// runs, where the member was behind that at the last poll, else 0.
func (m *Member) Even(now time.Time) (top, behind int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	silent := now.Sub(m.observed)
	if m.shared || m.observed.IsZero() || silent > m.patience() {
		return math.MaxInt, 0
	}
	return m.even.top(int(silent / m.options.Period)), m.even.behind()
}
