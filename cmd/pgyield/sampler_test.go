package main

import (
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// newSamplerFor is a sampler that has seen one sample a second with these counters.
func newSamplerFor(begin time.Time, syncs, millis []float64) *sampler {
	s := &sampler{}
	for i := range syncs {
		s.seen = append(s.seen, pressure.Sample{
			At:       begin.Add(time.Duration(i) * time.Second),
			WALSyncs: pressure.Read(syncs[i]), WALSyncMillis: pressure.Read(millis[i]),
		})
	}
	return s
}
