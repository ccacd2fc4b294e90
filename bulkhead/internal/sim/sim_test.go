package sim

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgyield/pgyield/bulkhead"
)

const (
	limit   = 16
	service = 100 * time.Millisecond // so the limit serves 160 reads of cost 1 a second
	window  = 5 * time.Second
)

// scenario is a load and what a caller can expect of it.
type scenario struct {
	name     string
	loads    []Load
	queue    int // MaxWaiting
	patience time.Duration
	length   time.Duration
	check    func(t *testing.T, fifo, caps, ours run)
}

// run is a scenario through one gate.
type run struct {
	Result
	penalised int // callers, at most, as seen every 100 ms; of the bulkhead only
}

func isLight(caller string) bool { return strings.HasPrefix(caller, "light") }
func isHog(caller string) bool   { return !isLight(caller) }

// hog is a caller with 40 times the demand of each of four others, together so many
// times what the limit serves.
func hog(load, perSecond float64, costs ...int) []Load {
	light := load * perSecond / 44
	loads := []Load{{Caller: "hog", Rate: 40 * light, Costs: costs}}
	for i := range 4 {
		loads = append(loads, Load{Caller: fmt.Sprint("light", i), Rate: light, Costs: costs})
	}
	return loads
}

func scenarios() []scenario {
	var all []scenario
	for _, load := range []float64{0.95, 1.5, 3} {
		for _, queue := range []int{0, 50, -1} {
			name := fmt.Sprintf("hog and 4 light callers, %.0f %%, %s", 100*load, queueName(queue))
			all = append(all, scenario{name, hog(load, 160), queue, time.Second, 40 * time.Second, checkHog(queue)})
		}
	}
	// Reads cost 1, 5 and 20, 16 of which count: 22/3 on average.
	const mixed = 160 / (22.0 / 3)
	return append(all,
		scenario{"the same with costs 1, 5, 20, 95 %, unbounded queue", hog(0.95, mixed, 1, 5, 20), 0, 5 * time.Second, 120 * time.Second, checkMixed},
		scenario{"the same with costs 1, 5, 20, 150 %, unbounded queue", hog(1.5, mixed, 1, 5, 20), 0, 5 * time.Second, 120 * time.Second, checkMixed},
		scenario{"two equal callers, 150 %, unbounded queue", equal(), 0, time.Second, 40 * time.Second, checkEqual},
		scenario{"two equal callers, 150 %, no waiting", equal(), -1, time.Second, 40 * time.Second, checkEqual},
		scenario{"one caller alone, 150 %, unbounded queue", []Load{{Caller: "alone", Rate: 240}}, 0, time.Second, 40 * time.Second, checkAlone},
		scenario{"one caller alone, 150 %, no waiting", []Load{{Caller: "alone", Rate: 240}}, -1, time.Second, 40 * time.Second, checkAlone},
		scenario{"hog at 150 %, and a read every 4 s", []Load{{Caller: "hog", Rate: 240}, {Caller: "light", Rate: 0.25}}, 0, time.Second, 200 * time.Second, checkRare},
		scenario{"hog at 150 %, and a read every 4 s, queue of 50", []Load{{Caller: "hog", Rate: 240}, {Caller: "light", Rate: 0.25}}, 50, time.Second, 200 * time.Second, checkRare},
	)
}

// share is the part of the limit that each caller can have.
func (s scenario) share() int { return (limit + len(s.loads) - 1) / len(s.loads) }

func queueName(queue int) string {
	switch {
	case queue < 0:
		return "no waiting"
	case queue == 0:
		return "unbounded queue"
	default:
		return fmt.Sprint("queue of ", queue)
	}
}

func equal() []Load { return []Load{{Caller: "a", Rate: 120}, {Caller: "b", Rate: 120}} }

// TestSimTable runs every scenario, checks it, and with -v prints the table of them all.
func TestSimTable(t *testing.T) {
	fmt.Fprint(table(t), "| load | gate | limit used, % | light: denied, % | light: wait p50 / p99 / most, ms | heavy: denied, % |\n|---|---|---|---|---|---|\n")
	for i, s := range scenarios() {
		if (testing.Short() || raceDetector) && i%4 != 0 {
			continue // some of each kind
		}
		arrivals := Arrivals(1, s.loads, service, s.length)
		var runs [3]run
		for i, gate := range []string{"FIFO", "caps", "bulkhead"} {
			runs[i] = through(t, s, gate, arrivals)
			row(t, s, gate, runs[i])
		}
		s.check(t, runs[0], runs[1], runs[2])
		if t.Failed() {
			t.Fatalf("in: %s", s.name)
		}
	}
}

// through runs a scenario through a gate, in virtual time.
func through(t *testing.T, s scenario, gate string, arrivals []Arrival) (r run) {
	synctest.Test(t, func(t *testing.T) {
		if gate != "bulkhead" {
			r.Result = Run(&Peer{Limit: limit, MaxWaiting: s.queue, Caps: gate == "caps", Window: window}, arrivals, limit, s.share(), s.patience, s.length)
			return
		}
		b, err := bulkhead.New(bulkhead.Options{Limit: limit, MaxWaiting: s.queue})
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
					r.penalised = max(r.penalised, b.Stat().Penalised)
				}
			}
		}()
		r.Result = Run(Bulkhead{b}, arrivals, limit, s.share(), s.patience, s.length)
		close(stop)
		synctest.Wait()
		if stat := b.Stat(); stat.Running != 0 || stat.Waiting != 0 || stat.Overdrafts() != 0 {
			t.Errorf("left over: %+v", stat)
		}
	})
	return r
}

