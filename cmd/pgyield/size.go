package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"
)

// sizeCmd is `pgyield size`: what a limit costs, by the model in package capacity and,
// for the fleet, by simulation.
type sizeCmd struct {
	Rate    perSecond     `required:"" placeholder:"RATE" help:"Reads that come: a number with /s, /m or /h, such as 400/s. Required."`
	Mean    time.Duration `required:"" placeholder:"TIME" help:"How long a read holds its permit on average, such as 30ms. Required."`
	Limit   int           `required:"" placeholder:"N" help:"Reads that may run at once, over all pods. Required."`
	Pods    int           `default:"1" help:"Processes that share the limit. Default: ${default}."`
	Parts   []float64     `placeholder:"70,10,10,10" help:"The pods' parts of the reads, in any unit. Default: equal parts."`
	Retries int           `default:"0" help:"How often a refused read is tried again. Default: ${default}."`
	MaxWait time.Duration `default:"0s" help:"How long a read may wait for a permit. Default: ${default}, refused at once."`

	JSON bool   `name:"json" help:"Write one JSON object, and nothing else."`
	HTML string `name:"html" placeholder:"FILE" help:"Also write a page with curves: what is refused by limit and by load."`
	Seed uint64 `default:"1" help:"Of the simulation. Default: ${default}."`
}

// perSecond is a rate. Its text is a number with /s, /m or /h; bare, it is a second's.
type perSecond float64

// UnmarshalText is called by kong.
func (r *perSecond) UnmarshalText(text []byte) error {
	number, unit, _ := strings.Cut(string(text), "/")
	seconds, known := map[string]float64{"": 1, "s": 1, "m": 60, "h": 3600}[unit]
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || !known || math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
		return fmt.Errorf("%q is no rate, must be a number with /s, /m or /h, such as 400/s", text)
	}
	*r = perSecond(value / seconds)
	return nil
}

const (
	mostRate  = 1e6  // reads a second that can be simulated
	mostMeans = 1e10 // times its mean holding time that a read may wait, for the model
)

// AfterApply is called by kong once it has found no flag missing; Validate would be
// called before, and would complain of a zero that nobody gave.
func (c *sizeCmd) AfterApply() error {
	switch {
	case c.Rate <= 0 || c.Rate > mostRate:
		return fmt.Errorf("--rate is %v/s, must be above 0 and at most %d/s", float64(c.Rate), int(mostRate))
	case c.Mean < time.Microsecond || c.Mean > time.Hour:
		return fmt.Errorf("--mean is %v, must be from 1µs to 1h", c.Mean)
	case c.Limit < 1 || c.Limit > 100_000:
		return fmt.Errorf("--limit is %d, must be from 1 to 100000", c.Limit)
	case c.Pods < 1 || c.Pods > 1000:
		return fmt.Errorf("--pods is %d, must be from 1 to 1000", c.Pods)
	case c.Retries < 0 || c.Retries > 100:
		return fmt.Errorf("--retries is %d, must be from 0 to 100", c.Retries)
	case c.MaxWait < 0 || c.MaxWait > 24*time.Hour:
		return fmt.Errorf("--max-wait is %v, must be from 0s to 24h", c.MaxWait)
	case float64(c.MaxWait) > mostMeans*float64(c.Mean):
		return fmt.Errorf("--max-wait is %v, must be at most %g times --mean, which is %v", c.MaxWait, mostMeans, c.Mean)
	case len(c.Parts) > 0 && len(c.Parts) != c.Pods:
		return fmt.Errorf("--parts has %d numbers, must have one for each of the %d pods", len(c.Parts), c.Pods)
	}
	sum := 0.0
	for _, part := range c.Parts {
		if math.IsNaN(part) || part < 0 || part > 1e9 {
			return fmt.Errorf("--parts has %v, must have numbers from 0 to 1e9", part)
		}
		sum += part
	}
	if len(c.Parts) > 0 && sum == 0 {
		return errors.New("--parts has only zeros")
	}
	return nil
}

