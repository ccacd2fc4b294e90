package fleet

import (
	"math"
	"sync"
	"time"
)

// Member is one process's part in a fleet.
type Member struct {
	options Options
	id      string
	thrifty bool // polls more rarely where they are dear

	mu     sync.Mutex // guards what follows; never held over a call to others
	roster roster
	beat   uint32
	sent   message // by the last Name
	said   message // the last that the server has taken: the one sent before an Observe

	born     time.Time // when Ceiling or Observe was first called
	observed time.Time // local time of the last Observe
	ahead    time.Duration
	fresh    bool    // has observed once
	size     int     // members, at the last Observe
	wish     float64 // demand, smoothed
	target   int     // share
	granted  int     // the part of target that all others know of
	claim    int     // what the next Name says is held or wanted
	roof     int     // ceiling as of the last Observe, with slack
	slack    int
	turns    rotation
	caution  caution
	even     even
	sessions int  // of the server, at the last Observe
	shared   bool // a bouncer shares our session
	lost     bool // could not poll for the lease
}

// New returns a member that has not polled yet. Until it has twice, its ceiling is 1.
func New(options Options) (*Member, error) {
	thrifty := options.PollRate == 0
	options, err := options.validated()
	if err != nil {
		return nil, err
	}
	m := newMember(options, options.ID)
	m.thrifty = thrifty
	return m, nil
}

func newMember(options Options, id string) *Member {
	m := &Member{options: options, id: id, granted: 1, claim: 1, roof: 1, target: 1}
	m.roster = roster{prefix: prefix(options.Name), self: id}
	return m
}

// Prefix is what the names of all members of the fleet begin with.
func (m *Member) Prefix() string { return prefix(m.options.Name) }

// ID is this member's part of its names. It is also its mark: see [View].
func (m *Member) ID() string { return m.id }

// Name returns the name to give the monitor's session at this poll, at most 63 bytes: it
// tells the others that the member lives, what it runs, how much more it wants, and what it holds of
// the limit. Each call is a heartbeat; call it once for each poll that is sent.
func (m *Member) Name() string {
	load := m.options.Load()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beat = (m.beat + 1) % beats
	running := max(load.Running, 0)
	m.wish = wish(m.wish, load, m.options.Most)
	m.sent = message{
		id: m.id, beat: m.beat, running: running, claim: m.claim,
		hungry: hunger(load), wish: int(math.Round(m.wish)), held: load.Held, holds: load.Holds,
	}
	return m.sent.encode(m.roster.prefix)
}

// View is what a poll saw.
type View struct {
	// Names are the names of other sessions that begin with [Member.Prefix].
	Names []string
	// Sessions is how many sessions the server has, by which a poll costs it more; 0: unknown.
	Sessions int
	// ServerTime is the server's clock at the poll. Zero: the local clock, which is then
	// assumed to agree with the other members'.
	ServerTime time.Time
	// Mark is what the poll found in its session of the mark that polls leave there, which
	// is the member's ID. Marked: an earlier poll on this connection has left it, so that
	// any other mark, or none, means that a bouncer shares the session. Before, Mark says
	// nothing: a bouncer that gives each client a session leaves the last client's there.
	Mark   string
	Marked bool
}

// Observe takes what a poll saw, after a Name that the same poll set.
func (m *Member) Observe(now time.Time, view View) {
	m.mu.Lock()
	bouncer, back := m.observe(now, view)
	m.mu.Unlock()
	if bouncer {
		m.options.Logger.Warn("pgyield: a bouncer shares the monitor's session, so the fleet cannot be seen: set MonitorConfig to a direct connection",
			"fleet", m.options.Name, "ceiling", m.static(m.options.Size))
	}
	if back {
		m.options.Logger.Info("pgyield: the monitor polls again, the fleet's limit is shared by demand", "fleet", m.options.Name)
	}
}

func (m *Member) observe(now time.Time, view View) (bouncer, back bool) {
	m.start(now)
	lease := m.lease()
	m.roster.update(now, lease, view.Names)
	peers := m.roster.live(now, lease)
	back, m.lost = m.lost, false
	m.caution.observe(now, len(peers)+1, m)
	m.fresh = m.observed.IsZero()
	m.observed, m.size, m.sessions = now, len(peers)+1, view.Sessions
	if !view.ServerTime.IsZero() {
		m.ahead = view.ServerTime.Sub(now)
	}
	if view.Marked && view.Mark != m.id || !view.Marked && m.roster.echoes >= 3 {
		bouncer = !m.shared
		m.shared = true
	}

	demands := make([]int, 0, m.size)
	self := 0
	for _, p := range peers {
		if p.id < m.id {
			self++
		}
		demands = append(demands, max(p.running, p.wish))
	}
	demands = append(demands, 0)
	copy(demands[self+1:], demands[self:])
	demands[self] = m.sent.wish
	plan := divideLimit(m.options.Limit, demands, self)
	others := append(append([]int(nil), plan.shares[:self]...), plan.shares[self+1:]...)

	m.turns = plan.turns
	m.grant(plan.shares[self], plan.fixed-claims(now, lease, m.options.Strict, peers, others))
	rest := appetiteOf(m.options.Limit, m.sent.running, peers, others)
	m.slack = rest.slack
	m.roof = m.granted
	if !m.options.Strict && m.size <= m.options.Limit {
		m.roof = max(m.granted, m.sent.running+rest.helping(m.sent.hungry, m.sent.wish, plan.shares[self]-m.sent.running))
	}
	m.even = evenOf(now, m.sent, plan.shares[self], peers, others)
	m.said = m.sent
	return bouncer, back
}

