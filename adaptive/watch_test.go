package adaptive

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// watcher holds what must be true of every period under whatever load, and counts what
// must be rare.
type watcher struct {
	t *testing.T
	m *model
	l *Limit

	probed bool  // in the period before
	before state // the rule's memory before the period
	last   Decision

	// A swing is the way from the lowest limit to the highest, or back, in less than
	// swingTime while writes go on.
	swings        int
	atLow, atHigh time.Time

	counted  Counts
	floored  time.Time      // since when it is at its floor
	said     map[string]int // the log's lines
	sum      int            // of the limits
	periods  int
	starving time.Duration // since a read ended, while some were wanted
	longest  time.Duration // that a read takes alone
	total    int
}

const swingTime = 10 * time.Second

// watched runs a scenario in virtual time under a watcher. The view is what the limit
// sees of the server; nil: own writes alone.
func watched(t *testing.T, seed uint64, bounds Bounds, options Options, v *view, scenario func(w *watcher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newModel(seed, bounds)
		w := &watcher{t: t, m: m, said: map[string]int{}}
		options.Activity = m.activity
		options.Logger = slog.New(tally(w.said))
		var source pressure.Source
		if v != nil {
			v.m, source = m, v
		}
		var err error
		if w.l, err = New(m, source, options); err != nil {
			t.Fatal(err)
		}
		scenario(w)
	})
}

// tally is a log handler that counts lines.
type tally map[string]int

func (tally) Enabled(context.Context, slog.Level) bool             { return true }
func (c tally) Handle(_ context.Context, record slog.Record) error { c[record.Message]++; return nil }
func (c tally) WithAttrs([]slog.Attr) slog.Handler                 { return c }
func (c tally) WithGroup(string) slog.Handler                      { return c }

// warm is [model.warm] under the watcher's eyes.
func (w *watcher) warm() {
	w.run(5*time.Second, nil)
	w.m.latencies, w.m.blamed, w.m.total, w.total = nil, nil, 0, 0
}

func (w *watcher) run(d time.Duration, look func(Decision)) {
	w.m.run(w.l, d, func(d Decision) {
		w.see(d)
		if look != nil {
			look(d)
		}
	})
}

// see takes in a period.
func (w *watcher) see(d Decision) {
	w.t.Helper()
	m, s := w.m, w.l.state
	b := m.bounds
	from := b.clamp(d.From)
	in := input{now: d.At, limit: from, bounds: b, contended: d.Contended, activity: d.Activity, verdict: d.Verdict}
	check(w.t, w.l.rule, w.before, in, outcome{d.To, d.Reason})
	// A probe is over with its period, so that the level is set once more where it stays.
	if m.limit != d.To || m.sets > 1 || (m.sets > 0) != (d.To != d.From || w.probed) {
		w.t.Fatalf("the limit is %d after %d changes, from %d to %d: %s", m.limit, m.sets, d.From, d.To, d.Reason)
	}
	w.probed = m.probed > 0
	if begun := s.hold.probing && !w.before.hold.probing && d.To > d.From; w.probed != begun {
		w.t.Fatalf("from %d to %d is filled once: %t; it begins to try a level that pressed: %t", d.From, d.To, w.probed, begun)
	}
	if d.To > b.low() || d.To >= b.Start {
		w.floored = time.Time{}
	} else if w.floored.IsZero() {
		w.floored = d.At
	}
	if want := d.At.Sub(w.floored); w.floored.IsZero() && d.AtFloor != 0 || !w.floored.IsZero() && d.AtFloor != want {
		w.t.Fatalf("at limit %d it has been at its floor for %v, since %v", d.To, d.AtFloor, w.floored)
	}
	w.recovers(d, from, s)
	w.learns(d)
	w.serves(d)
	w.swing(d, b)
	w.counts(d)
	w.before, w.last, m.sets = s, d, 0
	w.sum, w.periods = w.sum+d.To, w.periods+1
}

// counts: the counters tell what the decisions told.
func (w *watcher) counts(d Decision) {
	w.t.Helper()
	c := &w.counted
	switch {
	case d.To < d.From:
		c.Lowered++
	case d.To > d.From:
		c.Raised++
	}
	if d.Reason == reasonUnhelpful {
		c.GivenBack++
	}
	if !d.Verdict.Known {
		c.Unknown++
	}
	pressing, contended := 0, 0
	if d.Pressing {
		pressing = 1
	}
	if d.Contended {
		contended = 1
	}
	c.Periods[pressing][contended]++
	if got := w.l.Counts(); got != *c || w.l.Lowered() != c.Lowered || w.l.Raised() != c.Raised {
		w.t.Fatalf("the counters are %+v, want %+v", got, *c)
	}
}

