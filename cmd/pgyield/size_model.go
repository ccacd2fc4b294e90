package main

import (
	"context"
	"math"
	"time"

	"github.com/pgyield/pgyield/capacity"
	"github.com/pgyield/pgyield/fleet/fleetsim"
)

// erlangs is the load: how many reads would run if nothing held them back.
func (c *sizeCmd) erlangs() float64 { return float64(c.Rate) * c.Mean.Seconds() }

// size computes the rows.
func (c *sizeCmd) size(ctx context.Context) (*sized, error) {
	s := &sized{
		Rate: float64(c.Rate), MeanMS: inMillis(c.Mean), Erlangs: c.erlangs(),
		Limit: c.Limit, Pods: c.Pods, Retries: c.Retries, WaitMS: inMillis(c.MaxWait),
	}
	pooled, err := c.modelRow("pooled", 1, c.Limit)
	if err != nil {
		return nil, err
	}
	pooled.Needs = c.Limit
	s.Rows = append(s.Rows, pooled)
	if c.Pods == 1 {
		return s, nil
	}
	split, err := c.modelRow("split", c.Pods, c.Limit)
	if err != nil {
		return nil, err
	}
	split.Needs = c.needs(pooled.Refused, func(limit int) (float64, error) {
		row, err := c.modelRow("split", c.Pods, limit)
		return row.Refused, err
	})
	row, err := c.fleetRow(ctx, c.Limit, simulatedReads)
	if err != nil {
		return nil, err
	}
	// What the simulation cannot tell from what the pooled limit refuses is the same.
	row.Needs = c.needs(pooled.Refused+row.Error, func(limit int) (float64, error) {
		r, err := c.fleetRow(ctx, limit, simulatedReads/4)
		return r.Refused, err
	})
	s.Rows = append(s.Rows, split, row)
	return s, ctx.Err()
}

// needs returns the smallest limit with which refused is at most target, 0 where none up
// to ten times the limit asked for reaches it. An error ends in 0 too: the same inputs
// have been found valid before.
func (c *sizeCmd) needs(target float64, refused func(limit int) (float64, error)) int {
	// Below the limit asked for no way needs less than the pooled one.
	limit, err := capacity.Smallest(target, 10*c.Limit, func(limit int) (float64, error) {
		if limit < c.Limit {
			return 1 + target, nil
		}
		return refused(limit)
	})
	if err != nil {
		return 0
	}
	return limit
}

// modelRow computes what pods, each with its part of the limit, refuse.
func (c *sizeCmd) modelRow(name string, pods, limit int) (sizeRow, error) {
	split := capacity.Split{
		Erlangs: c.erlangs(), Limit: limit, Shards: pods, Retries: c.Retries,
		MaxWait: c.MaxWait.Seconds() / c.Mean.Seconds(),
	}
	if pods > 1 {
		split.Weights = c.Parts
	}
	out, err := split.Solve()
	if err != nil {
		return sizeRow{}, err
	}
	p99, err := out.WaitQuantile(0.99)
	if err != nil {
		return sizeRow{}, err
	}
	second := 1 / c.Mean.Seconds() // erlangs to a rate
	return sizeRow{
		Name: name, Refused: out.Refused, Attempts: out.Attempts * second, Refusals: out.Refusals * second, Lost: out.Lost * second,
		MeanMS: out.MeanWait * inMillis(c.Mean), P99MS: p99 * inMillis(c.Mean),
	}, nil
}

// simulatedReads is how many reads a simulation counts; a curve's points have fewer.
const simulatedReads = 400_000

// fleetRow simulates a fleet whose members have the CLI's parts. Retries come back after a
// while, as the model has it: at once, they would meet the same full limit.
func (c *sizeCmd) fleetRow(ctx context.Context, limit, reads int) (sizeRow, error) {
	length := time.Duration(min(max(float64(reads)/float64(c.Rate), 20), 1200) * float64(time.Second))
	r, err := fleetsim.Run(ctx, fleetsim.Config{
		Kind: fleetsim.Shared, Limit: limit, Members: c.Pods, Rate: float64(c.Rate), Hold: c.Mean, Weights: c.Parts,
		MaxWait: c.MaxWait, Retries: c.Retries, RetryAfter: 20 * c.Mean, PollRate: 20, Length: length, Seed: c.Seed,
		Warmup: min(max(5*time.Second, 100*c.Mean), 24*time.Hour),
	})
	if err != nil {
		return sizeRow{}, err
	}
	tries := max(1, float64(r.Reads+r.Refusals-r.Lost))
	// Refusals come in bursts that last about a holding time or a poll: so many of them
	// are independent.
	bursts := length.Seconds() / max(c.Mean.Seconds(), 0.25)
	return sizeRow{
		Name: "fleet", Simulated: true, Refused: r.Refused, Over: r.Over, Peak: r.Peak,
		Attempts: tries / length.Seconds(), Refusals: float64(r.Refusals) / length.Seconds(), Lost: float64(r.Lost) / length.Seconds(),
		MeanMS: inMillis(r.MeanWait), P99MS: inMillis(r.P99Wait),
		Error: 2*math.Sqrt(r.Refused*(1-r.Refused)/min(bursts, tries)) + 1/tries,
	}, nil
}

func inMillis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
