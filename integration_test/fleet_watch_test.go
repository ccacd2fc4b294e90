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

// within fails the test where more ran than the limit in more than 15 % of what was seen
// since, or more than one and a half times the limit ever.
func (w *watch) within(t *testing.T, what string, limit int, since time.Time) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var sum, over, peak, n int
	for _, s := range w.samples {
		if s.at.Before(since) {
			continue
		}
		n++
		sum += s.running
		peak = max(peak, s.running)
		if s.running > limit {
			over++
		}
	}
	if n < 50 {
		t.Fatalf("%s: the server was looked at %d times", what, n)
	}
	share := float64(over) / float64(n)
	text := fmt.Sprintf("%s: of %d, %.1f ran on average and %d at most; above it %.1f %% of the time (%d looks)",
		what, limit, float64(sum)/float64(n), peak, 100*share, n)
	t.Log(text)
	if share > 0.15 || peak > limit*3/2 {
		t.Error(text)
	}
}

func sameSorted(got, want []int) bool {
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	return slices.Equal(got, want)
}
