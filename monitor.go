package pgyield

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/adaptive"
	"github.com/pgyield/pgyield/pressure"
)

// monitor moves the pool's limit: the poller asks the server, the pool tells what it
// did itself, and the adaptive limit decides once a period.
type monitor struct {
	poller *pressure.Poller
	limit  *adaptive.Limit
}

func newMonitor(p *Pool, s settings) (*monitor, error) {
	polling := s.Pressure
	polling.Maintain = p.learnFunctions
	if s.MonitorConfig == nil && polling.BeforeConnect == nil {
		polling.BeforeConnect = p.config.BeforeConnect // the credentials may come from it
	}
	if polling.Logger == nil {
		polling.Logger = s.Logger
	}
	poller, err := pressure.NewPoller(p.monitorConfig(s.MonitorConfig), polling)
	if err != nil {
		return nil, err
	}
	options := s.Adaptive
	options.Pressure = s.Pressure
	options.Activity = (&activity{pool: p}).take
	options.Logger = s.Logger
	options.OnDecision = s.OnDecision
	limit, err := adaptive.New(p.bulkhead, poller, options)
	if err != nil {
		poller.Close()
		return nil, err
	}
	return &monitor{poller: poller, limit: limit}, nil
}

func (m *monitor) start() { m.limit.Start() }

// stop ends the loop first: it is the poller's user.
func (m *monitor) stop() {
	m.limit.Stop()
	m.poller.Close()
}

// monitorConfig returns how the monitor connects: as it was told, or as the pool does.
func (p *Pool) monitorConfig(given *pgx.ConnConfig) *pgx.ConnConfig {
	if given == nil {
		given = p.config.ConnConfig
	}
	c := given.Copy()
	takeParams(c.RuntimeParams)
	return c
}

// activity tells the adaptive limit what the pool did in the period that ends.
type activity struct {
	pool     *Pool
	released uint64        // as of the last period
	held     time.Duration // as of the last period
}

func (a *activity) take() pressure.Activity {
	s := a.pool.bulkhead.Stat()
	done, held := s.Released-a.released, s.HeldTime-a.held
	a.released, a.held = s.Released, s.HeldTime
	t := &a.pool.traffic
	now := pressure.Activity{
		Running:       s.Running,
		Waiting:       s.Waiting,
		Writes:        a.pool.writes.Take(),
		WritesRunning: int(t.waiting.Load() + t.running.Load()),
		ReadsDone:     int(done),
	}
	if done > 0 {
		now.ReadTime = held / time.Duration(done)
	}
	return now
}
