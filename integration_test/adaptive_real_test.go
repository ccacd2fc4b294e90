package integration_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/adaptive"
	"github.com/pgyield/pgyield/pressure"
)

// TestPressureOfAnExhaustedPool: reads that cost the server nothing hold the
// program's connections. No signal of the server shows it; own writes do.
func TestPressureOfAnExhaustedPool(t *testing.T) {
	dsn := newDatabase(t)
	l := newMixedLoad(t, dsn, newReadGate(1, 40)) // as many as the pool has connections
	_, path := l.adapt(dsn, adaptive.Options{})
	l.write(50)
	l.measure(5 * time.Second)
	sleep := "select pg_sleep(0.5)"
	l.readSQL.Store(&sleep)
	path.begin()
	l.read(60)
	l.measure(6 * time.Second)
	// One connection less than all is enough for these writes, so up to there it may climb again.
	below := path.share(func(d adaptive.Decision) bool { return d.To < 40 })
	if below < 0.7 || !strings.Contains(path.String(), pressure.OwnWrites) {
		t.Errorf("the limit leaves writes a connection %.2f of the time:\n%v", below, path)
	}
	f := l.measure(3 * time.Second)
	if f.p50 > 250*time.Millisecond {
		t.Errorf("writes still wait for the sleepers: %v", f)
	}
}

// judgedSamples samples a server for a time beside reads and returns the verdicts.
func judgedSamples(t *testing.T, dsn string, d time.Duration, a pressure.Activity) []pressure.Verdict {
	t.Helper()
	poller, _ := newTestPoller(t, dsn, pressure.Options{})
	judge, err := pressure.NewJudge(0, pressure.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var list []pressure.Verdict
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
		s := mustSample(t, poller)
		list = append(list, judge.Next(time.Now(), &s, a))
	}
	return list
}

// TestPressureOfDDLBehindARead: the verdict asks not to raise, and does not press.
func TestPressureOfDDLBehindARead(t *testing.T) {
	dsn := newDatabase(t)
	admin, reader, ddl := connectTo(t, dsn), connectTo(t, dsn), connectTo(t, dsn)
	mustExec(t, admin, "create table t ()")
	mustExec(t, reader, "begin")
	mustExec(t, reader, "select * from t")
	done := make(chan error, 1)
	go func() {
		_, err := ddl.Exec(context.Background(), "alter table t add column n int")
		done <- err
	}()
	list := judgedSamples(t, dsn, time.Second, pressure.Activity{Limit: 4, Running: 4, Waiting: 1, Contended: true})
	last := list[len(list)-1]
	s, ok := last.Signal(pressure.RelationLock)
	if !last.Freeze || last.Pressing || !ok || s.Value < 300*time.Millisecond {
		t.Errorf("the verdict is %+v", last)
	}
	mustExec(t, reader, "rollback")
	if err := <-done; err != nil {
		t.Error(err)
	}
	list = judgedSamples(t, dsn, 300*time.Millisecond, pressure.Activity{Limit: 4, Running: 1})
	if list[0].Freeze {
		t.Errorf("after it the verdict is %+v", list[0])
	}
}

// TestPressureOfReadsAlone: without writes nothing suffers. The server is one of its
// own: the shared one has other tests' writes.
func TestPressureOfReadsAlone(t *testing.T) {
	dsn := versionDSN(t, "17")
	conn := connectTo(t, dsn)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_, _ = conn.Exec(ctx, "select sum(n) from generate_series(1, 200000) n")
		}
	}()
	list := judgedSamples(t, dsn, 4*time.Second, pressure.Activity{Limit: 4, Running: 4, Waiting: 1, Contended: true})
	cancel()
	<-done
	last := list[len(list)-1]
	if last.Pressing || !last.Known || last.WritesMove {
		t.Errorf("the verdict is %+v", last)
	}
}

// hotRow updates one row from several sessions at once, until its context ends.
func (l *mixedLoad) hotRow(sessions int) {
	for range sessions {
		l.writers.Go(func() {
			for l.ctx.Err() == nil {
				began := time.Now()
				_, err := l.pool.Exec(l.ctx, "update pressure_accounts set n = n + 1 where id = 1")
				if err == nil {
					l.writes.Observe(time.Since(began))
				}
			}
		})
	}
}

// bulk inserts in large statements.
func (l *mixedLoad) bulk() {
	l.writers.Go(func() {
		for l.ctx.Err() == nil {
			began := time.Now()
			_, err := l.pool.Exec(l.ctx, "insert into pressure_history select i, now() from generate_series(1, 20000) i")
			if err == nil {
				l.writes.Observe(time.Since(began))
			}
		}
	})
}

// TestAdaptiveLeavesLightReadsAlone: whatever writes do among themselves, reads that
// the limit does not hold back keep it.
func TestAdaptiveLeavesLightReadsAlone(t *testing.T) {
	for name, start := range map[string]func(*mixedLoad){
		"bulk load":       func(l *mixedLoad) { l.bulk() },
		"2,000 writes/s":  func(l *mixedLoad) { l.rate.Store(2000) },
		"a hot row":       func(l *mixedLoad) { l.hotRow(8) },
		"checkpoints":     func(l *mixedLoad) { l.checkpoints() },
		"an open bulk tx": func(l *mixedLoad) { l.openBulk() },
	} {
		t.Run(name, func(t *testing.T) {
			dsn := newDatabase(t)
			l := newMixedLoad(t, dsn, newReadGate(1, 16))
			light := "select pg_sleep(0.01)"
			l.readSQL.Store(&light)
			_, path := l.adapt(dsn, adaptive.Options{})
			l.write(100)
			l.read(2)
			l.measure(2 * time.Second)
			path.begin()
			start(l)
			l.measure(5 * time.Second)
			if share := path.share(func(d adaptive.Decision) bool { return d.To == 16 && !d.Contended }); share < 0.95 {
				t.Errorf("the limit is at its start %.2f of the time:\n%v", share, path)
			}
		})
	}
}

func (l *mixedLoad) checkpoints() {
	l.writers.Go(func() {
		for l.ctx.Err() == nil {
			_, _ = l.pool.Exec(l.ctx, "checkpoint")
		}
	})
}

func (l *mixedLoad) openBulk() {
	l.writers.Go(func() {
		_ = pgx.BeginFunc(l.ctx, l.pool, func(tx pgx.Tx) error {
			for l.ctx.Err() == nil {
				if _, err := tx.Exec(l.ctx, "insert into pressure_history select i, now() from generate_series(1, 1000) i"); err != nil {
					return err
				}
			}
			return l.ctx.Err()
		})
	})
}
