package integration_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/adaptive"
	"github.com/pgyield/pgyield/pgtest"
	"github.com/pgyield/pgyield/pressure"
)

// farAbove are thresholds that no write here comes near, so that what presses is made of
// counters that do not belong together.
var farAbove = pressure.Options{
	OwnWrites: 10 * time.Second, WALSync: 10 * time.Second, WALWait: 10 * time.Second,
	WriteStatement: 10 * time.Second, LockWait: 10 * time.Second,
}

// checkBroken checks what followed a break in the counters, which was seen with the
// decision at: no window reaches back over it, and no cut came of it. It returns whether a
// signal of the server was judged anew meanwhile.
func checkBroken(t testing.TB, at time.Time, after []adaptive.Decision) (judged bool) {
	t.Helper()
	for _, d := range after {
		if d.To < d.From || d.Pressing {
			t.Errorf("from %d to %d, pressing %t: %s", d.From, d.To, d.Pressing, d.Verdict.Reason)
		}
		for _, s := range d.Verdict.Signals {
			if !s.Fresh || s.Name == pressure.OwnWrites || s.Name == pressure.RelationLock {
				continue
			}
			judged = true
			if s.Since.Before(at) {
				t.Errorf("%s is judged from %v before the break on", s.Name, at.Sub(s.Since))
			}
		}
	}
	return judged
}

// alwaysContended is a limit that always holds a read back.
type alwaysContended struct{ *readGate }

func (alwaysContended) EndPeriod() bool { return true }

// TestPressureResetDropsTheInterval resets the counters of a busy server and lets them
// pass what they were before the next sample: only the time of the reset tells.
func TestPressureResetDropsTheInterval(t *testing.T) {
	for _, version := range []string{"15", "17", "18"} {
		t.Run(version, func(t *testing.T) {
			dsn := versionServer(t, version).Database(t)
			conn := connectTo(t, dsn)
			mustExec(t, conn, "create table reset (n int)")
			poller, _ := newTestPoller(t, dsn, pressure.Options{})
			kind := "wal"
			if mustSample(t, poller).Version >= 180000 {
				kind = "io"
			}
			// resetPast resets, and writes until no counter is where a sample saw it, or behind.
			// A server counts what its sessions tell it about once a second.
			resetPast := func(old pressure.Sample) {
				mustExec(t, conn, "select pg_stat_reset_shared($1)", kind)
				for deadline := time.Now().Add(30 * time.Second); ; mustExec(t, conn, "insert into reset values (1)") {
					now := mustSample(t, poller)
					if now.WALSyncs.Value > old.WALSyncs.Value && now.WALSyncMillis.Value > old.WALSyncMillis.Value {
						return
					}
					if time.Now().After(deadline) {
						t.Fatalf("the counters of %+v are not passed: %+v", old, now)
					}
				}
			}
			limit, err := adaptive.New(alwaysContended{newReadGate(1, 8)}, poller, adaptive.Options{
				Pressure: farAbove,
				Activity: func() pressure.Activity { return pressure.Activity{Running: 8, Waiting: 1} },
			})
			if err != nil {
				t.Fatal(err)
			}
			resetPast(pressure.Sample{})
			before := limit.Evaluate(t.Context())
			resetPast(before.Sample)
			broken := limit.Evaluate(t.Context())
			if !before.Sampled || !broken.Sampled {
				t.Fatalf("not sampled: %v, %v", before.Err, broken.Err)
			}
			after := []adaptive.Decision{broken}
			for deadline := time.Now().Add(20 * time.Second); !checkBroken(t, broken.At, after[len(after)-1:]); {
				if time.Now().After(deadline) {
					t.Fatal("nothing was judged anew")
				}
				for range 20 {
					mustExec(t, conn, "insert into reset values (1)")
				}
				time.Sleep(100 * time.Millisecond)
				after = append(after, limit.Evaluate(t.Context()))
			}
		})
	}
}

// TestPressureCrashUnderAPool kills a backend under a live pool whose reads contend, which
// makes the server recover: what it counted before and after does not belong together.
func TestPressureCrashUnderAPool(t *testing.T) {
	crash := func(t *testing.T, dsn string) {
		pool, seen := watchedPool(t, dsn+"&pool_max_conns=10&yield_read_limit=2&yield_read_ceiling=2",
			pgyield.Options{Pressure: farAbove})
		execAll(t, pool, "create table if not exists crashed (n int)")
		defer background(t.Context(), 1, func(ctx context.Context) {
			_, _ = pool.Exec(ctx, "insert into crashed values (1)")
			time.Sleep(5 * time.Millisecond)
		})()
		defer background(t.Context(), 4, func(ctx context.Context) {
			if _, err := pool.Exec(ctx, "select count(*), pg_sleep(0.02) from crashed"); err != nil {
				time.Sleep(20 * time.Millisecond) // it recovers
			}
		})()
		judgedAnew := func(d adaptive.Decision) bool {
			s, ok := d.Verdict.Signal(pressure.LockWait)
			return ok && s.Fresh && d.Contended
		}
		n := seen.await(t, 0, "the server is judged beside contending reads", judgedAnew)
		was := seen.since(n - 1)[0].Sample
		crashServer(t, dsn)
		n = seen.await(t, n, "a poll has failed", func(d adaptive.Decision) bool { return d.Err != nil })
		n = seen.await(t, n, "the server is sampled again", func(d adaptive.Decision) bool { return d.Sampled })
		back := seen.since(n - 1)[0]
		if was.Version >= 140000 && back.Sample.StatsReset.Equal(was.StatsReset) {
			t.Error("the crash does not show in the time of the reset")
		}
		n2 := seen.await(t, n, "the server is judged anew", judgedAnew)
		seen.await(t, n2, "and again", judgedAnew)
		if !checkBroken(t, back.At, seen.since(n-1)) {
			t.Error("nothing was judged anew")
		}
	}
	t.Run("local", func(t *testing.T) {
		t.Parallel() // each on a server of its own, and nothing is measured
		crash(t, pgtest.New(t, pgtest.Options{Way: pgtest.Local}).DSN())
	})
	for _, version := range postgresVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			crash(t, ownContainer(t, version, nil).DSN())
		})
	}
}