// sized is the answer, as --json writes it. Times are in milliseconds, rates a second.
type sized struct {
	Rate    float64   `json:"rate"`
	MeanMS  float64   `json:"mean_ms"`
	Erlangs float64   `json:"erlangs"`
	Limit   int       `json:"limit"`
	Pods    int       `json:"pods"`
	Retries int       `json:"retries"`
	WaitMS  float64   `json:"max_wait_ms"`
	Rows    []sizeRow `json:"rows"`
}

// sizeRow is what one way to hold the limit costs.
type sizeRow struct {
	Name     string  `json:"name"` // "pooled", "split" or "fleet"
	Refused  float64 `json:"refused"`
	Attempts float64 `json:"attempts"`
	Refusals float64 `json:"refusals"`
	Lost     float64 `json:"lost"`
	MeanMS   float64 `json:"mean_wait_ms"`
	P99MS    float64 `json:"p99_wait_ms"`
	// Needs is the smallest limit that refuses no more than the pooled one with the limit
	// asked for; 0: none up to ten times that.
	Needs int `json:"needs"`
	// Simulated rows are right to about Error, twice the standard error of Refused.
	Simulated bool    `json:"simulated,omitempty"`
	Error     float64 `json:"error,omitempty"`
	// Over is how much of the time the fleet ran more than the limit, Peak the most it ran.
	Over float64 `json:"over,omitempty"`
	Peak int     `json:"peak,omitempty"`
}

// Run is called by kong.
func (c *sizeCmd) Run(ctx context.Context, k *kong.Context) error {
	if err := c.page().try(); err != nil {
		return err
	}
	answer, err := c.size(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		err = json.NewEncoder(k.Stdout).Encode(answer)
	} else {
		err = writeSizeTable(k.Stdout, answer)
	}
	if err != nil || c.HTML == "" {
		return err
	}
	if err := c.writePage(ctx, answer); err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprintf(k.Stdout, "\nCurves: %s\n", c.HTML)
	}
	return nil
}

func (c *sizeCmd) page() output { return output{"page", c.HTML} }

func (c *sizeCmd) writePage(ctx context.Context, answer *sized) error {
	curves, err := c.curves(ctx)
	if err != nil {
		return err
	}
	return c.page().write(func(w io.Writer) error { return writeSizePage(w, answer, curves) })
}

func writeSizeTable(w io.Writer, s *sized) error {
	fmt.Fprintf(w, "%.4g reads/s of %.4g ms are a load of %.4g on a limit of %d (%.0f %%).\n\n",
		s.Rate, s.MeanMS, s.Erlangs, s.Limit, 100*s.Erlangs/float64(s.Limit))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\trefused\trefusals/s\ttries/s\tlost/s\tmean wait\tp99 wait\tneeds\t")
	for _, r := range s.Rows {
		needs := "-"
		if r.Needs > 0 {
			needs = fmt.Sprint(r.Needs)
		}
		fmt.Fprintf(t, "%s\t%s\t%.4g\t%.4g\t%.4g\t%s\t%s\t%s\t\n", r.Name, percent(r.Refused), r.Refusals, r.Attempts, r.Lost,
			millis(time.Duration(r.MeanMS*1e6)), millis(time.Duration(r.P99MS*1e6)), needs)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprint(w, "\nneeds: the limit at which no larger part is refused than pooled at the limit asked for.\n")
	for _, r := range s.Rows {
		if r.Simulated {
			fmt.Fprintf(w, "%s: simulated, ±%s; over the limit for %s of the time, at most %d at once.\n", r.Name, percent(r.Error), percent(r.Over), r.Peak)
		}
	}
	return nil
}

// percent prints a share with about three digits.
func percent(x float64) string {
	x *= 100
	switch {
	case x == 0:
		return "0 %"
	case x < 0.001:
		return "<0.001 %"
	case x < 1:
		return fmt.Sprintf("%.3f %%", x)
	case x < 10:
		return fmt.Sprintf("%.2f %%", x)
	}
	return fmt.Sprintf("%.1f %%", x)
}
