package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatIsCharged(t *testing.T) {
	for _, c := range []struct {
		name string
		want float64
		do   func(t *testing.T, b *Bulkhead) // caller p has one of two permits, o the other
	}{
		{"a deadline past the share", 1, func(t *testing.T, b *Bulkhead) {
			r := beginFor(t, b, "p", 1, time.Millisecond)
			if err := r.mustFail(); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}},
		{"a refusal past the share", 1, func(t *testing.T, b *Bulkhead) {
			if _, err := b.TryAcquire("p", 1); !errors.Is(err, ErrRefused) {
				t.Error(err)
			}
		}},
		{"a cancel", 0, func(t *testing.T, b *Bulkhead) {
			r := begin(t, b, "p", 1)
			r.end()
			if !errors.Is(r.err, context.Canceled) {
				t.Error(r.err)
			}
		}},
		{"a wait that succeeds", 0, func(t *testing.T, b *Bulkhead) {
			r := begin(t, b, "p", 1)
			b.SetLimit(3)
			r.mustRun()
			r.end()
		}},
		{"a refusal below the share", 0, func(t *testing.T, b *Bulkhead) {
			if _, err := b.TryAcquire("q", 1); !errors.Is(err, ErrRefused) {
				t.Error(err)
			}
		}},
		{"a deadline below the share", 0, func(t *testing.T, b *Bulkhead) {
			beginFor(t, b, "q", 1, time.Millisecond).mustFail()
		}},
		{"shadow mode", 0, func(t *testing.T, b *Bulkhead) {
			b.SetMode(Shadow)
			for range 10 {
				begin(t, b, "p", 1).end()
			}
		}},
	} {
		bubble(t, Options{Limit: 2}, func(t *testing.T, b *Bulkhead) {
			p, o := begin(t, b, "p", 1), begin(t, b, "o", 1)
			c.do(t, b)
			if got := demeritOf(b, "p") + demeritOf(b, "q"); got != c.want {
				t.Errorf("%s: demerit %v, want %v", c.name, got, c.want)
			}
			endAll(p, o)
		})
	}
}

func TestALoneCallerIsNeverCharged(t *testing.T) {
	for _, o := range []Options{{Limit: 4}, {Limit: 4, MaxWaiting: 2}, {Limit: 4, MaxWaiting: -1}, {Limit: 4, MaxWait: time.Millisecond}} {
		bubble(t, o, func(t *testing.T, b *Bulkhead) {
			begin(t, b, "gone", 1).end()
			time.Sleep(6 * time.Second) // past the window
			var reads []*read
			for range 50 {
				reads = append(reads, beginFor(t, b, "p", 1, 10*time.Millisecond))
			}
			time.Sleep(20 * time.Millisecond)
			if got := demeritOf(b, "p"); got != 0 {
				t.Errorf("%+v: demerit %v", o, got)
			}
			endAll(reads...)
		})
	}
}

func TestMaxWait(t *testing.T) {
	bubble(t, Options{Limit: 1, MaxWait: 50 * time.Millisecond}, func(t *testing.T, b *Bulkhead) {
		p := begin(t, b, "p", 1)
		o := begin(t, b, "o", 1)
		w := begin(t, b, "p", 1)
		err := w.mustFail()
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Reason != ReasonMaxWait || refused.Waited != 50*time.Millisecond {
			t.Errorf("%+v", err)
		}
		if got := demeritOf(b, "p"); got != 1 {
			t.Errorf("demerit %v, want 1", got)
		}
		o.mustFail()
		endAll(p, o, w)
	})
}

