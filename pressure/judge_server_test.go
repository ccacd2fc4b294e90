package pressure

import (
	"strings"
	"testing"
	"time"
)

// poll advances the made-up server by a period and judges a sample of it.
func (b *bench) poll(a Activity, change ...func(*Sample)) Verdict {
	b.now = b.now.Add(period)
	s := &b.server
	if s.ServerTime.IsZero() {
		*s = Sample{
			Version: 170000, Started: b.now.Add(-time.Hour), StatsReset: b.now.Add(-time.Hour),
			WALBytes: Read(1e9), NextXID: Read(1e6), WALSyncs: Read(1e5), WALSyncMillis: Read(1e5),
			WriteTransactions: Read(0), WALWaiters: Read(0), LockWaiters: Read(0), SyncRepWaiters: Read(0),
			RelationLockWaiters: Read(0), LockWaitMillis: Read(0), RelationLockWaitMillis: Read(0), WriteStatementMillis: Read(0),
		}
	}
	s.ServerTime = b.now.Add(time.Minute) // its clock is not ours
	n := b.rate * period.Seconds()
	s.NextXID.Value += n
	s.WALBytes.Value += 300 * n
	s.WALSyncs.Value += n
	s.WALSyncMillis.Value += n * float64(b.sync) / float64(time.Millisecond)
	for _, f := range change {
		f(s)
	}
	sample := *s
	return b.judge.Next(b.now, &sample, a)
}

// seconds judges n seconds of equal periods.
func (b *bench) seconds(n float64, a Activity, change ...func(*Sample)) (Verdict, int) {
	return b.many(int(n/period.Seconds()), func() Verdict { return b.poll(a, change...) })
}

var (
	noReads   = Activity{Limit: 16}
	manyReads = Activity{Limit: 16, Running: 16, Waiting: 2, Contended: true}
)

func TestWALSyncTakesTwoWindows(t *testing.T) {
	b := newBench(t, 0, Options{})
	if v, n := b.seconds(10, noReads); n > 0 || !v.Known {
		t.Fatalf("idle: %d pressing, %+v", n, v)
	}
	b.sync *= 3
	first := 0
	for i := 1; i <= 40; i++ {
		if v := b.poll(manyReads); v.Pressing {
			first = i
			break
		}
	}
	// The second window over the threshold ends within two to three and a half seconds.
	if d := time.Duration(first) * period; d < 1500*time.Millisecond || d > 3500*time.Millisecond {
		t.Errorf("it presses after %v", d)
	}
	b.sync = b.sync / 3 * 17 / 10 // 1.7 times: between the two thresholds
	if v, _ := b.seconds(6, manyReads); !v.Pressing {
		t.Error("it left above the threshold to leave")
	}
	b.sync = 250 * time.Microsecond
	if v, _ := b.seconds(4, manyReads); v.Pressing {
		t.Errorf("it did not leave: %+v", v)
	}
	v, n := b.seconds(6, manyReads)
	if s, ok := v.Signal(WALSync); n > 0 || !ok || s.Baseline != 200*time.Microsecond {
		t.Errorf("%d pressing, %+v", n, s)
	}
}

func TestOneBadWindowDoesNotPress(t *testing.T) {
	b := newBench(t, 0, Options{})
	b.seconds(10, noReads)
	pressing := 0
	for range 20 {
		b.sync = 2 * time.Millisecond
		b.poll(manyReads) // one bad period lies in at most two overlapping windows
		b.sync = 200 * time.Microsecond
		_, n := b.seconds(10, manyReads)
		pressing += n
	}
	if pressing > 20*4 {
		t.Errorf("one bad period in forty made %d of 800 press", pressing)
	}
}

func TestSyncTimeNotVolume(t *testing.T) {
	b := newBench(t, 0, Options{})
	b.seconds(10, noReads)
	b.rate = 3000 // busy is not suffering
	if v, n := b.seconds(20, manyReads, func(s *Sample) { s.WALWaiters = Read(2); s.WALBytes.Value += 1e8 }); n > 0 {
		t.Errorf("a busy server presses in %d periods: %+v", n, v)
	}
}

func TestWaitsStandInWithoutTiming(t *testing.T) {
	untimed := func(s *Sample) { s.WALSyncMillis = Reading{} }
	b := newBench(t, 0, Options{})
	b.seconds(10, noReads, untimed)
	v, _ := b.seconds(10, manyReads, untimed, func(s *Sample) { s.WALWaiters = Read(1) }) // 1/200 s a write
	if s, ok := v.Signal(WALWait); !v.Pressing || !ok || s.Value < 4*time.Millisecond || s.Value > 6*time.Millisecond {
		t.Errorf("a WAL waiter at 200 writes/s: %+v", v)
	}
	if _, ok := v.Signal(WALSync); ok {
		t.Error("a sync time that cannot be read is listed")
	}
	b = newBench(t, 0, Options{})
	b.seconds(10, noReads, untimed)
	v, _ = b.seconds(10, manyReads, untimed, func(s *Sample) { s.WriteStatementMillis = Read(20) })
	if s, _ := v.Leading(); !v.Pressing || s.Name != WriteStatement {
		t.Errorf("a write statement of 20 ms: %+v", v)
	}
	// With the sync time at hand neither is looked at.
	b = newBench(t, 0, Options{})
	b.seconds(10, noReads)
	if v, n := b.seconds(10, manyReads, func(s *Sample) { s.WALWaiters, s.WriteStatementMillis = Read(1), Read(20) }); n > 0 {
		t.Errorf("waits press beside a calm sync time: %+v", v)
	}
}

