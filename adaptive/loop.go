package adaptive

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// loop is the background work of a Limit.
type loop struct {
	mu     sync.Mutex // guards the fields below
	cancel context.CancelFunc
	done   chan struct{}
}

// Start judges once a period in the background until Stop. Calls while it runs do
// nothing.
func (l *Limit) Start() {
	l.loop.mu.Lock()
	defer l.loop.mu.Unlock()
	if l.loop.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	l.loop.cancel, l.loop.done = cancel, done
	go func() {
		defer close(done)
		l.run(ctx)
	}()
}

// Stop ends what Start began and waits until it has ended; a poll in flight is
// cancelled. It does nothing when nothing runs. Start may follow.
func (l *Limit) Stop() {
	l.loop.mu.Lock()
	defer l.loop.mu.Unlock()
	if l.loop.cancel == nil {
		return
	}
	l.loop.cancel()
	<-l.loop.done
	l.loop.cancel, l.loop.done = nil, nil

	// A probe is for the next period to end, and there is none.
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	limit := l.limiter.Limit()
	l.move(Decision{From: limit, To: limit}, false)
}

// run judges each period by the newest answer of the source, which is asked beside
// it: own writes are judged on time however long a poll takes. Ticks that are missed
// are one period.
func (l *Limit) run(ctx context.Context) {
	// Processes that start together should not poll together.
	first := time.NewTimer(rand.N(l.options.Period))
	defer first.Stop()
	select {
	case <-ctx.Done():
		return
	case <-first.C:
	}
	ticker := time.NewTicker(l.options.Period)
	defer ticker.Stop()

	polls := poller{limit: l, answers: make(chan poll, 1)}
	defer polls.wait()
	for {
		polls.ask(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if ctx.Err() != nil {
			return
		}
		l.evaluate(polls.take(time.Now()))
	}
}

// poller asks the source in a goroutine of its own, at most one at a time.
type poller struct {
	limit   *Limit
	answers chan poll
	asked   time.Time // when the one in flight was asked; zero when there is none
	next    time.Time
}

// ask begins a poll when it is time and none is in flight: what was missed is not
// made up for.
func (p *poller) ask(ctx context.Context, now time.Time) {
	if p.limit.source == nil || !p.asked.IsZero() || now.Before(p.next) {
		return
	}
	p.asked = now
	// A tick that comes a little early should not cost a whole period.
	p.next = now.Add(p.every() - p.limit.options.Period/4)
	go func() {
		sample, err := p.limit.source.Sample(ctx)
		p.answers <- poll{sample: sample, err: err}
	}()
}

// every is how far apart polls are. A first baseline is learned in two seconds, and wants all
// polls that there can be.
func (p *poller) every() time.Duration {
	every := p.limit.options.Pressure.Period
	last := p.limit.LastDecision()
	if _, paced := p.limit.source.(Paced); paced || last.Reason == reasonBaseline {
		return every
	}
	return max(every, last.Sample.Pause())
}

// take returns the answer that has arrived, if one has.
func (p *poller) take(now time.Time) poll {
	select {
	case answer := <-p.answers:
		p.asked = time.Time{}
		return answer
	default:
	}
	if overdue := p.limit.options.Pressure.Timeout + p.limit.options.Period; !p.asked.IsZero() && now.Sub(p.asked) > overdue {
		return poll{err: errOverdue}
	}
	return poll{none: true}
}

// wait ends with the poll in flight.
func (p *poller) wait() {
	if !p.asked.IsZero() {
		<-p.answers
	}
}

// errOverdue stands for the answer of a source that has not answered in time.
var errOverdue = errors.New("pgyield: a poll of the database's write pressure is overdue")
