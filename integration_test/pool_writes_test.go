package integration_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgyield/pgyield"
)

// Writes first: with 16 reads asleep on a pool of 10, a write takes as long as with none,
// where plain pgxpool's writes wait for the sleepers.
func TestWritesDoNotWaitForSleepingReads(t *testing.T) {
	onServers(t, func(t *testing.T, dsn string) {
		ours := newPool(t, dsn, "pool_max_conns=10")
		plain, err := pgxpool.New(t.Context(), withParams(dsn, "pool_max_conns=10"))
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		execAll(t, ours, "create table w (id bigserial primary key, n int)")

		// One write in two goes through QueryRow: RETURNING is a write too.
		p95 := func(db database) time.Duration {
			i := 0
			return quantile(latencies(60, 5*time.Millisecond, func() {
				var err error
				if i++; i%2 == 0 {
					err = db.QueryRow(t.Context(), "insert into w (n) values (1) returning id").Scan(new(int64))
				} else {
					_, err = db.Exec(t.Context(), "insert into w (n) values (1)")
				}
				if err != nil {
					t.Fatal(err)
				}
			}), 0.95)
		}
		loaded := func(db database) time.Duration {
			stop := background(t.Context(), 16, func(ctx context.Context) { _, _ = db.Exec(ctx, "select pg_sleep(0.2)") })
			defer stop()
			time.Sleep(300 * time.Millisecond)
			return p95(db)
		}
		var yielding, waiting []float64
		for range 3 {
			idle := p95(ours)
			yielding = append(yielding, float64(loaded(ours))/float64(idle))
			waiting = append(waiting, float64(loaded(plain))/float64(idle))
		}
		t.Logf("insert p95 beside 16 sleeping reads, times idle: pgyield %.1f, pgxpool %.1f", median(yielding), median(waiting))
		if got := median(yielding); got > 5 {
			t.Errorf("insert p95 is %.1f times idle, want at most 5 (all rounds: %.1f)", got, yielding)
		}
		if got := median(waiting); got < 3*median(yielding) {
			t.Errorf("on pgxpool insert p95 is only %.1f times idle, on pgyield %.1f: the load proves nothing", got, median(yielding))
		}
	})
}

// Under real overload the limit falls, the writes are better off than on plain pgxpool,
// and after relief the limit is back at its start.
func TestLimitFollowsPressure(t *testing.T) {
	dsn := newDatabase(t)
	ours := newPool(t, dsn, "pool_max_conns=20")
	plain, err := pgxpool.New(t.Context(), withParams(dsn, "pool_max_conns=20"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	execAll(t, ours,
		"create table facts as select i as id, i % 1000 as k, random() as x from generate_series(1, 400000) i",
		"create table w (id bigserial primary key, n int)",
		"vacuum analyze facts")
	start := ours.ReadStat().Limit()
	write := func(db database) func() {
		return func() {
			if _, err := db.Exec(t.Context(), "insert into w (n) values (1)"); err != nil {
				t.Fatal(err)
			}
		}
	}
	greedy := func(db database) (stop func()) {
		return background(t.Context(), 16, func(ctx context.Context) {
			_, _ = db.Exec(ctx, "select k, sum(x), avg(x) from facts group by k order by 2")
		})
	}

	latencies(600, 5*time.Millisecond, write(ours)) // what is normal is learned
	stopPlain := greedy(plain)
	onPlain := latencies(200, 5*time.Millisecond, write(plain))
	stopPlain()
	latencies(200, 5*time.Millisecond, write(ours))

	lowest := atomic.Int64{}
	lowest.Store(int64(start))
	stop := greedy(ours)
	watch := background(t.Context(), 1, func(context.Context) {
		lowest.Store(min(lowest.Load(), int64(ours.ReadStat().Limit())))
		time.Sleep(20 * time.Millisecond)
	})
	latencies(600, 5*time.Millisecond, write(ours)) // the limit finds its level
	onOurs := latencies(600, 5*time.Millisecond, write(ours))
	watch()
	low := int(lowest.Load())
	t.Logf("limit %d -> %d, write p95: pgyield %v, pgxpool %v", start, low, quantile(onOurs, 0.95), quantile(onPlain, 0.95))
	if low > start/2 {
		t.Errorf("under overload the limit fell from %d only to %d", start, low)
	}
	if got, want := quantile(onOurs, 0.95), quantile(onPlain, 0.95)/2; got > want {
		t.Errorf("write p95 is %v, want at most half of pgxpool's, %v", got, want)
	}

	ours.SetMode(pgyield.Off)
	eventually(t, 2*time.Second, "Off lets all reads go", func() bool { return ours.ReadStat().Waiting() == 0 })
	stop()
	ours.SetMode(pgyield.Enforce)
	write(ours)()
	eventually(t, 60*time.Second, "the limit is back at its start", func() bool {
		write(ours)()
		return ours.ReadStat().Limit() == start
	})
}

// Slow consumers of rows and long queries come in a steady flow; a write always finds a
// connection.
func TestSteadyReadsLeaveWritesAConnection(t *testing.T) {
	onServers(t, func(t *testing.T, dsn string) {
		pool := newPool(t, dsn, "pool_max_conns=4", "yield_adapt=off")
		execAll(t, pool, "create table w (n int)")
		idle := quantile(latencies(100, 2*time.Millisecond, func() { _, _ = pool.Exec(t.Context(), "insert into w values (1)") }), 0.95)
		stopSlow := background(t.Context(), 8, func(ctx context.Context) {
			rows, err := pool.Query(ctx, "select generate_series(1, 5)")
			if err != nil {
				return
			}
			defer rows.Close()
			for rows.Next() {
				time.Sleep(150 * time.Millisecond)
			}
		})
		stopLong := background(t.Context(), 4, func(ctx context.Context) { _, _ = pool.Exec(ctx, "select pg_sleep(0.4)") })
		took := latencies(800, 5*time.Millisecond, func() { _, _ = pool.Exec(t.Context(), "insert into w values (1)") })
		overdrafts := pool.ReadStat().Overdrafts()
		stopLong()
		stopSlow()
		t.Logf("insert p95 idle %v; beside the flow p99 %v, worst %v; %d overdrafts", idle, quantile(took, 0.99), quantile(took, 1), overdrafts)
		// A read that took the last connection would hold it for 150 ms and more.
		if got := quantile(took, 0.99); got > 100*time.Millisecond {
			t.Errorf("insert p99 is %v: a read had the last connection", got)
		}
	})
}
