package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/internal/pgfake"
	"github.com/pgyield/pgyield/metrics"
)

// inBubble runs f with a pool on a fake server, in virtual time.
func inBubble(t *testing.T, f func(t *testing.T, pool *pgyield.Pool), params ...string) {
	t.Helper()
	onFake(t, func(t *testing.T, _ *pgfake.Server, pool *pgyield.Pool) { f(t, pool) }, params...)
}

func onFake(t *testing.T, f func(t *testing.T, fake *pgfake.Server, pool *pgyield.Pool), params ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fake := pgfake.New(pgfake.Options{Handler: server})
		defer fake.Close()
		pool, err := pgyield.NewWithConfig(t.Context(), fake.Config(t, params...))
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		f(t, fake, pool)
	})
}

// server answers the monitor's poll, after a while, and all else as the default.
func server(ctx context.Context, q pgfake.Query) pgfake.Result {
	if !strings.Contains(q.SQL, "pg_is_in_recovery") {
		return pgfake.Default(ctx, q)
	}
	if err := pgfake.Sleep(ctx, 3*time.Millisecond); err != nil {
		return pgfake.Result{Err: err}
	}
	columns := pgfake.Cols("in_recovery", pgtype.BoolOID, "server_ts", pgtype.Float8OID, "next_xid", pgtype.Int8OID)
	row := []any{false, float64(time.Now().UnixMilli()) / 1000, int64(1000)}
	if len(q.Args) == 3 { // in a fleet: its name, the others' prefix, and the mark that it finds next
		columns = append(columns, pgfake.Cols("names", 0, "mark", 0)...)
		row = append(row, q.Args[1].(string)+"malformed", q.Args[2])
	}
	return pgfake.Rows(columns, row)
}

// values gathers a registry as name{label="value",...} to value; a histogram gives
// its _count, _sum and _bucket.
func values(t *testing.T, gatherer prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, pair := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", pair.GetName(), pair.GetValue()))
			}
			key := func(suffix string, more ...string) string {
				all := append(slices.Clone(labels), more...)
				if len(all) == 0 {
					return family.GetName() + suffix
				}
				return family.GetName() + suffix + "{" + strings.Join(all, ",") + "}"
			}
			switch {
			case m.GetGauge() != nil:
				out[key("")] = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				out[key("")] = m.GetCounter().GetValue()
			case m.GetHistogram() != nil:
				h := m.GetHistogram()
				out[key("_count")], out[key("_sum")] = float64(h.GetSampleCount()), h.GetSampleSum()
				for _, b := range h.GetBucket() {
					out[key("_bucket", fmt.Sprintf("le=%q", fmt.Sprint(b.GetUpperBound())))] = float64(b.GetCumulativeCount())
				}
			}
		}
	}
	return out
}

func expect(t *testing.T, got map[string]float64, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if v, ok := got[name]; !ok || v != value {
			t.Errorf("%s is %v (there: %v), want %v", name, v, ok, value)
		}
	}
}

// names is every metric that there must be, and no other.
var names = []string{
	"pgxpool_acquire_seconds_total", "pgxpool_acquire_wait_seconds_total",
	"pgxpool_acquires_canceled_total", "pgxpool_acquires_total", "pgxpool_acquires_waited_total",
	"pgxpool_connections", "pgxpool_connections_max", "pgxpool_connections_opened_total",
	"pgxpool_connections_retired_total",
	"pgyield_callers_penalized", "pgyield_callers_tracked", "pgyield_fleet_ceiling", "pgyield_fleet_granted", "pgyield_fleet_limit",
	"pgyield_fleet_lost", "pgyield_fleet_malformed_names_total", "pgyield_fleet_members",
	"pgyield_fleet_poll_period_seconds", "pgyield_fleet_share", "pgyield_fleet_shared",
	"pgyield_fleet_slack",
	"pgyield_limit_changes_total",
	"pgyield_mode", "pgyield_monitor_blind", "pgyield_monitor_poll_seconds", "pgyield_monitor_polls_total",
	"pgyield_periods_total", "pgyield_pressing", "pgyield_pressure",
	"pgyield_read_limit", "pgyield_read_limit_ceiling", "pgyield_read_limit_floor", "pgyield_read_wait_seconds",
	"pgyield_reads_refused_total", "pgyield_reads_running", "pgyield_reads_total", "pgyield_reads_waiting",
	"pgyield_statements_total",
}

