package fleetsim

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pgyield/pgyield/fleet"
)

// Run simulates. It ends early, with ctx's error, when ctx is done.
func Run(ctx context.Context, config Config) (Result, error) {
	c, err := config.validated()
	if err != nil {
		return Result{}, err
	}
	s := &simulation{
		Config: c,
		random: rand.New(rand.NewPCG(c.Seed, 0x9e3779b97f4a7c15)),
		names:  make([]string, c.Members),
		end:    (c.Warmup + c.Length).Seconds(),
		warm:   c.Warmup.Seconds(),
		beside: rand.New(rand.NewPCG(c.Seed, 1)),
		ids:    rand.New(rand.NewPCG(c.Seed, 2)),
	}
	if err := s.populate(); err != nil {
		return Result{}, err
	}
	for steps := 0; len(s.events) > 0; steps++ {
		if steps%4096 == 0 && ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		e := s.events.pop()
		if e.at > s.end {
			break
		}
		s.account(e.at)
		s.happen(e)
	}
	s.account(s.end)
	return s.result(), nil
}

// simulation is a run in progress. Times are seconds since its beginning.
type simulation struct {
	Config
	random, beside *rand.Rand // for the load; for all else, so that kinds meet the same load
	ids            *rand.Rand // members' names, so that a seed repeats a run whole
	events         events
	members        []*member
	names          []string // the bus: what each member's session is called
	weights        float64  // sum over members that are up
	now, warm, end float64
	running        int

	reads, tries, refusals, lost, polls, peak int
	excess                                    int
	over, area                                float64
	waits                                     waits
}

// member is one process: its limit, its queue, and its part in the fleet.
type member struct {
	up, deaf bool
	life     int // counts starts, so that events of an earlier life are void
	weight   float64
	running  int
	queue    []waiter
	served   int // waiters that left the queue's front, ever
	ceiling  int
	refused  int // since the last poll
	polled   float64
	fleet    *fleet.Member
}

// waiter is a read in a queue.
type waiter struct {
	since float64
	tries int
}

// happen is called with each event, at its time.
func (s *simulation) happen(e event) {
	m := s.members[e.member]
	switch e.kind {
	case arrive:
		s.arrive()
		return
	case retry:
		s.retry(e)
		return
	case change:
		s.change(s.Changes[e.number])
		return
	}
	if e.life != m.life {
		return // of a process that is gone
	}
	switch e.kind {
	case finish:
		m.running--
		s.running--
		s.dispatch(e.member)
	case giveUp:
		// All wait equally long, so the one that gives up is the first in the queue, if
		// it still waits.
		if m.served == e.number {
			w := m.queue[0]
			m.queue, m.served = m.queue[1:], m.served+1
			s.waited(s.now - w.since)
			s.refuse(e.member, w.tries)
		}
	case poll:
		s.poll(e.member)
	case tick:
		s.setCeiling(e.member)
		s.push(s.Tick.Seconds(), event{kind: tick, member: e.member})
		if e.member == s.Watch && s.Inspect != nil {
			s.Inspect(seconds(s.now), s.snapshots())
		}
	}
}

// arrive brings a fresh read to a member by weight.
func (s *simulation) arrive() {
	s.push(s.random.ExpFloat64()/s.Rate, event{kind: arrive})
	at := s.random.Float64() * s.total()
	for i, m := range s.members {
		if at -= m.weight; at < 0 {
			if m.up {
				if s.now >= s.warm {
					s.reads++
				}
				s.try(i, 0)
			}
			return
		}
	}
}

// total is the weight of all, up or not: what a member that is not there would get is
// offered to nobody.
func (s *simulation) total() float64 { return s.weights }

// try asks for a permit: the read runs, waits or is refused.
func (s *simulation) try(i, tries int) {
	m := s.members[i]
	if s.now >= s.warm {
		s.tries++
	}
	if len(m.queue) == 0 && s.fits(m) {
		s.waited(0)
		s.begin(i)
		return
	}
	if s.MaxWait == 0 {
		s.waited(0)
		s.refuse(i, tries)
		return
	}
	m.queue = append(m.queue, waiter{s.now, tries})
	s.push(s.MaxWait.Seconds(), event{kind: giveUp, member: i, number: m.served + len(m.queue) - 1})
}

