package integration_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgyield/pgyield"
)

// database is what the tests need of a pool; pgxpool's Pool has it too, which is the
// baseline beside ours.
type database interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
	Close()
}

// onServers runs a test on the shared server, whatever it is, and on containers of the
// versions that the project promises most.
func onServers(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Run("shared", func(t *testing.T) { test(t, newDatabase(t)) })
	for _, version := range []string{"15", "17"} {
		t.Run(version, func(t *testing.T) { test(t, versionServer(t, version).Database(t)) })
	}
}

// newPool makes a Pool on a database; at the test's end it checks that every permit is
// back, and closes it.
func newPool(t testing.TB, dsn string, params ...string) *pgyield.Pool {
	t.Helper()
	pool, err := pgyield.New(t.Context(), withParams(dsn, params...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pool.Close()
		if s := pool.ReadStat(); s.Running() != 0 || s.Waiting() != 0 {
			t.Errorf("at rest %d run and %d wait, want none", s.Running(), s.Waiting())
		}
	})
	return pool
}

// withParams adds parameters to a DSN, a URL.
func withParams(dsn string, params ...string) string {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		panic(err)
	}
	s := fmt.Sprintf("host=%s port=%d user=%s password='%s' dbname=%s sslmode=disable",
		config.Host, config.Port, config.User, config.Password, config.Database)
	for _, p := range params {
		s += " " + p
	}
	return s
}

// execAll runs statements, each of which must succeed.
func execAll(t testing.TB, db database, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// background runs each of n goroutines until the test calls stop, which waits for them.
func background(ctx context.Context, n int, work func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	for range n {
		go func() {
			defer func() { done <- struct{}{} }()
			for ctx.Err() == nil {
				work(ctx)
			}
		}()
	}
	return func() {
		cancel()
		for range n {
			<-done
		}
	}
}

// latencies runs op n times, one every interval, and returns how long each took.
func latencies(n int, interval time.Duration, op func()) []time.Duration {
	took := make([]time.Duration, n)
	for i := range took {
		start := time.Now()
		op()
		took[i] = time.Since(start)
		time.Sleep(interval)
	}
	return took
}

func quantile(d []time.Duration, q float64) time.Duration {
	sorted := slices.Clone(d)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// median of ratios, or of other numbers.
func median(x []float64) float64 {
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// eventually waits until ok, for at most limit.
func eventually(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// wholeLimitUsable fails the test unless as many reads as the limit run at once.
func wholeLimitUsable(t testing.TB, pool *pgyield.Pool) {
	t.Helper()
	eventually(t, 20*time.Second, "every permit is back", func() bool {
		s := pool.ReadStat()
		return s.Running() == 0 && s.Waiting() == 0
	})
	limit := pool.ReadStat().Limit()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stop := background(ctx, limit, func(ctx context.Context) { _, _ = pool.Exec(ctx, "select pg_sleep(0.2)") })
	defer stop()
	eventually(t, 5*time.Second, "the whole limit runs", func() bool { return pool.ReadStat().Running() == limit })
}
