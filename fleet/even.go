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
// It is the middle and not the mean or the least, so that a name that lies moves nobody
// while more members tell the truth. Of two it is the mean.

// even is where the middle of those is that want more than they may run.
type even struct {
	middle float64 // 0: pressure holds none of them back
	own    int     // what this member may run
	holds  bool    // one of them does not climb
}

// evenOf is made of all members' messages and shares; self is not among the peers. Whoever
// would be content with less than this member has does not count: it is no measure for it.
func evenOf(self message, share int, peers []*peer, shares []int) even {
	e := even{own: allowed(self, share)}
	var list []int
	var held bool
	count := func(m message, n int) {
		list = append(list, n)
		held = held || m.held > 0
		e.holds = e.holds || m.holds
	}
	for i, p := range peers {
		if n, wants := allowed(p.message, shares[i]), max(p.wish, p.running); wants > n && wants >= e.own {
			count(p.message, n)
		}
	}
	others := len(list)
	if self.wish > e.own {
		count(self, e.own)
	}
	if others == 0 || !held {
		return even{own: e.own}
	}
	slices.Sort(list)
	e.middle = float64(list[(len(list)-1)/2]+list[len(list)/2]) / 2
	return e
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
	case e.holds:
		return int(e.middle + 0.5)
	}
	return int(max(e.middle+1, 1.1*e.middle)) + climbed
}

// behind is true where the member may run less than the middle.
func (e even) behind() bool { return float64(e.own) < e.middle }

// Even returns how much the member may run so that it is not far above the others that
// pressure holds back too, math.MaxInt where it holds none back; and whether it is behind
// them.
func (m *Member) Even(now time.Time) (top int, behind bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	silent := now.Sub(m.observed)
	if m.shared || m.observed.IsZero() || silent > m.patience() {
		return math.MaxInt, false
	}
	return m.even.top(int(silent / m.options.Period)), m.even.behind()
}
