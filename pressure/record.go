package pressure

import "errors"

// record takes a poll's outcome into the snapshot and the log.
func (p *Poller) record(s Sample, err error) {
	if errors.Is(err, ErrBackoff) {
		return
	}
	p.mu.Lock()
	before := p.stat
	p.stat.LastError, p.stat.Connected = err, p.conn != nil && !p.conn.IsClosed()
	if err != nil {
		p.stat.PollsFailed++
	} else {
		p.stat.PollsOK++
		p.stat.PollTime.observe(s.RoundTrip)
		p.stat.Standby = s.Standby
		if s.Version != 0 {
			p.stat.Version = s.Version
		}
		p.stat.BlindSignals = blindSignals(s)
		p.stat.Blind = len(p.stat.BlindSignals) > 0
	}
	after := p.stat
	p.mu.Unlock()
	p.report(before, after)
}

// report logs what changed: the loss of the server once, and its return.
func (p *Poller) report(before, after Stat) {
	switch {
	case after.LastError != nil && before.LastError == nil:
		p.options.Logger.Warn("pgyield: no sample of the database's write pressure; reads go on, judged by this program's own writes",
			"error", after.LastError)
	case after.LastError == nil && before.LastError != nil:
		p.options.Logger.Info("pgyield: the database's write pressure is sampled again", "server_version", after.Version)
	}
	if after.Standby != before.Standby && after.LastError == nil {
		p.options.Logger.Info("pgyield: the sampled server changed its part", "standby", after.Standby)
	}
}

// blindSignals are those that hidden sessions keep from the role.
func blindSignals(s Sample) []string {
	if s.Hidden == 0 {
		return nil
	}
	blind := []string{WALWait, WriteStatement}
	if !s.LockWaiters.Known {
		blind = append(blind, LockWait)
	}
	if !s.RelationLockWaitMillis.Known {
		blind = append(blind, RelationLock)
	}
	return blind
}

func (p *Poller) role() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stat.Role
}

// sayOnce logs a warning the first time only. It is called by the poll in flight.
func (p *Poller) sayOnce(key, message string, args ...any) {
	if p.said[key] {
		return
	}
	p.said[key] = true
	p.options.Logger.Warn(message, args...)
}
