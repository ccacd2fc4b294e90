package fleet

import (
	"cmp"
	"slices"
	"time"
)

// peer is what is known of another member.
type peer struct {
	message
	moved  time.Time // when its heartbeat was last seen to move
	greedy time.Time // since when it has claimed more than its share; zero: it does not
	stayed time.Time // since when it has not climbed, by its word; zero: it does
	seen   uint64    // the observation that last held its name

	// names are those that bear its id at this observation, before those at the one before.
	// Several do where a lost connection left one behind, or one lies.
	names, before []heard
}

// heard is a name, and when it was first heard.
type heard struct {
	message
	since time.Time
}

// hear takes a name of the peer at an observation.
func (p *peer) hear(now time.Time, m message, observation uint64) {
	if p.seen != observation {
		p.seen = observation
		p.names, p.before = p.before[:0], p.names
	}
	since := now
	for _, h := range p.before {
		if h.message == m {
			since = h.since
		}
	}
	p.names = append(p.names, heard{m, since})
}

// settle makes one of the names of an observation. Of several, those count that have moved
// within the lease, and of these the most that any tells: whoever puts a name beside the true
// one, with whatever heartbeat, adds to it at most.
func (p *peer) settle(now time.Time, lease time.Duration) {
	slices.SortFunc(p.names, func(a, b heard) int { return b.since.Compare(a.since) })
	p.message, p.moved = p.names[0].message, p.names[0].since
	for _, h := range p.names[1:] {
		if now.Sub(h.since) <= lease || h.since.Equal(p.moved) {
			p.message = p.most(h.message)
		}
	}
}

// most is what a member does at most of which two names tell.
func (m message) most(other message) message {
	m.running, m.claim = max(m.running, other.running), max(m.claim, other.claim)
	m.hungry, m.wish = max(m.hungry, other.hungry), max(m.wish, other.wish)
	if m.held > 0 && other.held > 0 {
		m.held = max(m.held, other.held)
	} else {
		m.held = 0 // by one of them nothing holds it back
	}
	m.holds = m.holds && other.holds
	return m
}

// roster is what a member knows of the others.
type roster struct {
	prefix, self string
	peers        map[string]*peer
	observation  uint64
	malformed    uint64 // names with the prefix that were ignored, ever

	// A name of our own on another session moves on only where a bouncer moves us between
	// sessions: one that a lost connection left behind stands still.
	echo   uint32
	echoes int
}

// update takes the names of one observation. The name of a session that has ended is not
// among them, so its member is forgotten at once.
func (r *roster) update(now time.Time, lease time.Duration, names []string) {
	r.observation++
	if r.peers == nil {
		r.peers = map[string]*peer{}
	}
	echoed := false
	for _, name := range names[:min(len(names), MaxMembers)] {
		m, ok := decode(r.prefix, name)
		switch {
		case !ok:
			r.malformed++
			continue
		case m.id == r.self:
			if newer(m.beat, r.echo) {
				r.echo, echoed = m.beat, true
			}
			continue
		}
		p := r.peers[m.id]
		if p == nil {
			p = &peer{}
			r.peers[m.id] = p
		}
		p.hear(now, m, r.observation)
	}
	if echoed {
		r.echoes++
	} else {
		r.echoes = 0
	}
	for id, p := range r.peers {
		if p.seen != r.observation {
			delete(r.peers, id)
			continue
		}
		p.settle(now, lease)
	}
}

// live returns the members whose heartbeat moved within the lease, by id: the order all
// agree on.
func (r *roster) live(now time.Time, lease time.Duration) []*peer {
	var list []*peer
	for _, p := range r.peers {
		if now.Sub(p.moved) <= lease {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *peer) int { return cmp.Compare(a.id, b.id) })
	return list
}
