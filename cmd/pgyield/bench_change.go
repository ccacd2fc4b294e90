package main

import (
	"context"
	"math"
	"time"

	"github.com/pgyield/pgyield"
)

// never is a time that was not reached within the run.
var never = math.Inf(1)

// onset is the moment when greedy reads join writes that were alone.
func onset(params string) *scenario {
	return &scenario{
		name: "onset", about: "Writes alone, then 16 greedy aggregates.",
		arms:   []arm{yieldArm(armYield, params, pgyield.Options{})},
		timing: timing{5 * time.Second, 0, 8 * time.Second},
		setUp:  func(db *database, l *load) { l.read = db.read },
		custom: func(p *phase, f figures) {
			f["down_s"] = downAfter(p)
			f["calm_s"] = calmAfter(p, p95In(p, time.Second, p.Lead))
		},
		claims: func(r runs) []claim {
			return []claim{
				atMost("seconds until the limit is 1", 2, r.values("down_s", armYield)),
				atMost("seconds until the write p95 is under twice that before", 5, r.values("calm_s", armYield)),
			}
		},
	}
}

// downAfter is how long after the reads joined the limit was 1, in seconds.
func downAfter(p *phase) float64 {
	joined := p.From + p.Lead
	for _, g := range p.Gauges {
		if g.At >= joined && g.Gate != nil && g.Gate.Limit <= 1 {
			return (g.At - joined).Seconds()
		}
	}
	return never
}

// calmAfter is how long after the reads joined two seconds began, each of which had a write
// p95 under twice the idle one, in seconds.
func calmAfter(p *phase, idle float64) float64 {
	for at := p.Lead; at+2*time.Second <= p.To-p.From; at += 250 * time.Millisecond {
		if p95In(p, at, at+time.Second) < 2*idle && p95In(p, at+time.Second, at+2*time.Second) < 2*idle {
			return (at - p.Lead).Seconds()
		}
	}
	return never
}

// When a load of relief changes, after the reads joined.
const (
	reliefAt   = 7 * time.Second
	reliefLead = 3 * time.Second
)

// relief is the end of an overload: writes stop, or reads turn light.
func relief(name, params string, writesStop bool) *scenario {
	after, length, about := 5*time.Second, 9*time.Second, "Overload, then no writes any more."
	if !writesStop {
		after, length, about = 10*time.Second, 13*time.Second, "Overload, then short reads with pauses, beside the same writes."
	}
	changed := reliefLead + reliefAt
	return &scenario{
		name: name, about: about,
		arms:   append(some(allArms(params), armPlain), yieldArm(armYield, params, pgyield.Options{})),
		timing: timing{reliefLead, 0, reliefAt + length},
		setUp: func(db *database, l *load) {
			l.read = db.read
			if writesStop {
				l.writeFor = changed
				return
			}
			l.read = func(ctx context.Context, p pool, at time.Duration) error {
				if at < changed {
					return db.read(ctx, p, at)
				}
				pause(ctx, 20*time.Millisecond)
				return db.point(ctx, p, at)
			}
		},
		custom: func(p *phase, f figures) { f["reads_after"] = readsIn(p, changed+after, changed+length) },
		claims: func(r runs) []claim {
			return []claim{atLeast("reads from "+after.String()+" after on / pgxpool's", 0.95, r.ratio("reads_after", armYield, armPlain))}
		},
	}
}

// coldStart is a pool that is opened in the middle of an overload.
func coldStart(params string) *scenario {
	return &scenario{
		name: "cold start", about: "A pool that meets reads and writes at once, with nothing to compare with.",
		arms:   append(some(allArms(params), armIdle), yieldArm(armYield, params, pgyield.Options{})),
		timing: timing{0, 0, 12 * time.Second}, fixed: timing{measure: 4 * time.Second}, cold: true,
		setUp: func(db *database, l *load) { l.read = db.read },
		custom: func(p *phase, f figures) {
			late, end := 8*time.Second, p.To-p.From
			if end < late { // writes alone: without those that waited for connections to be made
				late = end / 2
			}
			f["p95_late_ms"] = p95In(p, late, end)
		},
		claims: func(r runs) []claim {
			return []claim{atMost("write p95 from 8 s on / with no reads", 2, r.ratio("p95_late_ms", armYield, armIdle))}
		},
	}
}

// lowRate is writes that are few, by a program that thinks inside its transactions.
func lowRate(params string) *scenario {
	const calm = 10 * time.Second
	lead := 5 * time.Second
	return &scenario{
		name: "two writes a second", about: "Writes with a pause inside, beside light reads and then greedy aggregates.",
		arms:   []arm{yieldArm(armYield, params, pgyield.Options{})},
		timing: timing{lead, 0, calm + 17*time.Second},
		setUp: func(db *database, l *load) {
			l.rate, l.write = 2, db.think
			l.read = func(ctx context.Context, p pool, at time.Duration) error {
				if at >= lead+calm {
					return db.read(ctx, p, at)
				}
				pause(ctx, 50*time.Millisecond)
				return db.point(ctx, p, at)
			}
		},
		custom: func(p *phase, f figures) {
			f["calm_cuts"], f["cut_s"] = 0, never
			for _, d := range p.Decisions {
				at := d.At - p.From - lead - calm
				switch {
				case d.To >= d.From:
				case at < 0:
					f["calm_cuts"]++
				default:
					f["cut_s"] = min(f["cut_s"], at.Seconds())
				}
			}
		},
		claims: func(r runs) []claim {
			return []claim{
				atMost("cuts in calm", 0, r.values("calm_cuts", armYield)),
				atMost("seconds until the first cut", 15, r.values("cut_s", armYield)),
			}
		},
	}
}

// tenMinutes is whether a long overload is borne as well at its end as at its beginning.
func tenMinutes(params string) *scenario {
	const half = 5 * time.Minute
	lead := 5 * time.Second
	return &scenario{
		name: "ten minutes", about: "Steady overload by 16 greedy aggregates.", rounds: 1,
		arms:   append(some(allArms(params), armIdle, armStatic(1), armStatic(2)), yieldArm(armYield, params, pgyield.Options{})),
		timing: timing{lead, half, half}, fixed: timing{time.Second, 2 * time.Second, 30 * time.Second},
		setUp: func(db *database, l *load) { l.read = db.read },
		custom: func(p *phase, f figures) {
			if !gated(p) {
				return
			}
			f["cuts_first"], f["cuts_last"] = 0, 0
			first, last := p95In(p, lead, lead+half), p95In(p, lead+half, lead+2*half)
			f["p95_halves"] = last / first
			for _, d := range p.Decisions {
				if at := d.At - p.From - lead; d.To < d.From && at < half {
					f["cuts_first"]++
				} else if d.To < d.From {
					f["cuts_last"]++
				}
			}
			f["more_cuts"] = f["cuts_last"] - f["cuts_first"]
		},
		claims: func(r runs) []claim {
			return []claim{
				atMost("last five minutes: write p95 / with no reads", 1.5, r.ratio("write_p95_ms", armYield, armIdle)),
				atMost("last five minutes: write p99 / that of a read pool of 1", 1.25, r.ratio("write_p99_ms", armYield, armStatic(1))),
				atLeast("last five minutes: reads done / those of a read pool of 1", 0.95, r.ratio("reads_per_s", armYield, armStatic(1))),
				atMost("write p95 of the last five minutes / of the first (a tenth is noise)", 1.1, r.values("p95_halves", armYield)),
				atMost("cuts of the last five minutes less those of the first", 0, r.values("more_cuts", armYield)),
			}
		},
	}
}
