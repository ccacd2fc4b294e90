package pressure

import (
	"math"
	"time"
)

// Judge is the rule's memory: baselines, windows and hysteresis. Give it each
// period once, in order. It is not safe for concurrent use. Make one with
// [NewJudge].
//
// A baseline is what a signal is when reads are quiet: at most one runs and none
// waits. Until such a stretch was seen, periods in which the limit held nothing
// back stand in for it. Nothing that presses is ever learned as normal, however
// long it lasts.
type Judge struct {
	own    own
	server server

	last    time.Time // end of the last period
	loud    time.Time // end of the last period with more than one read, or a waiting one
	contend time.Time // end of the last period in which the limit held one back
	press   time.Time // end of the last period that pressed
	unheld  time.Time // when probing began; zero when it is not
}

// NewJudge returns a judge. Tolerance is how many times its idle latency a write
// may take before a period presses: 1.1 to 100, 0 for [DefaultTolerance]. The
// server's signals follow it. Of options it uses the thresholds and Period.
func NewJudge(tolerance float64, options Options) (*Judge, error) {
	if tolerance == 0 {
		tolerance = DefaultTolerance
	}
	if err := checkTolerance(tolerance); err != nil {
		return nil, err
	}
	options, err := options.Normalize()
	if err != nil {
		return nil, err
	}
	// WAL sync time grows faster than write latency does: 2 times where that is at
	// 1.6, near 5 where that is at 3.
	steep := math.Pow(tolerance, 1.5)
	scale := (tolerance - 1) / (DefaultTolerance - 1)
	least := func(d time.Duration) time.Duration { return time.Duration(scale * float64(d)) }
	j := &Judge{}
	j.own = own{tolerance: tolerance, absolute: options.OwnWrites}
	j.server = server{
		maxAge:    max(2*time.Second, 4*options.Period),
		sync:      level{name: WALSync, factor: steep, absolute: options.WALSync},
		wait:      level{name: WALWait, factor: steep, least: least(time.Millisecond), absolute: options.WALWait},
		statement: level{name: WriteStatement, factor: steep, least: least(3 * time.Millisecond), absolute: options.WriteStatement},
		lock:      level{name: LockWait, factor: 1.5 * steep, least: least(5 * time.Millisecond), absolute: options.LockWait},
	}
	return j, nil
}

// Lost tells the judge that a poll failed: what the server said last does not hold
// any more. Its baselines do.
func (j *Judge) Lost() { j.server.seen, j.server.lost = true, true }

// Reset forgets everything, as when another server answers.
func (j *Judge) Reset() {
	fresh := Judge{own: own{tolerance: j.own.tolerance, absolute: j.own.absolute}}
	fresh.server = server{maxAge: j.server.maxAge, seen: j.server.seen}
	before, after := j.server.levels(), fresh.server.levels()
	for i, l := range before {
		*after[i] = level{name: l.name, factor: l.factor, least: l.least, absolute: l.absolute}
	}
	fresh.last = j.last
	*j = fresh
}

// Next judges the period that ends now: sample is the one that arrived in it, nil
// when none did; activity is what the program did in it.
func (j *Judge) Next(now time.Time, sample *Sample, activity Activity) Verdict {
	dt := now.Sub(j.last)
	if j.last.IsZero() || dt < 0 {
		dt = 0
	}
	if sample != nil && j.server.add(now, *sample) {
		kept := j.server.samples
		j.Reset()
		j.server.samples, j.server.evaluated = kept, sample.ServerTime
	}
	j.note(now, activity, dt)
	for _, l := range j.server.levels() {
		l.signal.Fresh = false
	}
	j.judgeServer(sample != nil, activity)
	j.judgeOwn(now, activity, dt)
	j.last = now

	v := j.verdict(now, activity)
	if v.Pressing {
		j.press = now
	}
	return v
}

// note remembers when reads were last about, by which windows are classed.
func (j *Judge) note(now time.Time, a Activity, dt time.Duration) {
	if a.concurrency(dt) > 1 || a.Waiting > 0 {
		j.loud = now
	}
	if a.Contended || a.Waiting > 0 {
		j.contend = now
	}
	switch {
	case !a.Probing:
		j.unheld = time.Time{}
	case j.unheld.IsZero():
		j.unheld = now.Add(-dt)
	}
}