// grant moves what the member is granted towards its share. Less takes effect at once.
// More does once it fits beside what the others hold or claim (room), but no more than is
// claimed. Where strict, the name that claimed it must have stood while this poll looked:
// of two that reach for the same room, at least one thus sees the other, and neither
// passes the limit. A share is claimed before there is room, so that no poll is lost when
// those who must shrink have.
func (m *Member) grant(share, room int) {
	m.target = share
	floor := 0
	if m.size <= m.options.Limit {
		floor = 1
	}
	claimed := m.sent.claim
	if m.options.Strict {
		claimed = min(claimed, m.said.claim) // neither may stand no more
	}
	m.granted = max(min(m.granted, share), min(share, claimed, room), min(share, floor))
	m.claim = max(m.granted, share)
}

// Missed tells the member that a poll failed: the server may have been gone, and the others'
// names with it.
func (m *Member) Missed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.caution.missed = true
}

// Ceiling returns how high the member's limit may be now. It is 0 while a member of a
// crowd, a fleet with more members than the limit, waits for its turn. It changes with
// each poll, and with time where turns are taken or polls fail, so ask each period.
//
// A member that cannot poll gives up its slack after two polls' time, and keeps its grant
// for the lease. Then it keeps to the limit divided by the fleet's last known size.
func (m *Member) Ceiling(now time.Time) int {
	m.mu.Lock()
	m.start(now)
	ceiling, lost := m.ceiling(now)
	fresh := lost && !m.lost
	m.lost = lost
	m.mu.Unlock()
	if fresh {
		m.options.Logger.Warn("pgyield: the monitor could not poll for the lease, the fleet's limit is divided evenly",
			"fleet", m.options.Name, "ceiling", ceiling)
	}
	return ceiling
}

func (m *Member) ceiling(now time.Time) (ceiling int, lost bool) {
	since := m.observed
	if since.IsZero() {
		since = m.born
	}
	silent := now.Sub(since)
	switch {
	case m.shared:
		return m.static(m.options.Size), false
	case silent > m.lease():
		size := max(m.size, m.caution.expected) // who was known before an outage counts
		if m.observed.IsZero() || m.fresh {
			size = max(size, m.options.Size) // it has not seen all that started with it
		}
		return m.static(size), true
	case silent > m.patience():
		ceiling = m.granted
	default:
		ceiling = m.roof
	}
	ceiling = m.caution.bound(ceiling)
	if m.turns.has(now.Add(m.ahead)) {
		ceiling++
	}
	return min(ceiling, m.options.Most), false
}

// NextTurn returns when the ceiling changes because a turn begins or ends; zero while
// none are taken. Asked for just then, the ceilings of a crowd that sees itself alike sum
// to the limit at each moment.
func (m *Member) NextTurn(now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.turns.changes(now.Add(m.ahead))
	if at.IsZero() {
		return at
	}
	return now.Add(at.Sub(now.Add(m.ahead)))
}

// static is the share of a member that sees nobody.
func (m *Member) static(size int) int {
	return min(max(1, m.options.Limit/max(size, 1)), m.options.Most)
}

// start notes when the member's time began.
func (m *Member) start(now time.Time) {
	if m.born.IsZero() {
		m.born = now
	}
}

// PollEvery returns how long to wait between polls, so that all members together poll at
// most [Options].PollRate times a second, and cost the server little; but at least once in
// 50 s. A newcomer's second poll does not wait for that: only then may it run more than one.
func (m *Member) PollEvery() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fresh {
		return m.options.Period
	}
	return m.pollEvery()
}

func (m *Member) pollEvery() time.Duration {
	byRate := time.Duration(float64(m.size) / m.options.PollRate * float64(time.Second))
	if m.thrifty {
		byRate = max(byRate, pause(m.size, m.sessions))
	}
	return max(m.options.Period, min(byRate, longestPause))
}

// patience is how long after a poll what it saw still holds.
func (m *Member) patience() time.Duration { return 2*m.pollEvery() + m.options.Period }

func (m *Member) lease() time.Duration { return max(m.options.Lease, 3*m.pollEvery()) }

// Stat is a snapshot of a member.
type Stat struct {
	Members   int    // live ones, this one included, at the last poll; 0 before the first
	Limit     int    // of the fleet
	Share     int    // this member's part of it by demand
	Granted   int    // the part of Share that is its own to use
	Slack     int    // the part of Limit that nobody needed at the last poll; negative: passed
	Ceiling   int    // as [Member.Ceiling] returns it
	Malformed uint64 // names that were ignored, ever
	Shared    bool   // a bouncer shares the session: static split
	Lost      bool   // no poll for the lease: even split
	PollEvery time.Duration
}

// Stat returns a snapshot at now.
func (m *Member) Stat(now time.Time) Stat {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.start(now)
	ceiling, lost := m.ceiling(now)
	return Stat{
		Members: m.size, Limit: m.options.Limit, Share: m.target, Granted: m.granted, Slack: m.slack,
		Ceiling: ceiling, Malformed: m.roster.malformed, Shared: m.shared, Lost: lost, PollEvery: m.pollEvery(),
	}
}
