package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"
)

// benchResult is what a benchmark saw.
type benchResult struct {
	Server    string            `json:"server"`
	Begun     time.Time         `json:"begun"`
	Rate      int               `json:"rate"`
	Readers   int               `json:"readers"`
	Conns     int               `json:"conns"`
	Rows      int               `json:"rows"`
	ReadMs    float64           `json:"read_ms"` // of one aggregate alone
	Params    string            `json:"params,omitempty"`
	Scenarios []*scenarioResult `json:"scenarios"`
	LeftOut   []leftOut         `json:"left_out,omitempty"`
}

// leftOut is a scenario that could not be run on this server, and why.
type leftOut struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// scenarioResult is what a scenario's arms did.
type scenarioResult struct {
	Name   string   `json:"name"`
	About  string   `json:"about"`
	Rounds int      `json:"rounds"`
	Arms   []string `json:"arms"`
	Claims []claim  `json:"claims"`

	runs runs
	last map[string]*phase // of the last round, for the charts
}

// MarshalJSON adds the figures. What was never reached is null: JSON has no infinity.
func (s *scenarioResult) MarshalJSON() ([]byte, error) {
	type plain scenarioResult
	figures := map[string][]map[string]*float64{}
	for arm, rounds := range s.runs {
		for _, f := range rounds {
			out := map[string]*float64{}
			for key, v := range f {
				out[key] = finite(v)
			}
			figures[arm] = append(figures[arm], out)
		}
	}
	moves := map[string][]decision{}
	for arm, p := range s.last {
		for _, d := range p.Decisions {
			d.At -= p.From + p.Lead
			moves[arm] = append(moves[arm], d)
		}
	}
	return json.Marshal(struct {
		*plain
		Figures map[string][]map[string]*float64 `json:"figures"`
		Moves   map[string][]decision            `json:"moves_of_last_round"` // nanoseconds since the reads joined
	}{(*plain)(s), figures, moves})
}

// MarshalJSON is as that of scenarioResult.
func (c claim) MarshalJSON() ([]byte, error) {
	type plain claim
	rounds := make([]*float64, len(c.Rounds))
	for i, v := range c.Rounds {
		rounds[i] = finite(v)
	}
	return json.Marshal(struct {
		plain
		Value  *float64   `json:"value"`
		Rounds []*float64 `json:"rounds"`
	}{plain(c), finite(c.Value), rounds})
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func (r *benchResult) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// columns are the figures of the table.
var columns = []struct{ title, key, format string }{
	{"write p50, ms", "write_p50_ms", "%.2f"},
	{"p95", "write_p95_ms", "%.2f"},
	{"p99", "write_p99_ms", "%.2f"},
	{"writes/s", "writes_per_s", "%.0f"},
	{"reads/s", "reads_per_s", "%.1f"},
	{"refused", "refused", "%.0f"},
	{"failed", "errors", "%.0f"},
	{"unfinished", "writes_unfinished", "%.0f"},
	{"mean limit", "limit_mean", "%.1f"},
	{"cuts/min", "cuts_per_min", "%.1f"},
}

// writeBenchTable prints the medians of all arms, and then what they show.
func writeBenchTable(w io.Writer, r *benchResult) error {
	fmt.Fprintf(w, "\nPostgres %s; %d writes/s due, %d readers, a pool of %d; an aggregate of %d rows takes %.0f ms alone. Medians over the rounds.\n",
		r.Server, r.Rate, r.Readers, r.Conns, r.Rows, r.ReadMs)
	for _, s := range r.Scenarios {
		fmt.Fprintf(w, "\n%s (%s). %s\n", s.Name, count(s.Rounds, "round"), s.About)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, c := range columns {
			fmt.Fprintf(t, "\t%s", c.title)
		}
		fmt.Fprintln(t, "\t")
		for _, cells := range s.rows() {
			fmt.Fprintln(t, strings.Join(cells, "\t")+"\t")
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "\nWrite latency counts from when the write was due. What it shows:")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range r.claims() {
		fmt.Fprintln(t, strings.Join(c.cells(), "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, l := range r.LeftOut {
		fmt.Fprintf(w, "left out: %s: %s\n", l.Name, l.Reason)
	}
	return nil
}

// rows are the arms' medians as text.
func (s *scenarioResult) rows() [][]string {
	var rows [][]string
	for _, arm := range s.Arms {
		cells := []string{arm}
		for _, c := range columns {
			cell := "-"
			if v := s.runs.median(c.key, arm); !math.IsNaN(v) {
				cell = fmt.Sprintf(c.format, v)
			}
			cells = append(cells, cell)
		}
		rows = append(rows, cells)
	}
	return rows
}

func (r *benchResult) claims() []claim {
	var all []claim
	for _, s := range r.Scenarios {
		all = append(all, s.Claims...)
	}
	return all
}

// cells are a claim as text: whether it is met, where, what, the bound, the value, the
// rounds' range, and what stands beside it.
func (c claim) cells() []string {
	met, bound := "MISSED", "at least"
	if c.Met {
		met = "met"
	}
	if c.AtMost {
		bound = "at most"
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range c.Rounds {
		low, high = min(low, v), max(high, v)
	}
	spread := ""
	if len(c.Rounds) > 1 {
		spread = fmt.Sprintf("%.3g to %.3g", low, high)
	}
	return []string{
		met, c.Scenario, c.Measure, fmt.Sprintf("%s %.3g", bound, c.Bound), fmt.Sprintf("%.3g", c.Value), spread, strings.Join(c.Beside, "; "),
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// listScenarios prints what would be run, and the arms of each.
func listScenarios(w io.Writer, list []*scenario) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range list {
		var total time.Duration
		var arms []string
		for _, a := range s.arms {
			arms = append(arms, a.name)
			at := s.timingOf(a)
			total += at.lead + at.settle + at.measure
		}
		fmt.Fprintf(t, "%s\t%s\t%v a round\t%s\t%s\n", s.name, count(len(s.arms), "arm"), total, s.about, strings.Join(arms, ", "))
	}
	return t.Flush()
}
