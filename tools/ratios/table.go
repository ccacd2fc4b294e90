package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// result is one line of a benchmark.
type result struct {
	name   string // without "Benchmark" and the number of processors
	values map[string]float64
}

var processors = regexp.MustCompile(`-\d+$`)

// parse reads what a test binary prints; lines that are no results are passed over.
func parse(in io.Reader) ([]result, error) {
	var results []result
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		r := result{
			name:   processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), ""),
			values: map[string]float64{},
		}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", lines.Text(), err)
			}
			r.values[fields[i+1]] = value
		}
		results = append(results, r)
	}
	return results, lines.Err()
}

// row is one benchmark over all rounds.
type row struct {
	name   string
	values map[string][]float64
	ratios []float64 // to the baseline of its group
}

// table is all benchmarks, in the order in which they first ran.
type table struct{ rows []*row }

const took = "ns/op"

// add takes in one round.
func (t *table) add(round []result) {
	baselines := map[string]float64{}
	for _, r := range round {
		i := slices.IndexFunc(t.rows, func(known *row) bool { return known.name == r.name })
		if i < 0 {
			i = len(t.rows)
			t.rows = append(t.rows, &row{name: r.name, values: map[string][]float64{}})
		}
		at := t.rows[i]
		for unit, value := range r.values {
			at.values[unit] = append(at.values[unit], value)
		}
		group, _ := split(r.name)
		if _, known := baselines[group]; !known {
			baselines[group] = r.values[took]
		}
		if baselines[group] > 0 {
			at.ratios = append(at.ratios, r.values[took]/baselines[group])
		}
	}
}

// split divides a name into its group and its place in it.
func split(name string) (group, member string) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return name, ""
	}
	return name[:i], name[i+1:]
}

// print writes the table: medians, and of the ratios the least and the most as well,
// for they tell how far the median can be trusted.
func (t *table) print(out io.Writer) error {
	if len(t.rows) == 0 {
		return nil
	}
	lines := []string{
		"| benchmark |  | ns/op | ratio | ratio, least to most | allocs/op |",
		"|---|---|---|---|---|---|",
	}
	last := ""
	for _, r := range t.rows {
		group, member := split(r.name)
		shown := group
		if group == last {
			shown = ""
		}
		last = group
		ratio, spread := "", ""
		if len(r.ratios) > 0 {
			ratio = fmt.Sprintf("%.2f", median(r.ratios))
			spread = fmt.Sprintf("%.2f to %.2f", slices.Min(r.ratios), slices.Max(r.ratios))
		}
		allocs := ""
		if values := r.values["allocs/op"]; len(values) > 0 {
			allocs = fmt.Sprintf("%.0f", median(values))
		}
		lines = append(lines, fmt.Sprintf("| %s | %s | %.4g | %s | %s | %s |",
			shown, member, median(r.values[took]), ratio, spread, allocs))
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// median is 0 for no values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}
