package adaptive

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// fixed is a limiter with nothing behind it.
type fixed struct {
	mu        sync.Mutex
	limit     int
	bounds    Bounds
	contended bool
	ended     int
}

func newFixed(limit int, b Bounds) *fixed { return &fixed{limit: limit, bounds: b, contended: true} }

func (f *fixed) Limit() int { f.mu.Lock(); defer f.mu.Unlock(); return f.limit }
func (f *fixed) SetLimit(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limit = n
}

func (f *fixed) EndPeriod() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended++
	return f.contended
}

func (f *fixed) Bounds() (int, int, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bounds.Floor, f.bounds.Start, f.bounds.Ceiling
}

func (f *fixed) set(contended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.contended = contended
}

func (f *fixed) periods() int { f.mu.Lock(); defer f.mu.Unlock(); return f.ended }

// server is a source whose counters move with virtual time.
type server struct {
	mu     sync.Mutex
	sync   time.Duration // of a WAL sync
	hang   bool
	fail   error
	change func(*pressure.Sample)
	asked  int
	flying atomic.Int64
	most   atomic.Int64

	syncs, millis, xid float64
	last               time.Time
}

func (s *server) Sample(ctx context.Context) (pressure.Sample, error) {
	s.most.Store(max(s.most.Load(), s.flying.Add(1)))
	defer s.flying.Add(-1)
	s.mu.Lock()
	s.asked++
	hang, fail := s.hang, s.fail
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
		return pressure.Sample{}, ctx.Err()
	}
	if fail != nil {
		return pressure.Sample{}, fail
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.last.IsZero() {
		n := 200 * now.Sub(s.last).Seconds()
		s.syncs, s.xid = s.syncs+n, s.xid+n
		s.millis += n * float64(s.sync) / float64(time.Millisecond)
	}
	s.last = now
	sample := pressure.Sample{
		At: now, ServerTime: now, Version: 170000,
		NextXID: pressure.Read(s.xid), WALSyncs: pressure.Read(s.syncs), WALSyncMillis: pressure.Read(s.millis),
		LockWaiters: pressure.Read(0), WALWaiters: pressure.Read(0),
	}
	if s.change != nil {
		s.change(&sample)
	}
	return sample, nil
}

func (s *server) polls() int { s.mu.Lock(); defer s.mu.Unlock(); return s.asked }

func (s *server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// TestServerSignalsAlone drives the limit by samples, with no word from the program.
func TestServerSignalsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, src := newFixed(16, Bounds{1, 16, 16}), &server{sync: 200 * time.Microsecond}
		l, err := New(f, src, Options{})
		if err != nil {
			t.Fatal(err)
		}
		seconds := func(n float64) (d Decision) {
			for range int(n * 4) {
				time.Sleep(250 * time.Millisecond)
				d = l.Evaluate(context.Background())
			}
			return d
		}
		f.set(false)
		if d := seconds(15); d.Pressing || d.To != 16 || !d.Sampled || d.Sample.Version != 170000 {
			t.Fatalf("calm: %+v", d)
		}
		f.set(true)
		if d := seconds(10); d.Pressing || d.To != 16 {
			t.Fatalf("calm and contended: limit %d, %s", d.To, d.Reason)
		}
		src.set(func() { src.sync = 2 * time.Millisecond })
		seconds(8)
		if f.Limit() > 4 || !l.Pressing() || l.Lowered() < 2 || l.Blind() {
			t.Errorf("8 s of slow syncs: %v", l)
		}
		if l.Last().WALSyncs.Value == 0 || !strings.Contains(l.String(), "floor 1, start 16, ceiling 16") {
			t.Errorf("%v", l)
		}
	})
}

