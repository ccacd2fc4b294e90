package fleet

import "time"

// divide gives each of the demands its part of the limit: max-min fair, so that nobody
// can have more but from one that has less; what no demand needs is split evenly. No
// demand counts as less than one. The parts sum to the limit where there are at most as
// many demands; of more, those at the end get nothing. Earlier ones get what does not divide.
func divide(limit int, demands []int) []int {
	parts := make([]int, len(demands))
	if len(demands) == 0 {
		return parts
	}
	filled := func(level int) (sum int) {
		for _, d := range demands {
			sum += min(max(d, 1), level)
		}
		return sum
	}
	// The level to which all can be filled, by bisection.
	low, high := 0, limit+1
	for high-low > 1 {
		if middle := low + (high-low)/2; filled(middle) <= limit {
			low = middle
		} else {
			high = middle
		}
	}
	left := limit - filled(low)
	for i, d := range demands {
		parts[i] = min(max(d, 1), low)
		if left > 0 && max(d, 1) > low {
			parts[i]++
			left--
		}
	}
	each, more := left/len(parts), left%len(parts)
	for i := range parts {
		parts[i] += each
		if i < more {
			parts[i]++
		}
	}
	return parts
}

// turn is how long a member of a crowd, one with more members than the limit, may run a
// read before it makes room for the next.
const turn = 500 * time.Millisecond

// rotation says which of a list, in an order all know, have a permit: a window over the
// ring that moves on by one at a time, so that few change at once. By the server's clock
// all members agree on it.
type rotation struct {
	index, count, slots int
}

func (r rotation) has(at time.Time) bool {
	switch {
	case r.slots >= r.count:
		return r.count > 0
	case r.slots <= 0:
		return false
	}
	behind, _ := r.behind(at)
	return behind < int64(r.slots)
}

// behind is how many steps the window's front is past the member, who has a permit while
// the window is not past it, and when the window moves on next.
func (r rotation) behind(at time.Time) (steps int64, next time.Time) {
	step := int64(turn / time.Duration(r.slots))
	position := at.UnixNano() / step
	behind := (int64(r.index) - position) % int64(r.count)
	if behind < 0 {
		behind += int64(r.count)
	}
	return behind, time.Unix(0, (position+1)*step)
}

// changes returns when has will say otherwise; zero: never.
func (r rotation) changes(at time.Time) time.Time {
	if r.slots <= 0 || r.slots >= r.count {
		return time.Time{}
	}
	behind, next := r.behind(at)
	if behind >= int64(r.slots) {
		behind -= int64(r.slots)
	}
	return next.Add(time.Duration(behind) * (turn / time.Duration(r.slots)))
}

// plan is a division of the limit over members.
type plan struct {
	shares []int    // by member
	turns  rotation // of the member that asks; it counts beside its share
	fixed  int      // the part of the limit that is given out as shares
}

// divideLimit plans for members with the given demands, of whom self asks. While they fit the
// limit it divides it. A crowd is divided in two: those with demand share most of the
// limit, or take turns where they are too many for that; those without take turns at a
// quarter of it, so that each is served when its first read comes, before the others
// know.
func divideLimit(limit int, demands []int, self int) plan {
	if len(demands) <= limit {
		return plan{shares: divide(limit, demands), fixed: limit}
	}
	var busy, idle []int // indexes
	for i, d := range demands {
		if d > 0 {
			busy = append(busy, i)
		} else {
			idle = append(idle, i)
		}
	}
	forIdle := min(max(1, limit/4), len(idle))
	switch {
	case len(busy) == 0:
		forIdle = limit
	case limit == 1:
		// One permit cannot be divided: all take turns at it.
		forIdle, busy, idle = 0, allOf(demands), nil
	}
	p := plan{shares: make([]int, len(demands))}
	if forBusy := limit - forIdle; len(busy) > forBusy {
		p.turns.join(busy, self, forBusy)
	} else if len(busy) > 0 {
		p.fixed = forBusy
		wanted := make([]int, len(busy))
		for i, b := range busy {
			wanted[i] = demands[b]
		}
		for i, share := range divide(forBusy, wanted) {
			p.shares[busy[i]] = share
		}
	}
	p.turns.join(idle, self, forIdle)
	return p
}

func allOf(demands []int) []int {
	list := make([]int, len(demands))
	for i := range list {
		list[i] = i
	}
	return list
}

// join makes r the rotation over the listed members if self is among them.
func (r *rotation) join(list []int, self, slots int) {
	for i, member := range list {
		if member == self {
			*r = rotation{index: i, count: len(list), slots: slots}
		}
	}
}
