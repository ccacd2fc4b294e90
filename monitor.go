package pgyield

import (
	"context"
	"sync"
	"sync/atomic"
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
	fleet  *fleetLimit // nil: a pool by itself

	// awaitsPool: the pool has a BeforeConnect hook, which may bring the credentials. The
	// monitor does not call it, for a program may count its calls; it starts once the pool
	// has connected, and connects as the pool last did.
	awaitsPool bool
	asPool     atomic.Pointer[pgx.ConnConfig]

	mu      sync.Mutex // guards what follows
	stopped bool
}

func newMonitor(p *Pool, s settings) (*monitor, error) {
	m := &monitor{}
	polling := s.Pressure
	polling.Maintain = p.learnFunctions
	if p.config.BeforeConnect != nil && s.MonitorConfig == nil && polling.BeforeConnect == nil {
		m.awaitsPool = true
		polling.BeforeConnect = m.connectAsPool
	}
	if polling.Logger == nil {
		polling.Logger = s.Logger
	}
	normal, err := polling.Normalize()
	if err != nil {
		return nil, err
	}
	if m.fleet, err = newFleet(p, s, normal.Period); err != nil {
		return nil, err
	}
	if m.fleet != nil {
		polling.Name, polling.NamePrefix = m.fleet.member.Name, m.fleet.member.Prefix()
		polling.Mark = m.fleet.member.ID()
	}
	if m.poller, err = pressure.NewPoller(p.monitorConfig(s.MonitorConfig), polling); err != nil {
		return nil, err
	}
	if err := m.buildLimit(p, s); err != nil {
		m.poller.Close()
		return nil, err
	}
	return m, nil
}

func (m *monitor) buildLimit(p *Pool, s settings) (err error) {
	options := s.Adaptive
	options.Pressure = s.Pressure
	options.Activity = (&activity{pool: p}).take
	options.Logger = s.Logger
	options.OnDecision = s.OnDecision
	var limiter adaptive.Limiter = p.bulkhead
	var source pressure.Source = m.poller
	if m.fleet != nil {
		limiter = m.fleet
		source = &fleetSource{poller: m.poller, limit: m.fleet}
		// A poll that waits for its turn is not overdue; the poller keeps the timeout.
		options.Pressure.Timeout = time.Minute
	}
	m.limit, err = adaptive.New(limiter, source, options)
	return err
}

// start starts the monitor; once it was stopped, it stays so.
func (m *monitor) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.stopped {
		m.limit.Start()
	}
}

// poolConnected notes how the pool connected.
func (m *monitor) poolConnected(conn *pgx.Conn) {
	if m.awaitsPool {
		m.asPool.Store(conn.Config())
		m.start()
	}
}

// connectAsPool is the poller's BeforeConnect where the pool has one.
func (m *monitor) connectAsPool(_ context.Context, c *pgx.ConnConfig) error {
	*c = *m.asPool.Load().Copy()
	takeParams(c.RuntimeParams)
	return nil
}

// stop ends the loop first: it is the poller's user.
func (m *monitor) stop() {
	m.mu.Lock()
	m.stopped = true
	m.mu.Unlock()
	m.limit.Stop()
	if m.fleet != nil {
		m.fleet.stop()
	}
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
