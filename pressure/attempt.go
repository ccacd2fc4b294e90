package pressure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// longestAttempt bounds an attempt to connect, unless a poll may take longer.
const longestAttempt = 16 * time.Second

// errLate is a poll's error that has its connection too late to ask: one that is given up
// costs the connection.
var errLate = errors.New("connecting took the poll's time")

// attempt is a connection that is being made.
type attempt struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when what follows is set
	conn   *pgx.Conn     // of no use with err, but to be closed; nil: none was made
	self   identity
	err    error
}

// identity is who we are and whom we talk to.
type identity struct {
	version int
	role    string
	direct  bool // the process that answers is the one that greeted us
}

// race waits for a connection from a new attempt, or from the elder: one that an earlier
// poll has left behind. A server that hangs may answer a new one only, while many pools that
// start at once on a slow server would give up and begin again together, for good, if each
// attempt ended with its poll. It returns nil when the poll's time is over.
func (p *Poller) race(ctx context.Context) *attempt {
	fresh := p.begin()
	for {
		var elder chan struct{}
		if p.elder != nil {
			elder = p.elder.done
		}
		select {
		case <-elder:
			made := p.ended()
			switch {
			case made == nil:
			case made.err == nil:
				p.abandon(fresh)
				return made
			default:
				p.elder = fresh
				return made
			}
		case <-fresh.done:
			if fresh.err == nil && p.elder != nil {
				p.abandon(p.elder)
				p.elder = nil
			}
			return fresh
		case <-ctx.Done():
			if p.elder == nil {
				p.elder = fresh
			} else {
				p.abandon(fresh)
			}
			return nil
		}
	}
}

// ended returns the elder if it has come to an end, and one that says something: to have
// run out of time does not.
func (p *Poller) ended() *attempt {
	if p.elder == nil {
		return nil
	}
	select {
	case <-p.elder.done:
	default:
		return nil
	}
	made := p.elder
	p.elder = nil
	if ranOut(made.err) {
		p.abandon(made)
		return nil
	}
	return made
}

// ranOut is true for the error of what was given up for lack of time.
func ranOut(err error) bool {
	return pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded)
}

// begin starts an attempt. It ends with the poller at the latest.
func (p *Poller) begin() *attempt {
	a := &attempt{done: make(chan struct{})}
	var ctx context.Context
	ctx, a.cancel = context.WithTimeout(p.net.ctx, max(longestAttempt, p.options.Timeout))
	go func() {
		defer close(a.done)
		defer a.cancel()
		if a.conn, a.err = p.dial(ctx); a.err == nil {
			a.self, a.err = identify(ctx, a.conn, p.config.User)
		}
	}()
	return a
}

// abandon ends an attempt, and what it has made, in the background.
func (p *Poller) abandon(a *attempt) {
	a.cancel()
	p.dying = append(p.dying, inBackground(func() {
		if <-a.done; a.conn != nil {
			p.hangUp(a.conn)
		}
	}))
}

// hangUp closes a connection and waits until that is done.
func (p *Poller) hangUp(conn *pgx.Conn) {
	if !conn.IsClosed() {
		ctx, cancel := context.WithTimeout(context.Background(), p.options.Timeout)
		defer cancel()
		_ = conn.Close(ctx)
	}
	<-conn.PgConn().CleanupDone()
}

// inBackground returns what is closed when f has ended.
func inBackground(f func()) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	return ended
}

// dial makes a connection, with what BeforeConnect has to say about it.
func (p *Poller) dial(ctx context.Context) (*pgx.Conn, error) {
	config := p.config.Copy()
	if before := p.options.BeforeConnect; before != nil {
		if err := before(ctx, config); err != nil {
			return nil, fmt.Errorf("BeforeConnect: %w", err)
		}
	}
	return pgx.ConnectConfig(ctx, monitorConfig(config, p.net))
}

// identify asks who we are and whom we talk to. A server that refuses to say is judged
// by what it reported while connecting.
func identify(ctx context.Context, conn *pgx.Conn, user string) (identity, error) {
	self := identity{version: reportedVersion(conn.PgConn().ParameterStatus("server_version")), role: user}
	rows, err := conn.Query(ctx, "SELECT /* pgyield */ current_setting('server_version_num') AS server_version_num,"+
		" current_user::text AS role_name, pg_backend_pid() = $1::int8 AS direct",
		pgx.QueryExecModeExec, int64(conn.PgConn().PID()))
	var r row
	if err == nil {
		r, err = scanRow(rows)
	}
	var refused *pgconn.PgError
	if err != nil && (!errors.As(err, &refused) || conn.IsClosed()) {
		return self, err
	}
	if v := r.reading("server_version_num"); v.Known {
		self.version = int(v.Value)
	}
	// A bouncer greets with a number of its own.
	self.direct = r["direct"] == "t"
	if r["role_name"] != "" {
		self.role = r["role_name"]
	}
	return self, nil
}
