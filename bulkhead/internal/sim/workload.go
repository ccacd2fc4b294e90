// Package sim runs the same reads through different gates and measures who got what:
// the bulkhead beside what one would use instead. It drives the real bulkhead, not a
// model of it; inside a testing/synctest bubble minutes of load take a second.
package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Gate lets reads run. Acquire returns what gives the permit back.
type Gate interface {
	Acquire(ctx context.Context, caller string, cost int) (release func(), err error)
}

// Load is what one caller sends.
type Load struct {
	Caller string
	Rate   float64 // reads per second, at random (Poisson)
	Costs  []int   // drawn from evenly; nil: 1
}

// Arrival is one read.
type Arrival struct {
	At      time.Duration
	Caller  string
	Cost    int
	Service time.Duration
}

// Arrivals draws the reads of all loads for so long, in the order of their arrival.
// Reads run for service on average, exponentially distributed. The same seed gives the
// same reads.
func Arrivals(seed uint64, loads []Load, service, length time.Duration) []Arrival {
	random := rand.New(rand.NewPCG(seed, 17))
	var all []Arrival
	for _, l := range loads {
		for at := 0.0; ; {
			at += random.ExpFloat64() / l.Rate
			if at >= length.Seconds() {
				break
			}
			cost := 1
			if len(l.Costs) > 0 {
				cost = l.Costs[random.IntN(len(l.Costs))]
			}
			all = append(all, Arrival{
				At: seconds(at), Caller: l.Caller, Cost: cost,
				Service: seconds(random.ExpFloat64() * service.Seconds()),
			})
		}
	}
	slices.SortFunc(all, func(a, b Arrival) int { return int(a.At - b.At) })
	return all
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Outcome is what became of one caller's reads.
type Outcome struct {
	Sent, Served, Denied int
	Below                int             // of the denied: while the caller had less than its share
	Work                 float64         // cost times seconds of the reads that ran
	Waits                []time.Duration // of the reads that were served, ascending

	inside int // cost running and waiting
}

// DeniedShare is the part of the reads that was refused or ran out of patience, in %.
func (o Outcome) DeniedShare() float64 {
	if o.Sent == 0 {
		return 0
	}
	return 100 * float64(o.Denied) / float64(o.Sent)
}

// Wait returns the wait that a part q (0 to 1) of the served reads stayed within.
func (o Outcome) Wait(q float64) time.Duration {
	if len(o.Waits) == 0 {
		return 0
	}
	return o.Waits[min(len(o.Waits)-1, int(q*float64(len(o.Waits))))]
}

// Result is what a run gave.
type Result struct {
	ByCaller map[string]*Outcome
	Length   time.Duration
}

// Utilisation is the part of a limit that was used over the length of the run, in %.
func (r Result) Utilisation(limit int) float64 {
	work := 0.0
	for _, o := range r.ByCaller {
		work += o.Work
	}
	return 100 * work / (float64(limit) * r.Length.Seconds())
}

// Sum adds up the outcomes of the callers that pick chooses.
func (r Result) Sum(pick func(caller string) bool) Outcome {
	var sum Outcome
	for name, o := range r.ByCaller {
		if pick(name) {
			sum.Sent += o.Sent
			sum.Served += o.Served
			sum.Denied += o.Denied
			sum.Below += o.Below
			sum.Work += o.Work
			sum.Waits = append(sum.Waits, o.Waits...)
		}
	}
	slices.Sort(sum.Waits)
	return sum
}

// Run sends the arrivals through a gate. A read whose wait exceeds patience gives up.
// Only work done within length counts, so that runs compare. A read of cost above limit
// counts as limit. Share is what a caller can expect to have inside, running or waiting.
// Run returns when all reads have ended.
func Run(gate Gate, arrivals []Arrival, limit, share int, patience, length time.Duration) Result {
	result := Result{ByCaller: map[string]*Outcome{}, Length: length}
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := time.Now()
	for _, a := range arrivals {
		time.Sleep(a.At - time.Since(start))
		mu.Lock()
		o := result.ByCaller[a.Caller]
		if o == nil {
			o = &Outcome{}
			result.ByCaller[a.Caller] = o
		}
		o.inside += a.Cost
		mu.Unlock()
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			begin := time.Since(start)
			release, err := gate.Acquire(ctx, a.Caller, a.Cost)
			granted := time.Since(start)
			if err == nil {
				time.Sleep(a.Service)
				release()
			}
			mu.Lock()
			defer mu.Unlock()
			o.inside -= a.Cost
			o.Sent++
			if err != nil {
				o.Denied++
				if o.inside < share {
					o.Below++
				}
				return
			}
			o.Served++
			o.Waits = append(o.Waits, granted-begin)
			if ran := min(time.Since(start), length) - granted; ran > 0 {
				o.Work += float64(min(a.Cost, limit)) * ran.Seconds()
			}
		})
	}
	wg.Wait()
	for _, o := range result.ByCaller {
		slices.Sort(o.Waits)
	}
	return result
}

// Greedy runs for each caller as many loops of reads without pause as its demand says,
// each read of cost 1 and of service on average, and returns each caller's mean
// running cost.
func Greedy(gate Gate, demands map[string]int, service, length time.Duration) map[string]float64 {
	mean := map[string]float64{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := time.Now()
	seed := uint64(0)
	for caller, demand := range demands {
		for range demand {
			seed++
			random := rand.New(rand.NewPCG(seed, 4))
			wg.Go(func() {
				for time.Since(start) < length {
					release, err := gate.Acquire(context.Background(), caller, 1)
					if err != nil {
						continue
					}
					granted := time.Since(start)
					time.Sleep(seconds(random.ExpFloat64() * service.Seconds()))
					release()
					if ran := min(time.Since(start), length) - granted; ran > 0 {
						mu.Lock()
						mean[caller] += ran.Seconds() / length.Seconds()
						mu.Unlock()
					}
				}
			})
		}
	}
	wg.Wait()
	return mean
}
