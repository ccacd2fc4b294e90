package adaptive

// Bounds are the limit's bounds: Floor is where cuts end, Start where it climbs
// back to without contention, Ceiling where it climbs to with it.
type Bounds struct {
	Floor, Start, Ceiling int
}

// low is the lowest limit: the floor, or the ceiling where that is lower.
func (b Bounds) low() int { return min(b.Floor, b.Ceiling) }

// clamp brings a limit between the lowest and the ceiling.
func (b Bounds) clamp(limit int) int { return max(b.low(), min(limit, b.Ceiling)) }

// Period is what one period was like.
type Period struct {
	// Pressing: writes suffered. Contended: the limit held a read back.
	Pressing, Contended bool
}

// Step is the rule: additive increase, multiplicative decrease. Given the limit,
// how many pressing and contended periods came in a row before this one, and how
// many it takes, it returns the next limit and count.
//
//   - The periods-th such period in a row halves the limit, down to the floor (or the
//     ceiling when that is lower), and the count starts over.
//   - A pressing period without contention leaves the limit and starts the count over.
//   - A period that does not press adds one, up to the ceiling when reads contend,
//     else up to the start, and starts the count over.
//
// Step is pure.
func Step(limit, count, periods int, bounds Bounds, p Period) (nextLimit, nextCount int) {
	limit = bounds.clamp(limit)
	if p.Pressing {
		if !p.Contended {
			return limit, 0
		}
		if count++; count < periods {
			return limit, count
		}
		return max(bounds.low(), limit/2), 0
	}
	top := bounds.Start
	if p.Contended {
		top = bounds.Ceiling
	}
	if limit < min(top, bounds.Ceiling) {
		limit++
	}
	return limit, 0
}

// drift moves the limit by one towards the start.
func drift(limit int, bounds Bounds) int {
	start := bounds.clamp(bounds.Start)
	switch {
	case limit < start:
		return limit + 1
	case limit > start:
		return limit - 1
	default:
		return limit
	}
}
