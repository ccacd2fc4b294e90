package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// verdictWatch judges a mixed load three times over from the same periods: by all that is
// known, by the server alone and by the program's own writes alone, so that each kind
// of evidence is seen by itself.
type verdictWatch struct {
	name   string
	poller *pressure.Poller
	load   *mixedLoad
	judges [3]*pressure.Judge
	reset  atomic.Bool // before the next period the judges forget
	stop   context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	seen []watched // guarded by mu
	errs []error   // guarded by mu
}

// watched are the verdicts of one period.
type watched struct{ all, server, own pressure.Verdict }

const watchPeriod = 250 * time.Millisecond

func watchVerdicts(t testing.TB, name, dsn string, load *mixedLoad) *verdictWatch {
	t.Helper()
	w := &verdictWatch{name: name, load: load, done: make(chan struct{})}
	w.poller, _ = newTestPoller(t, dsn, pressure.Options{})
	for i := range w.judges {
		judge, err := pressure.NewJudge(0, pressure.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w.judges[i] = judge
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go w.run(ctx)
	t.Cleanup(w.close)
	return w
}

func (w *verdictWatch) close() {
	w.stop()
	<-w.done
}

func (w *verdictWatch) run(ctx context.Context) {
	defer close(w.done)
	ticks := time.NewTicker(watchPeriod)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		var sample *pressure.Sample
		if n%2 == 0 { // as in a pool: the server is asked every other period
			s, err := w.poller.Sample(ctx)
			if err == nil {
				sample = &s
			} else if ctx.Err() == nil {
				w.mu.Lock()
				w.errs = append(w.errs, err)
				w.mu.Unlock()
			}
		}
		w.judge(time.Now(), sample)
	}
}

func (w *verdictWatch) judge(now time.Time, sample *pressure.Sample) {
	a := w.load.activity()
	a.Limit, a.Contended = w.load.gate.Limit(), w.load.gate.EndPeriod()
	readsOnly := a
	readsOnly.Writes, readsOnly.WritesRunning = pressure.WriteStats{}, 0
	if w.reset.Swap(false) {
		for _, judge := range w.judges {
			judge.Reset()
		}
	}
	one := watched{
		all:    w.judges[0].Next(now, sample, a),
		server: w.judges[1].Next(now, sample, readsOnly),
		own:    w.judges[2].Next(now, nil, a),
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, one)
}

// begin forgets the periods up to now; the judges keep what they learned.
func (w *verdictWatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen, w.errs = nil, nil
}

// forget has the judges forget what they learned, and forgets the periods up to then.
func (w *verdictWatch) forget() {
	w.reset.Store(true)
	for w.reset.Load() {
		time.Sleep(watchPeriod / 10)
	}
	w.begin()
}

func (w *verdictWatch) since() []watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clip(w.seen)
}

// until waits for a period that fits and returns it; an error tells what was seen
// instead.
func (w *verdictWatch) until(limit time.Duration, what string, fits func(watched) bool) error {
	next := 0
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(watchPeriod / 2) {
		for list := w.since(); next < len(list); next++ {
			if fits(list[next]) {
				return nil
			}
		}
	}
	return fmt.Errorf("%s: within %v no period in which %s; seen: %v", w.name, limit, what, w)
}

// share returns in which share of the periods since begin the condition held.
func (w *verdictWatch) share(holds func(watched) bool) float64 {
	n, list := 0, w.since()
	for _, one := range list {
		if holds(one) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(list)))
}

// String tells the reasons in the order in which they came, without repetition.
func (w *verdictWatch) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for _, one := range w.seen {
		line := "all: " + word(one.all) + ", server: " + word(one.server) + ", own: " + word(one.own)
		if len(lines) == 0 || lines[len(lines)-1] != line {
			lines = append(lines, line)
		}
	}
	var last watched
	if len(w.seen) > 0 {
		last = w.seen[len(w.seen)-1]
	}
	return fmt.Sprintf("%d periods, %v\n%s\nat last %+v", len(w.seen), w.errs, strings.Join(lines, "\n"), last.all.Signals)
}

// word is a verdict's reason without its numbers.
func word(v pressure.Verdict) string {
	if !v.Pressing {
		return v.Reason
	}
	name, _, _ := strings.Cut(v.Reason, " ")
	return name
}

// pressesBy is true when a verdict presses and its reason is one of the signals named.
func pressesBy(v pressure.Verdict, names ...string) bool {
	for _, name := range names {
		if v.Pressing && strings.HasPrefix(v.Reason, name+" ") {
			return true
		}
	}
	return false
}