// kind says what a window from since until now may teach.
func (j *Judge) kind(a Activity, pressing bool) func(since time.Time) windowKind {
	return func(since time.Time) windowKind {
		inside := func(t time.Time) bool { return t.After(since) }
		switch {
		case a.Probing && since.Before(j.unheld):
			return held
		case a.Probing:
			return probing
		case !inside(j.loud) && !pressing && !inside(j.press):
			return quiet
		case pressing || inside(j.press):
			return pressed
		case inside(j.contend):
			return contended
		default:
			return loud
		}
	}
}

func (j *Judge) judgeServer(sampled bool, a Activity) {
	if !sampled || j.server.last().Standby {
		return
	}
	length := window
	if a.Probing {
		length = windowStep // a probe is too short for a whole window
	}
	if j.server.due(length) {
		j.server.evaluate(a, length, j.kind(a, j.own.signal.Pressing))
	}
}

func (j *Judge) judgeOwn(now time.Time, a Activity, dt time.Duration) {
	o := &j.own
	o.signal.Fresh, o.strong = false, false
	enough := o.observe(now, a, dt)
	if !o.moving(now) {
		o.stop()
		return
	}
	kind := j.kind(a, false)(o.since)
	switch {
	case a.Probing && kind == held:
		// What ran before the probe drained tells nothing of the floor.
		o.acc, o.since = WriteStats{}, now
	case enough:
		o.judge(a)
		o.learn(now, j.kind(a, o.signal.Pressing || j.serverPressing(now))(o.since))
	case a.Probing && o.acc.Count > 0:
		o.learn(now, probing)
	}
}

func (j *Judge) serverPressing(now time.Time) bool {
	if !j.server.fresh(now) {
		return false
	}
	for _, l := range j.server.levels() {
		if l.signal.Pressing {
			return true
		}
	}
	return false
}

// verdict puts the signals together.
func (j *Judge) verdict(now time.Time, a Activity) Verdict {
	var v Verdict
	fresh := j.server.fresh(now)
	if fresh && j.server.last().Standby {
		return Verdict{Known: true, Fresh: true, Reason: "standby: it takes no writes"}
	}
	v.Signals = j.signals(fresh)
	serverMoves, serverKnown := false, false
	if fresh {
		serverMoves, serverKnown = j.server.writing()
		v.Freeze = j.server.frozen()
	}
	ownMoves := j.own.moving(now)
	v.WritesMove = ownMoves || serverMoves
	v.NeedBaseline = j.needBaseline(ownMoves, serverMoves)

	switch {
	case !a.reading():
		v.Known, v.Fresh, v.Reason = true, true, "no reads"
	case !v.WritesMove && (serverKnown || !j.server.seen):
		v.Known, v.Fresh, v.Reason = true, true, "no writes"
	default:
		j.weigh(&v)
	}
	if !v.Pressing {
		for i := range v.Signals {
			v.Signals[i].Pressing = false
		}
	}
	return v
}

// weigh decides by the signals, given that reads and writes are about.
func (j *Judge) weigh(v *Verdict) {
	lead, pressing := v.Leading()
	for _, s := range v.Signals {
		if s.Threshold > 0 && s.Name != RelationLock {
			v.Known = true
			v.Fresh = v.Fresh || (s.Fresh && (s.Pressing || !pressing))
		}
	}
	switch {
	case pressing:
		v.Pressing, v.Strong = true, j.own.strong
		v.Reason = lead.Reason()
	case v.Known:
		v.Reason = "calm"
	default:
		v.Reason = "nothing to judge by"
	}
}

// signals lists those that are known.
func (j *Judge) signals(fresh bool) []Signal {
	var list []Signal
	if j.own.judged {
		list = append(list, j.own.signal)
	}
	if !fresh {
		return list
	}
	for _, l := range j.server.levels() {
		if l.judged {
			list = append(list, l.signal)
		}
	}
	if j.server.relation.Name != "" {
		list = append(list, j.server.relation)
	}
	return list
}

// needBaseline is true when writes move and what would judge them has no quiet
// baseline, but could soon have one.
func (j *Judge) needBaseline(ownMoves, serverMoves bool) bool {
	if ownMoves {
		return j.own.absolute == 0 && j.own.rate >= teachableRate && (!j.own.usable() || !j.own.baseQuiet)
	}
	if !serverMoves || j.server.last().Sparse() {
		return false // with polls that rare it takes a calm stretch of some
	}
	for _, l := range j.server.levels() {
		if l.absolute > 0 || (l.has && l.baseQuiet) {
			return false
		}
	}
	return true
}
