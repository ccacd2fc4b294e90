package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"
)

// benchCmd is `pgyield bench`.
type benchCmd struct {
	DSN    string `help:"Use this database instead of starting a Postgres." name:"dsn" placeholder:"URL"`
	Report string `default:"bench.html" help:"Where to write the report with the charts; empty for none. Default: ${default}." placeholder:"FILE"`
	JSON   string `default:"bench.json"  help:"Where to write all figures of all rounds; empty for none. Default: ${default}." name:"json" placeholder:"FILE"`

	Quick  bool     `help:"About two minutes: one round of the load that matters most, and one control."`
	Rounds int      `default:"5" help:"Rounds in which all arms take turns; figures are medians over them."`
	Only   []string `help:"Only the scenarios whose names begin so: a list with commas." placeholder:"NAME"`
	Arms   []string `help:"Only the arms of these names: a list with commas. What compares with others is then left out." placeholder:"NAME"`
	List   bool     `help:"List the scenarios and their arms, and do nothing."`
	Params string   `help:"Parameters of pgyield's arms, as in a connection string: 'yield_periods=3 yield_period=500ms'." placeholder:"TEXT"`

	Rate    int `default:"200"     help:"Write transactions per second, started at fixed times whether or not earlier ones are done."`
	Readers int `default:"16"      help:"Greedy reads at once."`
	Conns   int `default:"20"      help:"Size of the pool."`
	Rows    int `default:"0"       help:"Rows of the table that is analysed; 0: as many as make an aggregate take 0.4 s here, 600000 at least."`
}

// Help is what kong prints before the flags.
func (c *benchCmd) Help() string {
	return "Reads and writes meet on a real server: without pgyield, with read pools of fixed sizes, with other limiters, and" +
		" with pgyield. The arms take turns in rounds, so that a machine with other work hits all alike; each figure is a ratio" +
		" inside a round, and the median over the rounds.\n\nAll scenarios take about two hours: --only and --rounds make" +
		" it shorter. A Postgres is started for it, from programs of this machine or with Docker, and stopped afterwards. With --dsn or" +
		" PGYIELD_DSN the benchmark runs in a schema of its own in that database, and drops it afterwards. It loads that server heavily."
}

// Validate is called by kong.
func (c *benchCmd) Validate() error {
	rows := bound{"--rows", c.Rows, 1000, mostRows}
	if c.Rows == 0 {
		rows.low = 0
	}
	if err := checkBounds(
		bound{"--rate", c.Rate, 1, 5000}, bound{"--readers", c.Readers, 1, 1000},
		bound{"--conns", c.Conns, 2, 1000}, rows, bound{"--rounds", c.Rounds, 1, 1000},
	); err != nil {
		return err
	}
	known := scenarios(c.Params, c.Quick)
	for _, only := range c.Only {
		if !slices.ContainsFunc(known, func(s *scenario) bool { return strings.HasPrefix(s.name, only) }) {
			return fmt.Errorf("--only is %q, must begin the name of a scenario (see --list)", only)
		}
	}
	for _, name := range c.Arms {
		if !slices.ContainsFunc(known, func(s *scenario) bool { return len(some(s.arms, name)) > 0 }) {
			return fmt.Errorf("--arms is %q, must be the name of an arm (see --list)", name)
		}
	}
	if len(c.selected()) == 0 {
		return fmt.Errorf("--only %q and --arms %q leave nothing: none of these scenarios has such an arm (see --list)",
			strings.Join(c.Only, ","), strings.Join(c.Arms, ","))
	}
	if c.JSON != "" && c.JSON == c.Report {
		return fmt.Errorf("--json and --report are both %q, must be two files", c.JSON)
	}
	if c.Quick && c.Rounds != 5 && c.Rounds != 1 {
		return fmt.Errorf("--rounds is %d, must not be given with --quick, which is one round", c.Rounds)
	}
	return c.checkParams()
}

