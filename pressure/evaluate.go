package pressure

import "time"

// due reports whether a new window of the server's counters has ended.
func (s *server) due(length time.Duration) bool {
	last := s.last()
	return last != nil && s.baseFor(length, nil) != nil && last.ServerTime.Sub(s.evaluated) >= almost(min(windowStep, length))
}

// almost is how long a window must be: polls that are a second apart are so to some
// milliseconds.
func almost(length time.Duration) time.Duration { return length - 50*time.Millisecond }

// evaluate judges every signal over the windows that end with the last sample, and
// learns from them; kind tells what the stretch since a time may teach.
func (s *server) evaluate(a Activity, length time.Duration, kind func(since time.Time) windowKind) {
	last := s.last()
	s.evaluated = last.ServerTime
	syncs := func(p *Sample) Reading { return p.WALSyncs }
	xids := func(p *Sample) Reading { return p.NextXID }
	timed := last.WALSyncMillis.Known

	if !timed {
		s.sync.absent()
	} else if first := s.baseFor(length, syncs); first != nil && first.WALSyncMillis.Known {
		n := last.WALSyncs.Value - first.WALSyncs.Value
		mean := (last.WALSyncMillis.Value - first.WALSyncMillis.Value) / n
		s.sync.judge(mean*float64(time.Millisecond), first.local, a.reading())
		s.sync.learn(kind(first.local))
	}

	first := s.baseFor(length, xids)
	if first == nil || s.gapSince(first) {
		return
	}
	rate := (last.NextXID.Value - first.NextXID.Value) / last.ServerTime.Sub(first.ServerTime).Seconds()
	// The waits of sessions stand in for the sync time only where that is missing:
	// they tell suffering from business less well.
	s.perWrite(&s.wait, first, rate, !timed, a.reading(), kind, func(p *Sample) Reading { return p.WALWaiters })
	s.perWrite(&s.lock, first, rate, true, a.reading() && a.Contended, kind, otherLockWaiters)

	mean, ok := s.mean(first, func(p *Sample) Reading { return p.WriteStatementMillis })
	if !ok || timed {
		s.statement.absent()
		return
	}
	s.statement.judge(mean*float64(time.Millisecond), first.local, a.reading())
	s.statement.learn(kind(first.local))
}

// perWrite judges a number of waiting sessions by Little's law: their mean number
// over the rate of writes is the mean time a write waits.
func (s *server) perWrite(l *level, first *stamped, rate float64, wanted, eligible bool,
	kind func(time.Time) windowKind, waiters func(*Sample) Reading,
) {
	mean, ok := s.mean(first, waiters)
	if !ok || !wanted {
		l.absent()
		return
	}
	l.judge(mean/rate*float64(time.Second), first.local, eligible)
	l.learn(kind(first.local))
}

// gapSince is true when polls failed after the sample first. Waits are divided by the
// rate of writes, which is low where the server was down for a while, not slow; sync
// times are divided by syncs, and hold.
func (s *server) gapSince(first *stamped) bool {
	for i := len(s.samples) - 1; i >= 0 && &s.samples[i] != first; i-- {
		if s.samples[i].gap {
			return true
		}
	}
	return false
}

// otherLockWaiters are those who wait for a lock that is no relation's. A queue for a
// relation stands behind DDL, and is [RelationLock]'s: fewer reads would not shorten it.
func otherLockWaiters(p *Sample) Reading {
	if !p.LockWaiters.Known {
		return Reading{}
	}
	return Read(max(0, p.LockWaiters.Value-p.RelationLockWaiters.Value)) // absent: none
}

// mean returns the mean of a reading over the samples after first.
func (s *server) mean(first *stamped, reading func(*Sample) Reading) (float64, bool) {
	sum, n := 0.0, 0
	for i := len(s.samples) - 1; i >= 0 && &s.samples[i] != first; i-- {
		r := reading(&s.samples[i].Sample)
		if !r.Known {
			return 0, false
		}
		sum += r.Value
		n++
	}
	return sum / float64(max(n, 1)), n > 0
}
