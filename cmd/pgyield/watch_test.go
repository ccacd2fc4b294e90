package main

import (
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// newWatchFor is a watch that has seen one sample a second with these counters.
func newWatchFor(begin time.Time, syncs, millis []float64) *watch {
	w := &watch{}
	for i := range syncs {
		w.seen = append(w.seen, pressure.Sample{
			At:       begin.Add(time.Duration(i) * time.Second),
			WALSyncs: pressure.Read(syncs[i]), WALSyncMillis: pressure.Read(millis[i]),
		})
	}
	return w
}
