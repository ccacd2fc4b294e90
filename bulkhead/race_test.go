package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// A grant and a cancel race for one read, 100,000 times, with the release just before
// the cancel, just after it, and at once. Whoever wins, nothing is lost.
func TestGrantAgainstCancel(t *testing.T) {
	rounds := 100_000
	if testing.Short() {
		rounds = 10_000
	}
	b := mustNew(t, Options{Limit: 1})
	var granted, canceled int
	for round := range rounds {
		holder, err := b.TryAcquire("a", 1)
		if err != nil {
			t.Fatalf("round %d: the limit is not usable: %v", round, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		outcome := make(chan error, 1)
		go func() {
			permit, err := b.Acquire(ctx, "b", 1)
			permit.Release()
			outcome <- err
		}()
		switch round % 3 {
		case 0:
			holder.Release()
			cancel()
		case 1:
			cancel()
			holder.Release()
		default:
			var wg sync.WaitGroup
			wg.Go(cancel)
			holder.Release()
			wg.Wait()
		}
		switch err := <-outcome; {
		case err == nil:
			granted++
		case errors.Is(err, context.Canceled):
			canceled++
		default:
			t.Fatal(err)
		}
	}
	if granted == 0 || canceled == 0 {
		t.Errorf("granted %d, canceled %d: no race", granted, canceled)
	}
	b.checkRest(t)
}

// TestStress does everything at once, and ends with everything back.
func TestStress(t *testing.T) {
	for _, o := range []Options{
		{Limit: 6, Ceiling: 20, MaxCallers: 5, StallAfter: time.Millisecond, BusyStall: 5 * time.Millisecond},
		{Limit: 6, Ceiling: 20, MaxWaiting: 8, MaxWait: 2 * time.Millisecond, StallAfter: time.Millisecond},
		{Limit: 6, Ceiling: 20, MaxWaiting: -1},
	} {
		var b *Bulkhead
		o.MayOverdraw = func(Overdraft, int) bool { b.Stat(); return rand.IntN(3) != 0 }
		b = mustNew(t, o)
		var wg sync.WaitGroup
		stop := time.Now().Add(700 * time.Millisecond)
		for i := range 32 {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), 1))
				for time.Now().Before(stop) {
					stressOnce(t, b, random)
				}
			})
		}
		wg.Go(func() {
			for n := 0; time.Now().Before(stop); n++ {
				b.SetLimit(1 + n%20)
				b.SetMode([]Mode{Enforce, Enforce, Enforce, Shadow, Enforce, Off}[n/7%6])
				if _ = b.SetBounds(1, 1+n%5, 5+n%15); n%9 == 0 {
					_ = b.SetBounds(0, 0, 0)
				}
				b.EndPeriod()
				b.Callers()
				b.check(t)
				time.Sleep(100 * time.Microsecond)
			}
			_ = b.SetBounds(1, 1, 5) // ends a pause, in which those that wait would stay
		})
		wg.Wait()
		b.SetMode(Enforce)
		if err := b.SetBounds(1, 1, 5); err != nil {
			t.Fatal(err)
		}
		b.checkRest(t)
	}
}

func stressOnce(t *testing.T, b *Bulkhead, random *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	switch random.IntN(4) {
	case 0:
		time.AfterFunc(time.Duration(random.IntN(1000))*time.Microsecond, cancel)
	case 1:
		cancel()
		ctx, cancel = context.WithTimeout(context.Background(), time.Duration(random.IntN(3000))*time.Microsecond)
	}
	defer cancel()
	caller, cost := fmt.Sprint(random.IntN(9)), 1+random.IntN(9)
	permit, err := b.Acquire(ctx, caller, cost)
	if random.IntN(5) == 0 {
		permit.Release()
		permit, err = b.TryAcquire(caller, cost)
	}
	if err != nil {
		return
	}
	defer permit.Release()
	for range random.IntN(4) {
		permit.Idle()
		if random.IntN(8) == 0 { // a nested read
			nested, err := b.Acquire(ctx, caller, cost)
			if err == nil {
				time.Sleep(time.Duration(random.IntN(200)) * time.Microsecond)
			}
			nested.Release()
		}
		permit.Busy()
	}
	if random.IntN(4) == 0 {
		go permit.Release()
	}
}
