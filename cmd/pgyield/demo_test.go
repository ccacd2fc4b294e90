package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/pgtest"
)

// runMain makes this test binary the command itself: signals and exit codes are
// tested on a process.
const runMain = "PGYIELD_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// pgyieldCommand is the command as a process.
func pgyieldCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), runMain+"=1")
	return cmd
}

// leftovers are the schemas of commands and the sessions in a database.
func leftovers(t *testing.T, dsn string) (schemas, sessions int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	err = conn.QueryRow(t.Context(), `select
		(select count(*) from pg_namespace where nspname like 'pgyield\_%'),
		(select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
			and backend_type = 'client backend')`).Scan(&schemas, &sessions)
	if err != nil {
		t.Fatal(err)
	}
	return schemas, sessions
}

// nothingLeft fails the test unless the command's schema and sessions are gone. A
// backend may outlive its connection for a moment.
func nothingLeft(t *testing.T, dsn string) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		schemas, sessions := leftovers(t, dsn)
		if schemas == 0 && sessions == 0 {
			return
		}
		if time.Now().After(deadline) || schemas > 0 {
			t.Fatalf("left over: %d schemas, %d sessions", schemas, sessions)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestDemo(t *testing.T) {
	server := pgtest.New(t, pgtest.Options{Fast: true})
	t.Run("EndToEnd", func(t *testing.T) { demoEndToEnd(t, server.Database(t)) })
	t.Run("Interrupted", func(t *testing.T) {
		for _, moment := range []string{"loading ", "writes, no reads", "writes and reads, pgxpool", "writes and reads, pgyield"} {
			t.Run(moment, func(t *testing.T) { demoInterrupted(t, server.Database(t), moment) })
		}
	})
	t.Run("NoPrivilege", func(t *testing.T) { demoNoPrivilege(t, server.Database(t)) })
}

func demoEndToEnd(t *testing.T, dsn string) {
	report := filepath.Join(t.TempDir(), "report.html")
	cmd := pgyieldCommand(t, "demo", "--dsn", dsn, "--rows=20000", "--lead=500ms", "--settle=500ms", "--rate=100",
		"--idle=2s", "--plain=2s", "--yield=3s", "--report", report)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), log.String())
	}
	nothingLeft(t, dsn)

	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, begin := range []string{"write p50", "no reads", "pgxpool", "pgyield"} {
		if !strings.HasPrefix(strings.TrimSpace(lines[i]), begin) {
			t.Fatalf("line %d is not of %s:\n%s", i, begin, out.String())
		}
	}
	if strings.Contains(out.String(), "failed") {
		t.Errorf("statements failed:\n%s", out.String())
	}
	if fields := strings.Fields(lines[3]); fields[len(fields)-1] == "-" {
		t.Errorf("no limit's path:\n%s", out.String())
	}
	for _, said := range []string{"loading 20000 rows", "dropped schema"} {
		if !strings.Contains(log.String(), said) {
			t.Errorf("%q was not said:\n%s", said, log.String())
		}
	}
	checkReport(t, report, strings.Contains(lines[3], " > "))
}

// checkReport looks for measured points in each chart of each phase, and for the
// limit's moves where it moved.
func checkReport(t *testing.T, path string, moved bool) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if moved && !strings.Contains(string(page), "Each move of the limit") {
		t.Error("the limit moved, but no move is listed")
	}
	var charts []chartData
	if err := json.Unmarshal(jsonData.FindSubmatch(page)[1], &charts); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"Write latency, p95": {phaseIdle, phasePlain, phaseYield},
		"The read limit":     {"limit", "running", "waiting"},
		"Reads per second":   {phasePlain, phaseYield},
		"Pressure":           {"write p90"},
		"Writes in flight":   {phaseIdle, phasePlain, phaseYield},
	}
	for _, chart := range charts {
		for _, name := range want[chart.Title] {
			points := 0
			for _, v := range chart.Lines[name] {
				if v != nil {
					points++
				}
			}
			if points < 3 {
				t.Errorf("%s, %s: %d points", chart.Title, name, points)
			}
		}
		delete(want, chart.Title)
	}
	if len(want) > 0 {
		t.Errorf("no charts of %v", want)
	}
}

// demoInterrupted sends SIGINT when the demo says that it has come to moment.
func demoInterrupted(t *testing.T, dsn, moment string) {
	cmd := pgyieldCommand(t, "demo", "--dsn", dsn, "--rows=50000", "--lead=100ms", "--settle=0s",
		"--idle=1s", "--plain=1100ms", "--yield=30s", "--rate=100")
	code, log := interrupt(t, cmd, moment, func() {})
	if code != exitInterrupted {
		t.Errorf("exit code %d\n%s", code, log)
	}
	for _, said := range []string{"interrupted, cleaning up", "dropped schema", "pgyield: interrupted"} {
		if !strings.Contains(log, said) {
			t.Errorf("%q was not said:\n%s", said, log)
		}
	}
	nothingLeft(t, dsn)
	if files, _ := os.ReadDir(cmd.Dir); len(files) > 0 {
		t.Errorf("files were left: %v", files)
	}
}

