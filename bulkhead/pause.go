package bulkhead

import "time"

// A bulkhead whose limit is 0 is paused: reads that arrive wait, or are refused where
// they may not. Somebody else, who knows when it will end, has taken the limit away for a
// while (a fleet with more members than permits lets them take turns), so nothing is the
// matter with the reads. In all but letting in, it counts as a limit of 1 does: shares,
// caps, demerits, and the cost of what goes above the limit, which must not be 0.
//
// What runs as a pause begins runs on, and is stalled as ever when it waits for reads that
// wait. When nothing runs there is nobody to wait for, and no stall slot opens; only the
// busy stall stands, with its longest wait, so that a pause that nobody ends starves no
// read for good.

// whole is the limit as the measure of costs and shares.
func (b *Bulkhead) whole() int { return max(1, b.room()) }

// charged is what a read of that cost counts against the limit: never more than the whole.
func (b *Bulkhead) charged(cost int) int { return min(cost, b.whole()) }

// fits reports whether the limit has room for a read of that cost beside what runs.
func (b *Bulkhead) fits(cost int) bool { return b.running+b.charged(cost) <= b.room() }

// resting reports whether a pause, and nothing else, is what reads wait for.
func (b *Bulkhead) resting() bool { return b.limit == 0 && b.permits.n == 0 }

// pause is when the bulkhead was paused.
type pause struct {
	on     bool
	since  time.Duration
	length time.Duration // of the last that ended
}

// setPause notes that a pause begins or ends.
func (b *Bulkhead) setPause(on bool, now time.Duration) {
	if on == b.pause.on {
		return
	}
	if !on {
		b.pause.length = now - b.pause.since
		// A timer that was set while nothing could stall would be late for what stalls now.
		b.stalls.armed = false
	}
	b.pause.on, b.pause.since = on, now
}

// left is how long the pause can be expected to last: as long as the last one did, or as
// long again as it has lasted, when that was longer.
func (p *pause) left(now time.Duration) time.Duration {
	if !p.on {
		return 0
	}
	lasted := now - p.since
	if p.length > lasted {
		return p.length - lasted
	}
	return lasted
}
