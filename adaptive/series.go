package adaptive

import (
	"slices"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// A cut is an experiment. Its result counts once the reads above the new limit are
// gone and the backlog they left has had time to clear.
const (
	settle      = 500 * time.Millisecond
	experiment  = time.Second
	enoughBad   = 2   // relieved windows that must not be better
	enoughGood  = 8   // relieved windows after which the cut has proved itself
	betterBy    = 0.7 // what may be left of the excess
	worseFactor = 2.5 // how much worse lets cuts happen again
	worseFor    = 6   // fresh periods in a row; more than are pooled, or one would do
)

// mean is a running mean.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum += v; m.n++ }

func (m *mean) value() float64 {
	if m.n == 0 {
		return 0
	}
	return m.sum / float64(m.n)
}

// excess is how much longer a signal says a write takes than in calm.
func excess(s pressure.Signal) float64 { return max(0, float64(s.Value-s.Baseline)) }

// recent holds what each signal was lately while reads contended at one limit, in
// the order of pressure.SignalNames.
type recent struct {
	limit  int
	values [6][recentWindows]float64
	n      [6]int
}

const recentWindows = 8

// note takes in a period.
func (r *recent) note(in input) {
	if r.limit != in.limit || !in.contended {
		*r = recent{limit: in.limit}
	}
	for _, s := range in.verdict.Signals {
		if i := slices.Index(signalNames, s.Name); i >= 0 && s.Fresh {
			r.values[i][r.n[i]%recentWindows] = excess(s)
			r.n[i]++
		}
	}
}

// mean returns the mean of a signal's excess.
func (r *recent) mean(signal string) mean {
	var m mean
	i := max(0, slices.Index(signalNames, signal))
	for k := range min(r.n[i], recentWindows) {
		m.add(r.values[i][k])
	}
	return m
}

// series is a row of cuts for the sake of one signal. The zero series is none.
type series struct {
	signal string
	from   int // the limit before its first cut

	loaded, relieved mean // the signal's excess before and after the reads were gone
	drained          time.Time
}

func (s *series) active() bool { return s.signal != "" }

// cut takes note of a cut at that limit. What is compared with is not only the
// windows that pressed, which are the worst by choice, but also those before them.
func (s *series) cut(limit int, lead pressure.Signal, before recent) {
	if !s.active() {
		*s = series{signal: lead.Name, from: limit}
		s.loaded = before.mean(lead.Name)
	}
	s.drained, s.relieved = time.Time{}, mean{}
}

// watch takes in a period after a cut and tells whether the cuts have failed, or have
// helped, which ends the series; neither while that is open.
func (s *series) watch(now time.Time, limit int, a pressure.Activity, v pressure.Verdict) (failed, helped bool) {
	if !s.active() {
		return false, false
	}
	sig, ok := v.Signal(s.signal)
	if s.drained.IsZero() {
		if ok && sig.Fresh {
			s.loaded.add(excess(sig))
		}
		if a.Running <= limit {
			s.drained = now
		}
		return false, false
	}
	if !ok || !sig.Fresh || sig.Since.Before(s.drained.Add(settle)) {
		return false, false
	}
	s.relieved.add(excess(sig))
	still := betterBy * s.loaded.value()
	switch {
	case excess(sig) > still && s.relieved.n >= enoughBad && s.relieved.value() > still &&
		now.Sub(s.drained) >= settle+experiment:
		return true, false
	case s.relieved.n >= enoughGood && s.relieved.value() <= still && !v.Pressing:
		*s = series{}
		return false, true
	}
	return false, false
}

// acquittal says that reads are not to blame for a signal: cuts wait for it.
type acquittal struct {
	until  time.Time
	length time.Duration
	excess float64 // what the signal was without the reads
	worse  int     // fresh periods in a row in which it was much worse
}

// acquittals holds one for each signal, in the order of pressure.SignalNames.
type acquittals [6]acquittal

func (q *acquittals) of(signal string) *acquittal {
	return &q[max(0, slices.Index(signalNames, signal))]
}

var signalNames = pressure.SignalNames()

// grant makes cuts for a signal wait, twice as long as the last time when that is
// not long ago.
func (q *acquittal) grant(now time.Time, excess float64, shortest, longest time.Duration) {
	if q.recent(now, longest) {
		q.length = min(2*q.length, longest)
	} else {
		q.length = shortest
	}
	q.until, q.excess, q.worse = now.Add(q.length), excess, 0
}

// recent is true while it stands, and for as long again as one may.
func (q *acquittal) recent(now time.Time, longest time.Duration) bool {
	return q.length > 0 && now.Sub(q.until) <= longest
}

// known returns what the signal was found to be without the reads, not long ago; else 0.
func (q *acquittal) known(now time.Time, longest time.Duration) float64 {
	if !q.recent(now, longest) {
		return 0
	}
	return q.excess
}

// revoke ends all that stand.
func (q *acquittals) revoke(now time.Time) {
	for i := range q {
		if now.Before(q[i].until) {
			q[i].until, q[i].worse = now, 0
		}
	}
}

// prolong lets all that stand begin their wait again.
func (q *acquittals) prolong(now time.Time) {
	for i := range q {
		if now.Before(q[i].until) {
			q[i].until = now.Add(q[i].length)
		}
	}
}

// holds reports whether cuts for that signal still wait. It ends early when the
// signal is much worse for a while.
func (q *acquittal) holds(now time.Time, s pressure.Signal) bool {
	if !now.Before(q.until) {
		return false
	}
	if !s.Fresh {
		return true
	}
	if excess(s) <= worseFactor*q.excess {
		q.worse = 0
		return true
	}
	if q.worse++; q.worse < worseFor {
		return true
	}
	q.until, q.worse = now, 0
	return false
}