func (s *simulation) fits(m *member) bool {
	if s.Kind == Pooled {
		return s.running < s.Limit
	}
	return m.running < m.ceiling
}

func (s *simulation) begin(i int) {
	s.members[i].running++
	s.running++
	if s.now >= s.warm {
		s.peak = max(s.peak, s.running)
	}
	s.noteExcess()
	s.push(s.random.ExpFloat64()*s.Hold.Seconds(), event{kind: finish, member: i})
}

func (s *simulation) refuse(i, tries int) {
	s.members[i].refused++
	if s.now >= s.warm {
		s.refusals++
		if tries == s.Retries {
			s.lost++
		}
	}
	if tries == s.Retries {
		return
	}
	next := event{kind: retry, member: s.random.IntN(len(s.members)), number: tries + 1}
	if s.RetryAfter > 0 {
		s.push(s.random.ExpFloat64()*s.RetryAfter.Seconds(), next)
		return
	}
	s.retry(next)
}

// retry brings a read back that was refused.
func (s *simulation) retry(e event) {
	if s.members[e.member].up {
		s.try(e.member, e.number)
	} else if s.now >= s.warm {
		s.lost++
	}
}

// dispatch lets in what fits after something has changed at member i.
func (s *simulation) dispatch(i int) {
	for {
		m := s.members[i]
		if s.Kind == Pooled {
			m, i = s.oldest()
		}
		if m == nil || len(m.queue) == 0 || !s.fits(m) {
			return
		}
		w := m.queue[0]
		m.queue, m.served = m.queue[1:], m.served+1
		s.waited(s.now - w.since)
		s.begin(i)
	}
}

// oldest returns the member whose first waiter waits the longest: one pool has one queue.
func (s *simulation) oldest() (found *member, index int) {
	for i, m := range s.members {
		if len(m.queue) > 0 && (found == nil || m.queue[0].since < found.queue[0].since) {
			found, index = m, i
		}
	}
	return found, index
}

// poll is a member's heartbeat: it sets its name and reads the others'.
func (s *simulation) poll(i int) {
	m := s.members[i]
	if !m.deaf {
		s.polls += btoi(s.now >= s.warm)
		s.names[i] = m.fleet.Name()
		m.refused, m.polled = 0, s.now
		others := slices.Clone(s.Noise)
		for j, name := range s.names {
			if j != i && name != "" {
				others = append(others, name)
			}
		}
		m.fleet.Observe(s.local(), fleet.View{Names: others, Sessions: s.Sessions, ServerTime: s.local()})
		s.setCeiling(i)
	}
	every := m.fleet.PollEvery().Seconds()
	s.push(every*(0.95+0.1*s.beside.Float64()), event{kind: poll, member: i})
}

func (s *simulation) setCeiling(i int) {
	if m := s.members[i]; m.fleet != nil {
		m.ceiling = m.fleet.Ceiling(s.local())
		s.noteExcess()
		s.dispatch(i)
	}
}

// noteExcess is called where reads begin and ceilings rise.
func (s *simulation) noteExcess() {
	if s.running <= s.Limit || s.Kind == Pooled || s.Kind == Split {
		return
	}
	within := 0
	for _, m := range s.members {
		within += min(m.running, m.ceiling)
	}
	s.excess = max(s.excess, within-s.Limit)
}

// epoch is when runs begin; any time will do.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (s *simulation) local() time.Time { return epoch.Add(seconds(s.now)) }

func seconds(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// account adds what was the case since the last event.
func (s *simulation) account(at float64) {
	if from := max(s.now, s.warm); at > from {
		s.area += float64(s.running) * (at - from)
		if s.running > s.Limit {
			s.over += at - from
		}
	}
	s.now = at
}

func (s *simulation) waited(wait float64) {
	if s.now >= s.warm {
		s.waits.add(wait)
	}
}

func (s *simulation) result() Result {
	length := s.end - s.warm
	r := Result{
		Reads: s.reads, Refusals: s.refusals, Lost: s.lost, Peak: s.peak, Excess: s.excess,
		Running: s.area / length, Over: s.over / length, Polls: float64(s.polls) / length,
		MeanWait: seconds(s.waits.mean()), P99Wait: seconds(s.waits.quantile(0.99)),
	}
	if s.tries > 0 {
		r.Refused = float64(s.refusals) / float64(s.tries)
	}
	return r
}