func row(t *testing.T, s scenario, gate string, r run) {
	t.Helper()
	light, heavy := r.Sum(isLight), r.Sum(isHog)
	name, denied, waits := "", "", ""
	if gate == "FIFO" {
		name = s.name
	}
	if light.Sent > 0 {
		denied = fmt.Sprintf("%.1f", light.DeniedShare())
		waits = fmt.Sprintf("%d / %d / %d", light.Wait(0.5).Milliseconds(), light.Wait(0.99).Milliseconds(), light.Wait(1).Milliseconds())
	}
	fmt.Fprintf(table(t), "| %s | %s | %.1f | %s | %s | %.0f |\n", name, gate, r.Utilisation(limit), denied, waits, heavy.DeniedShare())
}

// asMuch fails unless ours uses what FIFO uses of the limit, to a margin in %.
func asMuch(t *testing.T, fifo, ours run, margin float64) {
	t.Helper()
	if f, o := fifo.Utilisation(limit), ours.Utilisation(limit); o < f-margin {
		t.Errorf("used %.2f %% of the limit, FIFO %.2f %%", o, f)
	}
}

func checkHog(queue int) func(t *testing.T, fifo, caps, ours run) {
	return func(t *testing.T, fifo, caps, ours run) {
		light := ours.Sum(isLight)
		if queue < 0 { // held to its cap, the hog leaves room, and borrows what it can
			if light.DeniedShare() > 8 || ours.Utilisation(limit) < caps.Utilisation(limit) {
				t.Errorf("light callers denied %.2f %%, used %.1f %%, with caps %.1f %%",
					light.DeniedShare(), ours.Utilisation(limit), caps.Utilisation(limit))
			}
			return
		}
		asMuch(t, fifo, ours, 1)
		// At 300 % a light caller has 1.1 reads running on average, and with a share of 4
		// now and then a fifth.
		if light.DeniedShare() > 3 || light.Below > 0 {
			t.Errorf("light callers denied %.2f %%, %d below their share", light.DeniedShare(), light.Below)
		}
		// A permit comes back every 6 ms; few light reads find another before them.
		if light.Wait(0.99) > 60*time.Millisecond {
			t.Errorf("light callers waited %v (p99)", light.Wait(0.99))
		}
	}
}

func checkMixed(t *testing.T, fifo, _, ours run) {
	// Each read of cost 16 empties the limit before it runs, so what is used depends on
	// which reads are given up, and that differs.
	asMuch(t, fifo, ours, 2)
	if light, plain := ours.Sum(isLight), fifo.Sum(isLight); light.Denied > plain.Denied || light.Wait(0.5) > plain.Wait(0.5) {
		t.Errorf("light callers: denied %d, waited %v; FIFO %d, %v", light.Denied, light.Wait(0.5), plain.Denied, plain.Wait(0.5))
	}
}

func checkEqual(t *testing.T, fifo, caps, ours run) {
	asMuch(t, fifo, ours, 1)
	if used := ours.Utilisation(limit); used < 85 || used < caps.Utilisation(limit) {
		t.Errorf("used %.1f %%, with caps %.1f %%", used, caps.Utilisation(limit))
	}
	if a, b := ours.ByCaller["a"].Work, ours.ByCaller["b"].Work; a > 1.1*b || b > 1.1*a {
		t.Errorf("equal callers got %.0f and %.0f", a, b)
	}
}

func checkAlone(t *testing.T, fifo, _, ours run) {
	asMuch(t, fifo, ours, 1)
	if ours.penalised != 0 {
		t.Error("a lone caller was penalised")
	}
}

func checkRare(t *testing.T, fifo, _, ours run) {
	asMuch(t, fifo, ours, 1)
	if light := ours.Sum(isLight); light.Denied > 0 || light.Wait(1) > 60*time.Millisecond {
		t.Errorf("denied %d, waited up to %v", light.Denied, light.Wait(1))
	}
	if ours.penalised > 1 {
		t.Error("the rare caller was penalised")
	}
}

// TestSimMaxMin: callers whose demand saturates the limit get its max-min fair division.
func TestSimMaxMin(t *testing.T) {
	for _, c := range []struct{ demands, want map[string]float64 }{
		{map[string]float64{"a": 2, "b": 4, "c": 100}, map[string]float64{"a": 2, "b": 4, "c": 6}},
		{map[string]float64{"a": 2, "b": 8, "c": 100}, map[string]float64{"a": 2, "b": 5, "c": 5}},
	} {
		demands := map[string]int{}
		for caller, d := range c.demands {
			demands[caller] = int(d)
		}
		synctest.Test(t, func(t *testing.T) {
			b, err := bulkhead.New(bulkhead.Options{Limit: 12})
			if err != nil {
				t.Fatal(err)
			}
			got := Greedy(Bulkhead{b}, demands, service, 5*time.Minute)
			for caller, want := range c.want {
				if got[caller] < 0.9*want || got[caller] > 1.1*want {
					t.Errorf("demands %v: %q got %.2f, want %v", c.demands, caller, got[caller], want)
				}
			}
			fmt.Fprintf(table(t), "\nlimit 12, demands %v: mean running %.2f, %.2f, %.2f\n", c.demands, got["a"], got["b"], got["c"])
		})
	}
}
