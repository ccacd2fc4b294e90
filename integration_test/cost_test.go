package integration_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgyield/pgyield"
)

const smallRead = "select v from cost where k = $1"

// costServer prepares the table of the small read and returns the DSN of a unix socket,
// over which the server's part is least.
func costServer(t testing.TB) string {
	t.Helper()
	server := sharedServer(t)
	dsn := server.SocketDSN()
	if dsn == "" {
		t.Skipf("not applicable: a %v server has no unix socket", server.Way())
	}
	conn := connectTo(t, dsn)
	mustExec(t, conn, "create table if not exists cost as select k, k * 2 as v from generate_series(1, 100) k")
	mustExec(t, conn, "create index if not exists cost_k on cost (k)")
	mustExec(t, conn, "analyze cost")
	return dsn
}

// costArms are plain pgxpool twice, for the spread between two pools that are the same,
// and ours, each with a connection of its own. Without the monitor: it polls on its own
// time, twice a second.
func costArms(t testing.TB, dsn string) (arms [3]database) {
	t.Helper()
	for i := range arms[:2] {
		pool, err := pgxpool.New(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		arms[i] = pool
	}
	config, err := pgyield.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if arms[2], err = pgyield.NewWithOptions(t.Context(), config, pgyield.Options{FixedLimit: true}); err != nil {
		t.Fatal(err)
	}
	return arms
}

func query(t testing.TB, db database) {
	t.Helper()
	var v int
	if err := db.QueryRow(context.Background(), smallRead, 7).Scan(&v); err != nil || v != 14 {
		t.Fatalf("got %d, %v", v, err)
	}
}

// BenchmarkQueryRow tells what the gate adds to a small read, beside the spread between
// plain and plain. Each iteration is a round with new connections, for where the system
// puts a server process makes more of a difference than any pool; in a round the arms take
// turns, in an order drawn anew for each turn. The figures are medians of the rounds' own medians and ratios.
func BenchmarkQueryRow(b *testing.B) {
	dsn := costServer(b)
	var plain, added, ours, spread []float64
	for b.Loop() {
		arms := costArms(b, dsn)
		mid := costRound(b, arms)
		for _, db := range arms {
			db.Close()
		}
		plain = append(plain, mid[0])
		added = append(added, mid[2]-mid[0])
		ours = append(ours, mid[2]/mid[0])
		spread = append(spread, mid[1]/mid[0])
	}
	b.ReportMetric(0, "ns/op") // the arms together mean nothing
	b.ReportMetric(median(plain), "plain-ns")
	b.ReportMetric(median(added), "added-ns")
	b.ReportMetric(median(ours), "ours/plain")
	b.ReportMetric(median(spread), "plain/plain")
}

// costRound lets the arms take turns and returns the median of each, in ns.
func costRound(b *testing.B, arms [3]database) (mid [3]float64) {
	b.Helper()
	const warm, turns = 50, 400
	var took [3][]float64
	for turn := range warm + turns {
		for _, arm := range rand.Perm(len(arms)) { // also which connection is opened first
			start := time.Now()
			query(b, arms[arm])
			if turn >= warm {
				took[arm] = append(took[arm], float64(time.Since(start)))
			}
		}
	}
	for arm := range took {
		mid[arm] = median(took[arm])
	}
	return mid
}

// The gate costs a small read at most one allocation.
func TestGateAllocations(t *testing.T) {
	arms := costArms(t, costServer(t))
	count := func(db database) float64 {
		query(t, db)
		defer db.Close()
		return testing.AllocsPerRun(2000, func() { query(t, db) })
	}
	base, got := count(arms[0]), count(arms[2])
	arms[1].Close()
	t.Logf("allocations of a small read: pgxpool %.1f, pgyield %.1f", base, got)
	if got > base+1 {
		t.Errorf("the gate adds %.1f allocations, want at most 1", got-base)
	}
}