// TestPressureReadsCannotCure is a server that is slow whatever the limit is.
func TestPressureReadsCannotCure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, src := newFixed(16, Bounds{1, 16, 16}), &server{sync: 200 * time.Microsecond}
		l, err := New(f, src, Options{Activity: func() pressure.Activity { return pressure.Activity{Running: 1, Waiting: 3} }})
		if err != nil {
			t.Fatal(err)
		}
		run := func(n int, look func(Decision)) {
			for range n {
				time.Sleep(250 * time.Millisecond)
				d := l.Evaluate(context.Background())
				if look != nil {
					look(d)
				}
			}
		}
		run(40, nil)
		src.set(func() { src.sync = 2 * time.Millisecond })
		run(60, nil)
		half, all := 0, 0
		run(4*600, func(d Decision) {
			all++
			if d.To >= 8 {
				half++
			}
		})
		if share := float64(half) / float64(all); share < 0.8 || l.Counts().GivenBack < 3 {
			t.Errorf("at half or more %.2f of the time, given back %d times", share, l.Counts().GivenBack)
		}
	})
}

// TestNoSampleNoMove: without anything to judge by the limit stays, then drifts to
// its start, one a period, and never further.
func TestNoSampleNoMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, src := newFixed(4, Bounds{1, 12, 16}), &server{fail: errors.New("gone")}
		l, err := New(f, src, Options{StaleAfter: 8})
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i <= 40; i++ {
			time.Sleep(250 * time.Millisecond)
			d := l.Evaluate(context.Background())
			want := 4 + max(0, min(8, i-8))
			if d.To != want || d.Err == nil || d.Pressing || !l.Blind() {
				t.Fatalf("period %d: limit %d, want %d: %s", i, d.To, want, d.Reason)
			}
		}
	})
}

// TestBlind: it is while the last poll failed, also in the periods without one; while one
// is overdue; and where there was nothing to judge by for more than StaleAfter periods.
func TestBlind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, src := newFixed(4, Bounds{1, 12, 16}), &server{}
		blind := []bool{}
		l, err := New(f, src, Options{OnDecision: func(Decision) {}})
		if err != nil {
			t.Fatal(err)
		}
		look := func(d time.Duration) {
			blind = blind[:0]
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				blind = append(blind, l.Blind())
			}
		}
		l.Start()
		time.Sleep(time.Second)
		if look(3 * time.Second); slices.Contains(blind, true) {
			t.Error("it calls itself blind though polls succeed")
		}
		src.set(func() { src.fail = errors.New("gone") })
		time.Sleep(time.Second)
		if look(3 * time.Second); slices.Contains(blind, false) {
			t.Error("it calls itself seeing between two polls that fail")
		}
		src.set(func() { src.fail, src.hang = nil, true })
		time.Sleep(500 * time.Millisecond) // the last that failed, and the first that hangs
		src.set(func() { src.hang = false })
		l.Stop()

		l, _ = New(f, &server{hang: true}, Options{})
		l.Start()
		begun := time.Now()
		for !l.Blind() {
			time.Sleep(10 * time.Millisecond)
		}
		if d, want := time.Since(begun), pressure.DefaultTimeout+DefaultPeriod; d < want || d > want+2*DefaultPeriod {
			t.Errorf("a poll that hangs makes it blind after %v", d)
		}
		l.Stop()

		l, _ = New(f, nil, Options{StaleAfter: 3, Activity: func() pressure.Activity { return pressure.Activity{Running: 1, WritesRunning: 1} }})
		for i := 1; i <= 5; i++ {
			time.Sleep(DefaultPeriod)
			if d := l.Evaluate(context.Background()); d.Verdict.Known || l.Blind() != (i > 3) {
				t.Errorf("period %d with nothing to judge by: blind %t, known %t", i, l.Blind(), d.Verdict.Known)
			}
		}
	})
}

// prober notes what is done to it.
type prober struct {
	*fixed
	did []string
}

func (p *prober) Probe(n int)    { p.note("probe", n) }
func (p *prober) SetLimit(n int) { p.note("set", n) }

func (p *prober) note(what string, limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.did, p.limit = append(p.did, what), limit
}

func (p *prober) done() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.did)
}

