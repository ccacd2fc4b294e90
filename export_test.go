package pgyield

import "github.com/pgyield/pgyield/pressure"

// TakeWrites returns the own-write samples since the last call.
func TakeWrites(p *Pool) pressure.WriteStats { return p.writes.Take() }

// Traffic returns how many calls wait for a connection, and how many writes are timed.
func Traffic(p *Pool) (waiting, running int64) {
	return p.traffic.waiting.Load(), p.traffic.running.Load()
}

// StartMonitor starts the pool's monitor, as a connection that is made late does.
func StartMonitor(p *Pool) { p.monitor.start() }