// The demerits at the defaults: an unbounded queue, and reads with deadlines.
func TestDeadlinesPenaliseAndBackingOffFrees(t *testing.T) {
	bubble(t, Options{Limit: 4}, func(t *testing.T, b *Bulkhead) {
		var others []*read
		for range 4 {
			others = append(others, begin(t, b, "o", 1))
		}
		for range 60 { // 30 s of hammering
			var reads []*read
			for range 8 {
				reads = append(reads, beginFor(t, b, "p", 1, 400*time.Millisecond))
			}
			time.Sleep(500 * time.Millisecond)
			endAll(reads...)
		}
		if s := b.Stat(); s.Penalised != 1 || s.Callers != 2 {
			t.Fatalf("%+v", s)
		}
		if got := demeritOf(b, "p"); got < 6.9 || got > 7 {
			t.Errorf("demerit %v, want the clamp of 4 + 3, decayed for 100 ms", got)
		}
		p, o := begin(t, b, "p", 1), begin(t, b, "q", 1)
		others[0].end()
		o.mustRun()
		p.mustWait()
		endAll(p, o)

		time.Sleep(60 * time.Second)
		if s := b.Stat(); s.Penalised != 0 || demeritOf(b, "p") != 0 {
			t.Errorf("still penalised: %+v", b.Callers())
		}
		endAll(others...)
	})
}

func TestFullQueueMakesRoomForTheUnderprivileged(t *testing.T) {
	bubble(t, Options{Limit: 4, MaxWaiting: 4}, func(t *testing.T, b *Bulkhead) {
		holder := begin(t, b, "h", 4)
		hog := []*read{begin(t, b, "hog", 1), begin(t, b, "hog", 1), begin(t, b, "hog", 1)}
		less := begin(t, b, "less", 1)

		light := begin(t, b, "light", 1) // 4 active callers: a share of 1
		light.mustWait()
		var refused *RefusedError
		if err := hog[2].mustFail(); !errors.As(err, &refused) || refused.Reason != ReasonEvicted || refused.Caller != "hog" {
			t.Errorf("%+v", err)
		}
		if demeritOf(b, "hog") != 1 || demeritOf(b, "light") != 0 {
			t.Errorf("%+v", b.Callers())
		}

		// At its share already, a newcomer displaces nobody.
		again := begin(t, b, "light", 1)
		if err := again.mustFail(); !errors.As(err, &refused) || refused.Reason != ReasonQueueFull {
			t.Errorf("%+v", err)
		}
		// And callers at their share are not displaced.
		other := begin(t, b, "other", 1)
		other.mustWait()
		hog[1].mustFail()
		last := begin(t, b, "last", 1)
		if err := last.mustFail(); !errors.As(err, &refused) || refused.Reason != ReasonQueueFull {
			t.Errorf("%+v", err)
		}
		hog[0].mustWait()
		endAll(holder, less, light, other)
		endAll(hog...)
	})
}

func TestQueueBoundHoldsInABurst(t *testing.T) {
	bubble(t, Options{Limit: 8, MaxWaiting: 50}, func(t *testing.T, b *Bulkhead) {
		var reads []*read
		for i := range 10_000 {
			caller := "hog"
			if i%10 == 0 {
				caller = fmt.Sprint("light", i%40)
			}
			r := &read{t: t, done: make(chan struct{}), cancel: func() {}}
			go func() {
				defer close(r.done)
				r.permit, r.err = b.Acquire(t.Context(), caller, 1)
			}()
			synctest.Wait()
			time.Sleep(time.Microsecond)
			reads = append(reads, r)
			if n := b.Stat().Waiting; n > 50 {
				t.Fatalf("%d wait", n)
			}
			if i%100 == 0 {
				b.check(t)
			}
		}
		s := b.Stat()
		if s.Waiting != 50 || s.Refused != 10_000-58 || s.RefusedBy[ReasonEvicted] == 0 {
			t.Errorf("%+v", s)
		}
		for pending := reads; len(pending) > 0; {
			r := pending[0]
			pending = pending[1:]
			if !r.over() {
				pending = append(pending, r)
				continue
			}
			r.permit.Release()
		}
	})
}

