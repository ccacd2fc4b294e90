package main

import (
	"context"
	"sync"
	"time"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/pressure"
)

const (
	watchEvery = 250 * time.Millisecond
	// walWindow is the least time over which WAL sync times mean something: the
	// server publishes its counters seldom.
	walWindow = 2 * time.Second
)

// watch polls the server through all phases by itself, so that plain pgxpool's
// pressure is measured by the same rule as pgyield's.
type watch struct {
	poller *pressure.Poller
	end    context.CancelFunc
	done   sync.WaitGroup

	mu   sync.Mutex // guards what follows
	seen []pressure.Sample
}

func startWatch(db *database) (*watch, error) {
	config, err := pgyield.ParseConfig(db.dsn)
	if err != nil {
		return nil, err
	}
	poller, err := pressure.NewPoller(config.ConnConfig, pressure.Options{})
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	w := &watch{poller: poller, end: end}
	w.done.Go(func() { w.loop(ctx) })
	return w, nil
}

func (w *watch) loop(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if sample, err := w.poller.Sample(ctx); err == nil {
			w.mu.Lock()
			w.seen = append(w.seen, sample)
			w.mu.Unlock()
		}
	}
}

// stop ends the polling and its connection. It may be called twice.
func (w *watch) stop() {
	w.end()
	w.done.Wait()
	w.poller.Close()
}

// since reduces what was seen to samples that count from begun.
func (w *watch) since(begun time.Time) []serverSample {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]serverSample, 0, len(w.seen))
	first := 0
	for i, s := range w.seen {
		for first+1 < i && s.At.Sub(w.seen[first+1].At) >= walWindow {
			first++
		}
		out = append(out, serverSample{
			At: s.At.Sub(begun), WALSyncMean: syncMean(w.seen[first], s),
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
