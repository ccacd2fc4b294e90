package metrics

import (
	"maps"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/bulkhead"
	"github.com/pgyield/pgyield/intent"
	"github.com/pgyield/pgyield/pressure"
)

// Pool is what a Collector reads; *pgyield.Pool is one.
type Pool interface {
	ReadStat() *pgyield.ReadStat
	Stat() *pgxpool.Stat
}

// Collector is a prometheus.Collector over one pool. It is safe for concurrent use.
type Collector struct {
	pool  Pool
	gate  gateDescs
	fleet fleetDescs
	conn  poolDescs
}

// NewCollector returns a Collector of pool. The labels are put on each of its
// metrics, and must differ between the pools of one registry; none is needed for a
// single pool. Later label sets win over earlier ones.
func NewCollector(pool Pool, labels ...prometheus.Labels) *Collector {
	all := prometheus.Labels{}
	for _, set := range labels {
		maps.Copy(all, set)
	}
	return &Collector{pool: pool, gate: newGateDescs(all), fleet: newFleetDescs(all), conn: newPoolDescs(all)}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range slices.Concat(c.gate.all(), c.fleet.all(), c.conn.all()) {
		out <- desc
	}
}

// Collect implements prometheus.Collector. It takes one snapshot of the gate and
// one of the pool.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	s := c.pool.ReadStat()
	c.gate.collect(sink(out), s)
	c.fleet.collect(sink(out), s.Fleet())
	c.conn.collect(sink(out), c.pool.Stat())
}

// sink makes the metrics that are sent.
type sink chan<- prometheus.Metric

func (s sink) gauge(desc *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

func (s sink) counter(desc *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value, labels...)
}

// histogram sends one whose bucket counts are cumulative.
func (s sink) histogram(desc *prometheus.Desc, bounds []float64, cumulative []uint64, count uint64, sum float64) {
	buckets := make(map[float64]uint64, len(bounds))
	for i, bound := range bounds {
		buckets[bound] = cumulative[i]
	}
	s <- prometheus.MustNewConstHistogram(desc, count, sum, buckets)
}

// gateDescs describe what pgyield adds to a pool.
type gateDescs struct {
	mode, limit, floor, ceiling, running, waiting    *prometheus.Desc
	reads, refused, wait, changes, periods           *prometheus.Desc
	pressure, pressing, blind, polls, pollTime       *prometheus.Desc
	callersTracked, callersPenalized, statementCount *prometheus.Desc
}

func newGateDescs(labels prometheus.Labels) gateDescs {
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc("pgyield_"+name, help, variable, labels)
	}
	return gateDescs{
		mode:    desc("mode", "What the gate does with reads: 0 enforces the limit, 1 only accounts for them (shadow), 2 is off."),
		limit:   desc("read_limit", "Cost of the reads that may run at once."),
		floor:   desc("read_limit_floor", "Lowest value that pressure may bring the read limit to."),
		ceiling: desc("read_limit_ceiling", "Highest value that the read limit may climb to."),
		running: desc("reads_running", "Cost of the reads that hold a permit."),
		waiting: desc("reads_waiting", "Reads that wait for a permit."),
		reads: desc("reads_total", "Reads by outcome: admitted are all that got a permit; of those, waited had to wait for it"+
			" and overdraft ran above the limit to end a stall.", "outcome"),
		refused: desc("reads_refused_total", "Reads that were refused before any SQL was sent, by reason.", "reason"),
		wait:    desc("read_wait_seconds", "How long admitted reads waited for a permit."),
		changes: desc("limit_changes_total", "Changes of the read limit by the write pressure.", "direction"),
		periods: desc("periods_total", "Periods judged, by whether writes suffered (pressing) and whether the limit held a read back (contended).",
			"pressing", "contended"),
		pressure: desc("pressure", "Signals of write pressure that are known, each as a multiple of its value when reads are quiet"+
			" (of its threshold, while that value is not known).", "signal"),
		pressing: desc("pressing", "1 when writes suffered in the last period."),
		blind: desc("monitor_blind", "1 when the monitor sees less than it should: polls fail,"+
			" its role may not see waits, or there is nothing to judge by."),
		polls:            desc("monitor_polls_total", "Polls of the server by the monitor.", "result"),
		pollTime:         desc("monitor_poll_seconds", "Round trip of the monitor's polls that succeeded."),
		callersTracked:   desc("callers_tracked", "Callers that are told apart now."),
		callersPenalized: desc("callers_penalized", "Callers that are penalised now."),
		statementCount:   desc("statements_total", "Calls of the pool by what their SQL is.", "intent"),
	}
}