func TestNoWaitBorrowsUntilAnotherWantsMore(t *testing.T) {
	bubble(t, Options{Limit: 10, MaxWaiting: -1}, func(t *testing.T, b *Bulkhead) {
		var hog []*read
		for range 10 {
			hog = append(hog, begin(t, b, "hog", 1))
			hog[len(hog)-1].mustRun() // alone it may have all
		}
		light := begin(t, b, "light", 1)
		var refused *RefusedError
		if err := light.mustFail(); !errors.As(err, &refused) || refused.Reason != ReasonLimit {
			t.Errorf("%+v", err)
		}
		endAll(hog[:6]...) // 4 left: one below its share of 5
		hog = hog[6:]
		hog = append(hog, begin(t, b, "hog", 1))
		hog[4].mustRun()
		b.EndPeriod()
		if err := begin(t, b, "hog", 1).mustFail(); !errors.As(err, &refused) || refused.Reason != ReasonCap {
			t.Errorf("over its share while another wants more: %+v", err)
		}
		if b.EndPeriod() {
			t.Error("a refusal by a caller's own cap is not contention")
		}

		for range 10 { // it insists: penalised at 3 demerits, and then its cap falls
			begin(t, b, "hog", 1)
		}
		endAll(hog...)
		hog = []*read{begin(t, b, "hog", 1)}
		hog[0].mustRun()
		begin(t, b, "hog", 1).mustFail() // 5 - 11, at least 1
		for range 5 {
			l := begin(t, b, "light", 1)
			l.mustRun()
			hog = append(hog, l)
		}

		time.Sleep(5 * time.Second) // nobody was refused for a window
		for range 4 {
			r := begin(t, b, "hog", 1)
			r.mustRun() // penalised or not, what nobody wants is free
			hog = append(hog, r)
		}
		endAll(hog...)
	})
}

func TestRetryAfter(t *testing.T) {
	bubble(t, Options{Limit: 2, MaxWaiting: 40}, func(t *testing.T, b *Bulkhead) {
		for range 20 { // reads run for 100 ms
			r := begin(t, b, "a", 2)
			time.Sleep(100 * time.Millisecond)
			r.end()
		}
		holder := begin(t, b, "a", 2)
		retry := func() time.Duration {
			_, err := b.TryAcquire("a", 1)
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.RetryAfter <= 0 {
				t.Fatalf("%+v", err)
			}
			return refused.RetryAfter
		}
		var waiters []*read
		for range 40 {
			waiters = append(waiters, begin(t, b, "a", 1))
		}
		full, differ := retry(), false
		for range 20 {
			differ = differ || retry() != full
		}
		if !differ {
			t.Error("no jitter")
		}
		if full < time.Second || full > 3*time.Second { // 20 rounds of 100 ms
			t.Errorf("retry after %v with 40 waiting", full)
		}
		endAll(waiters[:36]...)
		if few := retry(); few > full/4 {
			t.Errorf("retry after %v with 4 waiting, %v with 40", few, full)
		}
		endAll(waiters[36:]...)
		endAll(holder)
	})
}

func TestErrorsSayWhatHappened(t *testing.T) {
	bubble(t, Options{Limit: 1, MaxWaiting: 1}, func(t *testing.T, b *Bulkhead) {
		holder, waiter := begin(t, b, "tenant", 1), begin(t, b, "tenant", 1)
		_, full := b.Acquire(t.Context(), "tenant", 1)
		waiter.cancel()
		canceled := waiter.mustFail()
		late := beginFor(t, b, "tenant", 1, 120*time.Millisecond)
		_, cost := b.Acquire(t.Context(), "tenant", 0)
		_, negative := b.TryAcquire("tenant", -1)
		for _, c := range []struct {
			err  error
			is   error
			want string
		}{
			{full, ErrRefused, `the queue is full (caller "tenant", limit 1, running 1, waiting 1`},
			{canceled, context.Canceled, "for a read permit"},
			{late.mustFail(), context.DeadlineExceeded, "waited 120ms for a read permit"},
			{cost, nil, "cost is 0: want at least 1"},
			{negative, nil, "cost is -1: want at least 1"},
		} {
			if c.is != nil && !errors.Is(c.err, c.is) || !strings.HasPrefix(c.err.Error(), "pgyield: ") ||
				!strings.Contains(c.err.Error(), c.want) || !strings.Contains(c.err.Error(), "no SQL was sent") {
				t.Errorf("%v", c.err)
			}
			if _, ok := c.err.(interface{ SafeToRetry() bool }); ok {
				t.Errorf("%v claims to be safe to retry", c.err)
			}
		}
		for _, reason := range Reasons() {
			if text := (&RefusedError{Reason: reason}).Error(); strings.Contains(text, ":  (") {
				t.Errorf("no text for %q: %s", reason, text)
			}
		}
		endAll(holder, waiter, late)
	})
}