// TestStopEndsAProbe: the limit that stays is what is let in.
func TestStopEndsAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &prober{fixed: newFixed(1, Bounds{1, 16, 16})}
		program := &paced{}
		l, err := New(p, nil, Options{Activity: program.activity})
		if err != nil {
			t.Fatal(err)
		}
		l.state.hold = hold{level: 2, length: DefaultHold}
		l.Start()
		for len(p.done()) == 0 {
			time.Sleep(DefaultPeriod / 4)
		}
		l.Stop()
		l.Stop()
		if p.Limit() != 2 || !slices.Equal(p.done(), []string{"probe", "set"}) {
			t.Errorf("limit %d after %v", p.Limit(), p.done())
		}
	})
}

// TestLoopOutlastsAHangingPoll judges by own writes while a poll never ends.
func TestLoopOutlastsAHangingPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, src := newFixed(16, Bounds{1, 16, 16}), &server{hang: true}
		var slow atomic.Bool
		program := &paced{}
		activity := func() pressure.Activity {
			if slow.Load() {
				program.took.Store(int64(20 * time.Millisecond))
			}
			return program.activity()
		}
		l, err := New(f, src, Options{Activity: activity})
		if err != nil {
			t.Fatal(err)
		}
		f.set(false)
		l.Start()
		l.Start()
		time.Sleep(5 * time.Second)
		f.set(true)
		slow.Store(true)
		time.Sleep(1100 * time.Millisecond)
		if f.Limit() != 1 {
			t.Errorf("1.1 s into the pressure: %v", l)
		}
		if n := src.flying.Load(); n != 1 || src.polls() != 1 {
			t.Errorf("%d polls in flight, %d asked for", n, src.polls())
		}
		if !l.Blind() {
			t.Error("a poll is overdue for seconds and the limit calls itself seeing")
		}
		if f.periods() < 22 || f.periods() > 26 {
			t.Errorf("%d periods in six seconds", f.periods())
		}
		l.Stop()
		l.Stop()
		if n := src.flying.Load(); n != 0 {
			t.Errorf("%d polls outlive Stop", n)
		}
		ended := f.periods()
		time.Sleep(time.Second)
		if f.periods() != ended {
			t.Error("it goes on after Stop")
		}
		// It can be started again.
		src.set(func() { src.hang = false })
		l.Start()
		time.Sleep(2 * time.Second)
		if f.periods() < ended+6 || l.Blind() {
			t.Errorf("after another Start: %d periods, blind %t", f.periods()-ended, l.Blind())
		}
		l.Stop()
	})
}

// paced is what a program does whose writes take 1 ms, or so long beside reads.
type paced struct {
	took   atomic.Int64 // nanoseconds; 0: 1 ms, and no reads
	writes pressure.Writes
}

func (p *paced) activity() pressure.Activity {
	a, took := pressure.Activity{}, time.Millisecond
	if d := time.Duration(p.took.Load()); d > 0 {
		took, a.Running, a.Waiting = d, 16, 1
	}
	for range 50 {
		p.writes.Observe(took)
	}
	a.Writes = p.writes.Take()
	return a
}

