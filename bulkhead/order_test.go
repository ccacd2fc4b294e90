package bulkhead

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// order lets the given waiters in one by one and returns their names in that order.
func orderOf(holder *read, waiters ...*read) string {
	var names []string
	holder.end()
	for len(names) < len(waiters) {
		i := slices.IndexFunc(waiters, func(r *read) bool {
			return !slices.Contains(names, r.name) && r.runs()
		})
		if i < 0 {
			return strings.Join(append(names, "nobody"), " ")
		}
		names = append(names, waiters[i].name)
		waiters[i].end()
	}
	return strings.Join(names, " ")
}

func TestLeastRunningGoesFirst(t *testing.T) {
	bubble(t, Options{Limit: 6}, func(t *testing.T, b *Bulkhead) {
		a1, a2, a3 := begin(t, b, "a", 1), begin(t, b, "a", 1), begin(t, b, "a", 1)
		b1, b2 := begin(t, b, "b", 1), begin(t, b, "b", 1)
		x := begin(t, b, "x", 1)
		wa, wb, wc := begin(t, b, "a", 1), begin(t, b, "b", 1), begin(t, b, "c", 1)
		for _, w := range []*read{wc, wb, wa} { // the last to come has nothing running
			wa.mustWait()
			x.end()
			w.mustRun()
			x = w
		}
		endAll(a1, a2, a3, b1, b2, wa)
	})
}

func TestTiesGoByArrivalAndCallersAreFIFO(t *testing.T) {
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		holder := begin(t, b, "h", 1)
		// Two reads of each caller, named by their place in the line.
		var waiters []*read
		for _, name := range []string{"a1", "a2", "b1", "b2", "c1"} {
			r := begin(t, b, name[:1], 1)
			r.name = name
			waiters = append(waiters, r)
		}
		if got := orderOf(holder, waiters...); got != "a1 a2 b1 b2 c1" {
			t.Errorf("order %s: with nothing running, all tie", got)
		}
	})
}

func TestPenalisedGoLast(t *testing.T) {
	for _, limit := range []int{1, 2} {
		bubble(t, Options{Limit: limit}, func(t *testing.T, b *Bulkhead) {
			penalise(t, b, "p", 5)
			holders := []*read{begin(t, b, "a", 1)}
			if limit == 2 {
				holders = append(holders, begin(t, b, "a", 1)) // a is over its share, and still before p
			}
			p := begin(t, b, "p", 1)
			a, c := begin(t, b, "a", 1), begin(t, b, "c", 1)
			p.name, a.name, c.name = "p", "a", "c"
			want := "a c p"
			if limit == 2 {
				want = "c a p"
			}
			if got := orderOf(holders[0], p, a, c); got != want {
				t.Errorf("limit %d: order %s, want %s", limit, got, want)
			}
			endAll(holders...)

			// The demerit decays at 0.3 a second: 5 needs 6.7 s to fall below 3.
			time.Sleep(7 * time.Second)
			holder := begin(t, b, "a", limit)
			p, a = begin(t, b, "p", 1), begin(t, b, "c", 1)
			if got := orderOf(holder, p, a); got != "p c" {
				t.Errorf("limit %d: order %s after the penalty, want p c", limit, got)
			}
		})
	}
}

// Callers past their share go before a penalised one below its own, but not for ever.
func TestPenalisedHasItsTurnAfterManyWereBeforeIt(t *testing.T) {
	bubble(t, Options{Limit: 4}, func(t *testing.T, b *Bulkhead) {
		penalise(t, b, "p", 50)
		var others []*read
		for range 20 {
			others = append(others, begin(t, b, "o", 1))
		}
		p, p2 := begin(t, b, "p", 1), begin(t, b, "p", 1)
		for i := range 2 * 4 {
			others[i].end()
			others[i+4].mustRun()
		}
		p.mustWait()
		others[8].end()
		p.mustRun()
		others[9].end()
		p2.mustRun() // until none of its reads wait, by running cost as any other

		p3 := begin(t, b, "p", 1) // from here on it is last again
		others[10].end()
		others[12].mustRun()
		p3.mustWait()
		endAll(p3, p2, p)
		endAll(others[11:]...)
	})
}

// A penalty that ends while its caller waits moves the caller up without any event.
func TestPenaltyEndsWhileWaiting(t *testing.T) {
	bubble(t, Options{Limit: 1, BusyStall: time.Hour}, func(t *testing.T, b *Bulkhead) {
		penalise(t, b, "p", 4)
		holder := begin(t, b, "h", 1)
		p := begin(t, b, "p", 1)
		a := begin(t, b, "a", 1)
		time.Sleep(5 * time.Second)
		if got := orderOf(holder, p, a); got != "p a" {
			t.Errorf("order %s, want p a", got)
		}
	})
}

