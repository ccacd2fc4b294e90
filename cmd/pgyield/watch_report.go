package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// watchedPeriod is one period, as --json writes it. Times are in milliseconds.
type watchedPeriod struct {
	Kind    string    `json:"kind"` // "period"
	At      time.Time `json:"at"`
	Verdict string    `json:"verdict"` // "pressing", "calm" or "unknown"
	Reason  string    `json:"reason"`
	// Learning: the period may teach the baselines. Frozen: something waits for a
	// relation's lock, so that a limit would not rise.
	Learning bool                     `json:"learning"`
	Frozen   bool                     `json:"frozen"`
	Signals  map[string]watchedSignal `json:"signals"`
	Absent   map[string]string        `json:"absent"` // why
	Error    string                   `json:"error,omitempty"`
}

// watchedSignal is a signal beside what it is compared with; 0: not known yet.
type watchedSignal struct {
	MS        float64 `json:"ms"`
	Baseline  float64 `json:"baseline_ms"`
	Threshold float64 `json:"threshold_ms"`
	Over      bool    `json:"over"`
}

func watched(s pressure.Signal) watchedSignal {
	return watchedSignal{inMillis(s.Value), inMillis(s.Baseline), inMillis(s.Threshold), isOver(s)}
}

func isOver(s pressure.Signal) bool { return s.Threshold > 0 && s.Value > s.Threshold }

// watchReport writes periods as they come, and sums them up.
type watchReport struct {
	out, notes io.Writer
	json       *json.Encoder // nil: for people
	ladder     *ladder
	sum        watchSum
	said       map[string]string // why signals are absent, as last told
	sample     pressure.Sample   // the last
}

func newWatchReport(out, notes io.Writer, asJSON bool, l *ladder) *watchReport {
	r := &watchReport{out: out, notes: notes, ladder: l, said: map[string]string{}}
	if asJSON {
		r.json = json.NewEncoder(out)
		r.json.SetEscapeHTML(false)
	}
	return r
}

// begin tells what is watched, and what verdicts rest on.
func (r *watchReport) begin(s pressure.Sample, stat pressure.Stat) error {
	part := ""
	if s.Standby {
		part = ", a standby"
	}
	major, minor := stat.Version/10000, stat.Version%10000
	_, err := fmt.Fprintf(r.notes, "watching PostgreSQL %d.%d%s as %q, tolerance %v; verdicts assume that reads run and contend all the time\n",
		major, minor, part, stat.Role, r.ladder.chosen.tolerance)
	if err != nil || r.json != nil {
		return err
	}
	_, err = fmt.Fprint(r.out, "time        verdict   signal value (baseline, threshold), ! over it\n")
	return err
}

// period judges a period and writes it. failed is why there is no sample.
func (r *watchReport) period(now time.Time, s pressure.Sample, failed error, stat pressure.Stat) error {
	var judged *pressure.Sample
	if failed == nil {
		r.sample, judged = s, &s
	}
	v, learning := r.ladder.next(now, judged)
	r.sum.add(v, failed)
	p := watchedPeriod{
		Kind: "period", At: now, Verdict: verdictText(v), Reason: v.Reason, Learning: learning, Frozen: v.Freeze,
		Signals: map[string]watchedSignal{}, Absent: map[string]string{}, Error: errorText(failed),
	}
	for _, signal := range v.Signals {
		p.Signals[signal.Name] = watched(signal)
	}
	if failed == nil {
		p.Absent = absences(v, s, stat)
		if err := r.tell(p.Absent); err != nil {
			return err
		}
	}
	if r.json != nil {
		return r.json.Encode(p)
	}
	_, err := fmt.Fprintln(r.out, p.line(v))
	return err
}

// tell says of absent signals what was not said before.
func (r *watchReport) tell(absent map[string]string) error {
	for _, name := range pressure.SignalNames() {
		why := absent[name]
		if why == "" || why == notYet || why == r.said[name] {
			continue
		}
		r.said[name] = why
		if _, err := fmt.Fprintf(r.notes, "no %s: %s\n", name, why); err != nil {
			return err
		}
	}
	return nil
}

// line is a period for people.
func (p watchedPeriod) line(v pressure.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-8s", p.At.Format("15:04:05.0"), p.Verdict)
	for _, s := range v.Signals {
		fmt.Fprintf(&b, "  %s %s (%s, %s)", s.Name, millis(s.Value), known(s.Baseline), known(s.Threshold))
		if isOver(s) {
			b.WriteByte('!')
		}
	}
	switch {
	case p.Error != "":
		fmt.Fprintf(&b, "  no sample: %s", p.Error)
	case p.Reason != p.Verdict && !v.Pressing:
		fmt.Fprintf(&b, "  %s", p.Reason)
	}
	if p.Learning && v.Known && p.Error == "" {
		b.WriteString("  learning")
	}
	if p.Frozen {
		b.WriteString("  a limit would not rise: something waits for a relation's lock")
	}
	return b.String()
}

// known prints a time where there is one.
func known(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return millis(d)
}

// end writes the sums.
func (r *watchReport) end() error {
	w := r.sum.watched(r.ladder, r.said)
	if r.json != nil {
		return r.json.Encode(w)
	}
	return w.write(r.out)
}

// write prints the sums for people.
func (w watchedSum) write(out io.Writer) error {
	fmt.Fprintf(out, "\n%d periods, %d without a sample; %d pressed, %d were calm, of %d nothing is known\n",
		w.Periods, w.Failed, w.Pressing, w.Calm, w.Periods-w.Pressing-w.Calm)
	if len(w.Signals) > 0 {
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "\tp50\tp90\tp99\tmax\tbaseline\tthreshold\tover it\t")
		for _, s := range w.Signals {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", s.Name, ms3(s.P50), ms3(s.P90), ms3(s.P99), ms3(s.Max),
				ms3Known(s.Baseline), ms3Known(s.Threshold), percent(s.Over))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprint(out, "share of the periods that press, by tolerance:")
	for _, t := range w.Tolerances {
		fmt.Fprintf(out, "  %v: %s", t.Tolerance, percent(t.Pressing))
	}
	fmt.Fprintln(out)
	for _, name := range pressure.SignalNames() {
		if why := w.Absent[name]; why != "" {
			fmt.Fprintf(out, "no %s: %s\n", name, why)
		}
	}
	return nil
}

// ms3 prints milliseconds as millis does, ms3Known where there are any.
func ms3(x float64) string      { return millis(time.Duration(x * float64(time.Millisecond))) }
func ms3Known(x float64) string { return known(time.Duration(x * float64(time.Millisecond))) }