// TestMissedTicksAreOnePeriod: a callback, or the machine, stops the loop for seconds
// while writes suffer. That is one period more, and counts as one in a row.
func TestMissedTicksAreOnePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, program := newFixed(16, Bounds{1, 16, 16}), &paced{}
		var pressing []Decision
		l, err := New(f, nil, Options{Periods: 4, Activity: program.activity, OnDecision: func(d Decision) {
			if d.Pressing {
				pressing = append(pressing, d)
			}
			if len(pressing) == 2 {
				time.Sleep(5 * time.Second)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		f.set(false)
		l.Start()
		time.Sleep(5 * time.Second)
		f.set(true)
		program.took.Store(int64(1900 * time.Microsecond)) // over the threshold, and not so far that one period is enough
		before := f.periods()
		time.Sleep(6500 * time.Millisecond)
		l.Stop()
		// Two, five seconds, the tick that stood by meanwhile, and one each quarter.
		if n := f.periods() - before; n < 6 || n > 9 {
			t.Errorf("%d periods in 6.5 s, of which 5 were missed", n)
		}
		for i, d := range pressing {
			if want := max(1, 16>>((i+1)/4)); d.To != want {
				t.Errorf("pressing period %d: limit %d, want %d: %s", i+1, d.To, want, d.Reason)
			}
		}
		if len(pressing) < 5 {
			t.Fatalf("%d periods pressed", len(pressing))
		}
	})
}

// TestTwoSignalsMakeOneCut: own writes and the server both press, in the same periods.
func TestTwoSignalsMakeOneCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, src, program := newFixed(16, Bounds{1, 16, 16}), &server{sync: 200 * time.Microsecond}, &paced{}
		l, err := New(f, src, Options{Activity: program.activity})
		if err != nil {
			t.Fatal(err)
		}
		f.set(false)
		evaluate := func() Decision {
			time.Sleep(250 * time.Millisecond)
			return l.Evaluate(context.Background())
		}
		for range 40 {
			evaluate()
		}
		program.took.Store(int64(1900 * time.Microsecond))
		src.set(func() { src.sync = time.Millisecond })
		both, cuts := 0, 0
		for range 60 {
			d := evaluate()
			pressing := 0
			for _, sig := range d.Verdict.Signals {
				if sig.Pressing {
					pressing++
				}
			}
			f.set(pressing == 2) // nothing is cut before both press
			if d.To < d.From {
				if cuts++; d.To != d.From/2 {
					t.Errorf("from %d to %d: %s", d.From, d.To, d.Reason)
				}
				if pressing == 2 {
					both++
				}
			}
		}
		if both != 4 || cuts != 4 || l.Lowered() != 4 {
			t.Errorf("%d cuts, %d of them while two signals pressed", cuts, both)
		}
	})
}

// TestPollsKeepTheirOwnPace: the source is asked every Pressure.Period, not every
// period.
func TestPollsKeepTheirOwnPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, src := newFixed(16, Bounds{1, 16, 16}), &server{sync: time.Millisecond}
		sampled := 0
		l, err := New(f, src, Options{OnDecision: func(d Decision) {
			if d.Sampled {
				sampled++
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		l.Start()
		time.Sleep(20*time.Second + 10*time.Millisecond)
		l.Stop()
		if src.polls() < 38 || src.polls() > 42 || sampled < src.polls()-1 || src.most.Load() != 1 {
			t.Errorf("%d polls in 20 s, %d used, %d at once", src.polls(), sampled, src.most.Load())
		}
		if f.periods() < 78 || f.periods() > 81 {
			t.Errorf("%d periods in 20 s", f.periods())
		}
	})
}

// TestPollsSpareACrowdedServer: the more sessions, the further apart are the polls, and what
// they saw holds until the next.
func TestPollsSpareACrowdedServer(t *testing.T) {
	for sessions, apart := range map[int]time.Duration{50: 500 * time.Millisecond, 500: time.Second, 100_000: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			src := &server{sync: time.Millisecond, change: func(s *pressure.Sample) { s.Sessions = sessions }}
			periods, known := 0, 0
			l, err := New(newFixed(16, Bounds{1, 16, 16}), src, Options{OnDecision: func(d Decision) {
				if periods++; d.Verdict.Known {
					known++
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			l.Start()
			const long = time.Minute
			time.Sleep(long)
			l.Stop()
			if want := int(long / apart); src.polls() < want-1 || src.polls() > want+2 {
				t.Errorf("%d sessions: %d polls in %v, want %d", sessions, src.polls(), long, want)
			}
			if known < periods*9/10 {
				t.Errorf("%d sessions: of %d periods %d knew something", sessions, periods, known)
			}
		})
	}
}

// TestCallbacksHoldNoLock calls everything from inside them.
func TestCallbacksHoldNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixed(16, Bounds{1, 16, 16})
		var l *Limit
		called := 0
		options := Options{OnDecision: func(d Decision) {
			called++
			_, _, _, _ = l.Pressing(), l.Blind(), l.Lowered()+l.Raised()+l.Floor(), l.String()
			if got := l.LastDecision(); !got.At.Equal(d.At) {
				t.Error("the decision is told before it can be seen")
			}
			if called == 1 {
				l.Reset()
				l.Evaluate(context.Background())
			}
		}}
		options.Logger = slog.New(callback(func() { _ = l.String() }))
		var err error
		if l, err = New(f, nil, options); err != nil {
			t.Fatal(err)
		}
		l.Evaluate(context.Background())
		if called != 2 {
			t.Errorf("called %d times", called)
		}
	})
}

