package pressure

import (
	"math"
	"time"
)

// Windows over the server's counters. They are flushed about once a second, so a
// shorter one often sees no change at all.
const (
	window       = 2 * time.Second
	windowStep   = time.Second
	longestGap   = time.Minute
	minEvents    = 5 // syncs or writes in a window
	slowestRate  = 0.5
	fastestRate  = 1e6 // events a second: more is a jump of the counter, not load
	relationWait = 100 * time.Millisecond
)

// stamped is a sample with the local time at which it was judged.
type stamped struct {
	Sample
	local time.Time
	gap   bool // polls before it failed: what happened meanwhile was not seen
}

// server judges by samples.
type server struct {
	maxAge time.Duration

	samples   []stamped // since the last break in the counters, oldest first
	seen      bool      // a sample or a failure was ever reported
	lost      bool      // the last report was a failure
	evaluated time.Time // server time of the last evaluation

	sync, wait, statement, lock level
	relation                    Signal
}

func (s *server) levels() []*level {
	return []*level{&s.sync, &s.wait, &s.statement, &s.lock}
}

func (s *server) last() *stamped {
	if len(s.samples) == 0 {
		return nil
	}
	return &s.samples[len(s.samples)-1]
}

// fresh is true while the last sample may still be relied on.
func (s *server) fresh(now time.Time) bool {
	last := s.last()
	return last != nil && !s.lost && now.Sub(last.local) <= max(s.maxAge, 4*last.Pause(), 2*last.Every)
}

// add takes a sample in. It reports whether the server is another one than before,
// or was started anew: then nothing learned from the old one holds.
func (s *server) add(now time.Time, sample Sample) (replaced bool) {
	if sample.ServerTime.IsZero() {
		sample.ServerTime = now
	}
	gap := s.lost
	s.seen, s.lost = true, false
	if last := s.last(); last != nil {
		replaced = anotherServer(last.Sample, sample)
		if replaced || broken(last.Sample, sample) {
			s.restart()
		}
	}
	if len(s.samples) == 0 {
		s.evaluated = sample.ServerTime
	}
	s.samples = append(s.samples, stamped{sample, now, gap})
	s.trim()
	s.relate()
	return replaced
}

// restart drops the interval in which the counters broke.
func (s *server) restart() {
	s.samples = s.samples[:0]
	for _, l := range s.levels() {
		l.over = 0
	}
}

// trim drops samples that no window can begin at any more.
func (s *server) trim() {
	oldest := s.last().ServerTime.Add(-longestGap)
	drop := 0
	for drop < len(s.samples)-1 && s.samples[drop].ServerTime.Before(oldest) {
		drop++
	}
	if drop > 0 {
		s.samples = append(s.samples[:0], s.samples[drop:]...)
	}
}

func anotherServer(a, b Sample) bool {
	return (a.Version != 0 && b.Version != 0 && a.Version != b.Version) ||
		(!a.Started.IsZero() && !b.Started.IsZero() && !a.Started.Equal(b.Started))
}

// broken is true when the counters of two samples do not belong together. That the
// later is larger proves nothing: a busy server passes the old value soon after a
// reset, so the time of the reset decides where it is known.
func broken(a, b Sample) bool {
	dt := b.ServerTime.Sub(a.ServerTime)
	if dt <= 0 || dt > longestGap || a.Standby != b.Standby || !a.StatsReset.Equal(b.StatsReset) {
		return true
	}
	for _, pair := range [][2]Reading{{a.NextXID, b.NextXID}, {a.WALSyncs, b.WALSyncs}, {a.WALSyncMillis, b.WALSyncMillis}} {
		if !pair[0].Known || !pair[1].Known {
			continue
		}
		delta := pair[1].Value - pair[0].Value
		// At least a second, because statistics are flushed in lumps.
		if delta < 0 || math.IsNaN(delta) || delta > fastestRate*max(1, dt.Seconds()) {
			return true
		}
	}
	return a.WALBytes.Known && b.WALBytes.Known && b.WALBytes.Value < a.WALBytes.Value
}

// relate judges the one signal that is looked at sample by sample.
func (s *server) relate() {
	last := s.last()
	s.relation = Signal{}
	if !last.RelationLockWaiters.Known || !last.RelationLockWaitMillis.Known {
		return
	}
	s.relation = Signal{
		Name: RelationLock, Value: millis(last.RelationLockWaitMillis.Value),
		Threshold: relationWait, Fresh: true, Since: last.local,
	}
}

func (s *server) frozen() bool {
	last := s.last()
	return s.relation.Value >= relationWait && last.RelationLockWaiters.Value > 0
}

// writing reports whether transactions that write move on the server, and whether
// that can be told yet.
func (s *server) writing() (moving, known bool) {
	last := s.last()
	first := s.baseFor(windowStep, nil)
	if first == nil || !last.NextXID.Known || !first.NextXID.Known {
		return false, false
	}
	dt := last.ServerTime.Sub(first.ServerTime).Seconds()
	return (last.NextXID.Value-first.NextXID.Value)/dt >= slowestRate, true
}

// baseFor returns the newest sample that is at least length older than the last one
// and lies at least minEvents of the counter before it; nil when none does.
func (s *server) baseFor(length time.Duration, counter func(*Sample) Reading) *stamped {
	last := s.last()
	for i := len(s.samples) - 2; i >= 0; i-- {
		first := &s.samples[i]
		if last.ServerTime.Sub(first.ServerTime) < almost(length) {
			continue
		}
		if counter == nil {
			return first
		}
		a, b := counter(&first.Sample), counter(&last.Sample)
		if a.Known && b.Known && b.Value-a.Value >= minEvents {
			return first
		}
	}
	return nil
}
