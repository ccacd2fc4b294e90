package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgyield/pgyield/fleet"
)

// fleetDescs describe a pool's part in its fleet. A pool in none has no such series.
type fleetDescs struct {
	members, limit, share, granted, slack, ceiling *prometheus.Desc
	malformed, shared, lost, period                *prometheus.Desc
}

func newFleetDescs(labels prometheus.Labels) fleetDescs {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("pgyield_fleet_"+name, help, nil, labels)
	}
	return fleetDescs{
		members:   desc("members", "Live pools of the fleet as this one sees them, itself included; 0 before its first poll."),
		limit:     desc("limit", "Cost of the reads that all pools of the fleet together may run."),
		share:     desc("share", "This pool's part of the fleet's limit by demand."),
		granted:   desc("granted", "The part of the share that the other pools have left to this one."),
		slack:     desc("slack", "The part of the fleet's limit that nobody needed at the last poll; negative when it was passed."),
		ceiling:   desc("ceiling", "What the fleet lets this pool run now; 0 while it waits for its turn among too many."),
		malformed: desc("malformed_names_total", "Session names with the fleet's prefix that were ignored."),
		shared:    desc("shared", "1 when a bouncer shares the monitor's session, so that the limit is divided by the configured size."),
		lost:      desc("lost", "1 when no poll has succeeded for the lease, so that the limit is divided evenly."),
		period:    desc("poll_period_seconds", "Time between two polls of this pool, so that the fleet keeps to its poll rate."),
	}
}

func (d *fleetDescs) all() []*prometheus.Desc {
	return []*prometheus.Desc{
		d.members, d.limit, d.share, d.granted, d.slack, d.ceiling, d.malformed, d.shared, d.lost, d.period,
	}
}

func (d *fleetDescs) collect(out sink, s fleet.Stat) {
	if s.Limit == 0 {
		return
	}
	out.gauge(d.members, float64(s.Members))
	out.gauge(d.limit, float64(s.Limit))
	out.gauge(d.share, float64(s.Share))
	out.gauge(d.granted, float64(s.Granted))
	out.gauge(d.slack, float64(s.Slack))
	out.gauge(d.ceiling, float64(s.Ceiling))
	out.counter(d.malformed, float64(s.Malformed))
	out.gauge(d.shared, number(s.Shared))
	out.gauge(d.lost, number(s.Lost))
	out.gauge(d.period, s.PollEvery.Seconds())
}
