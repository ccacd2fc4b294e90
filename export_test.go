package pgyield

import "github.com/pgyield/pgyield/pressure"

// TakeWrites returns the own-write samples since the last call.
func TakeWrites(p *Pool) pressure.WriteStats { return p.writes.Take() }
