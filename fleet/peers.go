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
func (r *roster) update(now time.Time, names []string) {
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
		p, known := r.peers[m.id]
		if !known {
			p = &peer{message: m, moved: now}
			r.peers[m.id] = p
		}
		p.seen = r.observation
		// Of two sessions of one member, one is what a lost connection left behind.
		if newer(m.beat, p.beat) {
			p.message, p.moved = m, now
		}
	}
	if echoed {
		r.echoes++
	} else {
		r.echoes = 0
	}
	for id, p := range r.peers {
		if p.seen != r.observation {
			delete(r.peers, id)
		}
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
