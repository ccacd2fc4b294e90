package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/pgtest"
	"github.com/pgyield/pgyield/pressure"
)

func TestWatch(t *testing.T) {
	server := pgtest.New(t, pgtest.Options{Settings: map[string]string{"track_wal_io_timing": "on", "autovacuum": "off"}})
	dsn := server.Database(t)
	watchExec(t, dsn, "create table t (id int primary key, n int); insert into t values (1, 0), (2, 0)")
	t.Run("Quiet", func(t *testing.T) { watchQuiet(t, dsn) })
	t.Run("Interrupted", func(t *testing.T) { watchInterrupted(t, dsn) })
	t.Run("PlainRole", func(t *testing.T) { watchPlainRole(t, dsn) })
	t.Run("Pressing", func(t *testing.T) { watchPressing(t, dsn) })
}

// watchQuiet: nothing writes, watch least of all.
func watchQuiet(t *testing.T, dsn string) {
	conn := watchConn(t, dsn)
	next := func() (xid int64) {
		if err := conn.QueryRow(t.Context(), "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&xid); err != nil {
			t.Fatal(err)
		}
		return xid
	}
	before := next()
	periods, sum := watchJSON(t, "--dsn", dsn, "--for=3s", "--period=250ms")
	if after := next(); after != before {
		t.Errorf("%d transactions wrote while only watch ran", after-before)
	}
	if last := periods[len(periods)-1]; last.Verdict != "calm" || last.Reason != "no writes" || !strings.Contains(last.Absent["own_writes"], "makes none") {
		t.Errorf("the last period: %+v", last)
	}
	if sum.Pressing != 0 || sum.Failed != 0 || sum.Periods != len(periods) {
		t.Errorf("the sums: %+v, %d periods", sum, len(periods))
	}
}

// watchPressing: writes go on, and others queue for a row's lock all the while.
func watchPressing(t *testing.T, dsn string) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 3)
	loads := []func(*pgx.Conn) error{
		func(c *pgx.Conn) error { // small writes
			for ctx.Err() == nil {
				if _, err := c.Exec(ctx, "update t set n = n + 1 where id = 1"); err != nil {
					return err
				}
				pause(ctx, 5*time.Millisecond)
			}
			return ctx.Err()
		},
		func(c *pgx.Conn) error { // holds the lock
			_, err := c.Exec(ctx, "begin; update t set n = n where id = 2; select pg_sleep(60)")
			return err
		},
		func(c *pgx.Conn) error { // waits for it
			_, err := c.Exec(ctx, "update t set n = n where id = 2")
			return err
		},
	}
	for _, load := range loads {
		conn := watchConn(t, dsn)
		go func() { done <- load(conn) }()
	}
	periods, sum := watchJSON(t, "--dsn", dsn+"&yield_tolerance=3", "--for=9s", "--period=250ms", "--lock-wait=1ms")
	select {
	case err := <-done:
		t.Fatalf("a load ended early: %v", err)
	default:
	}
	cancel()
	for range loads {
		<-done
	}

	var values []float64
	over, pressing := 0, 0
	for _, p := range periods {
		lock, ok := p.Signals["lock_wait"]
		if !ok {
			continue
		}
		values = append(values, lock.MS)
		if lock.Threshold != 1 || lock.Over != (lock.MS > 1) {
			t.Errorf("the lock wait: %+v", lock)
		}
		if lock.Over {
			over++
		}
		if p.Verdict == "pressing" {
			pressing++
			if !strings.HasPrefix(p.Reason, "lock_wait") && !strings.HasPrefix(p.Reason, "wal_sync") {
				t.Errorf("pressing for %q", p.Reason)
			}
		}
	}
	if len(values) < 10 || over < 10 || pressing < 4 || pressing != sum.Pressing {
		t.Errorf("%d periods with a lock wait, %d over, %d pressing; sums %+v", len(values), over, pressing, sum)
	}
	if i := slices.IndexFunc(periods, func(p watchedPeriod) bool { s := p.Signals["wal_sync"]; return s.Baseline > 0 }); i < 0 {
		t.Error("no baseline of the WAL sync time")
	} else if s := periods[i].Signals["wal_sync"]; math.Abs(s.Threshold/s.Baseline-math.Pow(3, 1.5)) > 0.01 {
		t.Errorf("the URL's tolerance is not used: %+v", s)
	}
	checkSum(t, sum, "lock_wait", values, over)
}

