package adaptive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// Limiter is the limit that is moved.
type Limiter interface {
	// Limit returns the limit, SetLimit sets it.
	Limit() int
	SetLimit(limit int)
	// EndPeriod ends a period and reports whether the limit held a read back in it.
	EndPeriod() (contended bool)
	// Bounds returns where cuts end, where the limit started, and how far it may
	// climb. They may change while it runs.
	Bounds() (floor, start, ceiling int)
}

// Sharer is a [Limiter] whose limit is a part of one that others share, who see the same
// writes.
type Sharer interface {
	// Beside is told, once a period, whether the limit does not climb because a little more
	// has pressed lately. It tells whether the others run more than this one: then what
	// pressed was not this limit's height, and it climbs all the same.
	Beside(holds bool) (behind bool)
}

// Prober is a [Limiter] that can be raised for one filling: once the new limit has been used
// whole, no more than the old one is let in until the limit is set again. So a level that
// pressed before is judged by the reads that fill it, and the writes do not pay for those
// that would follow them within the same period.
type Prober interface {
	Probe(limit int)
}

// Paced is a source of samples that keeps a pace of its own: it is asked as often as
// Pressure.Period says, however many sessions the server has.
type Paced interface {
	pressure.Source
	Paced()
}

// Decision is what one period led to.
type Decision struct {
	At       time.Time
	From, To int
	// Pressing: writes suffered. Contended: the limit held a read back.
	Pressing, Contended bool
	// Reason says why the limit went where it did.
	Reason string
	// AtFloor is how long the limit has been at its floor, below its start; 0 when
	// it is not.
	AtFloor time.Duration
	// Sample is the last sample, Sampled whether it arrived in this period, Err why
	// none did.
	Sample  pressure.Sample
	Sampled bool
	Err     error
	// Activity and Verdict are what the decision rests on.
	Activity pressure.Activity
	Verdict  pressure.Verdict
}

// Limit moves a limit by how writes fare. All methods are safe for concurrent use.
type Limit struct {
	limiter Limiter
	source  pressure.Source // nil: own writes alone
	options Options
	rule    rule

	// turn is held by the one evaluation at a time. It guards the fields below it.
	turn       chan struct{}
	judge      *pressure.Judge
	state      state
	probed     bool // the limit was raised for one filling
	floorSince time.Time
	news       news

	loop loop

	mu     sync.Mutex // guards what follows; never held over a call to others
	last   Decision
	sample pressure.Sample
	failed bool // the last poll failed or is overdue
	blind  bool // nothing to judge by for StaleAfter periods
	counts Counts
}

// Counts count since the limit was made.
type Counts struct {
	// Lowered and Raised are how often the limit was lowered and raised.
	Lowered, Raised int
	// Periods are the periods judged, by pressing and contended.
	Periods [2][2]uint64
	// Unknown are those among them with nothing to judge by.
	Unknown uint64
	// GivenBack are the series of cuts taken back because they did not help.
	GivenBack int
}

// New returns a limit that moves limiter by what source and own writes tell. Source
// may be nil: own writes alone are judged then. Nothing moves until Start, or
// Evaluate is called.
func New(limiter Limiter, source pressure.Source, options Options) (*Limit, error) {
	if limiter == nil {
		return nil, errors.New("pgyield: adaptive.New needs a limiter")
	}
	options, err := options.normalize()
	if err != nil {
		return nil, err
	}
	judge, err := pressure.NewJudge(options.Tolerance, options.Pressure)
	if err != nil {
		return nil, err
	}
	return &Limit{
		limiter: limiter, source: source, options: options, judge: judge,
		turn: make(chan struct{}, 1),
		rule: rule{periods: options.Periods, hold: options.Hold, holdMax: options.HoldMax, staleAfter: options.StaleAfter},
	}, nil
}

// poll is the outcome of asking the source.
type poll struct {
	sample pressure.Sample
	err    error
	none   bool // it was not asked, or has not answered yet
}

// Evaluate ends a period: it asks the source, judges, and moves the limit. It is
// what the loop does; tests and callers with a clock of their own may call it. It
// takes as long as the source takes.
func (l *Limit) Evaluate(ctx context.Context) Decision {
	p := poll{none: true}
	if l.source != nil {
		p.none = false
		p.sample, p.err = l.source.Sample(ctx)
	}
	return l.evaluate(p)
}

// evaluate decides by a poll's outcome, and tells of it when that is done.
func (l *Limit) evaluate(p poll) Decision {
	l.turn <- struct{}{}
	d := l.decide(p)
	said := l.news.of(d, l.state, l.options.FloorAfter)
	<-l.turn

	for _, line := range said {
		l.options.Logger.LogAttrs(context.Background(), line.level, line.text, line.attrs...)
	}
	if l.options.OnDecision != nil {
		l.options.OnDecision(d)
	}
	return d
}

