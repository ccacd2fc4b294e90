package fleet

import (
	"math"
	"time"
)

// wish returns what a member would run if it could: at once when it rises, and falling by
// a tenth of the way with each poll. Demand moves faster than polls; a share that followed
// each dip would be too small most of the time. What was refused counts for no more than
// doubling: over a long poll it says that more is wanted, and hardly how much. More than
// the member can run is no demand.
func wish(last float64, load Load, most int) float64 {
	running := max(load.Running, 0)
	now := running + max(load.Waiting, 0) + min(max(load.Unmet, 0), max(running, 1))
	level := float64(min(now, max(most, running)))
	return max(level, last+(level-last)/10)
}

// hunger returns how many reads would run now if they might, beyond half of what runs and
// one. As many as that come and go by chance on a limit that is well used, and make nobody poor.
func hunger(load Load) int {
	return max(0, max(load.Waiting, 0)+max(load.Unmet, 0)-(max(load.Running, 0)+3)/2)
}

// appetite is what of the limit the others leave to a member.
type appetite struct {
	limit  int
	wishes int   // of the others
	slack  int   // what nobody runs or is entitled to
	hungry []int // what each of the others would run besides
}

// appetiteOf counts as used what the others run, and as much more as they are hungry for
// within their shares: as long as they wait for it, it is not slack, so that who runs more
// than its share makes room.
func appetiteOf(limit, running int, peers []*peer, shares []int) appetite {
	a := appetite{limit: limit, slack: limit - running, hungry: make([]int, len(peers))}
	for i, p := range peers {
		entitled := max(0, min(p.hungry, shares[i]-p.running))
		a.slack -= p.running + entitled
		a.wishes += max(p.wish, p.running)
		a.hungry[i] = p.hungry - entitled
	}
	return a
}

// helping returns how much of the slack a member may use: what the hungry others leave of
// it, or its fair part if that is more. Mostly nobody is hungry and all of it is for
// whoever's reads come next, and a hundredth of the limit more: news is half a poll old,
// and reads have ended since. When all are hungry, it must not be taken by each, beyond what each is
// entitled to.
func (a appetite) helping(hungry, wish, entitled int) int {
	if a.slack < 0 || len(a.hungry) == 0 {
		return a.slack
	}
	own := min(max(0, entitled), hungry, a.slack)
	return min(own+a.portion(a.slack-own+a.limit/100, hungry-own), max(own, a.bound(wish)))
}

// bound is how much of the slack a member with that wish may take at one poll. All may
// take at once what each sees: in parts by wish, the limit and half is not passed even then.
// Where members are so many that such a part is less than one's own ups and downs, it is
// those, twice their standard deviation: not all go up together. And of a large slack it
// is half.
func (a appetite) bound(wish int) int {
	part := (a.limit/2 + a.slack) * wish / max(1, wish+a.wishes)
	return max(part, int(math.Ceil(2*math.Sqrt(float64(wish)))), a.slack/2)
}

// portion is what of a slack is left to one as hungry as that.
func (a appetite) portion(slack, hungry int) int {
	left, low, high := slack, 0, slack+1
	for _, h := range a.hungry {
		left -= min(h, slack)
	}
	if left >= hungry {
		return left
	}
	// The level up to which the slack feeds everybody.
	for high-low > 1 {
		middle := low + (high-low)/2
		fed := min(hungry, middle)
		for _, h := range a.hungry {
			fed += min(h, middle)
		}
		if fed <= slack {
			low = middle
		} else {
			high = middle
		}
	}
	return max(left, min(hungry, low))
}

// claims sums what peers hold. One that has held more than its share for longer than a
// lease does not follow the rules, and counts with its share. Unless strict, so does one
// whose heartbeat moved since the last look: it has seen our name there, and made room
// for it, and will say so with its next.
func claims(now time.Time, lease time.Duration, strict bool, peers []*peer, shares []int) (sum int) {
	for i, p := range peers {
		switch {
		case p.claim <= shares[i]:
			p.greedy = time.Time{}
		case p.greedy.IsZero():
			p.greedy = now
		}
		if !p.greedy.IsZero() && (now.Sub(p.greedy) > lease || !strict && p.moved.Equal(now)) {
			sum += shares[i]
			continue
		}
		sum += p.claim
	}
	return sum
}
