package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// writeTable prints the comparison.
func writeTable(w io.Writer, res *result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\twrite p50\tp95\tp99\twrites/s\treads/s\trefused\tread limit, one after the other\t")
	var notes []string
	for _, p := range res.Phases {
		r := p.summary(res.Settle)
		mark := ""
		if r.AtLeast {
			mark = "*"
			notes = append(notes, fmt.Sprintf("* %s: %d writes were still waiting at the end; they count with the time they had taken.",
				r.Phase, r.Unfinished))
		}
		reads, refused, path := "-", "-", "-"
		if p.Name != phaseIdle {
			reads, refused = fmt.Sprintf("%.1f", r.ReadRate), fmt.Sprint(r.Refused)
		}
		if r.Path != nil {
			path = pathText(r.Path)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s%s\t%.0f\t%s\t%s\t%s\t\n",
			r.Phase, millis(r.P50), millis(r.P95), millis(r.P99), mark, r.WriteRate, reads, refused, path)
		if r.Errors > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d statements failed, the first: %v", r.Phase, r.Errors, p.FirstErr))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nWrite latency counts from when the write was due, the wait for a connection included.\n"+
		"%d writes/s were due, those that ended since the reads joined are counted; %d reads at once; a pool of %d.\n"+
		"Writes were alone for %v before the reads joined; %v after that are left out, save of the limit's path.\n",
		res.Rate, res.Readers, res.Conns, res.Lead, res.Settle)
	for _, note := range notes {
		fmt.Fprintln(w, note)
	}
	return nil
}

// millis prints a latency with three significant digits.
func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms >= 10_000:
		return fmt.Sprintf("%.1f s", ms/1000)
	case ms >= 100:
		return fmt.Sprintf("%.0f ms", ms)
	case ms >= 10:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.2f ms", ms)
}

// pathText prints the limit's path; a long one shows its ends.
func pathText(path []int) string {
	const most = 12
	text := make([]string, 0, most+1)
	for i, limit := range path {
		if len(path) > most && i == most/2 {
			text = append(text, "...")
		}
		if len(path) <= most || i < most/2 || i >= len(path)-most/2 {
			text = append(text, fmt.Sprint(limit))
		}
	}
	return strings.Join(text, " > ")
}
