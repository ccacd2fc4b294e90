package adaptive

import (
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// climb is the way back after reads were acquitted. One comparison proves little:
// other load that comes or goes between its two halves makes guilty reads look
// innocent. So the limit does not jump back to where the cuts began; it climbs, and
// each step is one more comparison with what writes took without the reads. A level
// that is worse takes the acquittal back. The zero climb is none.
type climb struct {
	to      int // the height at which reads are acquitted for good; 0: none
	stepped time.Time
	seen    int // judgements at this level
	worse   int // those in a row that were worse
	revoked bool
}

func (c *climb) active() bool { return c.to > 0 && !c.revoked }

// refuted takes in a period under contention, and is true when it ends the climb.
func (c *climb) refuted(v pressure.Verdict, worse bool) bool {
	if !c.active() || !c.sees(v) {
		return false
	}
	c.seen++
	if c.worse++; !worse {
		c.worse = 0
	}
	c.revoked = c.worse >= enoughBad
	return c.revoked
}

// sees is true when what the verdict rests on was seen since the last step.
func (c *climb) sees(v pressure.Verdict) bool {
	for _, sig := range v.Signals {
		if sig.Fresh && sig.Pressing == v.Pressing && !sig.Since.Before(c.stepped) {
			return true
		}
	}
	return false
}

// climbByOne is the limit below which a climb goes by one.
const climbByOne = 4

// wayBack is a period of a climb in which nothing is held against the reads.
func (r rule) wayBack(s *state, in input) outcome {
	reason := reasonCalm
	if in.verdict.Pressing {
		reason = reasonAcquitted
	}
	weighs := s.below.undecided(in)
	switch {
	case in.limit >= in.bounds.clamp(s.climb.to):
		if !weighs && s.climb.worse == 0 && in.now.Sub(s.climb.stepped) >= settle+experiment {
			s.climb, s.hold, s.trial = climb{}, hold{}, trial{}
			s.innocent = true // the next acquittal needs no climb
		}
		return outcome{in.limit, reason}
	case in.verdict.Freeze:
		return outcome{in.limit, reasonFrozen}
	case weighs:
		s.blame.prolong(in.now) // where writes are few, this takes longer than cuts wait
		return outcome{in.limit, reasonWeighs}
	case in.verdict.Pressing && in.contended && (s.climb.seen == 0 || s.climb.worse > 0):
		return outcome{in.limit, reason}
	}
	return outcome{r.climbOn(s, in), reasonClimb}
}

// climbOn takes the next step of a climb: by one where one read more is a lot, and twice
// as high above, so that a high limit is not a minute away where judgements are seconds
// apart.
func (r rule) climbOn(s *state, in input) int {
	to := in.limit
	steps := 1
	if in.limit >= climbByOne {
		steps = in.limit
	}
	for range steps {
		to, _ = Step(to, 0, r.periods, in.bounds, Period{Contended: in.contended})
	}
	if to > in.limit {
		s.climb.stepped, s.climb.seen, s.climb.worse = in.now, 0, 0
		s.blame.prolong(in.now)
		s.raised = true
	}
	return to
}
