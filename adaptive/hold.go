package adaptive

import "time"

// hold remembers the lowest level at which writes suffered, and until when it is
// not to be reached again. The zero hold holds nothing.
type hold struct {
	level  int // 0: none
	until  time.Time
	length time.Duration

	probing bool      // the level was reached again, to see whether it presses
	since   time.Time // when that began, or when it last pressed
	seen    int       // judgements since then
	calm    bool      // one of the probe's did not press
}

// blocks is true when the limit must not climb to that level yet.
func (h *hold) blocks(level int, now time.Time) bool {
	return h.level > 0 && level >= h.level && now.Before(h.until)
}

// raised takes note that the limit climbed to that level.
func (h *hold) raised(level int, now time.Time) {
	if h.level > 0 && level >= h.level && !h.probing {
		h.probing, h.since, h.seen, h.calm = true, now, 0, false
	}
}

// pressed takes note of a cut at that level. Descending is true while the limit has
// not been raised since the last cut: then it is one descent, not a failed probe.
func (h *hold) pressed(level int, now time.Time, descending bool, shortest, longest time.Duration) {
	double := func() { h.length = min(max(2*h.length, shortest), longest) }
	switch {
	case h.level == 0:
		h.level, h.length, h.until = level, shortest, now.Add(shortest)
	case level >= h.level:
		if !descending {
			double()
		}
		h.until = now.Add(max(h.length, shortest))
	default:
		// A lower level pressed on the way. Unless that is the descent, the wait
		// is not begun again: or load that comes and goes would push the level
		// down for ever, never to be tried.
		h.level = level
		if descending {
			h.until = now.Add(max(h.length, shortest))
		}
	}
	h.probing = false
}

// doubted takes note of a cut at that level for what may as well have had other reasons: it
// waits for a while, no longer than something does already, and nothing is doubled.
func (h *hold) doubted(level int, now time.Time, wait time.Duration) {
	if h.level == 0 || level < h.level {
		h.level = level
	}
	if until := now.Add(wait); until.After(h.until) {
		h.until = until
	}
	h.probing = false
}

// outlasted ends a probe that has gone on for long enough, and reports whether it
// is still going on.
func (h *hold) outlasted(now time.Time, enough time.Duration, fresh bool) (ongoing bool) {
	if !h.probing {
		return false
	}
	if fresh {
		h.seen++
		h.calm = true
	}
	// Where writes are few, time alone proves nothing.
	if now.Sub(h.since) < enough || h.seen < probeJudgements {
		return true
	}
	*h = hold{}
	return false
}

const probeJudgements = 2

// proof remembers the highest limit that was calm for long enough. One bad window
// alone, against a limit that has lasted, is not believed the first time: it cuts, but
// marks no level. Else load with a bad window now and then would mark one level after
// the other.
type proof struct {
	good  int
	limit int
	since time.Time
	seen  int // judgements at that limit since then
}

// calm takes in a calm period at a limit and reports whether that limit has lasted.
func (p *proof) calm(now time.Time, limit int, enough time.Duration, fresh bool) (lasted bool) {
	if p.limit != limit {
		p.limit, p.since, p.seen = limit, now, 0
		return false
	}
	if fresh {
		p.seen++
	}
	if p.seen < probeJudgements || now.Sub(p.since) < enough {
		return false
	}
	p.good = max(p.good, limit)
	return true
}

// refute takes in a cut and reports whether that limit had lasted.
func (p *proof) refute(limit int) (lasted bool) {
	lasted = limit <= p.good
	p.good, p.limit = min(p.good, limit-1), 0
	return lasted
}

// demand notices that the load which made a hold has gone: the rate of writes or the
// service time of reads has halved at an unchanged limit. The zero demand is ready.
type demand struct {
	limit int

	writes, writeTime float64 // in the window; seconds
	writeRate         float64 // per second, the highest seen at this limit

	reads, readTime float64 // in the window; the sum of seconds served
	service         float64 // mean seconds, first seen at this limit
}

const (
	fewWrites = 30 // fewer expected in a window could be half by chance
	fewReads  = 8
)

// halved takes in a calm period of length dt.
func (d *demand) halved(limit int, dt time.Duration, writes, reads int, readTime time.Duration) (wrote, read bool) {
	if d.limit != limit {
		*d = demand{limit: limit}
	}
	d.writes += float64(writes)
	d.writeTime += dt.Seconds()
	if d.writeTime >= 1 && max(d.writes, d.writeRate*d.writeTime) >= fewWrites {
		rate := d.writes / d.writeTime
		wrote = rate < d.writeRate/2
		d.writeRate = max(d.writeRate, rate)
		d.writes, d.writeTime = 0, 0
	}
	d.reads += float64(reads)
	d.readTime += float64(reads) * readTime.Seconds()
	if d.reads >= fewReads {
		mean := d.readTime / d.reads
		read = d.service > 0 && mean < d.service/2
		if d.service == 0 || read {
			d.service = mean
		}
		d.reads, d.readTime = 0, 0
	}
	return wrote, read
}
