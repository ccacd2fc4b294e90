package integration_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/adaptive"
	"github.com/pgyield/pgyield/pressure"
)

// pressureHang makes the polls of one database hang inside the server, and returns what
// ends it.
type pressureHang struct {
	name   string
	begin  func(t *testing.T, dsn string, version int) (end func())
	lasts  bool // the next poll hangs as well, until the end
	offers func(version int) bool
}

func pressureHangs() []pressureHang {
	return []pressureHang{{
		name: "behind a lock", begin: lockPolledView, lasts: true,
		offers: func(version int) bool { return version >= 140000 }, // 13 polls no view
	}, {
		name: "in a process that is stopped", begin: stopMonitor,
		offers: func(int) bool { return true },
	}}
}

// lockPolledView locks the view that the poll reads.
func lockPolledView(t *testing.T, dsn string, version int) (end func()) {
	holder := connectTo(t, dsn)
	view := "pg_stat_wal"
	if version >= 180000 {
		view = "pg_stat_io"
	}
	mustExec(t, holder, "begin")
	mustExec(t, holder, "lock table pg_catalog."+view+" in access exclusive mode")
	return func() { mustExec(t, holder, "rollback") }
}

// stopMonitor stops the process that answers the monitor: it neither answers nor is
// cancelled.
func stopMonitor(t *testing.T, dsn string, _ int) (end func()) {
	admin := connectTo(t, dsn)
	var pid int
	err := admin.QueryRow(t.Context(), `select pid from pg_stat_activity
		where application_name = 'pgyield monitor' and datname = current_database()`).Scan(&pid)
	if err != nil {
		t.Fatal(err)
	}
	signal := func(name string) {
		_, err := admin.Exec(context.Background(), fmt.Sprintf("copy (select 1) to program 'cat > /dev/null; kill -%s %d'", name, pid))
		if err != nil {
			t.Error(err)
		}
	}
	signal("STOP")
	return func() { signal("CONT") }
}

// TestPressureHangUnderAPool: while polls hang, each for its own timeout, the pool's
// queries go on, the limit stays, and the next poll is on time.
func TestPressureHangUnderAPool(t *testing.T) {
	for _, hang := range pressureHangs() {
		t.Run(hang.name, func(t *testing.T) {
			t.Run("shared", func(t *testing.T) { hang.underAPool(t, newDatabase(t)) })
			for _, version := range postgresVersions {
				t.Run(version, func(t *testing.T) {
					t.Parallel()
					hang.underAPool(t, versionServer(t, version).Database(t))
				})
			}
		})
	}
}

func (h pressureHang) underAPool(t *testing.T, dsn string) {
	const timeout, period = 500 * time.Millisecond, 250 * time.Millisecond
	const slack = 2 * time.Second // for a machine that is busy
	pool, seen := watchedPool(t, dsn+"&pool_max_conns=10", pgyield.Options{
		Pressure: pressure.Options{Timeout: timeout, Period: period},
	})
	execAll(t, pool, "create table hung (n int)")
	sampled := func(d adaptive.Decision) bool { return d.Sampled }
	n := seen.await(t, 0, "the server is sampled", sampled)
	version := seen.since(n - 1)[0].Sample.Version
	if !h.offers(version) {
		return
	}
	end := h.begin(t, dsn, version)
	ended := false
	defer func() {
		if !ended {
			end()
		}
	}()
	slowest := time.Duration(0)
	stop := background(t.Context(), 1, func(ctx context.Context) {
		began := time.Now()
		_, write := pool.Exec(ctx, "insert into hung values (1)")
		_, read := pool.Exec(ctx, "select count(*) from hung")
		if ctx.Err() == nil {
			slowest = max(slowest, time.Since(began))
			if write != nil || read != nil {
				t.Errorf("while polls hang, a write: %v; a read: %v", write, read)
			}
		}
		time.Sleep(20 * time.Millisecond)
	})
	fails := 1
	if h.lasts {
		fails = 4
	}
	for last := time.Now(); fails > 0; fails-- {
		n = seen.await(t, n, "a poll has failed", func(d adaptive.Decision) bool { return d.Err != nil })
		at := seen.since(n - 1)[0].At
		// A poll begins within a period of the last one's end, and ends within its timeout.
		if d := at.Sub(last); d > timeout+2*period+slack {
			t.Errorf("the next poll failed %v after the last", d)
		}
		last = at
	}
	if h.lasts {
		if n := monitorsOn(t, dsn); n > 2 { // one that asks, and one that is being cancelled
			t.Errorf("%d monitors are on the server", n)
		}
		end()
		ended = true
	}
	resumed := time.Now()
	n = seen.await(t, n, "the server is sampled again", sampled)
	if d := seen.since(n - 1)[0].At.Sub(resumed); d > timeout+2*period+slack {
		t.Errorf("sampled again %v later", d)
	}
	stop()
	if slowest > slack {
		t.Errorf("a write and a read took %v while polls hung", slowest)
	}
	if s := pool.ReadStat(); s.Limit() != s.Ceiling() || s.Lowered() > 0 || len(s.Polls().Refused) > 0 {
		t.Errorf("limit %d of %d, lowered %d times, refused %v", s.Limit(), s.Ceiling(), s.Lowered(), s.Polls().Refused)
	}
}

// monitorsOn counts the monitors' sessions in a database.
func monitorsOn(t testing.TB, dsn string) int {
	t.Helper()
	var n int
	err := connectTo(t, dsn).QueryRow(t.Context(), `select count(*) from pg_stat_get_activity(null) a
		where application_name = 'pgyield monitor'
		and datid = (select oid from pg_database where datname = current_database())`, pgx.QueryExecModeExec).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