// The pedantic registry checks each metric against its description.
func TestNamesAreLintFree(t *testing.T) {
	inBubble(t, func(t *testing.T, pool *pgyield.Pool) {
		// Writes, and reads beside them, until own writes are a known signal.
		for range 40 {
			if _, err := pool.Exec(t.Context(), "insert into t values (1)"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(metrics.NewCollector(pool))
		problems, err := testutil.GatherAndLint(registry)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, family := range families {
			got = append(got, family.GetName())
			for _, m := range family.GetMetric() {
				for _, label := range m.GetLabel() {
					if strings.Contains(label.GetName(), "caller") {
						t.Errorf("%s has a label %s", family.GetName(), label.GetName())
					}
				}
			}
		}
		if !slices.Equal(got, names) {
			t.Errorf("got  %v\nwant %v", got, names)
		}
		if v := values(t, registry)[`pgyield_pressure{signal="own_writes"}`]; v <= 0 {
			t.Errorf("the own-write signal is %v", v)
		}
	}, "yield_fleet=shop", "yield_fleet_limit=2")
}

func TestFleetMetrics(t *testing.T) {
	for _, in := range []bool{true, false} {
		params := []string{"yield_fleet=shop", "yield_fleet_limit=2"}
		if !in {
			params = nil
		}
		inBubble(t, func(t *testing.T, pool *pgyield.Pool) {
			registry := prometheus.NewPedanticRegistry()
			registry.MustRegister(metrics.NewCollector(pool))
			time.Sleep(10 * time.Second)
			got := values(t, registry)
			if !in {
				for name := range got {
					if strings.HasPrefix(name, "pgyield_fleet") {
						t.Errorf("a pool in no fleet has %s", name)
					}
				}
				return
			}
			expect(t, got, map[string]float64{
				"pgyield_fleet_members": 1, "pgyield_fleet_limit": 2, "pgyield_fleet_share": 2, "pgyield_fleet_granted": 2,
				"pgyield_fleet_slack": 2, "pgyield_fleet_ceiling": 2, "pgyield_fleet_shared": 0, "pgyield_fleet_lost": 0,
				"pgyield_fleet_poll_period_seconds": 0.25,
			})
			if n := got["pgyield_fleet_malformed_names_total"]; n < 30 || n != float64(pool.ReadStat().Fleet().Malformed) {
				t.Errorf("%v malformed names in 10 s, one each poll", n)
			}
		}, params...)
	}
}

func TestCountsAndWaits(t *testing.T) {
	const read = "select pg_sleep(1), n from generate_series(1, 1) n"
	inBubble(t, func(t *testing.T, pool *pgyield.Pool) {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(metrics.NewCollector(pool))
		expect(t, values(t, registry), map[string]float64{
			"pgyield_read_limit": 1, "pgyield_read_limit_floor": 1, "pgyield_read_limit_ceiling": 3,
			"pgyield_mode": 0, "pgyield_reads_running": 0, "pgyield_read_wait_seconds_count": 0,
			`pgyield_reads_total{outcome="admitted"}`: 0, "pgxpool_connections_max": 7,
		})

		ctx := pgyield.WithCaller(t.Context(), "tenant")
		errs := make(chan error)
		for range 4 { // one runs, two wait for it, one is refused
			go func() {
				_, err := pool.Exec(ctx, read)
				errs <- err
			}()
			synctest.Wait()
		}
		refused := <-errs
		if !errors.Is(refused, pgyield.ErrRefused) {
			t.Fatal(refused)
		}
		expect(t, values(t, registry), map[string]float64{
			"pgyield_reads_running": 1, "pgyield_reads_waiting": 2, "pgyield_callers_tracked": 1,
			`pgyield_reads_refused_total{reason="queue_full"}`: 1,
			`pgyield_reads_refused_total{reason="max_wait"}`:   0,
			`pgxpool_connections{state="acquired"}`:            1,
		})
		for range 3 {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
		if _, err := pool.Exec(t.Context(), "insert into t values (1)"); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(t.Context(), "select 1"); err != nil {
			t.Fatal(err)
		}
		got := values(t, registry)
		expect(t, got, map[string]float64{
			"pgyield_reads_running": 0, "pgyield_reads_waiting": 0,
			`pgyield_reads_total{outcome="admitted"}`:      3,
			`pgyield_reads_total{outcome="waited"}`:        2,
			`pgyield_reads_total{outcome="overdraft"}`:     0,
			`pgyield_statements_total{intent="read"}`:      4,
			`pgyield_statements_total{intent="write"}`:     1,
			`pgyield_statements_total{intent="trivial"}`:   1,
			"pgyield_read_wait_seconds_count":              3,
			"pgyield_read_wait_seconds_sum":                3,
			`pgyield_read_wait_seconds_bucket{le="0.001"}`: 1,
			`pgyield_read_wait_seconds_bucket{le="0.5"}`:   1,
			`pgyield_read_wait_seconds_bucket{le="1"}`:     2,
			`pgyield_read_wait_seconds_bucket{le="2.5"}`:   3,
			"pgxpool_acquires_total":                       5,
		})
		pool.SetMode(pgyield.Off)
		expect(t, values(t, registry), map[string]float64{"pgyield_mode": 2})
	}, "yield_adapt=off", "yield_read_limit=1", "yield_read_ceiling=3", "yield_max_waiting=2", "pool_max_conns=7")
}

func TestMonitorMetrics(t *testing.T) {
	onFake(t, func(t *testing.T, fake *pgfake.Server, pool *pgyield.Pool) {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(metrics.NewCollector(pool))
		for range 2 { // the second waits: three seconds of contention, no write
			go pool.Exec(t.Context(), "select pg_sleep(3), n from generate_series(1, 1) n")
		}
		time.Sleep(10 * time.Second)
		got := values(t, registry)
		ok, failed := got[`pgyield_monitor_polls_total{result="ok"}`], got[`pgyield_monitor_polls_total{result="failed"}`]
		if ok+failed < 5 {
			t.Errorf("%v polls in ten seconds", ok+failed)
		}
		for _, name := range []string{"pgyield_monitor_poll_seconds_count", `pgyield_monitor_poll_seconds_bucket{le="5"}`} {
			if got[name] != ok {
				t.Errorf("%s is %v, polls that succeeded %v", name, got[name], ok)
			}
		}
		if n := got[`pgyield_periods_total{contended="false",pressing="false"}`]; n < 10 {
			t.Errorf("%v quiet periods in ten seconds", n)
		}
		if n := got[`pgyield_periods_total{contended="true",pressing="false"}`]; n < 5 {
			t.Errorf("%v contended periods in ten seconds", n)
		}
		expect(t, got, map[string]float64{`pgyield_periods_total{contended="false",pressing="true"}`: 0})
		expect(t, got, map[string]float64{`pgyield_monitor_poll_seconds_bucket{le="0.0025"}`: 0})
		if ok == 0 {
			t.Error("no poll succeeded: the histogram says nothing")
		}
		fake.Refuse(nil)
		fake.KillAll()
		time.Sleep(10 * time.Second)
		got = values(t, registry)
		if got[`pgyield_monitor_polls_total{result="failed"}`] <= failed || got["pgyield_monitor_blind"] != 1 {
			t.Errorf("with a dead server: failed %v, blind %v", got[`pgyield_monitor_polls_total{result="failed"}`], got["pgyield_monitor_blind"])
		}
	}, "yield_read_limit=1", "yield_read_ceiling=1")
}

// Two pools in one registry, told apart by labels; and the same label set twice is
// refused by the registry, not merged.
func TestConstLabels(t *testing.T) {
	inBubble(t, func(t *testing.T, pool *pgyield.Pool) {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(metrics.NewCollector(pool, prometheus.Labels{"db": "a"}))
		registry.MustRegister(metrics.NewCollector(pool, prometheus.Labels{"db": "b"}))
		expect(t, values(t, registry), map[string]float64{`pgyield_mode{db="a"}`: 0, `pgyield_mode{db="b"}`: 0})
		if err := registry.Register(metrics.NewCollector(pool, prometheus.Labels{"db": "b"})); err == nil {
			t.Error("registered twice")
		}
	})
}

// A scrape while reads run, under -race.
func TestCollectsWhileReadsRun(t *testing.T) {
	inBubble(t, func(t *testing.T, pool *pgyield.Pool) {
		registry := prometheus.NewRegistry()
		registry.MustRegister(metrics.NewCollector(pool))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		done := make(chan struct{})
		for range 8 {
			go func() {
				for ctx.Err() == nil {
					_, _ = pool.Exec(ctx, "select n from generate_series(1, 2) n where pg_sleep(0.01)")
					time.Sleep(time.Millisecond)
				}
				done <- struct{}{}
			}()
		}
		for range 20 {
			values(t, registry)
			time.Sleep(100 * time.Millisecond)
		}
		for range 8 {
			<-done
		}
	}, "yield_read_limit=2")
}
