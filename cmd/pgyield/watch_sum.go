package main

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// watchedSum is what a run of watch comes to, as --json writes it. Shares are from 0 to
// 1, times in milliseconds.
type watchedSum struct {
	Kind       string            `json:"kind"` // "sum"
	Periods    int               `json:"periods"`
	Failed     int               `json:"without_sample"`
	Pressing   int               `json:"pressing"`
	Calm       int               `json:"calm"`
	Signals    []signalSum       `json:"signals"`
	Tolerances []toleranceSum    `json:"tolerances"`
	Absent     map[string]string `json:"absent"` // those that were never there
}

// signalSum is one signal over the periods in which it was known.
type signalSum struct {
	Name    string  `json:"name"`
	Periods int     `json:"periods"`
	P50     float64 `json:"p50_ms"`
	P90     float64 `json:"p90_ms"`
	P99     float64 `json:"p99_ms"`
	Max     float64 `json:"max_ms"`
	// Baseline and Threshold are the last; Over is the share of the periods over what
	// the threshold was then.
	Baseline  float64 `json:"baseline_ms"`
	Threshold float64 `json:"threshold_ms"`
	Over      float64 `json:"over"`
}

// toleranceSum is the share of the judged periods that press at a tolerance.
type toleranceSum struct {
	Tolerance float64 `json:"tolerance"`
	Pressing  float64 `json:"pressing"`
}

// watchSum adds periods up in room that does not grow with their number.
type watchSum struct {
	periods, failed, pressing, calm int
	signals                         map[string]*signalTally
}

// signalTally is one signal's values. The buckets of write latencies fit them as well;
// what is shorter than the first counts as 0.
type signalTally struct {
	values        pressure.Writes
	n, zero, over int
	max           time.Duration
	last          pressure.Signal
}

const shortest = 10 * time.Microsecond

func (w *watchSum) add(v pressure.Verdict, failed error) {
	w.periods++
	switch {
	case v.Pressing:
		w.pressing++
	case v.Known:
		w.calm++
	}
	if failed != nil {
		w.failed++
		return
	}
	if w.signals == nil {
		w.signals = map[string]*signalTally{}
	}
	for _, s := range v.Signals {
		if w.signals[s.Name] == nil {
			w.signals[s.Name] = &signalTally{}
		}
		w.signals[s.Name].add(s)
	}
}

func (t *signalTally) add(s pressure.Signal) {
	t.n++
	t.max, t.last = max(t.max, s.Value), s
	if isOver(s) {
		t.over++
	}
	if s.Value < shortest {
		t.zero++
		return
	}
	t.values.Observe(s.Value)
}

// watched gives the sums; absent is why signals were not there.
func (w *watchSum) watched(l *ladder, absent map[string]string) watchedSum {
	out := watchedSum{
		Kind: "sum", Periods: w.periods, Failed: w.failed, Pressing: w.pressing, Calm: w.calm,
		Signals: []signalSum{}, Absent: map[string]string{},
	}
	for _, name := range pressure.SignalNames() {
		if t := w.signals[name]; t != nil {
			out.Signals = append(out.Signals, t.sum())
		} else if absent[name] != "" {
			out.Absent[name] = absent[name]
		}
	}
	for _, r := range l.rungs {
		out.Tolerances = append(out.Tolerances, toleranceSum{r.tolerance, float64(r.pressing) / float64(max(r.judged, 1))})
	}
	slices.SortFunc(out.Tolerances, func(a, b toleranceSum) int { return cmp.Compare(a.Tolerance, b.Tolerance) })
	return out
}

// sum ends the tally.
func (t *signalTally) sum() signalSum {
	values := t.values.Take()
	quantile := func(q float64) float64 {
		rank := int(math.Ceil(q*float64(t.n))) - t.zero
		if rank <= 0 {
			return 0
		}
		return inMillis(min(t.max, values.Quantile((float64(rank)-0.5)/float64(values.Count))))
	}
	return signalSum{
		Name: t.last.Name, Periods: t.n, P50: quantile(0.5), P90: quantile(0.9), P99: quantile(0.99), Max: inMillis(t.max),
		Baseline: inMillis(t.last.Baseline), Threshold: inMillis(t.last.Threshold), Over: float64(t.over) / float64(t.n),
	}
}
