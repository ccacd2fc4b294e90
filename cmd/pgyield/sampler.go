package main

import (
	"context"
	"sync"
	"time"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/pressure"
)

const (
	sampleEvery = 250 * time.Millisecond
	// walWindow is the least time over which WAL sync times mean something: the
	// server publishes its counters seldom.
	walWindow = 2 * time.Second
)

// sampler polls the server through all phases by itself, so that plain pgxpool's
// pressure is measured by the same rule as pgyield's.
type sampler struct {
	poller *pressure.Poller
	end    context.CancelFunc
	done   sync.WaitGroup

	mu   sync.Mutex // guards what follows
	seen []pressure.Sample
}

func startSampler(db *database) (*sampler, error) {
	config, err := pgyield.ParseConfig(db.dsn)
	if err != nil {
		return nil, err
	}
	poller, err := pressure.NewPoller(config.ConnConfig, pressure.Options{})
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	s := &sampler{poller: poller, end: end}
	s.done.Go(func() { s.loop(ctx) })
	return s, nil
}

func (s *sampler) loop(ctx context.Context) {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if sample, err := s.poller.Sample(ctx); err == nil {
			s.mu.Lock()
			s.seen = append(s.seen, sample)
			s.mu.Unlock()
		}
	}
}

// stop ends the polling and its connection. It may be called twice.
func (s *sampler) stop() {
	s.end()
	s.done.Wait()
	s.poller.Close()
}

// since reduces what was seen to samples that count from begun.
func (s *sampler) since(begun time.Time) []serverSample {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]serverSample, 0, len(s.seen))
	first := 0
	for i, one := range s.seen {
		for first+1 < i && one.At.Sub(s.seen[first+1].At) >= walWindow {
			first++
		}
		out = append(out, serverSample{
			At: one.At.Sub(begun), WALSyncMean: syncMean(s.seen[first], one),
		})
	}
	return out
}

// syncMean is the mean time of the WAL syncs between two samples; 0 when that is
// unknown.
func syncMean(a, b pressure.Sample) time.Duration {
	for _, r := range []pressure.Reading{a.WALSyncs, b.WALSyncs, a.WALSyncMillis, b.WALSyncMillis} {
		if !r.Known {
			return 0
		}
	}
	syncs, millis := b.WALSyncs.Value-a.WALSyncs.Value, b.WALSyncMillis.Value-a.WALSyncMillis.Value
	if syncs < 5 || millis <= 0 || b.At.Sub(a.At) < walWindow {
		return 0
	}
	return time.Duration(millis / syncs * float64(time.Millisecond))
}
