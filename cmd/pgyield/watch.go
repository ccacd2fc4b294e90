package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/pressure"
)

// watchCmd is `pgyield watch`: what a pool's monitor would say of a live database, with
// nothing gated, to choose thresholds.
type watchCmd struct {
	DSN string `name:"dsn" required:"" placeholder:"URL" help:"The database to watch, over one connection. Required."`

	Tolerance *float64      `placeholder:"1.6" help:"How many times its idle latency a write may take, as yield_tolerance. Default: that of the URL, or 1.6."`
	Period    time.Duration `default:"500ms" help:"Time between two samples, as a pool's monitor takes them. Default: ${default}."`
	Learn     time.Duration `default:"30s" help:"How long baselines are learned. Default: ${default}."`
	For       time.Duration `default:"0s" help:"How long to watch. Default: until Ctrl-C."`

	WALSync        time.Duration `name:"wal-sync" placeholder:"TIME" help:"Press at this WAL sync time, whatever the baseline; as Options.Pressure.WALSync."`
	WALWait        time.Duration `name:"wal-wait" placeholder:"TIME" help:"The same for the wait for the WAL."`
	WriteStatement time.Duration `placeholder:"TIME" help:"The same for the oldest write statement."`
	LockWait       time.Duration `placeholder:"TIME" help:"The same for the wait for locks."`

	JSON bool `name:"json" help:"Write one JSON object a period, and one with the sums at the end."`
}

// Help is what kong prints before the flags.
func (c *watchCmd) Help() string {
	return "A line a period, and sums at the end: after --for, or with Ctrl-C.\n\n" +
		"The server does not tell which reads are a pool's. So verdicts assume that reads run and contend all the time:" +
		" a period that presses is one in which a pool with contending reads would have counted pressure." +
		" Baselines are what the signals are in the first --learn; start when reads are quiet. Later only a calmer stretch changes them." +
		" A program's own write latency, a pool's best signal, cannot be seen from here: this command makes no writes.\n\n" +
		"It adds one statement a period to the database and changes nothing."
}

// AfterApply is called by kong.
func (c *watchCmd) AfterApply() error {
	if c.For < 0 || c.Learn < 0 {
		return fmt.Errorf("--for is %v and --learn %v, must be at least 0s", c.For, c.Learn)
	}
	// To the options zero is the default, to whoever gave the flag a value as any other.
	if c.Period == 0 {
		return errors.New("--period is 0s, must be from 50ms to 1m")
	}
	for _, f := range []struct {
		flag    string
		options pressure.Options
	}{
		{"--period", pressure.Options{Period: c.Period}},
		{"--wal-sync", pressure.Options{WALSync: c.WALSync}},
		{"--wal-wait", pressure.Options{WALWait: c.WALWait}},
		{"--write-statement", pressure.Options{WriteStatement: c.WriteStatement}},
		{"--lock-wait", pressure.Options{LockWait: c.LockWait}},
	} {
		if _, err := f.options.Normalize(); err != nil {
			return flagError{f.flag, err}
		}
	}
	if c.Tolerance == nil {
		return nil // the URL's
	}
	if *c.Tolerance == 0 {
		return errors.New("--tolerance is 0, must be from 1.1 to 100")
	}
	if _, err := pressure.NewJudge(*c.Tolerance, c.options()); err != nil {
		return flagError{"--tolerance", err}
	}
	return nil
}

// options are those of the poller and the judges, which check them.
func (c *watchCmd) options() pressure.Options {
	return pressure.Options{
		Period: c.Period, WALSync: c.WALSync, WALWait: c.WALWait, WriteStatement: c.WriteStatement, LockWait: c.LockWait,
	}
}

