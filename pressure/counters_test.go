package pressure

import (
	"math"
	"testing"
	"time"
)

// counted is a server that has seen samples, second by second, with so many syncs and
// transactions between two.
func counted(n int, events float64) *server {
	s := &server{maxAge: time.Second}
	for i := range n {
		s.add(second(float64(i)), sampleAt(float64(i), events*float64(i)))
	}
	return s
}

func second(n float64) time.Time {
	return time.Unix(1e9, 0).Add(time.Duration(n * float64(time.Second)))
}

func sampleAt(at, events float64) Sample {
	return Sample{
		ServerTime: second(at), Version: 170000, Started: second(-9), StatsReset: second(-8),
		NextXID: Read(100 + events), WALSyncs: Read(200 + events), WALSyncMillis: Read(300 + events), WALBytes: Read(400 + events),
	}
}

func TestBrokenCounters(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Sample)
		broken bool
	}{
		"none":                {func(*Sample) {}, false},
		"same time":           {func(s *Sample) { s.ServerTime = second(0) }, true},
		"a nanosecond":        {func(s *Sample) { s.ServerTime = second(0).Add(1) }, false},
		"longest gap":         {func(s *Sample) { s.ServerTime = second(0).Add(longestGap) }, false},
		"too long a gap":      {func(s *Sample) { s.ServerTime = second(0).Add(longestGap + 1) }, true},
		"standby":             {func(s *Sample) { s.Standby = true }, true},
		"reset":               {func(s *Sample) { s.StatsReset = second(-7) }, true},
		"no more reset":       {func(s *Sample) { s.StatsReset = time.Time{} }, true},
		"xid back":            {func(s *Sample) { s.NextXID.Value = 99 }, true},
		"xid stands":          {func(s *Sample) { s.NextXID.Value = 100 }, false},
		"xid at its fastest":  {func(s *Sample) { s.NextXID.Value = 100 + fastestRate }, false},
		"xid jumps":           {func(s *Sample) { s.NextXID.Value = 101 + fastestRate }, true},
		"syncs back":          {func(s *Sample) { s.WALSyncs.Value = 199 }, true},
		"syncs jump":          {func(s *Sample) { s.WALSyncs.Value = 201 + fastestRate }, true},
		"sync time back":      {func(s *Sample) { s.WALSyncMillis.Value = 299 }, true},
		"sync time is no sum": {func(s *Sample) { s.WALSyncMillis.Value = math.NaN() }, true},
		"wal back":            {func(s *Sample) { s.WALBytes.Value = 399 }, true},
		"wal stands":          {func(s *Sample) { s.WALBytes.Value = 400 }, false},
		"sync time ends":      {func(s *Sample) { s.WALSyncMillis = Reading{} }, false},
		"wal ends":            {func(s *Sample) { s.WALBytes = Reading{} }, false},
	} {
		a, b := sampleAt(0, 0), sampleAt(1, 1)
		c.change(&b)
		if got := broken(a, b); got != c.broken {
			t.Errorf("%s: broken %t", name, got)
		}
	}
	// What begins to be known is no jump from nothing.
	a, b := sampleAt(0, 0), sampleAt(1, 1)
	a.WALSyncMillis, a.WALBytes, b.WALSyncMillis = Reading{}, Reading{}, Read(1e12)
	if broken(a, b) {
		t.Error("a counter that appears broke the interval")
	}
}

func TestAnotherServer(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(a, b *Sample)
		another bool
	}{
		"the same":          {func(_, _ *Sample) {}, false},
		"another version":   {func(_, b *Sample) { b.Version = 180000 }, true},
		"unknown version":   {func(_, b *Sample) { b.Version = 0 }, false},
		"version was none":  {func(a, _ *Sample) { a.Version = 0 }, false},
		"started anew":      {func(_, b *Sample) { b.Started = second(0) }, true},
		"start unknown":     {func(_, b *Sample) { b.Started = time.Time{} }, false},
		"start was unknown": {func(a, _ *Sample) { a.Started = time.Time{} }, false},
	} {
		a, b := sampleAt(0, 0), sampleAt(1, 1)
		c.change(&a, &b)
		if got := anotherServer(a, b); got != c.another {
			t.Errorf("%s: another %t", name, got)
		}
	}
}

func TestWindowsOverCounters(t *testing.T) {
	syncs := func(s *Sample) Reading { return s.WALSyncs }
	at := func(s *stamped) float64 { return s.ServerTime.Sub(second(0)).Seconds() }
	s := counted(10, minEvents)
	if f := s.baseFor(2*time.Second, nil); f == nil || at(f) != 7 {
		t.Errorf("two seconds before the ninth begin at %+v", f)
	}
	if f := s.baseFor(500*time.Millisecond, syncs); f == nil || at(f) != 8 {
		t.Errorf("one second holds enough syncs: %+v", f)
	}
	if f := counted(10, minEvents-1).baseFor(500*time.Millisecond, syncs); f == nil || at(f) != 7 {
		t.Errorf("too few syncs take a longer window: %+v", f)
	}
	if f := counted(10, 0).baseFor(time.Second, syncs); f != nil {
		t.Errorf("no syncs, yet a window: %+v", f)
	}
	if f := counted(2, 9).baseFor(time.Second, nil); f == nil || at(f) != 0 {
		t.Errorf("the first sample begins no window: %+v", f)
	}
	for _, i := range []int{0, 9} { // a counter that one end of the window lacks
		s := counted(10, 0)
		s.samples[i].WALSyncs = Reading{Value: float64(i-5) * 1e3}
		if f := s.baseFor(time.Second, syncs); f != nil {
			t.Errorf("sample %d has no counter, yet a window begins at %+v", i, f)
		}
	}
	if s.due(20 * time.Second); s.due(20 * time.Second) {
		t.Error("a window of 20 s is due after 9")
	}
	s.evaluated = second(8)
	if !s.due(window) {
		t.Error("nothing is due a step after the last evaluation")
	}
	if s.evaluated = second(8.5); s.due(window) {
		t.Error("half a step after the last evaluation one is due")
	}
}

