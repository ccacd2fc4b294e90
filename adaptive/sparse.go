package adaptive

import (
	"slices"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// sparse polls are worth several periods each: see [pressure.Sample.Sparse].
func (in input) sparse() bool { return in.every > 0 }

// patience is how long what a signal taught lasts that was to last so long: a server's signal
// teaches something only once a poll.
func (in input) patience(signal string, last time.Duration, polls int) time.Duration {
	if signal == pressure.OwnWrites {
		return last
	}
	return max(last, time.Duration(polls)*in.every)
}

// An acquittal of a server's signal lasts so many polls, at first and at most: two are gone
// before the next cut, and two more tell whether it helped.
const acquittedPolls, acquittedMost = 8, 32

// polled is true where a poll of this period shows what presses.
func polled(v pressure.Verdict) bool {
	return slices.ContainsFunc(v.Signals, func(s pressure.Signal) bool { return s.Pressing && s.Fresh && s.Name != pressure.OwnWrites })
}
