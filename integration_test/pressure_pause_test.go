package integration_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgyield/pgyield/adaptive"
	"github.com/pgyield/pgyield/pressure"
)

// oneAtATime notes when a source is asked while it has not answered yet.
type oneAtATime struct {
	source   pressure.Source
	inFlight atomic.Int32
	crowded  atomic.Bool
	asked    atomic.Int32
}

func (o *oneAtATime) Sample(ctx context.Context) (pressure.Sample, error) {
	if o.inFlight.Add(1) > 1 {
		o.crowded.Store(true)
	}
	defer o.inFlight.Add(-1)
	o.asked.Add(1)
	return o.source.Sample(ctx)
}

// TestPressurePausedServer stops all of a server's processes under a limit that follows
// it: it accepts connections and answers nothing.
func TestPressurePausedServer(t *testing.T) {
	for _, version := range postgresVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel() // each on a server of its own, and nothing is measured
			pausedServer(t, version)
		})
	}
}

func pausedServer(t *testing.T, version string) {
	const start, lowered, staleAfter = 8, 2, 8
	const period, timeout = 100 * time.Millisecond, 500 * time.Millisecond
	server := versionServer(t, version)
	box := containerOf(t, server.DSN())
	poller, _ := newTestPoller(t, server.DSN(), pressure.Options{Timeout: timeout})
	source := &oneAtATime{source: poller}
	gate := newReadGate(1, start)
	seen := &decisions{}
	limit, err := adaptive.New(gate, source, adaptive.Options{
		Period: period, StaleAfter: staleAfter, OnDecision: seen.take,
		Pressure: pressure.Options{Period: period, Timeout: timeout},
		Activity: func() pressure.Activity { return pressure.Activity{Running: 2, Waiting: 1} },
	})
	if err != nil {
		t.Fatal(err)
	}
	limit.Start()
	defer limit.Stop()
	n := seen.await(t, 0, "the server is sampled", func(d adaptive.Decision) bool { return d.Sampled })

	box.docker("pause", box.id)
	unpause := sync.OnceFunc(func() { box.docker("unpause", box.id) })
	defer unpause()
	n = seen.await(t, n, "a poll has failed", func(d adaptive.Decision) bool { return d.Err != nil })
	gate.SetLimit(lowered)
	before := len(seen.since(0))
	n = seen.await(t, n, "the limit is back at its start", func(d adaptive.Decision) bool { return d.To == start })
	drift := seen.since(before)
	for _, d := range drift {
		if d.Sampled || d.To < d.From || d.To > d.From+1 || d.To > start {
			t.Errorf("while nothing answers the limit goes from %d to %d: %s", d.From, d.To, d.Reason)
		}
	}
	if limit.Lowered() > 0 {
		t.Errorf("lowered %d times for a server that does not answer", limit.Lowered())
	}
	if !limit.Blind() {
		t.Error("a server that does not answer leaves the limit able to see")
	}
	polls, waited := source.asked.Load(), time.Now()
	unpause()
	seen.await(t, n, "the server is sampled again", func(d adaptive.Decision) bool { return d.Sampled })
	t.Logf("sampled again %v after it went on, %d polls later", time.Since(waited).Round(time.Millisecond), source.asked.Load()-polls)
	if source.crowded.Load() {
		t.Error("two polls were in flight")
	}
}
