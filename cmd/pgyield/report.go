package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"
)

//go:embed report.gohtml
var reportText string

var reportTemplate = template.Must(template.New("report").Parse(reportText))

// figure is one chart of the report.
type figure struct {
	Title, Note string
	Lines       []line
	SVG         template.HTML
	Decisions   []decision // listed below the chart
	draw        drawing
}

// writeReport writes the report: one file that needs nothing else. The charts
// are SVG, their data stands beside them as JSON.
func writeReport(w io.Writer, res *result) error {
	figures := figuresOf(res)
	for i := range figures {
		svg, err := figures[i].render()
		if err != nil {
			return fmt.Errorf("chart %q: %w", figures[i].Title, err)
		}
		figures[i].SVG = template.HTML(svg) //nolint:gosec // made here from numbers and fixed names
	}
	var table strings.Builder
	if err := writeTable(&table, res); err != nil {
		return err
	}
	return reportTemplate.Execute(w, map[string]any{
		"Result":  res,
		"Rows":    reportRows(res),
		"Table":   table.String(),
		"Figures": figures,
		"Data":    dataOf(figures),
		"When":    res.Begun.Format("2006-01-02 15:04"),
	})
}

// figuresOf computes the charts' lines.
func figuresOf(res *result) []figure {
	g := gridOf(res)
	idle, yield := res.Phases[0], res.Phases[2]
	var latency, reads, flight []line
	for _, p := range res.Phases {
		latency = append(latency, line{p.Name, g.writeQuantile(p, 0.95)})
		flight = append(flight, line{p.Name, g.gauge(p, func(s gauge) (float64, bool) { return float64(s.WritesInFlight), true })})
		if p != idle {
			reads = append(reads, line{p.Name, g.readRate(p)})
		}
	}
	limit := []line{ // the last is drawn over the others
		{"running", g.gated(yield, func(x *gate) (float64, bool) { return float64(x.Running), true })},
		{"waiting", g.gated(yield, func(x *gate) (float64, bool) { return float64(x.Waiting), true })},
		{"limit", g.gated(yield, func(x *gate) (float64, bool) { return float64(x.Limit), true })},
	}
	return []figure{
		{
			Title: "Write latency, p95", Lines: latency, draw: drawing{unit: " ms", log: true, colors: phaseColors},
			Note: "From when the write was due, the wait for a connection included; by when it ended. The scale is logarithmic.",
		},
		{
			Title: "The read limit", Lines: limit, draw: drawing{colors: limitColors}, Decisions: yield.Decisions,
			Note: "Reads that pgyield lets run at once, those that run, and those that wait for a permit." +
				" A limit that falls cancels nothing: what runs goes on. Plain pgxpool has no limit.",
		},
		{
			Title: "Reads per second", Lines: reads, draw: drawing{colors: phaseColors[1:]},
			Note: "Over the last two seconds.",
		},
		{
			Title: "Pressure", Lines: pressureLines(g, res), draw: drawing{unit: "x", log: true, colors: pressureColors},
			Note: "How many times its value without reads: the 90th percentile of write latency, and the mean time of a WAL sync" +
				" (where the server measures it). The marks at 1x are when pgyield judged that writes suffer.",
		},
		{
			Title: "Writes in flight", Lines: flight, draw: drawing{colors: phaseColors},
			Note: "Begun and not done: a database that keeps up has few.",
		},
	}
}

func pressureLines(g grid, res *result) []line {
	idle, plain, yield := res.Phases[0], res.Phases[1], res.Phases[2]
	p90 := merge(g.writeQuantile(idle, 0.9), g.writeQuantile(plain, 0.9), g.writeQuantile(yield, 0.9))
	lines := []line{}
	if values := g.over(p90, idle); values != nil {
		lines = append(lines, line{"write p90", values})
	}
	if values := g.over(g.walSync(res), idle); values != nil {
		lines = append(lines, line{"WAL sync", values})
	}
	pressing := g.gated(yield, func(x *gate) (float64, bool) { return 1, x.Pressing })
	return append(lines, line{"pgyield: pressing", pressing})
}

// chartData is a chart as JSON: the start of each window in seconds, and a value
// or null for each.
type chartData struct {
	Title  string                `json:"title"`
	Second []float64             `json:"second"`
	Lines  map[string][]*float64 `json:"lines"`
}

func dataOf(figures []figure) []chartData {
	var out []chartData
	for _, f := range figures {
		data := chartData{Title: f.Title}
		for i := range f.Lines[0].Values {
			data.Second = append(data.Second, (time.Duration(i) * window).Seconds())
		}
		data.Lines = pointers(f.Lines)
		out = append(out, data)
	}
	return out
}

// pointers gives the lines' values by name, nil (null in JSON) where there is none.
func pointers(lines []line) map[string][]*float64 {
	out := map[string][]*float64{}
	for _, l := range lines {
		values := make([]*float64, len(l.Values))
		for i, v := range l.Values {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				values[i] = &l.Values[i]
			}
		}
		out[l.Name] = values
	}
	return out
}

// reportRow is a row of the table as text.
type reportRow struct {
	Phase, P50, P95, P99, Writes, Reads, Refused string
	Times                                        string // p95 over that without reads
}

func reportRows(res *result) []reportRow {
	var rows []reportRow
	var idle time.Duration
	for i, p := range res.Phases {
		r := p.summary(res.Settle)
		if i == 0 {
			idle = r.P95
		}
		out := reportRow{
			Phase: r.Phase, P50: millis(r.P50), P95: millis(r.P95), P99: millis(r.P99),
			Writes: fmt.Sprintf("%.0f", r.WriteRate), Reads: "-", Refused: "-",
		}
		if r.AtLeast {
			out.P99 += " *"
		}
		if i > 0 {
			out.Reads, out.Refused = fmt.Sprintf("%.1f", r.ReadRate), fmt.Sprint(r.Refused)
			if idle > 0 {
				out.Times = fmt.Sprintf("%.1f times", float64(r.P95)/float64(idle))
			}
		}
		rows = append(rows, out)
	}
	return rows
}
