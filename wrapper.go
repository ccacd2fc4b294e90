package pgyield

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgyield/pgyield/intent"
)

// Query runs sql as [pgxpool.Pool.Query] does; a read takes a permit first, which its
// rows give back when they are closed, read to their end or fail. A read that gets no
// permit fails with a [*RefusedError], its context's error or pgxpool's closed error,
// before any SQL was sent.
func (p *Pool) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	w := wishOf(ctx)
	class := p.classify(w, sql, args)
	if !p.count(w, class) {
		if class.Intent != intent.Write {
			return p.inner.Query(ctx, sql, args...)
		}
		call := p.newStatement(ctx, sql, class)
		defer call.end()
		r, err := p.inner.Query(call, sql, args...)
		if err != nil || !call.counts {
			return r, err
		}
		return writtenRowsOf(r), nil
	}
	l, err := p.enter(ctx, w)
	if err != nil {
		return failedRows{err}, err
	}
	r, err := l.query(ctx, sql, args)
	if err != nil {
		return failedRows{err}, err
	}
	return &rows{r: r, lease: l}, nil
}

// QueryRow runs sql as [pgxpool.Pool.QueryRow] does; a read takes a permit first, which
// Scan gives back. Why it got none, if so, is Scan's error, as for [Pool.Query].
func (p *Pool) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	w := wishOf(ctx)
	class := p.classify(w, sql, args)
	if !p.count(w, class) {
		if class.Intent != intent.Write {
			return p.inner.QueryRow(ctx, sql, args...)
		}
		call := p.newStatement(ctx, sql, class)
		defer call.end()
		return p.inner.QueryRow(call, sql, args...)
	}
	l, err := p.enter(ctx, w)
	if err != nil {
		return failedRow{err}
	}
	r, err := l.query(ctx, sql, args)
	if err != nil {
		return failedRow{err}
	}
	return &row{r: r, lease: l}
}

// Exec runs sql as [pgxpool.Pool.Exec] does; a read holds a permit until it returns.
// Why it got none, if so, is its error, as for [Pool.Query].
func (p *Pool) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	w := wishOf(ctx)
	class := p.classify(w, sql, args)
	if !p.count(w, class) {
		if class.Intent != intent.Write {
			return p.inner.Exec(ctx, sql, args...)
		}
		call := p.newStatement(ctx, sql, class)
		defer call.end()
		return p.inner.Exec(call, sql, args...)
	}
	l, err := p.enter(ctx, w)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer l.end()
	l.skipTiming()
	return l.conn.Exec(ctx, sql, idleRewriters(args, l.permit)...)
}

func (p *Pool) newStatement(ctx context.Context, sql string, class intent.Class) *write {
	w := p.newWrite(ctx, writeStatement, class.DML)
	w.sql = sql
	return w
}

// query runs a read on the lease's connection. On an error, or a panic in a rewriter of
// the caller's, the lease is ended; else the rows end it.
func (l *lease) query(ctx context.Context, sql string, args []any) (r pgx.Rows, err error) {
	running := false
	defer func() {
		if running {
			l.permit.Idle()
		} else {
			l.end()
		}
	}()
	l.skipTiming()
	r, err = l.conn.Query(ctx, sql, idleRewriters(args, l.permit)...)
	running = err == nil
	return r, err
}

// AcquireRead takes a permit and then a connection to read on, for work that needs
// several reads on one connection. Both are given back by Release of the result. It
// fails as [Pool.Query] does. [WithIntent] does not matter here, [Ungated] does.
func (p *Pool) AcquireRead(ctx context.Context) (*ReadConn, error) {
	w := wishOf(ctx)
	l, err := p.enter(ctx, w)
	if err != nil {
		return nil, err
	}
	l.hold()
	return &ReadConn{conn: l.conn.Conn(), lease: l}, nil
}

// Acquire returns a connection as [pgxpool.Pool.Acquire] does. It takes no permit: what
// runs on it is the caller's business. [Pool.AcquireRead] is for reads.
func (p *Pool) Acquire(ctx context.Context) (*Conn, error) {
	a := p.traffic.arrive()
	defer a.served()
	c, err := p.inner.Acquire(ctx)
	if err == nil {
		stateOf(c.Conn()).acquired(a.age())
	}
	return c, err
}

// AcquireFunc acquires a connection, calls f with it and releases it. It takes no permit.
func (p *Pool) AcquireFunc(ctx context.Context, f func(*Conn) error) error {
	conn, err := p.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return f(conn)
}

// AcquireAllIdle acquires all connections that are idle now. It takes no permit.
func (p *Pool) AcquireAllIdle(ctx context.Context) []*Conn {
	return p.inner.AcquireAllIdle(ctx)
}

// Ping acquires a connection and executes an empty statement. It takes no permit.
func (p *Pool) Ping(ctx context.Context) error { return p.inner.Ping(ctx) }

// CopyFrom copies rows into a table as [pgxpool.Pool.CopyFrom] does. It takes no permit.
func (p *Pool) CopyFrom(ctx context.Context, tableName pgx.Identifier, columnNames []string, rowSrc pgx.CopyFromSource) (int64, error) {
	call := p.newWrite(ctx, writeCopy, true)
	defer call.end()
	return p.inner.CopyFrom(call, tableName, columnNames, rowSrc)
}
