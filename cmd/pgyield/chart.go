package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/go-analyze/charts"
)

// Colours, one for each line of a chart, in the order of the lines.
var (
	phaseColors = []charts.Color{ // no reads, pgxpool, pgyield
		charts.ColorFromHex("#8a94a3"), charts.ColorFromHex("#d1495b"), charts.ColorFromHex("#2a9d6f"),
	}
	limitColors = []charts.Color{ // running, waiting, limit
		charts.ColorFromHex("#2a9d6f"), charts.ColorFromHex("#c9a227"), charts.ColorFromHex("#2a6fb0"),
	}
	pressureColors = []charts.Color{ // write p90, WAL sync, pressing
		charts.ColorFromHex("#2a6fb0"), charts.ColorFromHex("#8e5bb5"), charts.ColorFromHex("#d1495b"),
	}
)

// drawing says how a figure's lines are drawn.
type drawing struct {
	unit   string
	log    bool // logarithmic scale
	colors []charts.Color
	axis   *charts.XAxisOption // nil: the windows' times
}

const (
	chartWidth  = 960
	chartHeight = 280
)

// render draws the figure as SVG.
func (f *figure) render() ([]byte, error) {
	series := make(charts.LineSeriesList, len(f.Lines))
	low, high := math.Inf(1), math.Inf(-1)
	for i, l := range f.Lines {
		values := make([]float64, len(l.Values))
		for j, v := range l.Values {
			if f.draw.log {
				v = math.Log10(v)
			}
			if math.IsNaN(v) || math.IsInf(v, 0) {
				values[j] = charts.GetNullValue()
				continue
			}
			values[j] = v
			low, high = min(low, v), max(high, v)
		}
		series[i] = charts.LineSeries{Name: l.Name, Values: values}
	}
	option := charts.NewLineChartOptionWithSeries(series)
	option.Theme = charts.GetTheme(charts.ThemeLight).WithSeriesColors(f.draw.colors).WithBackgroundColor(charts.ColorTransparent)
	option.Symbol = charts.Symbol{Shape: charts.SymbolNone}
	option.LineStrokeWidth = 2
	if f.draw.axis != nil {
		option.XAxis = *f.draw.axis
	} else {
		option.XAxis = f.timeAxis()
	}
	option.YAxis = []charts.YAxisOption{f.valueAxis(low, high)}
	option.Legend = charts.LegendOption{Offset: charts.OffsetLeft}
	painter := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: chartWidth, Height: chartHeight})
	if err := painter.LineChart(option); err != nil {
		return nil, err
	}
	return painter.Bytes()
}

// labelEvery is the distance of the labels of a time axis; see gridOf.
const labelEvery = 5 * time.Second

// timeAxis labels the windows in seconds.
func (f *figure) timeAxis() charts.XAxisOption {
	n := len(f.Lines[0].Values)
	labels := make([]string, n)
	for i := range labels {
		labels[i] = fmt.Sprintf("%.0f s", (time.Duration(i) * window).Seconds())
	}
	return charts.XAxisOption{
		Labels: labels, BoundaryGap: new(false), LabelCount: n/int(labelEvery/window) + 1,
	}
}

// valueAxis fits the scale to the values: from zero, or over whole powers of ten.
func (f *figure) valueAxis(low, high float64) charts.YAxisOption {
	axis := charts.YAxisOption{SplitLineShow: new(true), ValueFormatter: func(v float64) string {
		if f.draw.log {
			v = math.Pow(10, v)
		}
		return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) + f.draw.unit
	}}
	if low > high { // no value at all
		low, high = 0, 1
	}
	if !f.draw.log {
		axis.Min = new(0.0)
		return axis
	}
	low, high = math.Floor(low), math.Ceil(high)
	if low == high {
		high++
	}
	axis.Min, axis.Max = new(low), new(high)
	axis.LabelCount = int(high-low) + 1
	return axis
}
