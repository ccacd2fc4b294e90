package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/pgtest"
	"github.com/pgyield/pgyield/pressure"
)

// classify runs the command with arguments and returns what it wrote.
func classify(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var command struct {
		Classify classifyCmd `cmd:""`
	}
	var out, notes bytes.Buffer
	parser, err := kong.New(&command, kong.Writers(&out, &notes), kong.Exit(func(int) {}),
		kong.BindTo(t.Context(), (*context.Context)(nil)))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(append([]string{"classify"}, args...))
	if err != nil {
		return "", "", err
	}
	err = parsed.Run()
	return out.String(), notes.String(), err
}

func script(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "queries.sql")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const example = `-- A comment; with a semicolon.
select 1;
select *
from orders where note = 'a;b';

  insert into orders (id)
  values (1);
/* é */ select é, nextval('s') from t;
vacuum`

func TestClassify(t *testing.T) {
	file := script(t, example)
	got, _, err := classify(t, file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`FILE:2:1: trivial: reads no table and calls no function
	select 1
FILE:3:1: read: reads only
	select * from orders where note = 'a;b'
FILE:6:3: write (DML): INSERT changes rows
	insert into orders (id) values (1)
FILE:8:19: write: calls nextval, a built-in function that writes or holds something
	select é, nextval('s') from t
FILE:9:1: write: VACUUM is not the start of a read
	vacuum
5 statements: 1 read, 1 trivial, 3 write (1 of them DML)
`, "FILE", file)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestClassifyJSON(t *testing.T) {
	file := script(t, example)
	got, _, err := classify(t, "--json", file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 5 {
		t.Fatalf("%d lines:\n%s", len(lines), got)
	}
	var one classified
	if err := json.Unmarshal([]byte(lines[3]), &one); err != nil {
		t.Fatal(err)
	}
	want := classified{
		Source: file, Intent: "write", Reason: "calls nextval, a built-in function that writes or holds something",
		Offset: strings.Index(example, "nextval"), Line: 8, Column: 19, SQL: "select é, nextval('s') from t",
	}
	if one != want {
		t.Errorf("got  %+v\nwant %+v", one, want)
	}
}

func TestClassifyFunctions(t *testing.T) {
	file := script(t, "select app.charge(1); select nextval('s')")
	got, _, err := classify(t, "--writing-function", "charge", "--writing-function=refund", "--reading-function", `"nextval"`, file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{":1:12: write: calls charge, registered", "1 read, 0 trivial, 1 write"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if _, _, err := classify(t, "--writing-function", "a b", file); err == nil || !strings.Contains(err.Error(), `"a b"`) {
		t.Errorf("a bad name: %v", err)
	}
	if _, _, err := classify(t, file+".missing"); err == nil || !strings.Contains(err.Error(), ".missing") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestClassifyStdin runs the whole command, as its user would.
func TestClassifyStdin(t *testing.T) {
	for _, args := range [][]string{{"classify"}, {"classify", "-"}} {
		command := pgyieldCommand(t, args...)
		command.Stdin = strings.NewReader("table t; delete from t")
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		want := "-:1:1: read: reads only\n\ttable t\n-:1:10: write (DML): DELETE changes rows\n\tdelete from t\n" +
			"2 statements: 1 read, 0 trivial, 1 write (1 of them DML)\n"
		if string(output) != want {
			t.Errorf("got\n%s\nwant\n%s", output, want)
		}
	}
}

// TestClassifyTellsWhatItRead: what was classified before a source that fails is told whole.
func TestClassifyTellsWhatItRead(t *testing.T) {
	file := script(t, strings.Repeat("select 1;\n", 10))
	for _, flags := range [][]string{{"--json"}, nil} {
		out, _, err := classify(t, append(flags, file, filepath.Join(t.TempDir(), "none"))...)
		if err == nil || strings.Count(out, "read") != 10 || !strings.HasSuffix(out, "\n") {
			t.Errorf("%v: %v\n%s", flags, err, out)
		}
	}
}

// TestClassifyLeavesOff: a signal ends it though what it reads, a pipe, says nothing.
func TestClassifyLeavesOff(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := pgyieldCommand(t, "classify", pipe)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	silent, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until it is read
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // the program has ended
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("%v, want exit code %d", cmd.ProcessState, exitInterrupted)
	}
}

func TestClassifyLongFile(t *testing.T) {
	const n = 200_000
	got, _, err := classify(t, script(t, strings.Repeat("select a\n  from t;\n", n)))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{":399999:1: read", "200000 statements: 200000 read"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in the report's end: %s", want, got[max(0, len(got)-200):])
		}
	}
}

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"a\n\t b":                       "a b",
		"a\x1b[31mb":                    "a [31mb",
		strings.Repeat("é", 60):         strings.Repeat("é", 50) + " ...",
		"a" + strings.Repeat("é", 60):   "a" + strings.Repeat("é", 49) + " ...",
		strings.Repeat(" ", 2000) + "a": "",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestClassifyDatabase(t *testing.T) {
	server := pgtest.New(t, pgtest.Options{Fast: true, Settings: map[string]string{"shared_preload_libraries": "pg_stat_statements"}})
	dsn := server.Database(t)
	if _, _, err := classify(t, "--dsn", dsn); err == nil || !strings.Contains(err.Error(), "pg_stat_statements is not installed in database") {
		t.Errorf("without the extension: %v", err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	_, err = conn.Exec(t.Context(), `create schema stats; create extension pg_stat_statements schema stats;
		create table t (id int); create sequence s;
		create function visit(int) returns int volatile language sql as 'insert into t values ($1) returning id';
		create function later(int, int) returns int volatile language sql as 'select $2';
		create aggregate last_of(int) (sfunc = later, stype = int);
		create function plain(int) returns int stable language sql as 'select $1';
		create role classify_plain login password 'secret'; grant usage on schema stats to classify_plain`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := conn.Exec(context.Background(), "drop owned by classify_plain; drop role classify_plain"); err != nil {
			t.Error(err)
		}
	}()
	for range 3 {
		if _, err := conn.Exec(t.Context(), "select id from t where id = 42"); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{"select visit(1)", "select last_of(id) from t", "select plain(1)", "insert into t values (7)", "select nextval('s')"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	pollOnce(t, dsn)
	if _, _, err := classify(t, "--dsn", dsn); err != nil { // its own statements are recorded as well
		t.Fatal(err)
	}
	got, _, err := classify(t, "--dsn", dsn, "--json")
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{"pg_snapshot_xmax", "server_version_num", "risky", "pg_extension", "dbid"} {
		if !recorded(t, conn, own) {
			t.Errorf("no own statement with %s is recorded, so that this test shows nothing of it", own)
		}
		if strings.Contains(got, own) {
			t.Errorf("an own statement with %s is listed", own)
		}
	}
	seen := map[string]classified{}
	for line := range strings.Lines(got) {
		var one classified
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		seen[one.SQL] = one
	}
	for sql, want := range map[string]classified{
		"select id from t where id = $1": {Intent: "read", Calls: 3},
		"select visit($1)":               {Intent: "write", Calls: 1, Offset: 7},
		"select last_of(id) from t":      {Intent: "write", Calls: 1, Offset: 7},
		"select plain($1)":               {Intent: "read", Calls: 1},
		"insert into t values ($1)":      {Intent: "write", DML: true, Calls: 1},
		"select nextval($1)":             {Intent: "write", Calls: 1, Offset: 7},
	} {
		one, ok := seen[sql]
		if !ok || one.Intent != want.Intent || one.DML != want.DML || one.Calls != want.Calls || one.Offset != want.Offset ||
			one.QueryID == 0 || one.Source != statStatements {
			t.Errorf("%s: %+v, want %+v", sql, one, want)
		}
	}

	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("classify_plain", "secret")
	u.RawQuery += "&pool_max_conns=3&yield_mode=shadow" // of the application whose database it is
	got, notes, err := classify(t, "--dsn", u.String())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(notes, "hidden from this one: grant it pg_read_all_stats") || strings.Contains(got, "insufficient") {
		t.Errorf("a plain role is not told what it cannot see: %s%s", notes, got)
	}
	hidden := 0
	if _, err := fmt.Sscanf(notes, "pgyield: %d statements of other roles", &hidden); err != nil || hidden < len(seen) {
		t.Errorf("%d statements are hidden, %v; want at least the %d of the other role:\n%s", hidden, err, len(seen), notes)
	}
}

// pollOnce polls as a pool's monitor does.
func pollOnce(t *testing.T, dsn string) {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	poller, err := pressure.NewPoller(config, pressure.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer poller.Close()
	if _, err := poller.Sample(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// recorded is true when pg_stat_statements has a statement with that text.
func recorded(t *testing.T, conn *pgx.Conn, text string) (found bool) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `select exists (select from stats.pg_stat_statements
		where position($1 in query) > 0)`, text).Scan(&found)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
