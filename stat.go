package pgyield

import (
	"time"

	"github.com/pgyield/pgyield/adaptive"
	"github.com/pgyield/pgyield/bulkhead"
	"github.com/pgyield/pgyield/fleet"
	"github.com/pgyield/pgyield/intent"
	"github.com/pgyield/pgyield/pressure"
)

// ReadStat is a snapshot of the gate and of what moves its limit. Counters count since
// the Pool was made.
type ReadStat struct {
	gate       bulkhead.Stat
	statements [3]int64
	moved      adaptive.Counts
	decision   adaptive.Decision
	blind      bool
	polls      pressure.Stat
	fleet      fleet.Stat
}

// ReadStat returns a snapshot. It is safe for concurrent use and takes no time of the
// reads that run; [Pool.Stat] has pgxpool's own numbers.
func (p *Pool) ReadStat() *ReadStat {
	s := &ReadStat{gate: p.bulkhead.Stat()}
	for i := range s.statements {
		s.statements[i] = p.statements[i].Load()
	}
	if m := p.monitor; m != nil {
		s.moved = m.limit.Counts()
		s.decision = m.limit.LastDecision()
		s.polls = m.poller.Stat()
		s.blind = s.polls.Blind || m.limit.Blind()
		if m.fleet != nil {
			s.fleet = m.fleet.member.Stat(time.Now())
		}
	}
	return s
}

// Mode returns what the gate does with reads.
func (s *ReadStat) Mode() Mode { return s.gate.Mode }

// Limit returns how much cost may run at once; 0 while the pool waits for its turn in a
// fleet with more members than the limit.
func (s *ReadStat) Limit() int { return s.gate.Limit }

// Floor returns the lowest limit.
func (s *ReadStat) Floor() int { return s.gate.Floor }

// Ceiling returns the highest limit.
func (s *ReadStat) Ceiling() int { return s.gate.Ceiling }

// Running returns the cost of the reads that run.
func (s *ReadStat) Running() int { return s.gate.Running }

// Waiting returns how many reads wait for a permit.
func (s *ReadStat) Waiting() int { return s.gate.Waiting }

// Callers returns how many callers are told apart now.
func (s *ReadStat) Callers() int { return s.gate.Callers }

// Penalized returns how many callers are penalised now.
func (s *ReadStat) Penalized() int { return s.gate.Penalised }

// Admitted returns how many reads got a permit, at once or after a wait.
func (s *ReadStat) Admitted() int64 { return int64(s.gate.Admitted) }

// Waited returns how many of the admitted reads had to wait.
func (s *ReadStat) Waited() int64 { return int64(s.gate.Waited) }

// Refused returns how many reads were refused.
func (s *ReadStat) Refused() int64 { return int64(s.gate.Refused) }

// RefusedBy returns how many reads were refused for a reason.
func (s *ReadStat) RefusedBy(reason bulkhead.Reason) int64 { return int64(s.gate.RefusedBy[reason]) }

// Overdrafts returns how many reads ran above the limit to end a stall.
func (s *ReadStat) Overdrafts() int64 { return int64(s.gate.StallSlots + s.gate.BusyStalls) }

// Lowered returns how often the limit was lowered.
func (s *ReadStat) Lowered() int64 { return int64(s.moved.Lowered) }

// Raised returns how often the limit was raised.
func (s *ReadStat) Raised() int64 { return int64(s.moved.Raised) }

// Pressing reports whether writes suffered in the last period.
func (s *ReadStat) Pressing() bool { return s.decision.Pressing }

// Blind reports whether the monitor sees less than it should: its last poll failed, its
// role cannot see other sessions' waits, or there is nothing to judge by.
func (s *ReadStat) Blind() bool { return s.blind }

// LastDecision returns what the last period led to, with the sample and the signals it
// rests on; the zero Decision before the first, or with a fixed limit.
func (s *ReadStat) LastDecision() adaptive.Decision { return s.decision }

// Periods returns how many periods were judged to be pressing and contended, or not.
func (s *ReadStat) Periods(pressing, contended bool) int64 {
	return int64(s.moved.Periods[index(pressing)][index(contended)])
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Statements returns how many calls of the pool were of an intent: Query, QueryRow,
// Exec, SendBatch (one), Begin and BeginTx.
func (s *ReadStat) Statements(i intent.Intent) int64 {
	if int(i) >= len(s.statements) {
		return 0
	}
	return s.statements[i]
}

// Waits returns how long the admitted reads waited for their permits.
func (s *ReadStat) Waits() bulkhead.Histogram { return s.gate.Waits }

// Polls returns a snapshot of the monitor's polls; its zero value with a fixed limit.
func (s *ReadStat) Polls() pressure.Stat { return s.polls }

// Fleet returns a snapshot of the pool's part in its fleet: its members, the limit they
// share, and what this pool has of it. It is the zero value when the pool is in none.
func (s *ReadStat) Fleet() fleet.Stat { return s.fleet }