// mean returns the mean limit since the beginning.
func (w *watcher) mean() float64 { return float64(w.sum) / float64(w.periods) }

// recovers: a calm period in which nothing holds raises the limit by one. So it is back
// after as many calm periods as it is short of.
func (w *watcher) recovers(d Decision, from int, s state) {
	w.t.Helper()
	v := d.Verdict
	if v.Pressing || !v.Known || v.Freeze || s.hold.level > 0 || w.before.climb.active() || s.climb.active() ||
		w.before.dip.active || s.dip.active || w.before.trial.active() {
		return
	}
	want, _ := Step(from, 0, 1, w.m.bounds, Period{Contended: d.Contended})
	if d.To < want { // more at once where a series of cuts ends as well
		w.t.Fatalf("calm, and nothing holds: from %d to %d, want %d: %s", from, d.To, want, d.Reason)
	}
}

// learns: what pressed is not learned, but where the floor is held to learn from it.
func (w *watcher) learns(d Decision) {
	w.t.Helper()
	if !w.last.Pressing || w.last.Activity.Probing {
		return
	}
	for _, sig := range d.Verdict.Signals {
		before, ok := w.last.Verdict.Signal(sig.Name)
		if ok && before.Fresh && sig.Fresh && sig.Baseline > before.Baseline && before.Baseline > 0 {
			w.t.Fatalf("%s: the baseline rose from %v to %v while it pressed (%s)", sig.Name, before.Baseline, sig.Baseline, w.last.Verdict.Reason)
		}
	}
}

// serves: reads go on, however low the limit is.
func (w *watcher) serves(d Decision) {
	w.t.Helper()
	w.starving += w.l.options.Period
	if w.m.total != w.total || w.m.readers == 0 {
		w.starving = 0
	}
	w.longest = max(w.longest, w.m.work) // one that has begun goes on as it is
	if w.total = w.m.total; w.starving > 30*w.longest {
		w.t.Fatalf("at limit %d no read has ended for %v", d.To, w.starving)
	}
}

func (w *watcher) swing(d Decision, b Bounds) {
	if !d.Verdict.WritesMove {
		w.atLow, w.atHigh = time.Time{}, time.Time{} // it is relieved
		return
	}
	if b.low() == b.Ceiling {
		return
	}
	recent := func(at time.Time) bool { return !at.IsZero() && d.At.Sub(at) < swingTime }
	switch d.To {
	case b.low():
		if recent(w.atHigh) {
			w.swings++
		}
		w.atLow, w.atHigh = d.At, time.Time{}
	case b.Ceiling:
		if recent(w.atLow) {
			w.swings++
		}
		w.atHigh, w.atLow = d.At, time.Time{}
	}
}

// view is what a poll sees of the model's server: a source.
type view struct {
	m *model

	sync  func() time.Duration // of a WAL sync; nil: 0.2 ms, and more beside reads
	locks func() float64       // sessions that wait for a lock; nil: none
	fail  error                // every poll fails
	stale bool                 // every poll sees what the last one saw

	xid, millis float64
	last        time.Time
	seen        pressure.Sample
}

func (v *view) Sample(context.Context) (pressure.Sample, error) {
	if v.fail != nil {
		return pressure.Sample{}, v.fail
	}
	if v.stale && !v.last.IsZero() {
		return v.seen, nil
	}
	now := time.Now()
	sync := time.Duration(0.2 * float64(time.Millisecond) * slow(v.m.busy()))
	if v.sync != nil {
		sync = v.sync()
	}
	if !v.last.IsZero() {
		n := v.m.writeRate * now.Sub(v.last).Seconds()
		v.xid += n
		v.millis += n * float64(sync) / float64(time.Millisecond)
	}
	v.last = now
	locks := 0.0
	if v.locks != nil {
		locks = v.locks()
	}
	v.seen = pressure.Sample{
		At: now, ServerTime: now, Version: 170000,
		NextXID: pressure.Read(v.xid), WALSyncs: pressure.Read(v.xid), WALSyncMillis: pressure.Read(v.millis),
		LockWaiters: pressure.Read(locks), WALWaiters: pressure.Read(0),
	}
	return v.seen, nil
}