// interrupt runs cmd, sends SIGINT once its stderr has a line that begins with
// moment (after a call of during), and returns the exit code and what was said.
func interrupt(t *testing.T, cmd *exec.Cmd, moment string, during func()) (code int, log string) {
	t.Helper()
	read, write := io.Pipe()
	var said syncBuffer
	cmd.Stderr = io.MultiWriter(&said, write)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		seen := false
		var text strings.Builder
		buf := make([]byte, 1024)
		for {
			n, err := read.Read(buf)
			text.Write(buf[:n])
			if !seen && strings.Contains("\n"+text.String(), "\n"+moment) {
				seen = true
				time.Sleep(100 * time.Millisecond) // into the midst of it
				during()
				_ = cmd.Process.Signal(syscall.SIGINT)
			}
			if err != nil {
				return
			}
		}
	}()
	err := cmd.Wait()
	_ = write.Close()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), said.String()
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}
func (s *syncBuffer) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

func demoNoPrivilege(t *testing.T, dsn string) {
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	for _, statement := range []string{
		"drop role if exists demo_guest", "create role demo_guest login password 'guest'",
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	config := conn.Config()
	guest := fmt.Sprintf("host=%s port=%d dbname=%s user=demo_guest password=guest sslmode=disable",
		config.Host, config.Port, config.Database)
	out, err := pgyieldCommand(t, "demo", "--dsn", guest).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "pgyield: demo: creating a schema: ") || strings.Contains(string(out), "guest'") {
		t.Errorf("said\n%s", out)
	}
}

// The server that the demo starts by itself, and its files, go with Ctrl-C, also while
// it is being started.
func TestDemoStopsItsOwnServer(t *testing.T) {
	for _, moment := range []string{"pgtest: starting ", "writes, no reads"} {
		t.Run(moment, func(t *testing.T) { demoStopsItsOwnServer(t, moment) })
	}
}

func demoStopsItsOwnServer(t *testing.T, moment string) {
	folder, err := os.MkdirTemp("", "pgyield-demo-test")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := os.Chmod(folder, 0o777); err != nil { // the server may run as somebody else
		t.Fatal(err)
	}
	cmd := pgyieldCommand(t, "demo", "--rows=20000", "--settle=0s", "--idle=20s")
	for _, entry := range os.Environ() {
		if strings.HasPrefix(entry, pgtest.EnvDSN+"=") {
			cmd.Env = append(cmd.Env, pgtest.EnvDSN+"=")
		}
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+folder)
	var during []os.DirEntry
	code, log := interrupt(t, cmd, moment, func() { during, _ = os.ReadDir(folder) })
	if code != exitInterrupted || !strings.HasSuffix(log, "pgyield: interrupted\n") || strings.Contains(log, "no local server") {
		t.Errorf("exit code %d, said\n%s", code, log)
	}
	if strings.Contains(log, "starting PostgreSQL") && len(during) == 0 {
		t.Error("the local server's files are not in the temporary folder, so that this test sees nothing")
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) > 0 {
		t.Errorf("left in the temporary folder: %v, %v\n%s", files, err, log)
	}
}

func TestBadFlags(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"--rate=0", "--rate is 0, must be from 1 to 5000"},
		{"--conns=1", "--conns is 1, must be from 2 to 1000"},
		{"--idle=4s", "--idle is 4s, must be at least 5s (--settle and one second)"},
		{"--plain=6s", "--plain is 6s, must be at least 7s (--lead, --settle and one second)"},
		{"--settle=-1s", "--settle is -1s, must be at least 0s"},
		{"--nonsense", "unknown flag"},
	} {
		checkExit(t, pgyieldCommand(t, "demo", test.args), exitUsage, test.want)
	}
}