// Run is called by kong.
func (c *watchCmd) Run(ctx context.Context, k *kong.Context) error {
	poller, err := c.open()
	if err != nil {
		return err
	}
	defer poller.Close()
	ladder, err := newLadder(*c.Tolerance, c.Learn, c.options())
	if err != nil {
		return err
	}
	// A database that cannot be reached now is a mistake in the URL; one that goes
	// away later is part of what is watched.
	sample, err := poller.Sample(ctx)
	if err != nil {
		return ofDSN(err)
	}
	report := newWatchReport(k.Stdout, k.Stderr, c.JSON, ladder)
	if err := report.begin(sample, poller.Stat()); err != nil {
		return err
	}
	if c.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.For)
		defer cancel()
	}
	ticker := time.NewTicker(c.Period)
	defer ticker.Stop()
	for {
		if err := report.period(time.Now(), sample, err, poller.Stat()); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return report.end()
		}
		if sample, err = poller.Sample(ctx); ctx.Err() != nil {
			return report.end()
		}
	}
}

// open makes the poller, and takes the tolerance from the URL where no flag gives it.
func (c *watchCmd) open() (*pressure.Poller, error) {
	config, err := pgyield.ParseConfig(c.DSN)
	if err != nil {
		return nil, ofDSN(err)
	}
	if c.Tolerance == nil {
		whole, err := pgx.ParseConfig(c.DSN)
		if err != nil {
			return nil, err
		}
		tolerance := pressure.DefaultTolerance
		if text := whole.RuntimeParams["yield_tolerance"]; text != "" {
			tolerance, _ = strconv.ParseFloat(text, 64) // ParseConfig found it good
		}
		c.Tolerance = &tolerance
	}
	return pressure.NewPoller(config.ConnConfig, c.options())
}

// ladder is the same rule at several tolerances, so that one run tells what each would
// have led to.
type ladder struct {
	rungs  []*rung
	chosen *rung // the one whose verdicts are shown
}

func newLadder(tolerance float64, learn time.Duration, options pressure.Options) (*ladder, error) {
	l := &ladder{}
	for _, t := range []float64{1.2, 1.6, 2, 3, 5, tolerance} {
		if t == tolerance && l.chosen != nil {
			continue
		}
		judge, err := pressure.NewJudge(t, options)
		if err != nil {
			return nil, err
		}
		r := &rung{tolerance: t, judge: judge, learn: learn}
		l.rungs = append(l.rungs, r)
		if t == tolerance {
			l.chosen = r
		}
	}
	return l, nil
}

// next judges a period on every rung; sample is nil when there was none.
func (l *ladder) next(now time.Time, sample *pressure.Sample) (chosen pressure.Verdict, learning bool) {
	for _, r := range l.rungs {
		learns := r.learning(now)
		v := r.next(now, sample)
		if r == l.chosen {
			chosen, learning = v, learns
		}
	}
	return chosen, learning
}

// rung is the rule at one tolerance.
type rung struct {
	tolerance float64
	judge     *pressure.Judge
	learn     time.Duration
	until     time.Time // when learning ends; zero while nothing was judged

	judged, pressing int // periods
}

func (r *rung) learning(now time.Time) bool { return r.until.IsZero() || now.Before(r.until) }

// next judges a period as if reads contended in it. While it learns it says that one
// read runs, which the judge takes for quiet: what does not press is the baseline.
// Afterwards it says that more do, or a load that grows slowly would become normal.
func (r *rung) next(now time.Time, sample *pressure.Sample) pressure.Verdict {
	activity := pressure.Activity{Running: 1, Limit: 1, Contended: true}
	if !r.learning(now) {
		activity.Running, activity.Limit = 2, 2
	}
	if sample == nil {
		r.judge.Lost()
	}
	v := r.judge.Next(now, sample, activity)
	for _, s := range v.Signals {
		if s.Threshold == 0 { // judged for the first time, here or on another server
			r.until = now.Add(r.learn)
		}
	}
	if v.Known {
		r.judged++
	}
	if v.Pressing {
		r.pressing++
	}
	return v
}

// verdictText is a verdict in one word.
func verdictText(v pressure.Verdict) string {
	switch {
	case v.Pressing:
		return "pressing"
	case v.Known:
		return "calm"
	default:
		return "unknown"
	}
}

// errorText is a failed poll's error in short.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, pressure.ErrBackoff) {
		return "waits before it connects again"
	}
	return err.Error()
}
