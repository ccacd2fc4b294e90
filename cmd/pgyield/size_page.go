package main

import (
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-analyze/charts"
)

//go:embed size.gohtml
var sizeText string

var sizeTemplate = template.Must(template.New("size").Parse(sizeText))

// curve is one chart: what is refused, in percent, at each of the points.
type curve struct {
	figure
	Axis   string    `json:"axis"`
	Points []float64 `json:"points"`
}

// curvePoints is how many points a curve has, about.
const curvePoints = 25

// curves computes what is refused by the limit at the load asked for, and by the load at
// the limit asked for.
func (c *sizeCmd) curves(ctx context.Context) ([]curve, error) {
	byLimit := curve{Axis: "limit", figure: figure{
		Title: "Refused, by the limit",
		Note:  fmt.Sprintf("At %.4g reads a second of %v. The scale is logarithmic: what is below 0.001 %% is not drawn.", float64(c.Rate), c.Mean),
	}}
	step := max(1, 2*c.Limit/curvePoints)
	for limit := max(step, c.Limit/4/step*step); limit <= 2*c.Limit; limit += step {
		byLimit.Points = append(byLimit.Points, float64(limit))
	}
	byLoad := curve{Axis: "load, % of the limit", figure: figure{
		Title: "Refused, by the load", Note: fmt.Sprintf("At a limit of %d.", c.Limit),
	}}
	full := float64(c.Limit) / c.Mean.Seconds()
	for percent := 10.0; percent <= 200 && percent/100*full <= mostRate; percent += 10 {
		byLoad.Points = append(byLoad.Points, percent)
	}
	at := *c
	if err := byLimit.compute(ctx, &at, func(x float64) { at.Limit = int(x) }); err != nil {
		return nil, err
	}
	if len(byLoad.Points) == 0 { // a tenth of the limit is more than can be simulated
		return []curve{byLimit}, nil
	}
	at = *c
	if err := byLoad.compute(ctx, &at, func(x float64) { at.Rate = perSecond(x / 100 * full) }); err != nil {
		return nil, err
	}
	return []curve{byLimit, byLoad}, nil
}

// compute fills the lines by setting each point in turn.
func (v *curve) compute(ctx context.Context, c *sizeCmd, set func(x float64)) error {
	lines := []line{{Name: "pooled"}}
	if c.Pods > 1 {
		lines = append(lines, line{Name: "split"}, line{Name: "fleet"})
	}
	for _, x := range v.Points {
		set(x)
		for i := range lines {
			var row sizeRow
			var err error
			switch lines[i].Name {
			case "pooled":
				row, err = c.modelRow("", 1, c.Limit)
			case "split":
				row, err = c.modelRow("", c.Pods, c.Limit)
			default:
				row, err = c.fleetRow(ctx, c.Limit, simulatedReads/20)
			}
			if err != nil {
				return err
			}
			value := 100 * row.Refused
			if value < 0.001 {
				value = math.NaN()
			}
			lines[i].Values = append(lines[i].Values, value)
		}
	}
	labels := make([]string, len(v.Points))
	for i, x := range v.Points {
		labels[i] = strconv.FormatFloat(x, 'f', -1, 64)
	}
	v.Lines = lines
	v.draw = drawing{
		unit: " %", log: true, colors: []charts.Color{phaseColors[0], phaseColors[1], phaseColors[2]}[:len(lines)],
		axis: &charts.XAxisOption{Labels: labels, BoundaryGap: new(false), Title: v.Axis},
	}
	return nil
}

// writeSizePage writes the page: one file that needs nothing else. The charts are SVG,
// their data stands beside them as JSON.
func writeSizePage(w io.Writer, answer *sized, curves []curve) error {
	type chartOf struct {
		Axis   string                `json:"axis"`
		Points []float64             `json:"points"`
		Lines  map[string][]*float64 `json:"lines"`
	}
	var data []chartOf
	for i := range curves {
		v := &curves[i]
		svg, err := v.render()
		if err != nil {
			return fmt.Errorf("chart %q: %w", v.Title, err)
		}
		v.SVG = template.HTML(svg) //nolint:gosec // made here from numbers and fixed names
		data = append(data, chartOf{v.Axis, v.Points, pointers(v.Lines)})
	}
	var table strings.Builder
	if err := writeSizeTable(&table, answer); err != nil {
		return err
	}
	return sizeTemplate.Execute(w, map[string]any{
		"Answer": answer, "Table": table.String(), "Curves": curves, "Data": map[string]any{"answer": answer, "charts": data},
	})
}
