package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgyield/pgyield/pgtest"
)

// One scenario, whole: the command, the table, the figures and the report. The server has
// no room for another one.
func TestBench(t *testing.T) {
	server := pgtest.New(t, pgtest.Options{Fast: true, Settings: map[string]string{"max_connections": "100"}})
	dsn := server.Database(t)
	dir := t.TempDir()
	report, figures := filepath.Join(dir, "report.html"), filepath.Join(dir, "bench.json")
	cmd := pgyieldCommand(t, "bench", "--dsn", dsn, "--rows=20000", "--rounds=2", "--only=onset,poll cost", "--report", report, "--json", figures)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), log.String())
	}
	nothingLeft(t, dsn)
	for _, said := range []string{"onset (2 rounds)", "seconds until the limit is 1", "left out: poll cost: the server has room for ", "All figures: " + figures, "Charts: " + report} {
		if !strings.Contains(out.String(), said) {
			t.Errorf("%q was not printed:\n%s", said, out.String())
		}
	}
	text, err := os.ReadFile(figures)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Scenarios []struct {
			Name    string
			Claims  []struct{ Rounds []*float64 }
			Figures map[string][]map[string]*float64
		}
		LeftOut []leftOut `json:"left_out"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Scenarios) != 1 || len(got.Scenarios[0].Claims) != 2 || len(got.Scenarios[0].Claims[0].Rounds) != 2 {
		t.Fatalf("got %s", text)
	}
	if len(got.LeftOut) != 1 || got.LeftOut[0].Name != "poll cost" {
		t.Errorf("left out: %+v", got.LeftOut)
	}
	for _, round := range got.Scenarios[0].Figures[armYield] {
		for _, key := range []string{"write_p95_ms", "writes_per_s", "reads_per_s"} {
			if v := round[key]; v == nil || *v <= 0 {
				t.Errorf("%s is %v: nothing was measured", key, v)
			}
		}
	}
	page, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(page), "<svg"); n != 2 {
		t.Errorf("%d charts in the report, want 2", n)
	}
	if !strings.Contains(string(page), "Left out: poll cost: the server has room for ") {
		t.Error("the report does not say what is left out")
	}
}

// What polls cost is measured on a server that has room for the sessions; without room,
// asking for nothing else is an error.
func TestBenchPollCost(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("not applicable: this system does not tell a process's time in /proc")
	}
	server := pgtest.New(t, pgtest.Options{Fast: true, Settings: map[string]string{"max_connections": "560"}})
	dsn := server.Database(t)
	figures := filepath.Join(t.TempDir(), "bench.json")
	cmd := pgyieldCommand(t, "bench", "--dsn", dsn, "--rows=1000", "--rounds=1", "--only=poll cost", "--report=", "--json", figures)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	nothingLeft(t, dsn)
	text, err := os.ReadFile(figures)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Scenarios []struct {
			Figures map[string][]map[string]float64
		}
	}
	if err := json.Unmarshal(text, &got); err != nil || len(got.Scenarios) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	f := got.Scenarios[0].Figures[armYield][0]
	// 500 sessions are not looked at in less than 50 µs. How much more it takes, a busy machine decides.
	if f["polls_per_s"] < 0.2 || f["polls_per_s"] > 2.2 || f["poll_ms"] < 0.05 || f["poll_ms"] > 100 {
		t.Errorf("figures: %v", f)
	}
	if percent := f["poll_ms"] * f["polls_per_s"] / 10; math.Abs(f["poll_core_percent"]-percent) > 0.01*percent {
		t.Errorf("%v %% of a core, but %v ms a poll and %v polls/s", f["poll_core_percent"], f["poll_ms"], f["polls_per_s"])
	}
	cmd = pgyieldCommand(t, "bench", "--dsn", dsn, "--rows=1000", "--rounds=1", "--only=poll cost", "--conns=60")
	out, err = cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "poll cost is left out: the server has room for 557 sessions and ") ||
		!strings.Contains(string(out), "pgyield: bench: all scenarios that were asked for are left out") {
		t.Errorf("%v\n%s", err, out)
	}
	nothingLeft(t, dsn)
}

func TestBenchInterrupted(t *testing.T) {
	server := pgtest.New(t, pgtest.Options{Fast: true})
	for _, moment := range []string{"loading 20000 rows", "aggregates, round 1 of 5: pgxpool", "aggregates, round 1 of 5: read pool of 1"} {
		t.Run(moment, func(t *testing.T) {
			dsn := server.Database(t)
			cmd := pgyieldCommand(t, "bench", "--dsn", dsn, "--rows=20000", "--only=aggregates")
			if code, log := interrupt(t, cmd, moment, func() {}); code != exitInterrupted {
				t.Errorf("exit code %d\n%s", code, log)
			}
			nothingLeft(t, dsn)
			if files, _ := os.ReadDir(cmd.Dir); len(files) > 0 {
				t.Errorf("files were left: %v", files)
			}
		})
	}
}

func TestBenchRefuses(t *testing.T) {
	for _, c := range []struct {
		cmd  benchCmd
		want string
	}{
		{benchCmd{Rate: 0, Readers: 1, Conns: 2, Rows: 1000, Rounds: 1}, "--rate is 0, must be from 1 to 5000"},
		{benchCmd{Rate: 1, Readers: 1, Conns: 2, Rows: 5, Rounds: 1}, "--rows is 5, must be from 1000 to 100000000"},
		{benchCmd{Rate: 1, Readers: 1, Conns: 2, Rows: -1, Rounds: 1}, "--rows is -1, must be from 1000 to 100000000"},
		{benchCmd{Rate: 1, Readers: 1, Conns: 2, Rounds: 0}, "--rounds is 0, must be from 1 to 1000"},
		{benchCmd{Rate: 1, Readers: 1, Conns: 2, Rows: 1000, Rounds: 0}, "--rounds is 0, must be from 1 to 1000"},
		{benchCmd{Rate: 1, Readers: 1, Conns: 2, Rows: 1000, Rounds: 1, Only: []string{"onset", "nothing"}}, `--only is "nothing"`},
		{benchCmd{Rate: 1, Readers: 1, Conns: 2, Rows: 1000, Rounds: 1, Arms: []string{armYield, "nobody"}}, `--arms is "nobody"`},
		{benchCmd{Rate: 1, Readers: 1, Conns: 2, Rows: 1000, Rounds: 1, Only: []string{"onset"}, Arms: []string{armPlain}}, `--only "onset" and --arms "pgxpool" leave nothing`},
		{benchCmd{Rate: 1, Readers: 1, Conns: 2, Rows: 1000, Rounds: 1, Params: "yield_period=abc"}, "--params: "},
		{benchCmd{Rate: 1, Readers: 1, Conns: 2, Rows: 1000, Rounds: 1, Params: "yield_period='500ms'"}, `--params: "yield_period='500ms'" must be a name, = and a value`},
		{benchCmd{Rate: 1, Readers: 1, Conns: 2, Rows: 1000, Rounds: 1, Params: "yield_period = 1s"}, `--params: "yield_period" must be a name, = and a value`},
		{benchCmd{Rate: 1, Readers: 1, Conns: 20, Rows: 1000, Rounds: 1, Params: "yield_read_ceiling=3"}, `--params: pgyield of "sleeping reads: bulk load": `},
		{benchCmd{Rate: 1, Readers: 1, Conns: 20, Rows: 1000, Rounds: 1, Only: []string{"onset"}, Params: "yield_read_floor=30"}, `--params: pgyield of "onset": `},
		{benchCmd{Rate: 1, Readers: 1, Conns: 2, Rows: 1000, Rounds: 1, JSON: "a", Report: "a"}, `--json and --report are both "a"`},
		{benchCmd{Rate: 1, Readers: 1, Conns: 2, Rows: 1000, Rounds: 3, Quick: true}, "--rounds is 3, must not be given with --quick"},
	} {
		if err := c.cmd.Validate(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cmd, err, c.want)
		}
	}
	// What is refused there for its sake runs without it.
	fine := benchCmd{Rate: 1, Readers: 1, Conns: 20, Rows: 1000, Rounds: 1, Only: []string{"onset"}, Params: "yield_read_ceiling=3 yield_period=1s"}
	if err := fine.Validate(); err != nil {
		t.Error(err)
	}
	for _, quick := range []bool{true, false} {
		for _, s := range (&benchCmd{Quick: quick}).selected() {
			if s.name == "" || s.about == "" || len(s.arms) == 0 || s.claims == nil || s.setUp == nil || strings.Contains(s.name, ",") {
				t.Errorf("scenario %q is not whole, or cannot be named in a list", s.name)
			}
		}
	}
}

// course is a phase of eight seconds that begins at a minute; reads join after two. Writes
// of 1 ms are due every 10 ms, of 100 ms in the first two seconds after reads joined.
func course() *phase {
	p := &phase{Name: "course", From: time.Minute, To: time.Minute + 8*time.Second, Lead: 2 * time.Second}
	for at := time.Duration(0); at < 8*time.Second; at += 10 * time.Millisecond {
		took := time.Millisecond
		if at >= 2*time.Second && at < 4*time.Second {
			took = 100 * time.Millisecond
		}
		p.Writes = append(p.Writes, work{Begun: p.From + at, Took: took, Done: true})
		g := &gate{Limit: 4}
		if at >= 3*time.Second && at < 5*time.Second {
			g.Limit = 1
		}
		p.Gauges = append(p.Gauges, gauge{At: p.From + at, Gate: g})
		p.Reads = append(p.Reads, work{Begun: p.From + at, Took: 5 * time.Millisecond, Done: true})
	}
	p.Decisions = []decision{
		{At: p.From + 3*time.Second, From: 4, To: 1},
		{At: p.From + 5*time.Second, From: 1, To: 4},
	}
	return p
}

func TestNumbers(t *testing.T) {
	p := course()
	f := numbersOf(p, timing{lead: 2 * time.Second, settle: 0, measure: 6 * time.Second})
	for key, want := range map[string]float64{
		"write_p50_ms": 1, "write_p95_ms": 100, "reads_per_s": 100, "at_start": 4.0 / 6, "at_half": 4.0 / 6,
		"limit_mean": 3, "limit_lowest": 1, "cuts_per_min": 10, "refused": 0,
	} {
		if math.Abs(f[key]-want) > 0.01*want {
			t.Errorf("%s is %v, want %v", key, f[key], want)
		}
	}
	if got := downAfter(p); got != 1 {
		t.Errorf("down after %v s, want 1", got)
	}
	if got := calmAfter(p, p95In(p, 0, p.Lead)); got != 2 {
		t.Errorf("calm after %v s, want 2", got)
	}
	if got := calmAfter(p, 0.1); got != never {
		t.Errorf("calm after %v s, want never", got)
	}
	if got := readsIn(p, time.Second, 3*time.Second); got != 100 {
		t.Errorf("%v reads/s, want 100", got)
	}
	if got := p95In(p, 9*time.Second, 10*time.Second); !math.IsNaN(got) {
		t.Errorf("p95 of no writes is %v, want NaN", got)
	}
}

// Ratios are formed inside a round: a round that was slow for all arms changes nothing.
func TestClaims(t *testing.T) {
	arm := func(p95, p99, reads float64) []figures {
		var out []figures
		for _, slow := range []float64{1, 5, 1} {
			out = append(out, figures{"write_p95_ms": slow * p95, "write_p99_ms": slow * p99, "reads_per_s": reads / slow})
		}
		return out
	}
	r := runs{
		armIdle: arm(2, 3, 0), armPlain: arm(40, 60, 8), armStatic(1): arm(2.2, 4, 4), armStatic(2): arm(6, 9, 7),
		armFailsafe: arm(20, 30, 8), armYield: arm(2.4, 4.4, 4.1),
	}
	claims := steadyClaims(r)
	want := []struct {
		value float64
		met   bool
	}{{1.2, true}, {1.1, true}, {1.025, true}, {0, true}}
	if len(claims) != len(want) {
		t.Fatalf("%d claims: %+v", len(claims), claims)
	}
	for i, w := range want {
		if c := claims[i]; math.Abs(c.Value-w.value) > 1e-9 || c.Met != w.met {
			t.Errorf("%s: %v, %v, want %+v", c.Measure, c.Value, c.Met, w)
		}
	}
	r[armYield] = arm(2.4, 40, 2) // now a peer is better in both, and two fixed pools are rivals
	claims = steadyClaims(r)
	if c := claims[3]; c.Met || c.Value != 1 {
		t.Errorf("a better peer: %+v", c)
	}
	if c := claims[2]; c.Met || math.Abs(c.Value-2.0/7) > 1e-9 || !strings.Contains(c.Measure, armStatic(2)) {
		t.Errorf("the best fixed pool: %+v", c)
	}
	// A round without a write is no fast one, and pairs stay those of one round.
	delete(r[armYield][1], "write_p95_ms")
	if got := r.ratio("write_p95_ms", armYield, armIdle); len(got) != 2 || math.Abs(got[1]-1.2) > 1e-9 {
		t.Errorf("ratios %v, want 1.2 of the first and the last round", got)
	}
	if f := numbersOf(&phase{To: time.Second}, timing{measure: time.Second}); len(f) == 0 || f["write_p95_ms"] != 0 {
		t.Errorf("figures of nothing: %v", f)
	} else if _, is := f["write_p95_ms"]; is {
		t.Error("a phase without writes has a write latency")
	}
	cold := coldStart("")
	alone := runs{armYield: {{"p95_late_ms": 2}}}
	if got := cold.claimed(alone); len(got) != 0 {
		t.Errorf("claimed with nothing to compare with: %+v", got)
	}
	alone[armIdle] = []figures{{"p95_late_ms": 1.6}}
	if got := cold.claimed(alone); len(got) != 1 || got[0].Scenario != "cold start" || got[0].Value != 1.25 {
		t.Errorf("claimed: %+v", got)
	}
	if c := atMost("unreached", 5, []float64{never, never, 1}); c.Met {
		t.Errorf("%+v", c)
	}
	text, err := json.Marshal(atMost("unreached", 5, []float64{never}))
	if err != nil || !strings.Contains(string(text), `"rounds":[null]`) {
		t.Errorf("%s, %v", text, err)
	}
}

// The textbook's limiter gives every permit back, and moves by the time of reads.
func TestAIMD(t *testing.T) {
	a := &aimd{late: time.Second, most: 4, limit: 2, changed: make(chan struct{})}
	for range 2 {
		if err := a.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.acquire(ctx); err == nil {
		t.Fatal("more than the limit ran")
	}
	a.release(time.Millisecond)
	if a.limit != 3 {
		t.Errorf("limit %v after a read in time, want 3", a.limit)
	}
	a.release(2 * time.Second)
	if a.running != 0 || math.Abs(a.limit-2.7) > 1e-9 {
		t.Errorf("%d running, limit %v after a late read, want 0 and 2.7", a.running, a.limit)
	}
}
