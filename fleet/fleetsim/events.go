package fleetsim

import (
	"fmt"

	"github.com/pgyield/pgyield/fleet"
)

type kind uint8

const (
	arrive kind = iota
	finish
	giveUp
	poll
	tick
	retry
	change
)

// event is something that is going to happen.
type event struct {
	at     float64
	kind   kind
	member int
	life   int
	number int // of the change, of the waiter, or of the try
}

// events is a heap by time. It is written out because container/heap would allocate each.
type events []event

func (h *events) push(e event) {
	*h = append(*h, e)
	list := *h
	for i := len(list) - 1; i > 0; {
		up := (i - 1) / 2
		if list[up].at <= list[i].at {
			return
		}
		list[up], list[i] = list[i], list[up]
		i = up
	}
}

func (h *events) pop() event {
	list := *h
	top, last := list[0], len(list)-1
	list[0] = list[last]
	list = list[:last]
	*h = list
	for i := 0; ; {
		next := 2*i + 1
		if next >= last {
			return top
		}
		if next+1 < last && list[next+1].at < list[next].at {
			next++
		}
		if list[i].at <= list[next].at {
			return top
		}
		list[i], list[next] = list[next], list[i]
		i = next
	}
}

// push schedules an event of a member's present life.
func (s *simulation) push(after float64, e event) {
	e.at, e.life = s.now+after, s.members[e.member].life
	s.events.push(e)
}

// populate makes the members and what happens first.
func (s *simulation) populate() error {
	later := map[int]bool{}
	for i, c := range s.Changes {
		later[c.Member] = later[c.Member] || c.Do == Start
		s.events.push(event{at: c.At.Seconds(), kind: change, number: i})
	}
	for i := range s.Members {
		m := &member{weight: s.Weights[i]}
		s.members = append(s.members, m)
		s.weights += m.weight
	}
	for i := range s.members {
		if later[i] {
			continue
		}
		if err := s.start(i); err != nil {
			return err
		}
	}
	if s.Rate > 0 {
		s.push(s.random.ExpFloat64()/s.Rate, event{kind: arrive})
	}
	return nil
}

// start brings a member up.
func (s *simulation) start(i int) error {
	m := s.members[i]
	m.up, m.deaf = true, false
	m.life++
	m.running, m.queue, m.served, m.refused = 0, nil, 0, 0
	switch s.Kind {
	case Pooled:
	case Split:
		m.ceiling = s.Limit / s.Members
		if i < s.Limit%s.Members {
			m.ceiling++
		}
	default:
		var err error
		m.fleet, err = fleet.New(fleet.Options{
			Name: "sim", ID: fmt.Sprintf("%08x", s.ids.Uint32()), Limit: s.Limit, Period: s.Heartbeat, PollRate: s.PollRate, Lease: s.Lease,
			Strict: s.Kind == Strict, Load: func() fleet.Load { return s.load(m) },
		})
		if err != nil {
			return err
		}
		m.ceiling = m.fleet.Ceiling(s.local())
		s.push(s.beside.Float64()*s.Heartbeat.Seconds(), event{kind: poll, member: i})
	}
	s.push(s.beside.Float64()*s.Tick.Seconds(), event{kind: tick, member: i})
	return nil
}

func (s *simulation) load(m *member) fleet.Load {
	return fleet.Load{
		Running: m.running, Waiting: len(m.queue),
		Unmet: fleet.Unmet(m.refused, s.Hold, seconds(s.now-m.polled)),
	}
}

func (s *simulation) change(c Change) {
	m := s.members[c.Member]
	switch c.Do {
	case Load:
		s.weights += c.Weight - m.weight
		m.weight = c.Weight
	case Start:
		// The options were valid for the others.
		_ = s.start(c.Member)
	case Kill:
		m.up = false
		m.life++
		s.running -= m.running
		m.running, m.queue = 0, nil
		s.names[c.Member] = ""
	case Deafen:
		m.deaf = true
	case Hear:
		m.deaf = false
	}
}

func (s *simulation) snapshots() []Snapshot {
	list := make([]Snapshot, len(s.members))
	for i, m := range s.members {
		list[i] = Snapshot{Up: m.up, Running: m.running, Waiting: len(m.queue), Ceiling: m.ceiling}
		if m.up && m.fleet != nil {
			list[i].Stat = m.fleet.Stat(s.local())
		}
	}
	return list
}