func TestLockWaitOnlyBesideContendingReads(t *testing.T) {
	queue := func(s *Sample) { s.LockWaiters = Read(7) }
	b := newBench(t, 0, Options{})
	b.seconds(10, noReads)
	if v, _ := b.seconds(10, manyReads, queue); !v.Pressing {
		t.Errorf("35 ms of lock wait a write beside contending reads: %+v", v)
	}
	b = newBench(t, 0, Options{})
	b.seconds(10, noReads)
	light := Activity{Limit: 16, Running: 1, ReadsDone: 10, ReadTime: time.Millisecond}
	if v, n := b.seconds(10, light, queue); n > 0 {
		t.Errorf("a hot row without contending reads: %d, %+v", n, v)
	}
}

// TestDDLQueueIsNoLockWait: those who wait for a relation are all that wait for a lock,
// and that stops the climb. One who waits for a row beside them counts as before.
func TestDDLQueueIsNoLockWait(t *testing.T) {
	behind := func(rows float64) func(*Sample) {
		return func(s *Sample) {
			s.LockWaiters, s.RelationLockWaiters, s.RelationLockWaitMillis = Read(7+rows), Read(7), Read(5000)
		}
	}
	b := newBench(t, 0, Options{})
	b.seconds(10, noReads)
	v, n := b.seconds(10, manyReads, behind(0))
	if s, ok := v.Signal(LockWait); n > 0 || !v.Freeze || !ok || s.Value != 0 {
		t.Errorf("seven sessions behind DDL: %d pressing, %+v", n, v)
	}
	v, _ = b.seconds(10, manyReads, behind(7))
	if s, _ := v.Signal(LockWait); !v.Pressing || !v.Freeze || s.Value < 34*time.Millisecond || s.Value > 36*time.Millisecond {
		t.Errorf("and seven behind rows: %+v", v)
	}
	// Where the relation's waiters are not known, all count: too much is seen rather than nothing.
	b = newBench(t, 0, Options{})
	b.seconds(10, noReads)
	if v, _ := b.seconds(10, manyReads, func(s *Sample) { s.LockWaiters, s.RelationLockWaiters = Read(7), Reading{} }); !v.Pressing {
		t.Errorf("seven sessions behind who knows what: %+v", v)
	}
}

// TestOutageIsNoLockWait: writes that did not come while the server was down make no wait
// per write long. It is shown by samples that differ from calm ones in nothing else.
func TestOutageIsNoLockWait(t *testing.T) {
	untimed := func(s *Sample) { s.WALSyncMillis = Reading{} }
	some := func(s *Sample) { s.WALWaiters, s.LockWaiters = Read(0.2), Read(0.4) } // 1 and 2 ms a write
	b := newBench(t, 0, Options{})
	b.seconds(10, noReads, untimed, some)
	if v, n := b.seconds(5, manyReads, untimed, some); n > 0 {
		t.Fatalf("before the outage %d press: %+v", n, v)
	}
	for range 16 {
		b.judge.Lost()
		b.own(manyReads)
	}
	v, n := b.seconds(10, manyReads, untimed, some)
	for _, name := range []string{WALWait, LockWait} {
		if s, ok := v.Signal(name); n > 0 || !ok || s.Value > 3*time.Millisecond {
			t.Errorf("after the outage: %d pressing, %+v", n, v)
		}
	}
}

func TestRelationLockFreezes(t *testing.T) {
	b := newBench(t, 0, Options{})
	b.seconds(10, noReads)
	v := b.poll(manyReads, func(s *Sample) { s.RelationLockWaiters, s.RelationLockWaitMillis = Read(1), Read(150) })
	if s, _ := v.Signal(RelationLock); !v.Freeze || v.Pressing || s.Value != 150*time.Millisecond {
		t.Errorf("DDL behind a read for 150 ms: %+v", v)
	}
	if v = b.poll(manyReads, func(s *Sample) { s.RelationLockWaitMillis = Read(50) }); v.Freeze {
		t.Error("50 ms freeze")
	}
}

func TestStandbyNeverPresses(t *testing.T) {
	b := newBench(t, 0, Options{})
	b.seconds(10, noReads)
	standby := func(s *Sample) {
		s.Standby, s.WALBytes = true, Reading{}
		s.WALWaiters = Read(5)
	}
	b.sync *= 9
	if v, n := b.seconds(10, manyReads, standby); n > 0 || !v.Known || !strings.HasPrefix(v.Reason, "standby") {
		t.Errorf("standby: %d pressing, %+v", n, v)
	}
	// Promoted: within two samples it is a primary again.
	b.poll(manyReads, func(s *Sample) { s.Standby, s.WALBytes = false, Read(1e9) })
	if v := b.poll(manyReads); v.Reason == "standby: it takes no writes" {
		t.Error("the promotion was not noticed")
	}
	if v, _ := b.seconds(10, manyReads); !v.Pressing {
		t.Errorf("after the promotion: %+v", v)
	}
}