// checkParams opens what the arms will open: what is wrong with it should be known before an
// hour of load, not after.
func (c *benchCmd) checkParams() error {
	for p := range strings.FieldsSeq(c.Params) {
		if name, value, ok := strings.Cut(p, "="); !ok || name == "" || value == "" || strings.ContainsAny(p, `'"\`) {
			return fmt.Errorf("--params: %q must be a name, = and a value, without quotes", p)
		}
	}
	for _, s := range c.selected() {
		for _, a := range s.arms {
			if err := a.check(c.Conns); err != nil {
				return fmt.Errorf("--params: %s of %q: %w", a.name, s.name, err)
			}
		}
	}
	return nil
}

// selected are the scenarios asked for.
func (c *benchCmd) selected() []*scenario {
	return slices.DeleteFunc(scenarios(c.Params, c.Quick), func(s *scenario) bool {
		if len(c.Arms) > 0 {
			s.arms = some(s.arms, c.Arms...)
		}
		return len(s.arms) == 0 || len(c.Only) > 0 && !slices.ContainsFunc(c.Only, func(only string) bool { return strings.HasPrefix(s.name, only) })
	})
}

// Run is called by kong.
func (c *benchCmd) Run(ctx context.Context, k *kong.Context) error {
	if c.List {
		return listScenarios(k.Stdout, c.selected())
	}
	for _, path := range []string{c.Report, c.JSON} {
		if err := reportAt(path).try(); err != nil {
			return err
		}
	}
	show := newConsole(k.Stdout, k.Stderr)
	settings := map[string]string{
		"shared_buffers": "128MB", "max_connections": fmt.Sprint(pollSessions + 2*c.Conns + 60), "track_wal_io_timing": "on",
		"max_wal_size": "4GB",
	}
	first := cmp.Or(c.Rows, fitRows)
	return withDatabase(ctx, "bench", c.DSN, settings, first, show, func(db *database) error {
		out := benchResult{Server: db.about, Begun: time.Now(), Rate: c.Rate, Readers: c.Readers, Conns: c.Conns, Rows: first, Params: c.Params}
		if err := db.fit(ctx, c.Rows == 0, &out, show); err != nil {
			return err
		}
		if err := db.loadBench(ctx, show); err != nil {
			return err
		}
		return c.measure(ctx, k, &bench{db: db, show: show, out: out})
	})
}

// measure runs the scenarios. What is finished is told also when a later one fails.
func (c *benchCmd) measure(ctx context.Context, k *kong.Context, b *bench) (err error) {
	rounds := c.Rounds
	if c.Quick {
		rounds = 1
	}
	for _, s := range c.selected() {
		err = b.run(ctx, s, rounds)
		if unmet, ok := errors.AsType[unmetError](err); ok {
			b.show.sayf("%s is left out: %s", s.name, unmet.reason)
			b.out.LeftOut = append(b.out.LeftOut, leftOut{s.name, unmet.reason})
			err = nil
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
			break
		}
	}
	if len(b.out.Scenarios) == 0 {
		if err == nil {
			err = errors.New("pgyield: bench: all scenarios that were asked for are left out")
		}
		return err
	}
	return errors.Join(err, c.tell(k, &b.out))
}

// tell writes the table and the files. Where one of them fails the others are written all the
// same: they hold hours of work.
func (c *benchCmd) tell(k *kong.Context, out *benchResult) error {
	failed := writeBenchTable(k.Stdout, out)
	if c.JSON != "" {
		err := reportAt(c.JSON).write(out.writeJSON)
		if err == nil {
			fmt.Fprintf(k.Stdout, "\nAll figures: %s\n", c.JSON)
		}
		failed = errors.Join(failed, err)
	}
	return errors.Join(failed, tellReport(k, c.Report, out.writeReport))
}

// bench is a benchmark in the making.
type bench struct {
	db   *database
	show *console
	out  benchResult
}

// run runs a scenario's arms in turns. Each round begins with another arm.
func (b *bench) run(ctx context.Context, s *scenario, rounds int) error {
	if s.rounds > 0 {
		rounds = s.rounds
	}
	out := &scenarioResult{Name: s.name, About: s.about, Rounds: rounds, runs: runs{}, last: map[string]*phase{}}
	for _, a := range s.arms {
		out.Arms = append(out.Arms, a.name)
	}
	for round := range rounds {
		for i := range s.arms {
			a := s.arms[(i+round)%len(s.arms)]
			b.show.sayf("%s, round %d of %d: %s", s.name, round+1, rounds, a.name)
			p, err := b.once(ctx, s, a)
			if err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			f := numbersOf(p, s.timingOf(a))
			if s.custom != nil {
				s.custom(p, f)
			}
			out.runs[a.name] = append(out.runs[a.name], f)
			out.last[a.name] = p
		}
	}
	out.Claims = s.claimed(out.runs)
	b.out.Scenarios = append(b.out.Scenarios, out)
	return nil
}

// once runs one arm.
func (b *bench) once(ctx context.Context, s *scenario, a arm) (*phase, error) {
	// What earlier runs wrote must not be a later one's burden.
	if err := b.db.rest(ctx); err != nil {
		return nil, err
	}
	target, err := a.open(ctx, b.db, b.out.Conns)
	if err != nil {
		return nil, err
	}
	defer target.close()
	t := s.timingOf(a)
	l := &load{
		db: b.db, target: target, name: a.name, rate: b.out.Rate, readers: b.out.Readers, write: b.db.write,
		lead: t.lead, length: t.lead + t.settle + t.measure, begun: b.out.Begun, quiet: true,
	}
	s.setUp(b.db, l)
	if a.alone {
		l.readers = 0
	}
	if !s.cold {
		if err := l.warm(ctx); err != nil {
			return nil, err
		}
	}
	return l.run(ctx, b.show)
}

// warm lets each connection that reads may use run one. The first read of a backend maps the
// server's whole cache, which can take longer than the read itself; a program's connections
// have that behind them. It goes past the limit of an arm that has one.
func (l *load) warm(ctx context.Context) error {
	if l.readers == 0 {
		return nil
	}
	n := int(l.target.conns.Config().MaxConns)
	failed := make([]error, n)
	var open, all sync.WaitGroup
	open.Add(n)
	for i := range n {
		all.Go(func() {
			conn, err := l.target.conns.Acquire(ctx)
			if err == nil {
				defer conn.Release()
			}
			open.Done()
			open.Wait() // each has another
			if failed[i] = err; err == nil {
				failed[i] = l.read(ctx, conn, 0)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}
