package pressure

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// oldest is what a server is taken for that does not tell its version.
const oldest = 130000

// connect makes the connection where there is none and it is not too early.
func (p *Poller) connect(ctx context.Context) error {
	if p.conn != nil && !p.conn.IsClosed() {
		return nil
	}
	if p.conn != nil {
		p.drop(nil)
	}
	began := time.Now()
	made := p.ended()
	if made == nil {
		if began.Before(p.retryAt) || !p.reap(ctx) {
			return ErrBackoff
		}
		if made = p.race(ctx); made == nil {
			return fmt.Errorf("connecting: %w", ctx.Err())
		}
	}
	p.conn = made.conn
	if made.err != nil {
		p.drop(made.err)
		return made.err
	}
	p.meet(made.self)
	if time.Since(began) > p.options.Timeout*3/4 {
		return errLate
	}
	return nil
}

// meet prepares polling on a new connection.
func (p *Poller) meet(self identity) {
	if p.maintains == 0 {
		p.maintain = time.Time{} // due at each connect, unless it failed lately
	}
	p.query = queryKind{parts: allParts, version: self.version, names: p.options.Name != nil, mark: p.options.Mark != ""}
	p.marked, p.direct, p.prepared = false, self.direct && !p.shared, ""
	p.mu.Lock()
	p.stat.Connects++
	p.stat.Version, p.stat.Role, p.stat.Refused = self.version, self.role, nil
	p.mu.Unlock()
}

// reap forgets clean-ups that ended, and reports whether another connection may be
// made beside those that did not. It gives them a moment, in which a server that is
// well cancels a poll that was given up: the next should not run beside it.
func (p *Poller) reap(ctx context.Context) bool {
	if len(p.dying) == 0 {
		return true
	}
	moment := time.NewTimer(p.options.BackoffMin)
	defer moment.Stop()
	over := false
	left := p.dying[:0]
	for _, done := range p.dying {
		if !over {
			select {
			case <-done:
				continue
			case <-moment.C:
			case <-ctx.Done():
			}
			over = true
		}
		select {
		case <-done:
		default:
			left = append(left, done)
		}
	}
	p.dying = left
	return len(left) < maxDying
}

// reportedVersion reads the server_version that a server reports, such as
// "15.18 (Debian 15.18-1)" or "19devel", as a server_version_num.
func reportedVersion(text string) int {
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(text)
	}
	major, err := strconv.Atoi(text[:end])
	if err != nil || major < 13 || major > 1000 {
		return oldest
	}
	return major * 10000
}

// degrade finds the parts of the poll that the server refuses and leaves them out
// from now on. It reports whether the connection is still of use.
func (p *Poller) degrade(ctx context.Context) bool {
	var refused []string
	for _, one := range []part{partServer, partWAL, partXID, partWALStats, partSessions} {
		if p.query.parts&one == 0 {
			refused = append(refused, partNames[one])
			continue
		}
		_, err := p.conn.Exec(ctx, p.query.probeSQL(one), pgx.QueryExecModeExec)
		var why *pgconn.PgError
		switch {
		case err == nil:
		case errors.As(err, &why) && !p.conn.IsClosed() && lasting(why):
			p.query.parts &^= one
			refused = append(refused, partNames[one])
			p.sayOnce("refused "+partNames[one], "pgyield: the server refuses a part of the pressure poll; that signal is off, the others go on",
				"part", partNames[one], "code", why.Code, "error", why.Message)
		default:
			return false
		}
	}
	// Nothing to leave out explains the failure: it may pass, or the connection is
	// of no use; a new one decides.
	if len(refused) == 0 {
		return false
	}
	p.mu.Lock()
	p.stat.Refused = refused
	p.mu.Unlock()
	return true
}

// lasting is true for errors that say what a server cannot or will not do, not how
// it fares at the moment.
func lasting(err *pgconn.PgError) bool {
	switch {
	case strings.HasPrefix(err.Code, "42"), // syntax error or access rule violation
		strings.HasPrefix(err.Code, "0A"), // feature not supported
		strings.HasPrefix(err.Code, "22"), // data exception: a setting that reads otherwise
		err.Code == "55000":               // not in prerequisite state
		return true
	}
	return false
}

// runMaintain calls Options.Maintain when it is due and reports whether it did.
func (p *Poller) runMaintain(ctx context.Context) bool {
	now := time.Now()
	if p.options.Maintain == nil || now.Before(p.maintain) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, p.options.MaintainTimeout)
	defer cancel()
	err := p.options.Maintain(ctx, p.conn)
	p.mu.Lock()
	p.stat.MaintainError = err
	p.mu.Unlock()
	if err == nil {
		p.maintains = 0
		p.maintain = time.Now().Add(p.options.MaintainEvery)
		return true
	}
	// One that fails may have cost the connection: it must not do so at every poll.
	p.maintains = min(max(2*p.maintains, p.options.MaintainTimeout), p.options.MaintainEvery)
	p.maintain = time.Now().Add(p.maintains)
	p.sayOnce("maintain", "pgyield: upkeep on the monitor's connection failed; polling goes on", "error", err)
	return true
}
