package bulkhead

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// bubble runs body in virtual time with a bulkhead of these options, and checks at the
// end that nothing runs or waits and the whole limit is usable.
func bubble(t *testing.T, o Options, body func(t *testing.T, b *Bulkhead)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, o)
		defer func() {
			if t.Failed() { // a bubble must not end while goroutines wait
				b.Close(nil)
			}
		}()
		body(t, b)
		if !t.Failed() {
			b.checkRest(t)
		}
	})
}

func mustNew(t testing.TB, o Options) *Bulkhead {
	t.Helper()
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// read is an Acquire in a goroutine of its own.
type read struct {
	t      *testing.T
	name   string
	permit Permit
	err    error
	took   time.Duration
	done   chan struct{}
	cancel context.CancelFunc
}

func begin(t *testing.T, b *Bulkhead, caller string, cost int) *read {
	return beginFor(t, b, caller, cost, 0)
}

// beginFor is begin with a deadline for the wait, unless it is 0. It returns when the
// read has its permit, was denied, or waits.
func beginFor(t *testing.T, b *Bulkhead, caller string, cost int, patience time.Duration) *read {
	t.Helper()
	r := &read{t: t, name: caller, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	if patience > 0 {
		cancel()
		ctx, cancel = context.WithTimeout(context.Background(), patience)
	}
	r.cancel = cancel
	start := time.Now()
	go func() {
		defer close(r.done)
		r.permit, r.err = b.Acquire(ctx, caller, cost)
		r.took = time.Since(start)
	}()
	synctest.Wait()
	return r
}

func (r *read) over() bool {
	synctest.Wait()
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *read) runs() bool { return r.over() && r.err == nil }

func (r *read) mustRun() {
	r.t.Helper()
	if !r.runs() {
		r.t.Fatalf("read of %q does not run: over %v, %v", r.name, r.over(), r.err)
	}
}

func (r *read) mustWait() {
	r.t.Helper()
	if r.over() {
		r.t.Fatalf("read of %q does not wait: %v", r.name, r.err)
	}
}

// mustFail waits for the read's end and returns its error.
func (r *read) mustFail() error {
	r.t.Helper()
	<-r.done
	if r.err == nil {
		r.t.Fatalf("read of %q was let in", r.name)
	}
	return r.err
}

// end gives the permit back, or stops waiting for it.
func (r *read) end() {
	r.cancel()
	<-r.done
	r.permit.Release()
	synctest.Wait()
}

func endAll(reads ...*read) {
	for _, r := range reads {
		r.end()
	}
}

func demeritOf(b *Bulkhead, caller string) float64 {
	for _, c := range b.Callers() {
		if c.Name == caller {
			return c.Demerit
		}
	}
	return 0
}

// penalise makes a caller penalised by n reads that run into their deadline while
// another caller holds the whole limit.
func penalise(t *testing.T, b *Bulkhead, caller string, n int) {
	t.Helper()
	holder := begin(t, b, "holder", b.Limit())
	holder.mustRun()
	var reads []*read
	for range n + b.Limit() { // those within its share are not charged
		reads = append(reads, beginFor(t, b, caller, 1, time.Millisecond))
	}
	time.Sleep(time.Millisecond)
	for _, r := range reads {
		r.mustFail()
		r.end()
	}
	holder.end()
	if demeritOf(b, caller) < 3 {
		t.Fatalf("%q is not penalised: %+v", caller, b.Callers())
	}
}