// Going last must not mean never, also where the others are so many that their shares
// alone fill the limit, and the penalised caller renews its penalty while it waits.
func TestPenalisedIsServedInTheEnd(t *testing.T) {
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		penalise(t, b, "p", 50)
		stop, served := time.Now().Add(3*time.Minute), 0
		for _, name := range []string{"a", "a", "b", "b"} {
			go func() {
				for time.Now().Before(stop) {
					permit, err := b.Acquire(t.Context(), name, 1)
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(9700 * time.Microsecond)
					permit.Release()
				}
			}()
		}
		synctest.Wait()
		const patience = 1003 * time.Millisecond            // so that it ends at no moment of a release
		for time.Now().Before(stop.Add(-5 * time.Second)) { // the others go on a little longer
			reads := []*read{beginFor(t, b, "p", 1, patience), beginFor(t, b, "p", 1, patience), beginFor(t, b, "p", 1, patience)}
			for _, r := range reads {
				if <-r.done; r.err == nil {
					served++
				}
				r.end()
			}
		}
		time.Sleep(5 * time.Second)
		if served < 2 || served > 4 { // once a minute
			t.Errorf("a penalised caller was served %d times in three minutes", served)
		}
	})
}

func TestHeadOfLine(t *testing.T) {
	bubble(t, Options{Limit: 10}, func(t *testing.T, b *Bulkhead) {
		running := begin(t, b, "a", 8)
		five := begin(t, b, "b", 5)
		one, other := begin(t, b, "c", 1), begin(t, b, "d", 1)
		five.mustWait()
		one.mustWait() // it would fit, and would keep the 5 waiting
		five.end()
		one.mustRun()
		other.mustRun()
		endAll(running, one, other)
	})
}

func TestHeadKeepsItsPlace(t *testing.T) {
	bubble(t, Options{Limit: 10}, func(t *testing.T, b *Bulkhead) {
		a, c := begin(t, b, "a", 4), begin(t, b, "c", 4)
		five := begin(t, b, "a", 5) // a has the more running, and is chosen: it alone waits
		var ones []*read
		for i := range 5 {
			ones = append(ones, begin(t, b, fmt.Sprint("one", i), 1))
		}
		c.end()
		five.mustRun()
		for i, r := range ones { // 10 - 4 - 5 leaves room for one
			if r.runs() != (i == 0) {
				t.Errorf("one %d runs: %v", i, r.runs())
			}
		}
		endAll(append(ones, a, five)...)
	})
}

func TestRaiseLetsInAllThatFit(t *testing.T) {
	bubble(t, Options{Limit: 1}, func(t *testing.T, b *Bulkhead) {
		reads := []*read{begin(t, b, "a", 1)}
		for range 5 {
			reads = append(reads, begin(t, b, "a", 1))
			reads[len(reads)-1].mustWait()
		}
		b.SetLimit(6)
		for _, r := range reads {
			r.mustRun()
		}
		endAll(reads...)
	})
}

func TestLimitUpAndDown(t *testing.T) {
	bubble(t, Options{Limit: 10}, func(t *testing.T, b *Bulkhead) {
		var running, waiting []*read
		for range 10 {
			running = append(running, begin(t, b, "a", 1))
		}
		for range 10 {
			waiting = append(waiting, begin(t, b, "b", 1))
		}
		admitted := func() int { return int(b.Stat().Admitted) - 10 }
		for _, step := range []struct{ limit, release, admitted int }{
			{2, 1, 0}, {8, 1, 0}, {8, 1, 1}, {2, 6, 1}, {2, 1, 2}, {9, 0, 9},
		} {
			b.SetLimit(step.limit)
			b.check(t)
			for range step.release {
				if len(running) == 0 {
					running, waiting = waiting[:1], waiting[1:]
				}
				running[0].mustRun() // nothing was cancelled
				running[0].end()
				running = running[1:]
			}
			b.check(t)
			if admitted() != step.admitted {
				t.Fatalf("limit %d: %d let in, want %d (%+v)", step.limit, admitted(), step.admitted, b.Stat())
			}
		}
		endAll(running...)
		endAll(waiting...)
	})
}

func TestCostAboveTheLimitRunsAlone(t *testing.T) {
	bubble(t, Options{Limit: 10}, func(t *testing.T, b *Bulkhead) {
		one := begin(t, b, "a", 1)
		big := begin(t, b, "b", 1000)
		big.mustWait()
		one.end()
		big.mustRun()
		if s := b.Stat(); s.Running != 10 {
			t.Errorf("running %d, want the whole limit", s.Running)
		}
		b.SetLimit(4) // the next one waits while the limit falls below its cost
		next, small := begin(t, b, "b", 6), begin(t, b, "c", 1)
		next.mustWait()
		big.end()
		next.mustRun() // as the whole limit of 4
		small.mustWait()
		endAll(next, small)
	})
}

func TestPenalisedCallerOfGreatCostIsServed(t *testing.T) {
	bubble(t, Options{Limit: 10}, func(t *testing.T, b *Bulkhead) {
		penalise(t, b, "p", 50)
		light := begin(t, b, "a", 1)
		p := begin(t, b, "p", 5)
		p.mustRun() // its cap is 1
		p.end()
		if permit, err := b.TryAcquire("p", 5); err != nil {
			t.Errorf("a caller with nothing running was refused: %v", err)
		} else {
			permit.Release()
		}
		light.end()
	})
}