// A wrong command line is one error and one hint; what fails although the command line is
// right has another exit code. It is the same in every command.
func TestExitCodes(t *testing.T) {
	const nobody = "--dsn=postgres://nobody@127.0.0.1:1/none?connect_timeout=2"
	const refused = "failed to connect to `user=nobody database=none`"
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"", exitUsage, "pgyield: expected one of \"demo\", \"bench\", \"classify\", \"size\", \"watch\"\nTry 'pgyield --help'.\n"},
		{"nothing", exitUsage, "pgyield: unexpected argument nothing\nTry 'pgyield --help'.\n"},
		{"demo --rate=0", exitUsage, "pgyield: demo: --rate is 0, must be from 1 to 5000\nTry 'pgyield demo --help'.\n"},
		{"bench --only=none", exitUsage, "pgyield: bench: --only is \"none\", must begin the name of a scenario (see --list)\nTry 'pgyield bench --help'.\n"},
		{"size --rate=1/s --mean=1s --limit=0", exitUsage, "pgyield: --limit is 0, must be from 1 to 100000\nTry 'pgyield size --help'.\n"},
		{"size --limit=1", exitUsage, "pgyield: missing flags: --mean=TIME, --rate=RATE\nTry 'pgyield size --help'.\n"},
		{"watch --period=0s " + nobody, exitUsage, "pgyield: --period is 0s, must be from 50ms to 1m\nTry 'pgyield watch --help'.\n"},
		{"watch --period=1ms " + nobody, exitUsage, "\nTry 'pgyield watch --help'.\n"},
		{"watch --tolerance=1 " + nobody, exitUsage, "\nTry 'pgyield watch --help'.\n"},
		{"classify --writing-function=a..b", exitUsage, "\nTry 'pgyield classify --help'.\n"},
		{"demo " + nobody, exitFailed, "pgyield: --dsn: pgtest: the server that Options.DSN names: " + refused},
		{"bench " + nobody, exitFailed, "pgyield: --dsn: pgtest: the server that Options.DSN names: " + refused},
		{"watch " + nobody, exitFailed, "pgyield: --dsn: polling for write pressure: " + refused},
		{"classify " + nobody, exitFailed, "pgyield: --dsn: " + refused},
		{"classify --dsn=nonsense", exitFailed, "pgyield: --dsn: cannot parse `nonsense`"},
		{"classify nowhere.sql", exitFailed, "pgyield: read the statements: open nowhere.sql: "},
		{"demo --report=/nowhere/report.html", exitFailed, "pgyield: report: open /nowhere/report.html.part: "},
		{"size --rate=1/s --mean=1s --limit=1 --html=/nowhere/size.html", exitFailed, "pgyield: page: open /nowhere/size.html.part: "},
	} {
		checkExit(t, pgyieldCommand(t, strings.Fields(test.args)...), test.code, test.want)
	}
	cmd := pgyieldCommand(t, "demo")
	cmd.Env = append(cmd.Env, pgtest.EnvDSN+"="+strings.TrimPrefix(nobody, "--dsn="))
	checkExit(t, cmd, exitFailed, "pgyield: pgtest: the server that PGYIELD_DSN names: "+refused)
}

// checkExit runs cmd, which must fail with that code and that text, and print nothing else
// than errors.
func checkExit(t *testing.T, cmd *exec.Cmd, code int, want string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code || !strings.Contains(string(out), want) ||
		code == exitUsage && strings.Count(string(out), "\n") != 2 {
		t.Errorf("%v: %v, want exit code %d and %q in\n%s", cmd.Args[1:], err, code, want, out)
	}
}

func TestOutcome(t *testing.T) {
	left := cleanupError{errors.New("pgyield: demo: the schema x could not be dropped")}
	cut := fmt.Errorf("pgxpool: %w", context.Canceled)
	for _, test := range []struct {
		interrupted bool
		err         error
		code        int
		said        string
	}{
		{false, nil, 0, ""},
		{true, nil, 0, ""},
		{false, errors.New("boom"), 1, "pgyield: boom"},
		{false, errors.New("pgyield: boom"), 1, "pgyield: boom"},
		{true, cut, exitInterrupted, "pgyield: interrupted"},
		{true, errors.Join(cut, left), exitInterrupted, "pgyield: interrupted|pgyield: demo: the schema x could not be dropped"},
		{true, errors.New("boom"), 1, "pgyield: boom"},
	} {
		code, said := outcome(test.interrupted, test.err)
		if code != test.code || strings.Join(said, "|") != test.said {
			t.Errorf("%v, interrupted %v: %d, %q", test.err, test.interrupted, code, said)
		}
	}
}

// A load on a pool whose writes all fail says why instead of printing zeros.
func TestLoadThatOnlyFails(t *testing.T) {
	db := &database{schema: "none"}
	l := &load{
		db: db, write: db.write, read: db.read, target: target{pool: deadPool{}, gate: func() *gate { return nil }},
		name: phasePlain, rate: 100, readers: 2, length: 300 * time.Millisecond, begun: time.Now(),
	}
	_, err := l.run(t.Context(), newConsole(io.Discard, io.Discard))
	if !errors.Is(err, errDead) {
		t.Errorf("got %v", err)
	}
	if l.out.Errors < 10 {
		t.Errorf("%d errors", l.out.Errors)
	}
}

var errDead = errors.New("dead")

type deadPool struct{}

func (deadPool) Begin(context.Context) (pgx.Tx, error) { return nil, errDead }
func (deadPool) Query(context.Context, string, ...any) (pgx.Rows, error) {
	return nil, errDead
}
