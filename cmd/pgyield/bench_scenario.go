package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pgyield/pgyield"
)

// scenario is one load that arms take turns at.
type scenario struct {
	name, about string
	arms        []arm
	// setUp describes the load to a phase; the arm's pool is there already.
	setUp func(db *database, l *load)
	timing
	// fixed is that of arms that learn nothing; zero: the same.
	fixed timing
	// cold leaves the connections as they are opened.
	cold bool
	// rounds: 0: as many as asked for.
	rounds int
	// custom adds figures of the scenario's own to those every run has.
	custom func(p *phase, f figures)
	claims func(r runs) []claim
}

// timing is when reads join, how long after that is left out, and how long is measured.
type timing struct{ lead, settle, measure time.Duration }

func (s *scenario) timingOf(a arm) timing {
	if !a.learns && s.fixed != (timing{}) {
		t := s.fixed
		t.measure = max(t.measure, a.measure)
		return t
	}
	t := s.timing
	if a.measure > 0 && a.measure < t.measure {
		t.settle, t.measure = min(t.settle, 5*time.Second), a.measure
	}
	return t
}

// claimed are the claims that the runs allow: not those for which an arm was not run.
func (s *scenario) claimed(r runs) []claim {
	var list []claim
	for _, c := range s.claims(r) {
		if len(c.Rounds) > 0 {
			c.Scenario = s.name
			list = append(list, c)
		}
	}
	return list
}

// scenarios are all of the benchmark, or those of its quick form.
func scenarios(params string, quick bool) []*scenario {
	if quick {
		heavy := steady("aggregates", "Cached aggregates, bound by the processor.", params, (*database).read)
		heavy.arms = measured(some(heavy.arms, armIdle, armPlain, armStatic(1), armStatic(2), armFailsafe, armYield), 0)
		return []*scenario{heavy, lightControl(params, "bulk load", (*database).bulkLoad, 0, 6*time.Second)}
	}
	list := []*scenario{
		steady("aggregates", "Cached aggregates, bound by the processor.", params, (*database).read),
		fewerArms(steady("sorts", "Sorts with temporary files.", params, (*database).sort)),
		fewerArms(steady("scans", "Scans of a table that the server's cache does not hold.", params, (*database).scan)),
		points("paced point reads", "Reads by key from 16 callers that pause 20 ms, beside the same writes.", params, 20*time.Millisecond, 0),
		points("greedy point reads", "Reads by key from 12 callers without a pause, so below the limit, beside one write a second.", params, 0, 1),
		onset(params), relief("relief: writes stop", params, true), relief("relief: reads turn light", params, false), coldStart(params),
		lowRate(params), pollCost(params),
	}
	const control = 8 * time.Second
	return append(list,
		lightControl(params, "bulk load", (*database).bulkLoad, 0, control),
		lightControl(params, "hot row", (*database).hotRow, 0, control),
		lightControl(params, "2000 writes/s", nil, 2000, control),
		lightControl(params, "checkpoints", (*database).checkpoints, 0, control),
		blameless(params, "bulk load", (*database).bulkLoad, 0),
		blameless(params, "hot row", (*database).hotRow, 0),
		blameless(params, "2000 writes/s", nil, 2000),
		tenMinutes(params),
	)
}

// steady is a load that does not change: greedy reads beside small writes.
func steady(name, about, params string, read func(*database, context.Context, pool, time.Duration) error) *scenario {
	s := &scenario{
		name: name, about: about, arms: measured(allArms(params), 20*time.Second),
		// The level is found in the time left out. The 40 s hold one try of the level that
		// pressed; later tries are a minute apart ("ten minutes" measures those).
		timing: timing{3 * time.Second, 12 * time.Second, 40 * time.Second},
		fixed:  timing{time.Second, time.Second, 6 * time.Second},
		setUp: func(db *database, l *load) {
			l.read = func(ctx context.Context, p pool, at time.Duration) error { return read(db, ctx, p, at) }
		},
	}
	s.claims = steadyClaims
	return s
}

// fewerArms leaves out what the first steady load has shown.
func fewerArms(s *scenario) *scenario {
	s.arms = slices.DeleteFunc(s.arms, func(a arm) bool { return a.name == armShadow || strings.HasPrefix(a.name, tolerantPrefix) })
	return s
}

func steadyClaims(r runs) []claim {
	if !r.has(armYield) || !r.has(armIdle) || !r.has(armStatic(1)) {
		return nil
	}
	list := []claim{
		atMost("write p95 / with no reads", 1.5, r.ratio("write_p95_ms", armYield, armIdle)).
			beside("pgxpool", r.ratio("write_p95_ms", armPlain, armIdle)).
			beside("best fixed", r.ratio("write_p95_ms", r.best(staticNames(), "write_p95_ms"), armIdle)),
		atMost("write p99 / that of a read pool of 1", 1.25, r.ratio("write_p99_ms", armYield, armStatic(1))),
	}
	rival, ok := r.bestStatic()
	if ok {
		list = append(list, atLeast("reads done / those of the best fixed pool whose write p99 is at most 1.15 times pgyield's ("+rival+")",
			0.95, r.ratio("reads_per_s", armYield, rival)))
	}
	if r.has(armFailsafe) {
		list = append(list, r.noneBetter())
	}
	for _, n := range tolerances {
		if tolerant := armTolerant(n); r.has(tolerant) {
			list = append(list,
				atLeast(fmt.Sprintf("tolerance %d: reads done / those of a read pool of 2", n), 0.9, r.ratio("reads_per_s", tolerant, armStatic(2))),
				atMost(fmt.Sprintf("tolerance %d: write p95 / with no reads", n), float64(n)+0.5, r.ratio("write_p95_ms", tolerant, armIdle)).
					beside("read pool of 2", r.ratio("write_p95_ms", armStatic(2), armIdle)))
		}
	}
	return list
}

