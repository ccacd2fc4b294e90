package metrics

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// poolDescs describe pgxpool's own numbers.
type poolDescs struct {
	conns, maxConns, opened, retired              *prometheus.Desc
	acquires, canceled, waited, acquireTime, wait *prometheus.Desc
}

func newPoolDescs(labels prometheus.Labels) poolDescs {
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc("pgxpool_"+name, help, variable, labels)
	}
	return poolDescs{
		conns:       desc("connections", "Connections of the pool by state.", "state"),
		maxConns:    desc("connections_max", "Most connections that the pool may have."),
		opened:      desc("connections_opened_total", "Connections that the pool opened."),
		retired:     desc("connections_retired_total", "Connections that the pool closed for their age, by reason.", "reason"),
		acquires:    desc("acquires_total", "Acquires of a connection that succeeded."),
		canceled:    desc("acquires_canceled_total", "Acquires whose context ended first."),
		waited:      desc("acquires_waited_total", "Acquires that had to wait because no connection was idle."),
		acquireTime: desc("acquire_seconds_total", "Time that acquires which succeeded took."),
		wait:        desc("acquire_wait_seconds_total", "Time that acquires which succeeded waited because no connection was idle."),
	}
}

func (d *poolDescs) all() []*prometheus.Desc {
	return []*prometheus.Desc{
		d.conns, d.maxConns, d.opened, d.retired,
		d.acquires, d.canceled, d.waited, d.acquireTime, d.wait,
	}
}

func (d *poolDescs) collect(out sink, s *pgxpool.Stat) {
	out.gauge(d.conns, float64(s.AcquiredConns()), "acquired")
	out.gauge(d.conns, float64(s.IdleConns()), "idle")
	out.gauge(d.conns, float64(s.ConstructingConns()), "constructing")
	out.gauge(d.maxConns, float64(s.MaxConns()))
	out.counter(d.opened, float64(s.NewConnsCount()))
	out.counter(d.retired, float64(s.MaxLifetimeDestroyCount()), "max_lifetime")
	out.counter(d.retired, float64(s.MaxIdleDestroyCount()), "max_idle_time")
	out.counter(d.acquires, float64(s.AcquireCount()))
	out.counter(d.canceled, float64(s.CanceledAcquireCount()))
	out.counter(d.waited, float64(s.EmptyAcquireCount()))
	out.counter(d.acquireTime, s.AcquireDuration().Seconds())
	out.counter(d.wait, s.EmptyAcquireWaitTime().Seconds())
}
