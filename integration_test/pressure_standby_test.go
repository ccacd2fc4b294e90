package integration_test

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/adaptive"
	"github.com/pgyield/pgyield/pressure"
)

// standby is a streaming replica that runs beside its primary in the same container, at
// a port that only Docker's network reaches.
type standby struct {
	primary, dsn string
	box          container
}

const (
	standbyPort   = "5433"
	standbyFolder = "/var/lib/postgresql/standby"
)

func startStandby(t *testing.T, version string) *standby {
	t.Helper()
	s := &standby{primary: versionDSN(t, version)}
	s.box = containerOf(t, s.primary)
	u, err := url.Parse(s.primary)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = net.JoinHostPort(s.box.address(), standbyPort)
	s.dsn = u.String()
	stop := "pg_ctl -D " + standbyFolder + " -m immediate -w stop > /dev/null 2>&1; rm -rf " + standbyFolder
	t.Cleanup(func() { s.box.shell(stop) })
	s.box.shell(stop + "; set -e; pg_basebackup -U postgres -D " + standbyFolder + " -R -X stream -c fast" +
		" && pg_ctl -D " + standbyFolder + " -w -l /tmp/standby.log -o '-p " + standbyPort +
		// A standby needs as many connections as its primary, whose settings came with its command.
		" -c max_connections=200 -c listen_addresses=*' start > /dev/null || { cat /tmp/standby.log >&2; exit 1; }")
	if t.Failed() {
		t.FailNow()
	}
	return s
}

// TestPressureOnStreamingStandby: a replica that replays writes shows no pressure and
// says so once, and two polls after its promotion it is a primary.
func TestPressureOnStreamingStandby(t *testing.T) {
	for _, version := range postgresVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel() // each on a server of its own, and nothing is measured
			s := startStandby(t, version)
			writer := connectTo(t, s.primary)
			mustExec(t, writer, "create table if not exists replayed (n int)")
			stop := background(t.Context(), 1, func(ctx context.Context) {
				_, _ = writer.Exec(ctx, "insert into replayed values (1)")
			})
			defer stop()
			poller, logged := newTestPoller(t, s.dsn, pressure.Options{})
			judge, err := pressure.NewJudge(0, pressure.Options{})
			if err != nil {
				t.Fatal(err)
			}
			reads := pressure.Activity{Limit: 4, Running: 4, Waiting: 1, Contended: true}
			first := mustSample(t, poller)
			var last pressure.Sample
			for range 30 {
				last = mustSample(t, poller)
				if !last.Standby || last.WALBytes.Known || !last.NextXID.Known || !last.LockWaiters.Known {
					t.Fatalf("a standby's sample is %+v", last)
				}
				if v := judge.Next(time.Now(), &last, reads); v.Pressing || !v.Known || v.NeedBaseline || !strings.HasPrefix(v.Reason, "standby") {
					t.Fatalf("a standby's verdict is %+v", v)
				}
				time.Sleep(50 * time.Millisecond)
			}
			if last.NextXID.Value <= first.NextXID.Value {
				t.Error("nothing was replayed meanwhile")
			}
			if stat := poller.Stat(); !stat.Standby || stat.PollsFailed > 0 || len(stat.Refused) > 0 {
				t.Errorf("stat %+v", stat)
			}
			if n := strings.Count(logged.String(), "\n"); n != 1 || !strings.Contains(logged.String(), "standby=true") {
				t.Errorf("%d lines are logged of 31 polls:\n%s", n, logged)
			}

			mustExec(t, connectTo(t, s.dsn), "select pg_promote(true)")
			if n := pollUntil(t, poller, 10*time.Second, func(s pressure.Sample) bool { return !s.Standby && s.WALBytes.Known }); n > 2 {
				t.Errorf("the promotion was noticed by poll %d", n)
			}
			if n := strings.Count(logged.String(), "\n"); n != 2 || !strings.Contains(logged.String(), "standby=false") {
				t.Errorf("with the promotion %d lines are logged:\n%s", n, logged)
			}
		})
	}
}

// promote makes a standby a primary and returns when it was one, by its own clock.
func promote(t testing.TB, dsn string) (at time.Time) {
	t.Helper()
	conn := connectTo(t, dsn)
	mustExec(t, conn, "select pg_promote(true)")
	var standby bool
	if err := conn.QueryRow(t.Context(), "select clock_timestamp(), pg_is_in_recovery()").Scan(&at, &standby); err != nil || standby {
		t.Fatalf("promoted: %t, %v", !standby, err)
	}
	return at
}

// decisions keeps what a pool decided.
type decisions struct {
	mu   sync.Mutex
	list []adaptive.Decision // guarded by mu
}

func (d *decisions) take(one adaptive.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, one)
}

func (d *decisions) since(n int) []adaptive.Decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clip(d.list[n:])
}

// await waits for a decision after the first n that fits; it returns how many there are
// up to it.
func (d *decisions) await(t testing.TB, n int, what string, fits func(adaptive.Decision) bool) int {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for _, one := range d.since(n) {
			if n++; fits(one) {
				return n
			}
		}
	}
	all := d.since(0)
	t.Fatalf("no decision in which %s; the last of %d is %+v", what, len(all), all[len(all)-1])
	return 0
}

