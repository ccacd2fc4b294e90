package pressure

import (
	"context"
	"net"
	"reflect"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// applicationName is what the monitor's connection is called on the server.
const applicationName = "pgyield monitor"

// monitorConfig copies a connection's config for the monitor: how the server is
// reached and who asks stays; what watches or changes the program's own statements
// goes.
func monitorConfig(config *pgx.ConnConfig, net *transport) *pgx.ConnConfig {
	c := config.Copy()
	c.Tracer = nil
	c.AfterConnect, c.OnNotice, c.OnNotification = nil, nil, nil
	c.OnPgError = func(_ *pgconn.PgConn, err *pgconn.PgError) bool {
		return !strings.EqualFold(err.Severity, "FATAL")
	}
	// target_session_attrs arrives as a hook too, and chooses the server.
	if !choosesServer(c.ValidateConnect) {
		c.ValidateConnect = nil
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeExec
	c.StatementCacheCapacity, c.DescriptionCacheCapacity = 0, 0
	if c.RuntimeParams == nil {
		c.RuntimeParams = map[string]string{}
	}
	c.RuntimeParams["application_name"] = applicationName
	c.DialFunc = net.over(c.DialFunc)
	return c
}

// choosesServer is true for the checks that pgx sets for target_session_attrs.
func choosesServer(f pgconn.ValidateConnectFunc) bool {
	for _, known := range []pgconn.ValidateConnectFunc{
		pgconn.ValidateConnectTargetSessionAttrsReadWrite, pgconn.ValidateConnectTargetSessionAttrsReadOnly,
		pgconn.ValidateConnectTargetSessionAttrsPrimary, pgconn.ValidateConnectTargetSessionAttrsStandby,
		pgconn.ValidateConnectTargetSessionAttrsPreferStandby,
	} {
		if f != nil && reflect.ValueOf(f).Pointer() == reflect.ValueOf(known).Pointer() {
			return true
		}
	}
	return false
}

// transport knows every socket of the monitor, cancel requests included, so that
// Close can end them at once. pgx otherwise cleans an interrupted connection up for
// as long as 15 seconds.
type transport struct {
	ctx    context.Context //nolint:containedctx // it ends with the poller, not with a call
	cancel context.CancelFunc

	mu   sync.Mutex
	open map[*socket]struct{}
}

func newTransport() *transport {
	t := &transport{open: map[*socket]struct{}{}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// over returns a dial function that does what inner does, and takes note of it.
func (t *transport) over(inner pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return t.dial(ctx, inner, network, addr)
	}
}

func (t *transport) dial(ctx context.Context, inner pgconn.DialFunc, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	conn, err := inner(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: conn, owner: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		_ = conn.Close()
		return nil, t.ctx.Err()
	}
	t.open[s] = struct{}{}
	return s, nil
}

// close ends every socket, and every dial under way and to come.
func (t *transport) close() {
	t.cancel()
	t.mu.Lock()
	sockets := make([]*socket, 0, len(t.open))
	for s := range t.open {
		sockets = append(sockets, s)
	}
	t.mu.Unlock()
	for _, s := range sockets {
		_ = s.Close()
	}
}

// socket takes itself off the list when it is closed.
type socket struct {
	net.Conn
	owner *transport
}

func (s *socket) Close() error {
	s.owner.mu.Lock()
	delete(s.owner.open, s)
	s.owner.mu.Unlock()
	return s.Conn.Close()
}