func staticNames() []string {
	var names []string
	for _, k := range statics {
		names = append(names, armStatic(k))
	}
	return names
}

// points are short reads, which must not be slower for the gate.
func points(name, about, params string, wait time.Duration, rate int) *scenario {
	return &scenario{
		name: name, about: about, arms: some(allArms(params), armPlain, armYield, armShadow),
		timing: timing{2 * time.Second, time.Second, 5 * time.Second},
		setUp: func(db *database, l *load) {
			l.read, l.pause = db.point, wait
			if rate > 0 {
				l.rate, l.readers = rate, 12
			}
		},
		claims: func(r runs) []claim {
			return []claim{
				atLeast("reads / pgxpool's", 0.98, r.ratio("reads_per_s", armYield, armPlain)),
				atMost("reads refused", 0, r.values("refused", armYield)),
			}
		},
	}
}

// lightControl is writes that are busy or slow by themselves, beside reads that are few.
func lightControl(params, name string, beside func(*database, context.Context) error, rate int, measure time.Duration) *scenario {
	return &scenario{
		name: "light reads: " + name, about: "Writes that are busy by themselves, beside four callers of short reads.",
		arms:   []arm{yieldArm(armYield, params, pgyield.Options{})},
		timing: timing{3 * time.Second, time.Second, measure},
		setUp: func(db *database, l *load) {
			l.read, l.readers, l.pause = db.point, 4, 20*time.Millisecond
			withBeside(db, l, beside, rate)
		},
		claims: func(r runs) []claim {
			return []claim{
				atMost("reads refused", 0, r.values("refused", armYield)),
				atLeast("share of time with the limit at its start", 0.95, r.values("at_start", armYield)),
			}
		},
	}
}

// withBeside adds the load of a control: work outside the pool, or own writes at a rate.
func withBeside(db *database, l *load, beside func(*database, context.Context) error, rate int) {
	if beside != nil {
		l.beside = func(ctx context.Context) error { return beside(db, ctx) }
		l.besideAt = l.lead
	}
	if rate > 0 {
		l.rate = rate
	}
}

// blameless is reads that contend for a low limit and use nothing: whatever writes suffer
// from, it is not them.
func blameless(params, name string, beside func(*database, context.Context) error, rate int) *scenario {
	return &scenario{
		name: "sleeping reads: " + name, about: "Greedy reads that only sleep, at a limit of 4, beside writes that are slow by themselves.",
		arms:   []arm{lowLimitArm(params)},
		timing: timing{3 * time.Second, 15 * time.Second, 12 * time.Second},
		setUp: func(db *database, l *load) {
			l.read = db.sleep
			withBeside(db, l, beside, rate)
		},
		claims: func(r runs) []claim {
			return []claim{atLeast("share of time with the limit at half its start or more", 0.9, r.values("at_half", armYield))}
		},
	}
}

// lowLimitArm starts at a limit of 4, or at what a smaller pool has.
func lowLimitArm(params string) arm {
	return yieldArmOf(armYield, func(conns int) string { return fmt.Sprintf("%s yield_read_limit=%d", params, min(4, conns)) }, pgyield.Options{})
}

// bestStatic is the fixed read pool with the most reads among those whose writes are about
// as well off as pgyield's.
func (r runs) bestStatic() (string, bool) {
	bound := 1.15 * r.median("write_p99_ms", armYield)
	best, found := "", false
	for _, name := range staticNames() {
		if !r.has(name) || r.median("write_p99_ms", name) > bound {
			continue
		}
		if !found || r.median("reads_per_s", name) > r.median("reads_per_s", best) {
			best, found = name, true
		}
	}
	return best, found
}

// best is the arm with the lowest median of a figure.
func (r runs) best(names []string, key string) string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !r.has(name) })
	return slices.MinFunc(names, func(a, b string) int {
		switch x, y := r.median(key, a), r.median(key, b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
}

// noneBetter counts the peers with both better writes and more reads.
func (r runs) noneBetter() claim {
	better := 0.0
	c := atMost("peers with both a lower write p99 and more reads", 0, nil)
	for _, name := range peers {
		if !r.has(name) {
			continue
		}
		p99, reads := r.median("write_p99_ms", name), r.median("reads_per_s", name)
		if p99 < r.median("write_p99_ms", armYield) && reads > r.median("reads_per_s", armYield) {
			better++
		}
		c.Beside = append(c.Beside, fmt.Sprintf("%s: p99 %.3g ms, %.3g reads/s", name, p99, reads))
	}
	c.Rounds, c.Value = []float64{better}, better
	c.judge()
	return c
}
