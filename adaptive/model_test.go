package adaptive

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// model is a server whose service slows with concurrency, and the programs that use
// it, in steps of virtual time. Its figures are those measured on two cores: one
// read beside small writes costs them nothing, two double or triple their latency.
type model struct {
	rng *rand.Rand
	now time.Time

	// The load, which scenarios change on the way.
	readers   int            // reads wanted at once: each is followed by the next
	work      time.Duration  // what a read takes alone
	sleeping  bool           // reads that use no core: they slow nothing
	writeRate float64        // per second
	slowness  func() float64 // of writes, for reasons that reads have no part in
	others    func() float64 // other programs that want a core

	// The limiter.
	limit     int
	sets      int // how often it was set
	probed    int // what it was before a probe; 0: it is none
	filled    bool
	bounds    Bounds
	running   []time.Duration // work left
	began     []time.Time
	contended bool

	writes    pressure.Writes
	owed      float64
	readsDone int
	readTime  time.Duration

	// What is measured.
	total     int
	latencies []float64 // ratio to idle, of the writes since the last look
	blamed    []float64 // the same, to what they would have taken beside one read
}

const (
	modelStep = 5 * time.Millisecond
	idleWrite = 1.3e6 // median, ns
)

func newModel(seed uint64, bounds Bounds) *model {
	return &model{
		rng: rand.New(rand.NewPCG(seed, 1)), limit: bounds.Start, bounds: bounds,
		work: 400 * time.Millisecond, writeRate: 200, slowness: func() float64 { return 1 },
		others: func() float64 { return 0 },
	}
}

func (m *model) Limit() int              { return m.limit }
func (m *model) SetLimit(n int)          { m.limit = n; m.probed, m.filled = 0, false; m.sets++ }
func (m *model) Probe(n int)             { from := m.limit; m.SetLimit(n); m.probed = from }
func (m *model) Bounds() (int, int, int) { return m.bounds.Floor, m.bounds.Start, m.bounds.Ceiling }
func (m *model) EndPeriod() (c bool) {
	c = m.contended || len(m.running) >= m.limit
	m.contended = false
	return c
}

// room is how many reads may run now.
func (m *model) room() int {
	if m.filled {
		return m.probed
	}
	return m.limit
}

// busy is how many programs want a core, this one's reads among them.
func (m *model) busy() float64 {
	if m.sleeping {
		return m.others()
	}
	return float64(len(m.running)) + m.others()
}

// slow is how many times the idle latency writes take beside that many programs.
func slow(busy float64) float64 {
	switch {
	case busy <= 1:
		return 1 + 0.1*busy
	case busy <= 2:
		return 1.1 + 1.5*(busy-1)
	default:
		return 2.6 * math.Pow(busy/2, 0.95)
	}
}

// step advances the server by one step.
func (m *model) step() {
	m.now = time.Now()
	for len(m.running) < min(m.room(), m.readers) {
		m.running = append(m.running, time.Duration(float64(m.work)*(0.8+0.4*m.rng.Float64())))
		m.began = append(m.began, m.now)
		m.filled = m.filled || m.probed > 0 && len(m.running) >= m.limit
	}
	if m.readers > len(m.running) {
		m.contended = true
	}
	share := 1.0
	if busy := m.busy(); busy > 2 && !m.sleeping {
		share = 2 / busy
	}
	for i := 0; i < len(m.running); {
		if m.running[i] -= time.Duration(share * float64(modelStep)); m.running[i] > 0 {
			i++
			continue
		}
		m.readsDone++
		m.total++
		m.readTime += m.now.Add(modelStep).Sub(m.began[i])
		m.running = slices.Delete(m.running, i, i+1)
		m.began = slices.Delete(m.began, i, i+1)
	}
	m.write()
}

// write lets the step's share of writes happen.
func (m *model) write() {
	m.owed += m.writeRate * modelStep.Seconds()
	if m.owed < 1 {
		return
	}
	busy, slowness := m.busy(), m.slowness()
	factor := slow(busy) * slowness
	if busy > 1 {
		factor *= math.Exp(0.25 * m.rng.NormFloat64())
	}
	for ; m.owed >= 1; m.owed-- {
		d := idleWrite * factor * math.Exp(0.26*m.rng.NormFloat64())
		m.writes.Observe(time.Duration(d))
		m.latencies = append(m.latencies, d/idleWrite)
		m.blamed = append(m.blamed, d/idleWrite/slowness/slow(m.others()+1))
	}
}

func (m *model) activity() pressure.Activity {
	a := pressure.Activity{
		Running: len(m.running), Waiting: max(0, m.readers-len(m.running)),
		Writes: m.writes.Take(), ReadsDone: m.readsDone,
	}
	if m.readsDone > 0 {
		a.ReadTime = m.readTime / time.Duration(m.readsDone)
	}
	m.readsDone, m.readTime = 0, 0
	return a
}

// run lets the model and its limit go on for a time. After each period it calls look.
func (m *model) run(l *Limit, d time.Duration, look func(Decision)) {
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		for range int(l.options.Period / modelStep) {
			m.step()
			time.Sleep(modelStep)
		}
		decision := l.Evaluate(context.Background())
		if look != nil {
			look(decision)
		}
	}
}

// shareAtLeast lets the model go on for a time and returns in which share of the periods
// the limit is that high or higher.
func (m *model) shareAtLeast(l *Limit, d time.Duration, limit int) float64 {
	high, all := 0, 0
	m.run(l, d, func(d Decision) {
		all++
		if d.To >= limit {
			high++
		}
	})
	return float64(high) / float64(all)
}

// quantile returns a quantile of the write latencies since the last look, as a ratio
// to idle, and forgets them.
func (m *model) quantile(q float64) float64 { return quantile(&m.latencies, q) }

// harm returns the same as a ratio to what they would have taken beside one read.
func (m *model) harm(q float64) float64 { return quantile(&m.blamed, q) }

func quantile(values *[]float64, q float64) float64 {
	list := *values
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	v := list[min(len(list)-1, int(q*float64(len(list))))]
	*values = list[:0]
	return v
}

// p95In lives on for a time and returns the 95th percentile of the writes in it, in idle ones.
func (m *model) p95In(l *Limit, d time.Duration) float64 {
	m.latencies = nil
	m.run(l, d, nil)
	return m.quantile(0.95) / idleP95
}

// modelled runs a scenario in virtual time.
func modelled(t *testing.T, seed uint64, bounds Bounds, options Options, scenario func(*model, *Limit)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newModel(seed, bounds)
		options.Activity = m.activity
		l, err := New(m, nil, options)
		if err != nil {
			t.Fatal(err)
		}
		scenario(m, l)
	})
}
