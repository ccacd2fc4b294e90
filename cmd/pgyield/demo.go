package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/alecthomas/kong"
)

// demoCmd is `pgyield demo`.
type demoCmd struct {
	DSN    string `help:"Use this database instead of starting a Postgres." name:"dsn" placeholder:"URL"`
	Report string `default:"report.html" help:"Where to write the report with the charts; empty for none. Default: ${default}." placeholder:"FILE"`

	Rate    int `default:"200"     help:"Write transactions per second, started at fixed times whether or not earlier ones are done."`
	Readers int `default:"16"      help:"Analytic reads at once, each begun when the one before it ends."`
	Conns   int `default:"20"      help:"Size of the pool."`
	Rows    int `default:"600000"  help:"Rows of the table that is analysed."`

	Idle   time.Duration `default:"8s"  help:"How long writes run without reads."`
	Plain  time.Duration `default:"12s" help:"How long the phase with plain pgxpool lasts."`
	Yield  time.Duration `default:"18s" help:"How long the phase with pgyield lasts."`
	Lead   time.Duration `default:"2s"  help:"How long writes run alone in these two, before the reads join them."`
	Settle time.Duration `default:"4s"  help:"How long after that the table leaves out. The charts show all of it."`
}

// Help is what kong prints before the flags.
func (c *demoCmd) Help() string {
	return "Writes run alone, then beside greedy analytic reads through plain pgxpool, then beside the same reads through" +
		" pgyield.\n\nA Postgres is started for it, from programs of this machine or with Docker, and stopped afterwards." +
		" With --dsn or PGYIELD_DSN the demo runs in a schema of its own in that database, and drops it afterwards." +
		" Ctrl-C cleans up as well."
}

// Validate is called by kong.
func (c *demoCmd) Validate() error {
	if err := checkBounds(
		bound{"--rate", c.Rate, 1, 5000}, bound{"--readers", c.Readers, 1, 1000},
		bound{"--conns", c.Conns, 2, 1000}, bound{"--rows", c.Rows, 1000, mostRows},
	); err != nil {
		return err
	}
	for _, least := range []struct {
		flag          string
		value, atWhat time.Duration
		why           string
	}{
		{"--lead", c.Lead, 0, ""},
		{"--settle", c.Settle, 0, ""},
		{"--idle", c.Idle, c.Settle + time.Second, " (--settle and one second)"},
		{"--plain", c.Plain, c.Lead + c.Settle + time.Second, " (--lead, --settle and one second)"},
		{"--yield", c.Yield, c.Lead + c.Settle + time.Second, " (--lead, --settle and one second)"},
	} {
		if least.value < least.atWhat {
			return fmt.Errorf("%s is %v, must be at least %v%s", least.flag, least.value, least.atWhat, least.why)
		}
	}
	return nil
}

// bound is what a flag's value must lie within.
type bound struct {
	flag             string
	value, low, high int
}

func checkBounds(bounds ...bound) error {
	for _, b := range bounds {
		if b.value < b.low || b.value > b.high {
			return fmt.Errorf("%s is %d, must be from %d to %d", b.flag, b.value, b.low, b.high)
		}
	}
	return nil
}

// Run is called by kong.
func (c *demoCmd) Run(ctx context.Context, k *kong.Context) error {
	if err := reportAt(c.Report).try(); err != nil {
		return err
	}
	show := newConsole(k.Stdout, k.Stderr)
	// Durability stays on: what a commit costs is the demo's subject. Two pools follow each
	// other, and one connection may be on its way out while the next is made.
	settings := map[string]string{
		"shared_buffers": "256MB", "max_connections": fmt.Sprint(2*c.Conns + 60), "track_wal_io_timing": "on",
	}
	return withDatabase(ctx, "demo", c.DSN, settings, c.Rows, show, func(db *database) error {
		result, err := c.measure(ctx, db, show)
		if err != nil {
			return err
		}
		return c.tell(k, result)
	})
}

// tell writes the table and the report.
func (c *demoCmd) tell(k *kong.Context, result *result) error {
	fmt.Fprintln(k.Stdout)
	if err := writeTable(k.Stdout, result); err != nil {
		return err
	}
	return tellReport(k, c.Report, func(w io.Writer) error { return writeReport(w, result) })
}

// tellReport writes the report with the charts, unless none is wanted, and says where.
func tellReport(k *kong.Context, path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	if err := reportAt(path).write(write); err != nil {
		return err
	}
	fmt.Fprintf(k.Stdout, "\nCharts: %s (open it in a browser; it needs no network)\n", path)
	return nil
}

// measure runs the three phases.
func (c *demoCmd) measure(ctx context.Context, db *database, show *console) (*result, error) {
	samples, err := startSampler(db)
	if err != nil {
		return nil, err
	}
	defer samples.stop()
	res := &result{
		Server: db.about, Rate: c.Rate, Readers: c.Readers, Conns: c.Conns, Lead: c.Lead, Settle: c.Settle, Begun: time.Now(),
	}
	phases := []struct {
		name    string
		readers int
		lead    time.Duration
		length  time.Duration
		open    func(context.Context, *database, int) (target, error)
	}{
		{phaseIdle, 0, 0, c.Idle, openPlain},
		{phasePlain, c.Readers, c.Lead, c.Plain, openPlain},
		{phaseYield, c.Readers, c.Lead, c.Yield, openYield},
	}
	for _, p := range phases {
		target, err := p.open(ctx, db, c.Conns)
		if err != nil {
			return nil, err
		}
		load := &load{
			db: db, target: target, name: p.name, rate: c.Rate, readers: p.readers,
			lead: p.lead, length: p.length, begun: res.Begun, write: db.write, read: db.read,
		}
		phase, err := load.run(ctx, show)
		target.close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		res.Phases = append(res.Phases, phase)
	}
	res.Samples = samples.since(res.Begun)
	return res, nil
}