func (d *gateDescs) all() []*prometheus.Desc {
	return []*prometheus.Desc{
		d.mode, d.limit, d.floor, d.ceiling, d.running, d.waiting,
		d.reads, d.refused, d.wait, d.changes, d.periods,
		d.pressure, d.pressing, d.blind, d.polls, d.pollTime,
		d.callersTracked, d.callersPenalized, d.statementCount,
	}
}

func (d *gateDescs) collect(out sink, s *pgyield.ReadStat) {
	out.gauge(d.mode, float64(s.Mode()))
	out.gauge(d.limit, float64(s.Limit()))
	out.gauge(d.floor, float64(s.Floor()))
	out.gauge(d.ceiling, float64(s.Ceiling()))
	out.gauge(d.running, float64(s.Running()))
	out.gauge(d.waiting, float64(s.Waiting()))
	out.gauge(d.callersTracked, float64(s.Callers()))
	out.gauge(d.callersPenalized, float64(s.Penalized()))

	out.counter(d.reads, float64(s.Admitted()), "admitted")
	out.counter(d.reads, float64(s.Waited()), "waited")
	out.counter(d.reads, float64(s.Overdrafts()), "overdraft")
	for _, reason := range bulkhead.Reasons() {
		out.counter(d.refused, float64(s.RefusedBy(reason)), string(reason))
	}
	for _, i := range []intent.Intent{intent.Write, intent.Read, intent.Trivial} {
		out.counter(d.statementCount, float64(s.Statements(i)), i.String())
	}
	waits := s.Waits()
	out.histogram(d.wait, waits.Bounds, waits.Counts, waits.Count, waits.Sum)
	d.collectControl(out, s)
}

// collectControl sends what the monitor and the moving limit say.
func (d *gateDescs) collectControl(out sink, s *pgyield.ReadStat) {
	out.counter(d.changes, float64(s.Lowered()), "lowered")
	out.counter(d.changes, float64(s.Raised()), "raised")
	for _, pressing := range []bool{false, true} {
		for _, contended := range []bool{false, true} {
			out.counter(d.periods, float64(s.Periods(pressing, contended)),
				strconv.FormatBool(pressing), strconv.FormatBool(contended))
		}
	}
	for _, signal := range s.LastDecision().Verdict.Signals {
		out.gauge(d.pressure, signal.Ratio(), signal.Name)
	}
	out.gauge(d.pressing, number(s.Pressing()))
	out.gauge(d.blind, number(s.Blind()))

	polls := s.Polls()
	out.counter(d.polls, float64(polls.PollsOK), "ok")
	out.counter(d.polls, float64(polls.PollsFailed), "failed")
	bounds, cumulative := cumulate(polls.PollTime)
	out.histogram(d.pollTime, bounds, cumulative, polls.PollTime.Count(), polls.PollTime.Sum)
}

// cumulate makes a histogram's counts cumulative, as Prometheus wants them.
func cumulate(h pressure.Histogram) (bounds []float64, counts []uint64) {
	var sum uint64
	for i := range h.Bounds {
		sum += h.Counts[i]
		counts = append(counts, sum)
	}
	return h.Bounds, counts
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
