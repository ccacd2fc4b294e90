// Package metrics exports a pgyield pool to Prometheus.
//
//	prometheus.MustRegister(metrics.NewCollector(pool))
//
// One [Collector] reads one snapshot of the gate and one of the pool for each
// scrape; it starts nothing and keeps nothing. Several pools in one program need
// labels that tell them apart, see [NewCollector].
//
// Every label has a bounded set of values. A caller's name is never one: it comes
// from outside, and there may be any number of them; [pgyield.Pool.ReadStat]
// tells how many there are.
//
// The traps: `outcome` of pgyield_reads_total is no partition, since a read that
// waited or that ran above the limit was admitted as well; and pgyield_pressure
// has a series only for signals that are known at the moment, so that one that
// the server cannot measure is absent, not zero.
//
// The pool's own numbers are named pgxpool_*. They are none of the names of
// github.com/IBM/pgxpoolprometheus, which may be registered beside this.
package metrics
