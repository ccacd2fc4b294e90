package integration_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const smallRead = "select v from cost where k = $1"

// costArms are plain pgxpool twice, for the spread between two pools that are the same,
// and ours, all over a unix socket.
func costArms(t testing.TB) (plain, again, ours database) {
	t.Helper()
	server := sharedServer(t)
	if server.SocketDSN() == "" {
		t.Skipf("a %v server has no unix socket; the figures are for a locally started one", server.Way())
	}
	open := func() *pgxpool.Pool {
		pool, err := pgxpool.New(t.Context(), server.SocketDSN())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool
	}
	plain, again = open(), open()
	gated, err := newSocketPool(t, server.SocketDSN())
	if err != nil {
		t.Fatal(err)
	}
	execAll(t, plain, "create table if not exists cost as select k, k * 2 as v from generate_series(1, 100) k",
		"create index if not exists cost_k on cost (k)", "analyze cost")
	return plain, again, gated
}

func query(t testing.TB, db database) {
	t.Helper()
	var v int
	if err := db.QueryRow(context.Background(), smallRead, 7).Scan(&v); err != nil || v != 14 {
		t.Fatalf("got %d, %v", v, err)
	}
}

// BenchmarkQueryRow tells what the gate adds to a small read, beside the spread between
// plain and plain. Each iteration runs every arm once, in turning order, so that a noisy
// machine hits all alike.
func BenchmarkQueryRow(b *testing.B) {
	plain, again, ours := costArms(b)
	arms := []database{plain, again, ours}
	var took [3][]time.Duration
	for _, db := range arms {
		for range 200 {
			query(b, db)
		}
	}
	first := 0
	for b.Loop() {
		for i := range arms {
			arm := (first + i) % len(arms)
			start := time.Now()
			query(b, arms[arm])
			took[arm] = append(took[arm], time.Since(start))
		}
		first++
	}
	var mid [3]float64
	for arm := range took {
		slices.Sort(took[arm])
		mid[arm] = float64(took[arm][len(took[arm])/2])
	}
	b.ReportMetric(0, "ns/op") // the arms together mean nothing
	b.ReportMetric(mid[0], "plain-ns")
	b.ReportMetric(mid[2]-mid[0], "added-ns")
	b.ReportMetric(mid[2]/mid[0], "ours/plain")
	b.ReportMetric(mid[1]/mid[0], "plain/plain")
}

// The gate costs a small read at most one allocation.
func TestGateAllocations(t *testing.T) {
	plain, _, ours := costArms(t)
	count := func(db database) float64 {
		query(t, db)
		return testing.AllocsPerRun(2000, func() { query(t, db) })
	}
	base, got := count(plain), count(ours)
	t.Logf("allocations of a small read: pgxpool %.1f, pgyield %.1f", base, got)
	if got > base+1 {
		t.Errorf("the gate adds %.1f allocations, want at most 1", got-base)
	}
}
