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

// attempt is a connection that is being made. It outlives the poll that began it: many
// pools that start at once on a slow server would otherwise each give up, and begin
// again together, for good.
type attempt struct {
	done chan struct{} // closed when what follows is set
	conn *pgx.Conn     // of no use with err, yet to be closed; nil: none was made
	self identity
	err  error
}

// identity is who we are and whom we talk to.
type identity struct {
	version int
	role    string
	direct  bool // the process that answers is the one that greeted us
}

// begin starts an attempt. It ends with the poller at the latest.
func (p *Poller) begin() *attempt {
	p.patience = max(p.patience, p.options.Timeout)
	a := &attempt{done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(p.net.ctx, p.patience)
	go func() {
		defer close(a.done)
		defer cancel()
		if a.conn, a.err = p.dial(ctx); a.err == nil {
			a.self, a.err = identify(ctx, a.conn, p.config.User)
		}
	}()
	return a
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