func TestOldSamplesAreDropped(t *testing.T) {
	s := counted(100, 9)
	if n, want := len(s.samples), int(longestGap/time.Second)+1; n != want {
		t.Errorf("%d samples are kept, want %d", n, want)
	}
	for i := range s.samples {
		if want := second(float64(99 - len(s.samples) + 1 + i)); !s.samples[i].ServerTime.Equal(want) {
			t.Fatalf("sample %d is of %v, want %v", i, s.samples[i].ServerTime, want)
		}
	}
}

func TestFirstSampleBeginsAnInterval(t *testing.T) {
	s := &server{maxAge: time.Second}
	for _, l := range s.levels() {
		l.over = 1
	}
	if s.fresh(second(0)) || s.last() != nil {
		t.Error("something is known before the first sample")
	}
	s.add(second(3), Sample{NextXID: Read(5)})
	if !s.last().ServerTime.Equal(second(3)) || !s.evaluated.Equal(second(3)) {
		t.Errorf("a sample without a time is of %v, evaluated from %v", s.last().ServerTime, s.evaluated)
	}
	s.add(second(4), Sample{NextXID: Read(1)})
	if len(s.samples) != 1 || !s.evaluated.Equal(second(4)) || s.sync.over != 0 {
		t.Errorf("after a break %d samples, evaluated from %v, %d over", len(s.samples), s.evaluated, s.sync.over)
	}
	if !s.fresh(second(5)) || s.fresh(second(5).Add(1)) {
		t.Error("a sample is not fresh for exactly its age")
	}
}

func TestServerWrites(t *testing.T) {
	for _, c := range []struct {
		rate          float64
		moving, known bool
	}{{slowestRate, true, true}, {slowestRate / 2, false, true}, {100, true, true}} {
		if moving, known := counted(2, c.rate).writing(); moving != c.moving || known != c.known {
			t.Errorf("%v writes/s: moving %t, known %t", c.rate, moving, known)
		}
	}
	s := counted(4, slowestRate)
	if moving, _ := s.writing(); !moving {
		t.Error("the rate is of another time than the writes")
	}
	for _, i := range []int{2, 3} {
		s := counted(4, 100)
		s.samples[i].NextXID.Known = false
		if moving, known := s.writing(); moving || known {
			t.Errorf("without sample %d: moving %t, known %t", i, moving, known)
		}
	}
	if moving, known := counted(1, 100).writing(); moving || known {
		t.Error("one sample shows a rate")
	}
}

func TestRelationLock(t *testing.T) {
	for name, c := range map[string]struct {
		waiters, wait  Reading
		listed, frozen bool
	}{
		"unknown":         {Reading{}, Reading{}, false, false},
		"no wait known":   {Read(1), Reading{Value: 500}, false, false},
		"no waiter known": {Reading{Value: 1}, Read(500), false, false},
		"nobody waits":    {Read(0), Read(500), true, false},
		"not long":        {Read(1), Read(99), true, false},
		"long enough":     {Read(1), Read(100), true, true},
	} {
		s := counted(3, 9)
		s.relation = Signal{Name: RelationLock, Value: time.Hour} // of the sample before
		sample := sampleAt(3, 27)
		sample.RelationLockWaiters, sample.RelationLockWaitMillis = c.waiters, c.wait
		s.add(second(3), sample)
		if listed := s.relation.Name == RelationLock; listed != c.listed || s.frozen() != c.frozen {
			t.Errorf("%s: listed %t, frozen %t", name, listed, s.frozen())
		}
		if c.listed && (!s.relation.Fresh || s.relation.Threshold != relationWait || s.relation.Pressing) {
			t.Errorf("%s: %+v", name, s.relation)
		}
	}
}

func TestMeanOfReadings(t *testing.T) {
	s := counted(4, 9)
	for i := range s.samples {
		s.samples[i].LockWaiters = Read(float64(i * i))
	}
	waiters := func(p *Sample) Reading { return p.LockWaiters }
	for first, want := range []float64{14.0 / 3, 13.0 / 2, 9} {
		if got, ok := s.mean(&s.samples[first], waiters); !ok || got != want {
			t.Errorf("after sample %d: %v, %t; want %v", first, got, ok, want)
		}
	}
	if _, ok := s.mean(&s.samples[3], waiters); ok {
		t.Error("no samples have a mean")
	}
	s.samples[2].LockWaiters = Reading{}
	if _, ok := s.mean(&s.samples[0], waiters); ok {
		t.Error("an absent reading counts as zero")
	}
}
