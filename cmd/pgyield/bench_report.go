package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"time"

	"github.com/go-analyze/charts"
)

//go:embed bench.gohtml
var benchText string

var benchTemplate = template.Must(template.New("bench").Parse(benchText))

// benchSection is a scenario in the report.
type benchSection struct {
	*scenarioResult
	Titles  []string
	Rows    [][]string
	Figures []figure
}

// writeReport writes the report: one file that needs nothing else.
func (r *benchResult) writeReport(w io.Writer) error {
	var sections []benchSection
	for _, s := range r.Scenarios {
		section := benchSection{scenarioResult: s, Rows: s.rows()}
		for _, c := range columns {
			section.Titles = append(section.Titles, c.title)
		}
		figures, err := s.figures()
		if err != nil {
			return err
		}
		section.Figures = figures
		sections = append(sections, section)
	}
	var claims [][]string
	for _, c := range r.claims() {
		claims = append(claims, c.cells())
	}
	return benchTemplate.Execute(w, map[string]any{
		"Result": r, "Sections": sections, "Claims": claims, "When": r.Begun.Format("2006-01-02 15:04"), "Data": r,
	})
}

// figures draws a scenario: the arms beside each other where there are several, and the
// course of pgyield's last run.
func (s *scenarioResult) figures() ([]figure, error) {
	var list []figure
	if len(s.Arms) > 2 {
		for _, bars := range []struct{ title, key, unit string }{
			{"Write p95", "write_p95_ms", " ms"}, {"Write p99", "write_p99_ms", " ms"}, {"Reads per second", "reads_per_s", ""},
		} {
			svg, err := s.bars(bars.key, bars.unit)
			if err != nil {
				return nil, fmt.Errorf("chart %q: %w", bars.title, err)
			}
			list = append(list, figure{Title: bars.title, SVG: svg, Note: "Medians over the rounds."})
		}
	}
	p, ok := s.last[armYield]
	if !ok {
		return list, nil
	}
	for _, f := range courseOf(p) {
		svg, err := f.render()
		if err != nil {
			return nil, fmt.Errorf("chart %q: %w", f.Title, err)
		}
		f.SVG = template.HTML(svg) //nolint:gosec // made here from numbers and fixed names
		list = append(list, f)
	}
	return list, nil
}

// bars draws a figure's medians, an arm a bar.
func (s *scenarioResult) bars(key, unit string) (template.HTML, error) {
	var values []float64
	var names []string
	for _, arm := range s.Arms {
		if v := s.runs.median(key, arm); !math.IsNaN(v) {
			values, names = append(values, v), append(names, arm)
		}
	}
	option := charts.NewBarChartOptionWithData([][]float64{values})
	option.Theme = charts.GetTheme(charts.ThemeLight).WithSeriesColors(limitColors[:1]).WithBackgroundColor(charts.ColorTransparent)
	option.Horizontal = true
	option.CategoryAxis.Labels = names
	option.SeriesList[0].Label.Show = new(true)
	option.SeriesList[0].Label.ValueFormatter = func(v float64) string { return fmt.Sprintf("%.3g%s", v, unit) }
	option.Legend.Show = new(false)
	painter := charts.NewPainter(charts.PainterOptions{
		OutputFormat: charts.ChartOutputSVG, Width: chartWidth, Height: 60 + 26*len(values),
	})
	if err := painter.BarChart(option); err != nil {
		return "", err
	}
	svg, err := painter.Bytes()
	return template.HTML(svg), err //nolint:gosec // made here from numbers and fixed names
}

// courseOf are the lines of one run over its time.
func courseOf(p *phase) []figure {
	shifted := *p // the chart begins where the run did
	shifted.From, shifted.To = 0, p.To-p.From
	back := func(list []work) []work {
		out := make([]work, len(list))
		for i, w := range list {
			w.Begun -= p.From
			out[i] = w
		}
		return out
	}
	shifted.Writes, shifted.Reads = back(p.Writes), back(p.Reads)
	shifted.Gauges = make([]gauge, len(p.Gauges))
	for i, g := range p.Gauges {
		g.At -= p.From
		shifted.Gauges[i] = g
	}
	if shifted.To > 2*time.Minute {
		return nil // a point for each half second would be a smear
	}
	g := gridOf(&result{Phases: []*phase{&shifted}})
	return []figure{
		{
			Title: "pgyield's last run: write p95", Lines: []line{{armYield, g.writeQuantile(&shifted, 0.95)}},
			draw: drawing{unit: " ms", log: true, colors: phaseColors[2:]}, Note: "By when the write ended. The scale is logarithmic.",
		},
		{
			Title: "pgyield's last run: the read limit", draw: drawing{colors: limitColors},
			Note: fmt.Sprintf("Reads joined after %v.", p.Lead),
			Lines: []line{
				{"running", g.gated(&shifted, func(x *gate) (float64, bool) { return float64(x.Running), true })},
				{"waiting", g.gated(&shifted, func(x *gate) (float64, bool) { return float64(x.Waiting), true })},
				{"limit", g.gated(&shifted, func(x *gate) (float64, bool) { return float64(x.Limit), true })},
			},
		},
	}
}
