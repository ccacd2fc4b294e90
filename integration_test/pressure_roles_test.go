package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/pressure"
)

// roleWatch is what one role's monitor sees and judges.
type roleWatch struct {
	role   string
	sees   bool // other roles' sessions
	poller *pressure.Poller
	logged *logBuffer
	judge  *pressure.Judge
	last   pressure.Verdict
	sample pressure.Sample
}

func watchRole(t *testing.T, dsn, role string, sees bool) *roleWatch {
	t.Helper()
	// A lock wait presses here from any at all on: what counts is who sees it.
	judge, err := pressure.NewJudge(0, pressure.Options{LockWait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	w := &roleWatch{role: role, sees: sees, judge: judge}
	if role != "" {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		dsn = fmt.Sprintf("user=%s password=x host=%s port=%d dbname=%s sslmode=disable", role, config.Host, config.Port, config.Database)
	}
	w.poller, w.logged = newTestPoller(t, dsn, pressure.Options{})
	return w
}

func (w *roleWatch) poll(t *testing.T) {
	t.Helper()
	w.sample = mustSample(t, w.poller)
	w.last = w.judge.Next(time.Now(), &w.sample, pressure.Activity{Limit: 4, Running: 4, Waiting: 1, Contended: true})
}

// TestPressureRoles lets a superuser, a member of pg_monitor and a plain role watch the
// same queue for a row beside the same writes. All see the lock wait; what the plain one
// cannot see it reports as blind, once with the remedy, and goes on with the rest.
func TestPressureRoles(t *testing.T) {
	eachPressureVersion(t, func(t *testing.T, dsn string) {
		admin := connectTo(t, dsn)
		table := fmt.Sprintf("pressure_roles_%d", time.Now().UnixNano())
		plain, member := table+"_plain", table+"_member"
		mustExec(t, admin, "create table "+table+" (id int primary key, n int)")
		mustExec(t, admin, "insert into "+table+" values (1, 0)")
		for _, role := range []string{plain, member} {
			mustExec(t, admin, "create role "+role+" login password 'x'")
			t.Cleanup(func() { mustExec(t, admin, "drop role "+role) })
		}
		mustExec(t, admin, "grant pg_monitor to "+member)
		t.Cleanup(func() { mustExec(t, admin, "drop table "+table) })

		holder, waiter, writer := connectTo(t, dsn), connectTo(t, dsn), connectTo(t, dsn)
		mustExec(t, holder, "begin")
		mustExec(t, holder, "update "+table+" set n = 1")
		defer background(t.Context(), 1, func(ctx context.Context) {
			_, _ = waiter.Exec(ctx, "update "+table+" set n = 2")
		})()
		defer func() { mustExec(t, holder, "rollback") }()
		id := 1
		defer background(t.Context(), 1, func(ctx context.Context) {
			id++
			_, _ = writer.Exec(ctx, fmt.Sprintf("insert into %s values (%d, 0)", table, id))
			time.Sleep(5 * time.Millisecond)
		})()

		watches := []*roleWatch{watchRole(t, dsn, "", true), watchRole(t, dsn, member, true), watchRole(t, dsn, plain, false)}
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
			all := true
			for _, w := range watches {
				w.poll(t)
				all = all && pressesBy(w.last, pressure.LockWait)
			}
			if all {
				break
			}
			if time.Now().After(deadline) {
				for _, w := range watches {
					t.Errorf("role %q: no lock wait: %+v of %+v", w.role, w.last, w.sample)
				}
				return
			}
		}
		for _, w := range watches {
			w.check(t)
		}
	})
}

func (w *roleWatch) check(t *testing.T) {
	t.Helper()
	stat, timed := w.poller.Stat(), w.sample.WALSyncMillis.Known
	want := []string{pressure.OwnWrites} // never from the server
	switch {
	case timed:
		want = append(want, pressure.WALWait, pressure.WriteStatement)
	case w.sees:
		want = append(want, pressure.WALSync)
	default:
		want = append(want, pressure.WALSync, pressure.WALWait, pressure.WriteStatement)
	}
	var blind []string
	if !w.sees {
		blind = []string{pressure.WALWait, pressure.WriteStatement}
		if w.sample.Version < 140000 { // pg_locks does not tell since when
			blind = append(blind, pressure.RelationLock)
			want = append(want, pressure.RelationLock)
		}
	}
	if !slices.Equal(stat.BlindSignals, blind) || stat.Blind != (len(blind) > 0) || len(stat.Refused) > 0 || stat.PollsFailed > 0 {
		t.Errorf("role %q: blind %t for %v, want %v; %+v", w.role, stat.Blind, stat.BlindSignals, blind, stat)
	}
	for _, name := range pressure.SignalNames() {
		if _, is := w.last.Signal(name); is == slices.Contains(want, name) {
			t.Errorf("role %q: %s is there: %t; %+v", w.role, name, is, w.last.Signals)
		}
	}
	lines, grants := strings.Count(w.logged.String(), "\n"), strings.Count(w.logged.String(), `GRANT pg_monitor TO \"`+w.role+`\"`)
	if expected := map[bool]int{true: 0, false: 1}[w.sees]; lines != expected || grants != expected {
		t.Errorf("role %q: %d lines, %d name the grant:\n%s", w.role, lines, grants, w.logged)
	}
}

// TestPressureConcurrentIndexIsNoLockWait: CREATE INDEX CONCURRENTLY waits for old reads to
// end. That is a lock to Postgres, but no write waits.
func TestPressureConcurrentIndexIsNoLockWait(t *testing.T) {
	eachPressureVersion(t, func(t *testing.T, dsn string) {
		admin := connectTo(t, dsn)
		table := fmt.Sprintf("pressure_index_%d", time.Now().UnixNano())
		role := table + "_role"
		mustExec(t, admin, "create table "+table+" (n int)")
		mustExec(t, admin, "create role "+role+" login password 'x'")
		t.Cleanup(func() {
			mustExec(t, admin, "drop table "+table)
			mustExec(t, admin, "drop role "+role)
		})
		reader, builder := connectTo(t, dsn), connectTo(t, dsn)
		mustExec(t, reader, "begin isolation level repeatable read")
		mustExec(t, reader, "select count(*) from pg_class")
		done := make(chan error, 1)
		go func() {
			_, err := builder.Exec(context.Background(), "create index concurrently on "+table+" (n)")
			done <- err
		}()
		watches := []*roleWatch{watchRole(t, dsn, "", true), watchRole(t, dsn, role, false)}
		waits := false
		for deadline := time.Now().Add(10 * time.Second); !waits && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			err := admin.QueryRow(t.Context(), "select wait_event is not distinct from 'virtualxid' from pg_stat_activity where pid = $1",
				builder.PgConn().PID()).Scan(&waits)
			if err != nil {
				t.Fatal(err)
			}
		}
		if !waits {
			t.Error("the index waits for nothing")
		}
		for _, w := range watches {
			w.poll(t)
			w.poll(t) // a plain role reads pg_locks once it knows that sessions are hidden
			if s := w.sample; !s.LockWaiters.Known || s.LockWaiters.Value != 0 || s.RelationLockWaiters.Value != 0 {
				t.Errorf("role %q: %+v wait for locks, %+v of them for relations", w.role, s.LockWaiters, s.RelationLockWaiters)
			}
		}
		mustExec(t, reader, "rollback")
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