// watchedPool is a pool that writes and reads through a proxy and keeps its decisions.
func watchedPool(t testing.TB, dsn string, options pgyield.Options) (*pgyield.Pool, *decisions) {
	t.Helper()
	config, err := pgyield.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	d := &decisions{}
	options.OnDecision = d.take
	pool, err := pgyield.NewWithOptions(t.Context(), config, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, d
}

// TestPressureFailoverUnderAPool: the address of a live pool leads to the promoted
// replica from now on, which is another server: its start, its part and its baseline are
// found out anew.
func TestPressureFailoverUnderAPool(t *testing.T) {
	for _, version := range postgresVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel() // each on a server of its own, and nothing is measured
			s := startStandby(t, version)
			p := newCutProxy(t, addressOf(t, s.primary))
			pool, seen := watchedPool(t, p.through(t, s.primary), pgyield.Options{})
			execAll(t, pool, "create table if not exists failed_over (n int)")
			defer background(t.Context(), 1, func(ctx context.Context) {
				_, _ = pool.Exec(ctx, "insert into failed_over values (1)")
			})()
			n := seen.await(t, 0, "the primary is sampled and own writes have a baseline", func(d adaptive.Decision) bool {
				own, ok := d.Verdict.Signal(pressure.OwnWrites)
				return d.Sampled && !d.Sample.Standby && ok && own.Baseline > 0
			})
			started := seen.since(n - 1)[0].Sample.Started

			// The replica is met first as a standby: whoever fails over meets it early.
			p.redirect(addressOf(t, s.dsn))
			p.cut()
			n = seen.await(t, n, "the standby is seen", func(d adaptive.Decision) bool { return d.Sampled && d.Sample.Standby })
			// By the server's clock: a poll that was under way then, or whose answer has yet to be
			// judged, is none that follows the promotion.
			promoted := promote(t, s.dsn)
			from := n
			n = seen.await(t, n, "the replica is a primary", func(d adaptive.Decision) bool { return d.Sampled && !d.Sample.Standby })
			polls := 0
			for _, d := range seen.since(from)[:n-from] {
				if d.Sampled && d.Sample.ServerTime.After(promoted) {
					polls++
				}
			}
			if polls > 2 {
				t.Errorf("the promotion was noticed by poll %d after it", polls)
			}
			if again := seen.since(n - 1)[0].Sample.Started; again.Equal(started) {
				t.Error("the promoted replica started when the primary did")
			}
			seen.await(t, n, "own writes have a new baseline", func(d adaptive.Decision) bool {
				own, ok := d.Verdict.Signal(pressure.OwnWrites)
				return ok && own.Baseline > 0 && d.Verdict.WritesMove
			})
			for _, d := range seen.since(0) {
				if d.To < d.From {
					t.Errorf("nobody reads, yet the limit was cut: %+v", d)
				}
			}
		})
	}
}

// TestPressureUpgradeUnderAPool: the address of a live pool leads to another version.
func TestPressureUpgradeUnderAPool(t *testing.T) {
	from, to := versionServer(t, "13"), versionServer(t, "18")
	const user = "pressure_upgraded"
	for _, dsn := range []string{from.DSN(), to.DSN()} {
		admin := connectTo(t, dsn)
		mustExec(t, admin, "drop role if exists "+user)
		mustExec(t, admin, "create role "+user+" superuser login password 'the same'")
		mustExec(t, admin, "create table if not exists upgraded (n int)")
	}
	p := newCutProxy(t, addressOf(t, from.DSN()))
	through, err := url.Parse(p.through(t, from.DSN()))
	if err != nil {
		t.Fatal(err)
	}
	through.User = url.UserPassword(user, "the same")
	pool, seen := watchedPool(t, through.String(), pgyield.Options{})
	defer background(t.Context(), 1, func(ctx context.Context) { _, _ = pool.Exec(ctx, "insert into upgraded values (1)") })()
	known := func(version int, signal string) func(adaptive.Decision) bool {
		return func(d adaptive.Decision) bool {
			s, ok := d.Verdict.Signal(signal)
			return d.Sampled && d.Sample.Version/10000 == version && ok && s.Threshold > 0
		}
	}
	n := seen.await(t, 0, "13 is judged by waits", known(13, pressure.WALWait))
	p.redirect(addressOf(t, to.DSN()))
	p.cut()
	first := seen.await(t, n, "18 is sampled", func(d adaptive.Decision) bool { return d.Sampled && d.Sample.Version/10000 == 18 })
	if v := seen.since(first - 1)[0].Verdict; len(v.Signals) > 2 {
		t.Errorf("the first sample of another version is judged by what was learned of the old one: %+v", v)
	}
	n = seen.await(t, first, "18 is judged by sync time", known(18, pressure.WALSync))
	if stat := pool.ReadStat().Polls(); stat.Version/10000 != 18 || len(stat.Refused) > 0 {
		t.Errorf("stat %+v", stat)
	}
	for _, d := range seen.since(n - 1) {
		if _, ok := d.Verdict.Signal(pressure.WALWait); ok {
			t.Fatalf("18 is judged by what stood in on 13: %+v", d.Verdict)
		}
	}
	if s := pool.ReadStat(); s.Limit() != s.Ceiling() {
		t.Errorf("the limit is %d, nobody reads", s.Limit())
	}
}
