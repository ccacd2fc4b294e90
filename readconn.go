package pgyield

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ReadConn is a connection to read on, with the permit that it holds. As a [*Conn] it
// is for one goroutine at a time.
//
// What runs on it is not classified again. Use its own methods rather than those of
// Conn where rows are read one by one with other reads of the pool between them: only
// then the gate sees that the holder is idle between two rows.
type ReadConn struct {
	conn  *pgx.Conn
	lease lease
}

// Release gives the connection and the permit back. Calls after the first do nothing;
// no other method may be called after it.
func (c *ReadConn) Release() {
	if c.lease.conn != nil {
		c.lease.end()
	}
}

// Conn returns the connection beneath. What runs beneath pgx's own methods (PgConn's Exec,
// CopyTo, pipelines) is not seen: the holder counts as idle meanwhile, and after StallAfter
// another read may run besides.
func (c *ReadConn) Conn() *pgx.Conn { return c.conn }

// Query runs sql on the connection.
func (c *ReadConn) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	r, err := c.conn.Query(ctx, sql, args...)
	return c.lease.heldRows(r), err
}

// QueryRow runs sql on the connection; errors are Scan's.
func (c *ReadConn) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	r, _ := c.conn.Query(ctx, sql, args...) //nolint:rowserrcheck // Scan has the error
	c.lease.permit.Idle()
	return &row{r: r, lease: c.lease.held()}
}

// Exec runs sql on the connection.
func (c *ReadConn) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return c.conn.Exec(ctx, sql, args...)
}

// SendBatch sends b on the connection.
func (c *ReadConn) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	l := c.lease.held()
	return l.results(c.conn.SendBatch(ctx, l.idleCallbacks(b)))
}

// Begin starts a transaction on the connection.
func (c *ReadConn) Begin(ctx context.Context) (pgx.Tx, error) {
	return c.BeginTx(ctx, pgx.TxOptions{})
}

// BeginTx starts a transaction on the connection. It ends before the ReadConn is released.
func (c *ReadConn) BeginTx(ctx context.Context, txOptions pgx.TxOptions) (pgx.Tx, error) {
	tx, err := c.conn.BeginTx(ctx, txOptions)
	if err != nil {
		return nil, err
	}
	return &readTx{tx: tx, lease: c.lease.held()}, nil
}
