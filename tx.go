package pgyield

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgyield/pgyield/intent"
)

// Begin starts a transaction as [pgxpool.Pool.Begin] does. It takes no permit; the
// result is a [*Tx].
func (p *Pool) Begin(ctx context.Context) (pgx.Tx, error) {
	return p.BeginTx(ctx, pgx.TxOptions{})
}

// BeginTx starts a transaction as [pgxpool.Pool.BeginTx] does. With AccessMode ReadOnly
// it takes one permit for the whole transaction, given back by Commit or Rollback; else
// it takes none, and the result is a [*Tx]. Options with a BeginQuery or a CommitQuery
// of their own take none: what those texts do is not ours to know.
func (p *Pool) BeginTx(ctx context.Context, txOptions pgx.TxOptions) (pgx.Tx, error) {
	w := wishOf(ctx)
	class := intent.Class{Intent: intent.Write}
	if readOnly(txOptions) && (!w.hasIntent || w.intent != intent.Write) {
		class.Intent = intent.Read
	}
	if !p.count(w, class) {
		call := p.newWrite(ctx, writeBegin, class.Intent == intent.Write)
		call.sql = txOptions.BeginQuery
		defer call.end()
		return p.inner.BeginTx(call, txOptions)
	}
	l, err := p.enter(ctx, w)
	if err != nil {
		return nil, err
	}
	return l.begin(ctx, txOptions)
}

func readOnly(o pgx.TxOptions) bool {
	return o.AccessMode == pgx.ReadOnly && o.BeginQuery == "" && o.CommitQuery == ""
}

func (l *lease) begin(ctx context.Context, txOptions pgx.TxOptions) (_ pgx.Tx, err error) {
	begun := false
	defer func() {
		if !begun {
			l.end()
		}
	}()
	tx, err := l.conn.BeginTx(ctx, txOptions)
	if err != nil {
		return nil, err
	}
	begun = true
	l.hold()
	return &readTx{tx: tx, lease: *l}, nil
}

// hold lets the connection's tracer tell the permit when a statement runs, whoever
// runs it: from now on the holder is in the caller's hands between two statements.
func (l *lease) hold() {
	stateOf(l.conn.Conn()).permit = l.permit
	l.permit.Idle()
}

// held is the lease as the rows of a held connection see it: they end nothing.
func (l *lease) held() lease { return lease{permit: l.permit} }

// readTx is a read-only transaction that holds a permit, or a savepoint in it.
type readTx struct {
	tx    pgx.Tx
	lease lease // of a savepoint: held, the transaction ends it
}

func (t *readTx) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := t.tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &readTx{tx: tx, lease: t.lease.held()}, nil
}

// Commit and Rollback end the lease whatever they return, as pgxpool's give the
// connection back whatever they return.

func (t *readTx) Commit(ctx context.Context) error {
	defer t.lease.end()
	return t.tx.Commit(ctx)
}

func (t *readTx) Rollback(ctx context.Context) error {
	defer t.lease.end()
	return t.tx.Rollback(ctx)
}

func (t *readTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	r, err := t.tx.Query(ctx, sql, args...)
	return t.lease.heldRows(r), err
}

func (t *readTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	r, _ := t.tx.Query(ctx, sql, args...) //nolint:rowserrcheck // Scan has the error
	t.lease.permit.Idle()
	return &row{r: r, lease: t.lease.held()}
}

func (t *readTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	l := t.lease.held()
	return l.results(t.tx.SendBatch(ctx, l.idleCallbacks(b)))
}

func (t *readTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return t.tx.Exec(ctx, sql, args...)
}

func (t *readTx) CopyFrom(ctx context.Context, tableName pgx.Identifier, columnNames []string, rowSrc pgx.CopyFromSource) (int64, error) {
	return t.tx.CopyFrom(ctx, tableName, columnNames, rowSrc)
}

func (t *readTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	return t.tx.Prepare(ctx, name, sql)
}

func (t *readTx) LargeObjects() pgx.LargeObjects { return t.tx.LargeObjects() }
func (t *readTx) Conn() *pgx.Conn                { return t.tx.Conn() }

// heldRows wraps the rows of a held connection, so that their holder is idle between
// two of them.
func (l *lease) heldRows(r pgx.Rows) pgx.Rows {
	l.permit.Idle()
	return &rows{r: r, lease: l.held()}
}
