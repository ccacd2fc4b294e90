package adaptive

import (
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// rule is what does not change while a limit runs.
type rule struct {
	periods       int
	hold, holdMax time.Duration
	staleAfter    int
}

// How long a level must be free of pressure before it counts as good: as long as
// the slowest signal needs to tell.
const (
	outlastOwn    = time.Second
	outlastServer = 3500 * time.Millisecond
)

// state is the rule's memory. It is a plain value: next does not change the one it
// is given.
type state struct {
	count   int // pressing, contended periods in a row
	unknown int // periods in a row with nothing to judge by
	raised  bool
	last    time.Time
	lowered time.Time // when the limit was last lowered

	hold   hold
	proof  proof
	demand demand
	series series
	recent recent
	below  below
	trial  trial
	blame  acquittals
	climb  climb
	// innocent: the last climb bore an acquittal out, and nothing has been held against
	// the reads since.
	innocent bool
	dip      dip
}

// input is one period.
type input struct {
	now       time.Time
	limit     int
	bounds    Bounds
	contended bool
	behind    bool          // others that share the limit run more beside the same writes
	every     time.Duration // between two polls, where they are sparse; else 0
	activity  pressure.Activity
	verdict   pressure.Verdict
}

// outcome is the next limit and why.
type outcome struct {
	to     int
	reason string
}

// Reasons that are not a signal's.
const (
	reasonBaseline  = "learns a first baseline at the floor"
	reasonLearned   = "the first baseline is learned"
	reasonUntaught  = "too few writes for a first baseline: goes back"
	reasonUnknown   = "nothing to judge by"
	reasonDrift     = "nothing to judge by for long: drifts to the start"
	reasonUnhelpful = "lowering did not help: reads are not to blame"
	reasonAcquitted = "presses, but reads are not to blame"
	reasonClimb     = "reads are not to blame: climbs back"
	reasonIdle      = "presses, but reads do not contend"
	reasonAwaits    = "presses; waits for more evidence"
	reasonFloor     = "presses at the floor"
	reasonTrial     = "presses at the floor; tries whether one read more matters"
	reasonMatter    = "one read more made it worse"
	reasonCalm      = "calm"
	reasonTop       = "calm, at its height"
	reasonHold      = "calm; holds below a level that pressed"
	reasonProbe     = "calm; tries a level that pressed"
	reasonSparse    = "calm; does not rise before the next poll"
	reasonWeighs    = "weighs whether writes are slower than at lower limits"
	reasonFrozen    = "something waits for a relation's lock: does not rise"
)

// next decides one period. It is pure.
func (r rule) next(s state, in input) (state, outcome) {
	in.limit = in.bounds.clamp(in.limit)
	s, out := r.decide(s, in)
	if out.to < in.limit {
		s.lowered = in.now
	}
	return s, out
}

func (r rule) decide(s state, in input) (state, outcome) {
	dt := in.now.Sub(s.last)
	if s.last.IsZero() || dt < 0 {
		dt = 0
	}
	s.last = in.now

	if out, done := r.dipping(&s, in); done {
		return s, out
	}
	v := in.verdict
	if !v.Known {
		return s, r.blind(&s, in)
	}
	s.unknown = 0
	s.recent.note(in)
	r.relief(&s, in, dt)
	own, _ := v.Signal(pressure.OwnWrites)
	s.below.note(in, dt, own)
	if s.trial.active() {
		return s, r.try(&s, in)
	}
	failed, helped := s.series.watch(in.now, in.limit, in.activity, v)
	if failed {
		return s, r.giveBack(&s, in, s.series.signal, s.series.from, min(s.series.relieved.value(), s.series.loaded.value()))
	}
	if helped {
		s.innocent = false
	}
	if in.contended && s.climb.refuted(v, s.worsens(in.now, v)) {
		s.blame.revoke(in.now)
		s.innocent = false
	}
	if open := r.accused(&s, in); open.Pressing {
		return s, r.press(&s, in, open)
	}
	return s, r.calm(&s, in)
}

// dipping begins, keeps and ends the dip for a first baseline.
func (r rule) dipping(s *state, in input) (outcome, bool) {
	low := in.bounds.low()
	if s.dip.active {
		if s.dip.over(in.now, low, in.activity.Running, in.verdict.NeedBaseline, r.hold, r.holdMax) {
			if in.verdict.NeedBaseline || !in.verdict.Known {
				// Nothing was learned, so nothing says that reads should run at the floor.
				return outcome{in.bounds.clamp(s.dip.from), reasonUntaught}, true
			}
			return outcome{in.limit, reasonLearned}, true
		}
		return outcome{low, reasonBaseline}, true
	}
	if s.dip.wanted(in.now, in.limit, in.bounds, in.contended, in.verdict) {
		s.dip.begin(in.now, in.limit)
		s.count, s.climb, s.below = 0, climb{}, below{}
		return outcome{low, reasonBaseline}, true
	}
	return outcome{}, false
}

// blind is a period with nothing to judge by.
func (r rule) blind(s *state, in input) outcome {
	s.count = 0
	if s.unknown++; s.unknown <= r.staleAfter {
		return outcome{in.limit, reasonUnknown}
	}
	s.forgetLevels()
	return outcome{drift(in.limit, in.bounds), reasonDrift}
}

// relief forgets the hold when what made it has gone.
func (r rule) relief(s *state, in input, dt time.Duration) {
	v, a := in.verdict, in.activity
	if !v.WritesMove {
		s.forgetLevels()
		s.demand, s.blame, s.innocent = demand{}, acquittals{}, false
		return
	}
	if v.Pressing {
		s.demand = demand{}
		return
	}
	wrote, read := s.demand.halved(in.limit, dt, a.Writes.Count, a.ReadsDone, a.ReadTime)
	if wrote || read {
		s.forgetLevels()
	}
}

// forgetLevels forgets what each limit was found to do: the load that showed it is gone.
func (s *state) forgetLevels() {
	s.hold, s.series, s.trial, s.climb, s.below = hold{}, series{}, trial{}, climb{}, below{}
}

// giveBack takes cuts back that did not help against a signal, which stood at that
// excess without the reads. The cuts of every signal wait then, or each in turn would
// cost an experiment: what another says now, it saw while the limit was low.
func (r rule) giveBack(s *state, in input, signal string, from int, without float64) outcome {
	for _, sig := range in.verdict.Signals {
		// What another was found to be without the reads is not forgotten because it is
		// calm just now: or two that press in turn would end each other's acquittals.
		hold, most := in.patience(sig.Name, r.hold, acquittedPolls), in.patience(sig.Name, r.holdMax, acquittedMost)
		level := max(excess(sig), s.blame.of(sig.Name).known(in.now, most))
		if sig.Name == signal {
			level = without
		}
		// What is still within tolerance is not worse.
		level = max(level, float64(sig.Threshold-sig.Baseline))
		s.blame.of(sig.Name).grant(in.now, level, hold, most)
	}
	s.series, s.count = series{}, 0

	if s.innocent {
		s.hold, s.climb = hold{}, climb{}
		return outcome{max(in.limit, in.bounds.clamp(from)), reasonUnhelpful}
	}
	s.climb = climb{to: max(from, in.bounds.Start)}
	return outcome{r.climbOn(s, in), reasonUnhelpful}
}

// try goes on with a trial. One that ends because writes are well again, or its
// signal is gone, leaves the rest to the rule.
func (r rule) try(s *state, in input) outcome {
	v := in.verdict
	sig, ok := v.Signal(s.trial.signal)
	if !ok || !v.Pressing {
		s.trial = trial{}
		return r.calm(s, in)
	}
	over, matter := s.trial.watch(in.now, sig)
	if !over {
		return outcome{in.limit, reasonTrial}
	}
	without := min(s.trial.before, s.trial.with.value())
	s.trial.end(r.holdMax)
	if !matter {
		from := in.bounds.Start
		if s.series.active() {
			from = s.series.from
		}
		return r.giveBack(s, in, sig.Name, from, without)
	}
	s.hold.pressed(in.limit, in.now, false, r.hold, r.holdMax)
	s.raised, s.innocent = false, false
	return outcome{max(in.bounds.low(), in.limit-1), reasonMatter}
}

// accused returns what the pressing signals say that reads were not acquitted of. The
// others are no evidence: they make nothing fresh, and are no reason for a cut.
func (r rule) accused(s *state, in input) (open pressure.Verdict) {
	if !in.verdict.Pressing {
		return open
	}
	for _, sig := range in.verdict.Signals {
		// Each is asked, because each counts how long it has been worse.
		if sig.Pressing && !s.blame.of(sig.Name).holds(in.now, sig) && !s.below.excuses(in.now, sig) {
			open.Signals = append(open.Signals, sig)
			open.Fresh = open.Fresh || sig.Fresh && in.verdict.Fresh
		}
	}
	if lead, ok := open.Leading(); ok {
		open.Pressing, open.Reason = true, lead.Reason()
	}
	_, own := open.Signal(pressure.OwnWrites)
	open.Strong = own && in.verdict.Strong // nothing else is ever strong evidence
	return open
}

// worsens is true when a signal that reads were acquitted of stands clearly higher
// than it did without them, and no doubt is left of it.
func (s *state) worsens(now time.Time, v pressure.Verdict) bool {
	for _, sig := range v.Signals {
		if sig.Pressing && excess(sig) > worseBy*s.blame.of(sig.Name).excess && !s.below.doubts(now, sig) {
			return true
		}
	}
	return false
}

// press is a period in which writes suffered, as those signals say.
func (r rule) press(s *state, in input, v pressure.Verdict) outcome {
	// Own writes tell soonest whether a cut helped. To try a signal again that reads were
	// acquitted of would tell nothing of the one that they were not.
	lead, own := v.Signal(pressure.OwnWrites)
	if !own {
		lead, _ = v.Leading()
	}
	probe := s.hold.probing && !s.hold.calm
	s.hold.since, s.hold.seen = in.now, 0 // a probe that presses has not outlasted anything
	if !in.contended {
		s.count = 0
		return outcome{in.limit, reasonIdle}
	}
	if !v.Fresh {
		return outcome{in.limit, reasonAwaits}
	}
	periods := r.periods
	if v.Strong || in.sparse() && polled(v) {
		periods = 1
	}
	before := s.count
	to, count := Step(in.limit, before, periods, in.bounds, Period{Pressing: true, Contended: true})
	s.count = count
	switch {
	case count > 0:
		return outcome{in.limit, reasonAwaits}
	case to == in.limit:
		// What presses may be the reads that were let run before the limit was lowered. Those
		// that wait for others may run above it for good, so they are not waited for ever.
		if in.activity.Running > in.limit && in.now.Sub(s.lowered) < r.holdMax {
			return outcome{to, reasonFloor}
		}
		if s.trial.pressed(in.now, lead, s.recent.mean(lead.Name), r.hold/2) && in.limit < in.bounds.Ceiling {
			return outcome{in.limit + 1, reasonTrial}
		}
		return outcome{to, reasonFloor}
	}
	if !probe {
		s.series.cut(in.limit, lead, s.recent)
	}
	alone := v.Strong && before == 0 && s.raised
	// A climb that failed is no failed probe: what was marked before it still stands.
	if lasted := s.proof.refute(in.limit); !s.climb.revoked && (!alone || !lasted) {
		if s.below.leaves(in.now, lead) {
			s.hold.doubted(in.limit, in.now, r.hold/4)
		} else {
			s.hold.pressed(in.limit, in.now, !s.raised, r.hold, r.holdMax)
		}
	}
	s.raised, s.climb = false, climb{}
	return outcome{to, v.Reason}
}

// calm is a period in which they did not, or for which reads are not to blame.
func (r rule) calm(s *state, in input) outcome {
	v := in.verdict
	s.count = 0
	s.trial.next = time.Time{}
	enough := outlastOwn
	for _, sig := range v.Signals {
		if sig.Name != pressure.OwnWrites && sig.Threshold > 0 {
			enough = outlastServer
		}
	}
	if !v.Pressing && s.proof.calm(in.now, in.limit, enough, v.Fresh) && s.climb.revoked {
		s.climb = climb{} // it failed long ago: the next cut has nothing to do with it
	}
	if s.climb.active() {
		return r.wayBack(s, in)
	}
	if s.below.undecided(in) {
		return outcome{in.limit, reasonWeighs}
	}
	probing := s.hold.outlasted(in.now, enough, v.Fresh)
	to, _ := Step(in.limit, 0, r.periods, in.bounds, Period{Contended: in.contended})
	reason := reasonCalm
	if v.Pressing {
		reason = reasonAcquitted
	}
	switch {
	case to == in.limit:
		if !v.Pressing {
			reason = reasonTop
		}
		return outcome{to, reason}
	case v.Freeze:
		return outcome{in.limit, reasonFrozen}
	case in.sparse() && !v.Fresh:
		return outcome{in.limit, reasonSparse}
	case probing:
		return outcome{in.limit, reasonProbe}
	case s.hold.blocks(to, in.now) && !in.behind:
		return outcome{in.limit, reasonHold}
	}
	if v.Pressing && s.worsens(in.now, v) {
		return outcome{in.limit, reasonAcquitted}
	}
	s.hold.raised(to, in.now)
	s.raised = true
	s.series = series{} // what is seen from now on is not what the cut led to
	return outcome{to, reason}
}