// decide judges one period and moves the limit. The caller holds the turn.
func (l *Limit) decide(p poll) Decision {
	now := time.Now()
	d := Decision{At: now, From: l.limiter.Limit(), Err: p.err}
	d.Contended = l.limiter.EndPeriod()
	var bounds Bounds
	bounds.Floor, bounds.Start, bounds.Ceiling = l.limiter.Bounds()
	d.Activity = l.activity(d)
	behind := false
	if f, ok := l.limiter.(Sharer); ok {
		behind = f.Beside(l.state.hold.blocks(d.From+1, now))
	}

	var sample *pressure.Sample
	switch {
	case p.none:
	case p.err != nil:
		l.judge.Lost()
	default:
		sample, d.Sampled = &p.sample, true
	}
	d.Verdict = l.judge.Next(now, sample, d.Activity)
	d.Pressing = d.Verdict.Pressing

	d.Sample = l.Last()
	if d.Sampled {
		d.Sample = p.sample
	}
	var every time.Duration
	if d.Sample.Sparse() {
		every = d.Sample.Every
	}
	var out outcome
	before := l.state.hold
	l.state, out = l.rule.next(l.state, input{
		now: now, limit: d.From, bounds: bounds, contended: d.Contended, behind: behind, every: every,
		activity: d.Activity, verdict: d.Verdict,
	})
	d.To, d.Reason = out.to, out.reason
	l.move(d, l.state.hold.probing && !before.probing)
	d.AtFloor = l.atFloor(now, d.To, bounds)
	l.publish(&d, p)
	return d
}

// move brings the limit to where a period has led. With probe, that is a level that pressed,
// reached again.
func (l *Limit) move(d Decision, probe bool) {
	prober, ok := l.limiter.(Prober)
	probe = probe && ok
	switch {
	case probe:
		prober.Probe(d.To)
	case d.To != d.From || l.probed: // a level that stays is no longer probed
		l.limiter.SetLimit(d.To)
	}
	l.probed = probe
}

// activity is what the program did, or what may be assumed when it does not tell.
func (l *Limit) activity(d Decision) pressure.Activity {
	var a pressure.Activity
	if l.options.Activity != nil {
		a = l.options.Activity()
	} else if a.Running = 1; d.Contended {
		a.Running = d.From
	}
	a.Limit, a.Contended = d.From, d.Contended
	a.Probing = l.state.dip.learning()
	return a
}

func (l *Limit) atFloor(now time.Time, limit int, b Bounds) time.Duration {
	if limit > b.low() || limit >= b.Start {
		l.floorSince = time.Time{}
		return 0
	}
	if l.floorSince.IsZero() {
		l.floorSince = now
	}
	return now.Sub(l.floorSince)
}

// publish makes a decision visible to the other methods.
func (l *Limit) publish(d *Decision, p poll) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sample = d.Sample
	if !p.none {
		l.failed = p.err != nil
	}
	l.blind = l.state.unknown > l.options.StaleAfter
	switch {
	case d.To < d.From:
		l.counts.Lowered++
	case d.To > d.From:
		l.counts.Raised++
	}
	if d.Reason == reasonUnhelpful {
		l.counts.GivenBack++
	}
	if !d.Verdict.Known {
		l.counts.Unknown++
	}
	l.counts.Periods[index(d.Pressing)][index(d.Contended)]++
	l.last = *d
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Reset forgets everything that was learned: baselines, holds and counts in a row.
// The limit stays where it is.
func (l *Limit) Reset() {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	l.judge.Reset()
	l.state, l.floorSince = state{}, time.Time{}
}

// Counts returns a snapshot of the counters.
func (l *Limit) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Lowered returns how often the limit was lowered.
func (l *Limit) Lowered() int { return l.Counts().Lowered }

// Raised returns how often the limit was raised.
func (l *Limit) Raised() int { return l.Counts().Raised }

// Floor returns where cuts end: the floor, or the ceiling when that is lower.
func (l *Limit) Floor() int {
	floor, start, ceiling := l.limiter.Bounds()
	return Bounds{Floor: floor, Start: start, Ceiling: ceiling}.low()
}

// Last returns the last sample; the zero Sample when there was none.
func (l *Limit) Last() pressure.Sample {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sample
}

// LastDecision returns the last period's decision; the zero Decision before it.
func (l *Limit) LastDecision() Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Pressing reports whether the last period pressed.
func (l *Limit) Pressing() bool { return l.LastDecision().Pressing }

// Blind reports whether the source's last poll failed or is overdue, or there has
// been nothing to judge by for StaleAfter periods.
func (l *Limit) Blind() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed || l.blind
}

// String describes the limit in one line.
func (l *Limit) String() string {
	d := l.LastDecision()
	floor, start, ceiling := l.limiter.Bounds()
	return fmt.Sprintf("limit %d (floor %d, start %d, ceiling %d), pressing %t, contended %t: %s",
		l.limiter.Limit(), floor, start, ceiling, d.Pressing, d.Contended, d.Reason)
}
