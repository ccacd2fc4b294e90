package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/pressure"
)

// eachPressureVersion runs a test on the shared server and on each version.
func eachPressureVersion(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Helper()
	t.Run("shared", func(t *testing.T) { test(t, serverDSN(t)) })
	for _, version := range []string{"13", "15", "17", "18"} {
		t.Run(version, func(t *testing.T) { test(t, versionDSN(t, version)) })
	}
}

// logBuffer takes log lines from several goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *logBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *logBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// newTestPoller returns a poller of a server, and what it logs.
func newTestPoller(t testing.TB, dsn string, options pressure.Options) (*pressure.Poller, *logBuffer) {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	logged := &logBuffer{}
	options.Logger = slog.New(slog.NewTextHandler(logged, nil))
	poller, err := pressure.NewPoller(config, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(poller.Close)
	return poller, logged
}

func mustSample(t testing.TB, p *pressure.Poller) pressure.Sample {
	t.Helper()
	s, err := p.Sample(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustExec(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// TestPressurePollReadsTheTruth makes what the poll counts, and counts with it.
func TestPressurePollReadsTheTruth(t *testing.T) {
	eachPressureVersion(t, func(t *testing.T, dsn string) {
		conn := connectTo(t, dsn)
		var version int
		var timed string
		err := conn.QueryRow(context.Background(), `select current_setting('server_version_num')::int,
			coalesce(current_setting('track_wal_io_timing', true), 'off')`).Scan(&version, &timed)
		if err != nil {
			t.Fatal(err)
		}
		table := fmt.Sprintf("pressure_truth_%d", time.Now().UnixNano())
		mustExec(t, conn, "create table "+table+" (n int)")
		t.Cleanup(func() { mustExec(t, conn, "drop table "+table) })

		poller, _ := newTestPoller(t, dsn, pressure.Options{})
		before := mustSample(t, poller)
		for i := range 50 {
			mustExec(t, conn, "insert into "+table+" values ($1)", i)
		}
		// The server's counters are flushed about once a second.
		var after pressure.Sample
		deadline := time.Now().Add(5 * time.Second)
		for {
			mustExec(t, conn, "select 1")
			after = mustSample(t, poller)
			if !after.WALSyncs.Known || after.WALSyncs.Value > before.WALSyncs.Value || time.Now().After(deadline) {
				break
			}
			time.Sleep(200 * time.Millisecond)
		}

		if after.Version != version || after.Standby || after.Started.IsZero() {
			t.Errorf("version %d (want %d), standby %t, started %v", after.Version, version, after.Standby, after.Started)
		}
		if d := time.Since(after.ServerTime); d < -time.Minute || d > time.Minute {
			t.Errorf("the server's time is %v away", d)
		}
		if n := after.NextXID.Value - before.NextXID.Value; !after.NextXID.Known || n < 50 {
			t.Errorf("50 writes moved the transaction id by %v", n)
		}
		if n := after.WALBytes.Value - before.WALBytes.Value; !after.WALBytes.Known || n < 50*50 {
			t.Errorf("50 writes moved the WAL by %v bytes", n)
		}
		if has := version >= 140000; after.WALSyncs.Known != has || after.WALSyncMillis.Known != (has && timed == "on") {
			t.Errorf("version %d, timing %s: syncs %+v, their time %+v", version, timed, after.WALSyncs, after.WALSyncMillis)
		}
		if after.WALSyncs.Known && after.WALSyncs.Value <= before.WALSyncs.Value {
			t.Errorf("50 commits caused no sync: %v, %v", before.WALSyncs, after.WALSyncs)
		}
		if !after.LockWaiters.Known || !after.WALWaiters.Known || !after.WriteStatementMillis.Known || after.Hidden != 0 {
			t.Errorf("a superuser sees all sessions; the sample is %+v", after)
		}
		stat := poller.Stat()
		if stat.Version != version || stat.Blind || len(stat.Refused) > 0 || stat.PollTime.Count() != stat.PollsOK || stat.PollsFailed != 0 {
			t.Errorf("stat %+v", stat)
		}
		t.Logf("round trip %v", after.RoundTrip)
	})
}

// TestPressurePollSeesLocks holds a row and a relation and looks for their waiters.
func TestPressurePollSeesLocks(t *testing.T) {
	eachPressureVersion(t, func(t *testing.T, dsn string) {
		admin := connectTo(t, dsn)
		table := fmt.Sprintf("pressure_locks_%d", time.Now().UnixNano())
		role := table + "_role"
		mustExec(t, admin, "create table "+table+" (id int primary key, n int)")
		mustExec(t, admin, "insert into "+table+" values (1, 0)")
		mustExec(t, admin, "create role "+role+" login password 'x'")
		t.Cleanup(func() {
			mustExec(t, admin, "drop table "+table)
			mustExec(t, admin, "drop role "+role)
		})
		plain, _ := pgx.ParseConfig(dsn)
		plain.User, plain.Password = role, "x"

		super, _ := newTestPoller(t, dsn, pressure.Options{})
		logged := &logBuffer{}
		weak, err := pressure.NewPoller(plain, pressure.Options{Logger: slog.New(slog.NewTextHandler(logged, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(weak.Close)
		if _, err := weak.Sample(context.Background()); err != nil {
			t.Fatalf("this server lets no plain role in: %v", err)
		}

		holder := connectTo(t, dsn)
		reader := connectTo(t, dsn)
		mustExec(t, holder, "begin")
		mustExec(t, holder, "update "+table+" set n = 1")
		mustExec(t, reader, "begin")
		mustExec(t, reader, "select * from "+table)
		var wg sync.WaitGroup
		wait := func(sql string) {
			conn := connectTo(t, dsn)
			wg.Go(func() { _, _ = conn.Exec(context.Background(), sql) })
		}
		wait("update " + table + " set n = 2 where id = 1")
		wait("alter table " + table + " add column m int")
		time.Sleep(500 * time.Millisecond)

		s := mustSample(t, super)
		if s.LockWaiters.Value < 2 || s.RelationLockWaiters.Value < 1 || s.WriteTransactions.Value < 1 ||
			s.LockWaitMillis.Value < 100 || s.RelationLockWaitMillis.Value < 100 {
			t.Errorf("a superuser's sample holds %+v", s)
		}
		// A role that may not look into sessions takes the locks from pg_locks.
		w := mustSample(t, weak)
		if w.Hidden == 0 || w.LockWaiters.Value < 2 || w.RelationLockWaiters.Value < 1 || w.WALWaiters.Known || w.WriteStatementMillis.Known {
			t.Errorf("a plain role's sample holds %+v", w)
		}
		if s.Version >= 140000 && w.RelationLockWaitMillis.Value < 100 {
			t.Errorf("the oldest wait is %+v", w.RelationLockWaitMillis)
		}
		stat := weak.Stat()
		if !stat.Blind || !strings.Contains(strings.Join(stat.BlindSignals, " "), pressure.WALWait) || stat.Role != role {
			t.Errorf("blind %t: %v, role %q", stat.Blind, stat.BlindSignals, stat.Role)
		}
		mustSample(t, weak)
		if n := strings.Count(logged.String(), "GRANT pg_monitor TO"); n != 1 {
			t.Errorf("the log names the grant %d times:\n%s", n, logged)
		}
		mustExec(t, reader, "rollback")
		mustExec(t, holder, "rollback")
		wg.Wait()

		mustExec(t, admin, "grant pg_monitor to "+role)
		if after := mustSample(t, weak); after.Hidden != 0 || !after.WALWaiters.Known {
			t.Errorf("after the grant the sample holds %+v", after)
		}
		if weak.Stat().Blind {
			t.Error("still blind after the grant")
		}
	})
}

// TestPressureReset drops the interval in which the counters were reset.
func TestPressureReset(t *testing.T) {
	for _, version := range []string{"15", "17", "18"} {
		t.Run(version, func(t *testing.T) {
			dsn := versionDSN(t, version)
			conn := connectTo(t, dsn)
			poller, _ := newTestPoller(t, dsn, pressure.Options{})
			a := mustSample(t, poller)
			kind := "wal"
			if a.Version >= 180000 {
				kind = "io"
			}
			mustExec(t, conn, "select pg_stat_reset_shared($1)", kind)
			b := mustSample(t, poller)
			if a.StatsReset.IsZero() || a.StatsReset.Equal(b.StatsReset) {
				t.Errorf("the reset shows in neither %v nor %v", a.StatsReset, b.StatsReset)
			}
		})
	}
}

// TestPressureMaintainAndNames runs upkeep on the monitor's connection, and lets two
// monitors see each other's names.
func TestPressureMaintainAndNames(t *testing.T) {
	dsn := serverDSN(t)
	ran := 0
	options := pressure.Options{
		NamePrefix: "pgyield/test/",
		Maintain: func(ctx context.Context, conn *pgx.Conn) error {
			ran++
			_, err := conn.Exec(ctx, "select count(*) from pg_proc")
			return err
		},
	}
	options.Name, options.Mark = func() string { return "pgyield/test/a" }, "aaaaaaaa"
	a, _ := newTestPoller(t, dsn, options)
	options.Maintain = nil
	options.Name = func() string { return "pgyield/test/b" + strings.Repeat("x", 100) }
	b, _ := newTestPoller(t, dsn, options)
	mustSample(t, a)
	mustSample(t, b)
	s := mustSample(t, a)
	if s.Mark != "aaaaaaaa" || !s.Marked {
		t.Errorf("a found the mark %q in its own session; one left there: %v", s.Mark, s.Marked)
	}
	if len(s.Names) != 1 || !strings.HasPrefix(s.Names[0], "pgyield/test/bxx") || len(s.Names[0]) != 63 {
		t.Errorf("a sees %q", s.Names)
	}
	if s.Sessions < 2 || s.Sessions > 1000 {
		t.Errorf("a sees %d sessions", s.Sessions)
	}
	if s := mustSample(t, b); len(s.Names) != 1 || s.Names[0] != "pgyield/test/a" {
		t.Errorf("b sees %q", s.Names)
	}
	if ran != 1 {
		t.Errorf("upkeep ran %d times in two polls", ran)
	}
}

// BenchmarkPressurePoll is what a poll costs.
func BenchmarkPressurePoll(b *testing.B) {
	poller, _ := newTestPoller(b, serverDSN(b), pressure.Options{})
	b.ReportAllocs()
	for b.Loop() {
		mustSample(b, poller)
	}
}
