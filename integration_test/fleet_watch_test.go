package integration_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// watch counts on the server what runs, each few milliseconds: what members tell of
// themselves is not asked.
type watch struct {
	mu      sync.Mutex // guards samples
	samples []sighting
}

type sighting struct {
	at      time.Time
	running int
}

const runningReads = "select count(*) from pg_stat_activity where state = 'active' and datname = current_database() and query like 'select pg_sleep%'"

// startWatch watches a database until the test ends; while the server does not answer it
// sees nothing.
func startWatch(t *testing.T, dsn string) *watch {
	t.Helper()
	w := &watch{}
	stop := background(context.Background(), 1, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			return
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		for {
			var n int
			if err := conn.QueryRow(ctx, runningReads).Scan(&n); err != nil {
				return
			}
			w.mu.Lock()
			w.samples = append(w.samples, sighting{time.Now(), n})
			w.mu.Unlock()
			time.Sleep(5 * time.Millisecond)
		}
	})
	t.Cleanup(stop)
	return w
}

// seen is what was seen of a limit.
type seen struct {
	looks, peak int
	mean, over  float64 // over: the share of looks at which more ran than the limit
}

func (w *watch) since(t *testing.T, limit int, at time.Time) (s seen) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, look := range w.samples {
		if look.at.Before(at) {
			continue
		}
		s.looks++
		s.mean += float64(look.running)
		s.peak = max(s.peak, look.running)
		if look.running > limit {
			s.over++
		}
	}
	if s.looks < 50 {
		t.Fatalf("the server was looked at %d times", s.looks)
	}
	s.mean /= float64(s.looks)
	s.over /= float64(s.looks)
	return s
}

// within fails the test where more ran than the limit in more than 15 % of what was seen
// since, or more than one and a half times the limit ever.
func (w *watch) within(t *testing.T, what string, limit int, since time.Time) {
	t.Helper()
	s := w.since(t, limit, since)
	text := fmt.Sprintf("%s: of %d, %.1f ran on average and %d at most; above it %.1f %% of the time (%d looks)",
		what, limit, s.mean, s.peak, 100*s.over, s.looks)
	t.Log(text)
	if s.over > 0.15 || s.peak > limit*3/2 {
		t.Error(text)
	}
}

func sameSorted(got, want []int) bool {
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	return slices.Equal(got, want)
}