// checkSum compares a signal's sums with the periods they are of.
func checkSum(t *testing.T, sum watchedSum, name string, values []float64, over int) {
	t.Helper()
	slices.Sort(values)
	i := slices.IndexFunc(sum.Signals, func(s signalSum) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no sums of %s: %+v", name, sum)
	}
	s := sum.Signals[i]
	for q, got := range map[float64]float64{0.5: s.P50, 0.9: s.P90, 0.99: s.P99, 1: s.Max} {
		want := values[int(math.Ceil(q*float64(len(values))))-1]
		if math.Abs(got-want) > 0.04*want+0.01 {
			t.Errorf("quantile %v of %s is %v, want %v", q, name, got, want)
		}
	}
	if s.Periods != len(values) || math.Abs(s.Over-float64(over)/float64(len(values))) > 1e-9 {
		t.Errorf("%+v, want %d of %d over", s, over, len(values))
	}
}

func watchInterrupted(t *testing.T, dsn string) {
	cmd := pgyieldCommand(t, "watch", "--dsn", dsn, "--period=50ms")
	var out bytes.Buffer
	cmd.Stdout = &out
	code, log := interrupt(t, cmd, "no own_writes", func() {})
	if code != 0 {
		t.Errorf("exit code %d\n%s", code, log)
	}
	for _, part := range []string{"  unknown  ", " 0 without a sample; 0 pressed", "relation_lock  0.00 ms", "share of the periods that press, by tolerance:  1.2: 0 %  1.6: 0 %"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %q in\n%s", part, out.String())
		}
	}
}

// watchPlainRole: what a role cannot see, and a server does not measure, has its reason.
func watchPlainRole(t *testing.T, dsn string) {
	watchExec(t, dsn, `create role "watch plain" login password 'secret'; alter role "watch plain" set track_wal_io_timing = off`)
	t.Cleanup(func() { watchExec(t, dsn, `drop role "watch plain"`) })
	_ = watchConn(t, dsn) // a session that it may not see
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("watch plain", "secret")
	periods, sum := watchJSON(t, "--dsn", u.String(), "--for=1s", "--period=100ms")
	absent := periods[len(periods)-1].Absent
	for name, want := range map[string]string{
		pressure.WALWait: `GRANT pg_monitor TO "watch plain"`, pressure.WriteStatement: `GRANT pg_monitor TO "watch plain"`,
		pressure.WALSync: "track_wal_io_timing is off",
	} {
		if !strings.Contains(absent[name], want) || sum.Absent[name] != absent[name] {
			t.Errorf("%s is absent because %q, in the sums %q; want %q", name, absent[name], sum.Absent[name], want)
		}
	}
}

func TestWatchBadFlags(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"--for=1s", "missing flags: --dsn=URL"},
		{"--dsn=postgres://nobody@127.0.0.1:1/none?connect_timeout=2", "pgyield: --dsn: polling for write pressure: "},
		{"--dsn=postgres://nobody@127.0.0.1:1/none --tolerance=1", "--tolerance: Tolerance is 1: must be from 1.1 to 100"},
		{"--dsn=postgres://nobody@127.0.0.1:1/none?yield_tolerance=x", "yield_tolerance in the connection string"},
		{"--dsn=postgres://nobody@127.0.0.1:1/none --period=1ms", "--period: pressure option Period is 1ms: must be from 50ms to 1m0s"},
		{"--dsn=postgres://nobody@127.0.0.1:1/none --period=0s", "--period is 0s, must be from 50ms to 1m"},
		{"--dsn=postgres://nobody@127.0.0.1:1/none --tolerance=0", "--tolerance is 0, must be from 1.1 to 100"},
		{"--dsn=postgres://nobody@127.0.0.1:1/none --wal-sync=1ns", "--wal-sync: pressure option WALSync is 1ns: must be"},
		{"--dsn=postgres://nobody@127.0.0.1:1/none --learn=-1s", "--learn -1s, must be at least 0s"},
	} {
		out, err := pgyieldCommand(t, append([]string{"watch"}, strings.Fields(test.args)...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), test.want) {
			t.Errorf("%s: %v, want %q in\n%s", test.args, err, test.want, out)
		}
	}
}

// watchJSON runs watch to its end and returns what it wrote.
func watchJSON(t *testing.T, args ...string) (periods []watchedPeriod, sum watchedSum) {
	t.Helper()
	out, err := pgyieldCommand(t, append([]string{"watch", "--json"}, args...)...).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, line := range lines {
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		var p watchedPeriod
		if i == len(lines)-1 {
			err = decoder.Decode(&sum)
		} else if err = decoder.Decode(&p); err == nil {
			periods = append(periods, p)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
	}
	if len(periods) < 3 || sum.Kind != "sum" {
		t.Fatalf("%d periods, the last line is %s", len(periods), lines[len(lines)-1])
	}
	return periods, sum
}

func watchConn(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeConn(conn) })
	return conn
}

func watchExec(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn) // also from a clean-up
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", sql, err))
	}
}
