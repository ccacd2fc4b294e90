package pgyield

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/bulkhead"
)

// permitContext carries a read's permit into the hooks that run while its connection
// is acquired.
type permitContext struct {
	context.Context
	permit bulkhead.Permit
}

type permitKey struct{}

func withPermit(ctx context.Context, permit bulkhead.Permit) context.Context {
	return &permitContext{ctx, permit}
}

func (c *permitContext) Value(key any) any {
	if _, ok := key.(permitKey); ok {
		return c
	}
	return c.Context.Value(key)
}

// hookContext is the context of a call without what the pool put into it: a hook's
// statements are not the call's, and pgxpool may run the hook on when the call has
// given up and its own state is done with.
type hookContext struct{ context.Context }

func (c hookContext) Value(key any) any {
	switch key.(type) {
	case permitKey, writeKey:
		return nil
	default:
		return c.Context.Value(key)
	}
}

// inCaller runs f, a hook of the caller's, as the caller's time: a read in it must not
// wait for the read that it runs for.
func inCaller[T any](ctx context.Context, f func(context.Context) T) T {
	if c, ok := ctx.Value(permitKey{}).(*permitContext); ok {
		c.permit.Idle()
		defer c.permit.Busy()
	}
	return f(hookContext{ctx})
}

// innerConfig returns the config that pgxpool runs with: the caller's, with our tracer
// on each connection and around the hooks what the gate must know of them.
func (p *Pool) innerConfig() *Config {
	c := p.config.Copy()
	takeParams(c.ConnConfig.RuntimeParams)
	p.hooked = c.BeforeConnect != nil || c.AfterConnect != nil || c.PrepareConn != nil ||
		c.BeforeAcquire != nil || c.ShouldPing != nil
	p.afterReleases = c.AfterRelease != nil
	c.ConnConfig.Tracer = p.poolTracer(c.ConnConfig.Tracer)
	p.wrapConnect(c)
	p.wrapAcquire(c)
	if after := c.AfterRelease; after != nil {
		c.AfterRelease = func(conn *pgx.Conn) bool { return releaseAfter(conn, after) }
	}
	before := c.BeforeClose
	c.BeforeClose = func(conn *pgx.Conn) {
		stateOf(conn).settle() // a statement whose rows were never closed ends with it
		if before != nil {
			before(conn)
		}
	}
	return c
}

func (p *Pool) wrapConnect(c *Config) {
	before, tracer := c.BeforeConnect, p.config.ConnConfig.Tracer
	c.BeforeConnect = func(ctx context.Context, connConfig *pgx.ConnConfig) error {
		connConfig.Tracer = tracer
		if before != nil {
			if err := inCaller(ctx, func(ctx context.Context) error { return before(ctx, connConfig) }); err != nil {
				return err
			}
		}
		connConfig.Tracer = p.newConnTracer(connConfig.Tracer)
		return nil
	}
	if after := c.AfterConnect; after != nil {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			return inCaller(ctx, func(ctx context.Context) error { return after(ctx, conn) })
		}
	}
}

// wrapAcquire makes each new holder of a connection begin anew, also one that pgxpool's own
// pool, [Pool.Unwrap], gives it: what the last one waited for it is none of its writes'.
func (p *Pool) wrapAcquire(c *Config) {
	prepare, before := c.PrepareConn, c.BeforeAcquire
	c.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (ok bool, err error) {
		stateOf(conn).acquired(0)
		switch {
		case prepare != nil:
			ok = inCaller(ctx, func(ctx context.Context) bool { ok, err = prepare(ctx, conn); return ok })
			return ok, err
		case before != nil: // beside the other pgxpool ignores it
			return inCaller(ctx, func(ctx context.Context) bool { return before(ctx, conn) }), nil
		default:
			return true, nil
		}
	}
	if should := c.ShouldPing; should != nil {
		c.ShouldPing = func(ctx context.Context, params ShouldPingParams) bool {
			return inCaller(ctx, func(ctx context.Context) bool { return should(ctx, params) })
		}
	}
}

// releaseAfter runs the caller's AfterRelease hook on a connection, and then tells the
// permit that waits for it, if one does: see giveBack. pgx puts the connection back right
// after; later than here it cannot be seen. The permit counts as busy meanwhile: its
// connection is on its way, and a hook that takes its time must not let others run besides.
func releaseAfter(conn *pgx.Conn, after func(*pgx.Conn) bool) bool {
	s := stateOf(conn)
	kept := s.kept
	s.kept = nil
	stays := after(conn)
	if kept != nil {
		kept <- stays
	}
	return stays
}

// idleRewriter marks a read's holder idle while a rewriter of the caller's runs.
type idleRewriter struct {
	inner  pgx.QueryRewriter
	permit bulkhead.Permit
}

func (r idleRewriter) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, args []any) (string, []any, error) {
	r.permit.Idle()
	defer r.permit.Busy()
	return r.inner.RewriteQuery(ctx, conn, sql, args)
}

// idleRewriters wraps the rewriter among the options that precede args, if it is one
// that pgx does not bring itself.
func idleRewriters(args []any, permit bulkhead.Permit) []any {
	if !rewrites(args) {
		return args
	}
	wrapped := append([]any(nil), args...)
	for i, arg := range wrapped {
		switch r := arg.(type) {
		case pgx.NamedArgs, pgx.StrictNamedArgs:
		case pgx.QueryRewriter:
			wrapped[i] = idleRewriter{r, permit}
			return wrapped
		}
	}
	return wrapped
}