// TestBrokenCountersDropTheInterval makes counters lie and looks for pressure.
func TestBrokenCountersDropTheInterval(t *testing.T) {
	for name, breakIt := range map[string]func(b *bench, s *Sample){
		"reset":       func(b *bench, s *Sample) { s.StatsReset = b.now; s.WALSyncs, s.WALSyncMillis = Read(0), Read(0) },
		"reset, past": func(b *bench, s *Sample) { s.StatsReset = b.now; s.WALSyncs.Value += 100; s.WALSyncMillis.Value += 1e5 },
		"backwards":   func(b *bench, s *Sample) { s.WALSyncs.Value -= 1e4 },
		"time jump":   func(b *bench, s *Sample) { s.WALSyncMillis.Value += 1e9 },
		"xid jump":    func(b *bench, s *Sample) { s.NextXID.Value += 1e9 },
		"clock":       func(b *bench, s *Sample) { s.ServerTime = s.ServerTime.Add(-time.Hour) },
		"wal back":    func(b *bench, s *Sample) { s.WALBytes.Value = 1 },
	} {
		b := newBench(t, 0, Options{})
		b.seconds(10, noReads)
		b.seconds(5, manyReads)
		b.poll(manyReads, func(s *Sample) { breakIt(b, s) })
		if n := len(b.judge.server.samples); n != 1 {
			t.Errorf("%s: %d samples are kept", name, n)
		}
		v, n := b.seconds(10, manyReads)
		if s, ok := v.Signal(WALSync); n > 0 || !ok || s.Baseline != 200*time.Microsecond {
			t.Errorf("%s: %d pressing; %+v", name, n, v)
		}
	}
}

func TestAnotherServerIsLearnedAnew(t *testing.T) {
	for name, change := range map[string]func(b *bench, s *Sample){
		"version": func(_ *bench, s *Sample) { s.Version = 180000 },
		"restart": func(b *bench, s *Sample) { s.Started = b.now },
	} {
		b := newBench(t, 0, Options{})
		b.idle(20)
		b.seconds(10, noReads)
		b.poll(noReads, func(s *Sample) { change(b, s) })
		if v := b.own(b.loaded(50, 9*time.Millisecond)); v.Pressing || !v.NeedBaseline {
			t.Errorf("%s: the old baseline judges: %+v", name, v)
		}
		if b.judge.server.sync.has {
			t.Errorf("%s: the old sync time stays", name)
		}
	}
}

func TestLostAndStaleSamples(t *testing.T) {
	b := newBench(t, 0, Options{})
	b.seconds(10, noReads)
	b.sync *= 5
	if v, _ := b.seconds(6, manyReads); !v.Pressing {
		t.Fatal("no pressure to lose")
	}
	// Between two samples the last judgement stands, until it is stale.
	if v := b.own(manyReads); !v.Pressing || v.Fresh {
		t.Errorf("between samples: %+v", v)
	}
	if v, _ := b.many(12, func() Verdict { return b.own(manyReads) }); v.Known || v.Pressing || len(v.Signals) > 0 {
		t.Errorf("after three seconds without a sample: %+v", v)
	}
	b.seconds(6, manyReads)
	b.judge.Lost()
	if v := b.own(manyReads); v.Known || v.Pressing {
		t.Errorf("after a failed poll: %+v", v)
	}
	// Own writes judge on.
	b = newBench(t, 0, Options{})
	b.idle(20)
	b.judge.Lost()
	if v := b.own(b.loaded(50, 5*time.Millisecond)); !v.Pressing {
		t.Errorf("own writes without the server: %+v", v)
	}
}

func TestNoWritesOnTheServer(t *testing.T) {
	b := newBench(t, 0, Options{})
	b.rate = 0
	v, n := b.seconds(10, manyReads, func(s *Sample) { s.WALWaiters = Read(3) })
	if n > 0 || !v.Known || v.WritesMove || v.Reason != "no writes" {
		t.Errorf("reads only: %+v", v)
	}
}

func TestServerBaselineNeedsProbing(t *testing.T) {
	b := newBench(t, 0, Options{})
	b.sync *= 5
	if v, n := b.seconds(10, manyReads); n > 0 || !v.NeedBaseline {
		t.Fatalf("without a baseline: %d, %+v", n, v)
	}
	b.sync /= 5
	probe := Activity{Limit: 1, Running: 1, Waiting: 9, Contended: true, Probing: true}
	if v, _ := b.seconds(2, probe); v.NeedBaseline {
		t.Error("two seconds at the floor taught nothing")
	}
	b.sync *= 5
	if v, _ := b.seconds(6, manyReads); !v.Pressing {
		t.Errorf("after probing: %+v", v)
	}
}