// callback is a log handler that calls a function.
type callback func()

func (callback) Enabled(context.Context, slog.Level) bool    { return true }
func (c callback) Handle(context.Context, slog.Record) error { c(); return nil }
func (c callback) WithAttrs([]slog.Attr) slog.Handler        { return c }
func (c callback) WithGroup(string) slog.Handler             { return c }

// TestOperatorHearsOnce counts the log's lines over minutes at the floor and back.
func TestOperatorHearsOnce(t *testing.T) {
	var log bytes.Buffer
	options := Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	modelled(t, 1, wide, options, func(m *model, l *Limit) {
		m.warm(l)
		m.readers = 16
		m.run(l, 50*time.Second, nil)
		long := false
		m.run(l, 10*time.Second, func(d Decision) { long = long || d.AtFloor > 0 })
		if !long {
			t.Error("no decision says that the limit is at its floor")
		}
		m.writeRate = 0
		m.run(l, 10*time.Second, nil)
	})
	for line, want := range map[string]int{"begin to yield": 1, "at its floor for long": 1, "back at their full limit": 1} {
		if n := strings.Count(log.String(), line); n != want {
			t.Errorf("%q is logged %d times:\n%s", line, n, log.String())
		}
	}
}

// TestDDLBehindARead keeps the limit from rising, and says so once.
func TestDDLBehindARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f, src := newFixed(8, Bounds{1, 8, 16}), &server{sync: time.Millisecond}
		l, err := New(f, src, Options{
			Activity: func() pressure.Activity { return pressure.Activity{} },
			Logger:   slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		run := func() {
			for range 20 {
				time.Sleep(250 * time.Millisecond)
				l.Evaluate(context.Background())
			}
		}
		f.set(false)
		run()
		f.set(true)
		src.set(func() {
			src.change = func(s *pressure.Sample) {
				s.RelationLockWaiters, s.RelationLockWaitMillis = pressure.Read(1), pressure.Read(500)
			}
		})
		run()
		if f.Limit() != 8 || l.LastDecision().Reason != reasonFrozen || strings.Count(log.String(), "lock on a relation") != 1 {
			t.Errorf("%v; the log:\n%s", l, log.String())
		}
		src.set(func() { src.change = nil })
		run()
		if f.Limit() != 16 {
			t.Errorf("after the lock: %v", l)
		}
	})
}

// TestBoundsMayMove: the limit follows a ceiling that falls, and climbs when it rises.
func TestBoundsMayMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixed(16, Bounds{2, 16, 16})
		l, err := New(f, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		evaluate := func() int {
			time.Sleep(250 * time.Millisecond)
			return l.Evaluate(context.Background()).To
		}
		evaluate()
		f.mu.Lock()
		f.bounds = Bounds{2, 16, 1}
		f.mu.Unlock()
		if n := evaluate(); n != 1 || l.Floor() != 1 {
			t.Errorf("with a ceiling of 1 the limit is %d, the floor %d", n, l.Floor())
		}
		f.mu.Lock()
		f.bounds = Bounds{2, 3, 5}
		f.mu.Unlock()
		for range 10 {
			evaluate()
		}
		if n := f.Limit(); n != 5 || l.Floor() != 2 {
			t.Errorf("with a ceiling of 5 the limit is %d", n)
		}
	})
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, src := newFixed(16, Bounds{1, 16, 16}), &server{sync: time.Millisecond}
		l, err := New(f, src, Options{Period: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for range 200 {
					l.Start()
					l.Evaluate(context.Background())
					_, _, _ = l.String(), l.Last(), l.Counts()
					if i == 0 {
						l.Reset()
					}
					time.Sleep(time.Millisecond)
					l.Stop()
				}
			})
		}
		wg.Wait()
		l.Stop()
	})
}
