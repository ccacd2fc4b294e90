package pgyield

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// connTracer sits on one connection. It times writes wherever they run (in the pool's
// calls, in transactions, on acquired connections), learns what prepared names stand
// for, tells when a held read is in the driver, and passes everything on to the
// caller's tracer.
//
// A connection that the caller makes from the config of one of the pool's has the same
// tracer. For such a one it only passes on: the state belongs to conn.
type connTracer struct {
	conn  *pgx.Conn // set before anyone else has the connection, and never again
	state connState

	query   pgx.QueryTracer
	batch   pgx.BatchTracer
	copy    pgx.CopyFromTracer
	prepare pgx.PrepareTracer
	connect pgx.ConnectTracer

	preparing struct{ name, sql string }
}

func (p *Pool) newConnTracer(next pgx.QueryTracer) *connTracer {
	t := &connTracer{query: next}
	t.state.pool = p
	t.batch, _ = next.(pgx.BatchTracer)
	t.copy, _ = next.(pgx.CopyFromTracer)
	t.prepare, _ = next.(pgx.PrepareTracer)
	t.connect, _ = next.(pgx.ConnectTracer)
	return t
}

func (t *connTracer) TraceConnectStart(ctx context.Context, data pgx.TraceConnectStartData) context.Context {
	if t.connect == nil {
		return ctx
	}
	return t.connect.TraceConnectStart(ctx, data)
}

func (t *connTracer) TraceConnectEnd(ctx context.Context, data pgx.TraceConnectEndData) {
	if data.Conn != nil && t.conn == nil {
		t.conn = data.Conn
		data.Conn.PgConn().CustomData()[stateKey] = &t.state
		if m := t.state.pool.monitor; m != nil {
			m.poolConnected(data.Conn)
		}
	}
	if t.connect != nil {
		t.connect.TraceConnectEnd(ctx, data)
	}
}

// enter notes that a call of the driver begins, and returns the state, nil where conn
// is not the pool's.
func (t *connTracer) enter(conn *pgx.Conn) *connState {
	if conn != t.conn {
		return nil
	}
	t.state.permit.Busy()
	t.state.settle()
	return &t.state
}

// leave notes that the call has ended: what the caller's tracer does next is the
// caller's time.
func (t *connTracer) leave(conn *pgx.Conn, err error) {
	if conn == t.conn {
		t.state.finish(conn, err)
		t.state.permit.Idle()
	}
}

func (t *connTracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if s := t.enter(conn); s == nil || s.skipped() {
		// Not ours to time.
	} else if w, ok := ctx.Value(writeKey{}).(*write); ok && w.begun(data.SQL) {
		s.startWrite(w)
	} else {
		s.startText(conn, data.SQL)
	}
	if t.query == nil {
		return ctx
	}
	return t.query.TraceQueryStart(ctx, conn, data)
}

func (t *connTracer) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	t.leave(conn, data.Err)
	if t.query != nil {
		t.query.TraceQueryEnd(ctx, conn, data)
	}
}

func (t *connTracer) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	if s := t.enter(conn); s == nil || s.skipped() {
		// Not ours to time.
	} else if w, ok := ctx.Value(writeKey{}).(*write); ok && w.kind == writeBatch && w.batch == data.Batch && !w.started {
		s.startWrite(w)
	} else {
		s.startBatch(conn, data.Batch)
	}
	if t.batch == nil {
		return ctx
	}
	return t.batch.TraceBatchStart(ctx, conn, data)
}

// startBatch notes that a batch starts in a transaction or on an acquired connection: it
// counts as its first statement that counts.
func (s *connState) startBatch(conn *pgx.Conn, b *pgx.Batch) {
	for _, q := range b.QueuedQueries {
		if s.startText(conn, q.SQL); s.timed != timedNot {
			return
		}
	}
}

func (t *connTracer) TraceBatchQuery(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchQueryData) {
	if t.batch != nil {
		t.batch.TraceBatchQuery(ctx, conn, data)
	}
}

func (t *connTracer) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchEndData) {
	t.leave(conn, data.Err)
	if t.batch != nil {
		t.batch.TraceBatchEnd(ctx, conn, data)
	}
}

func (t *connTracer) TraceCopyFromStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceCopyFromStartData) context.Context {
	if s := t.enter(conn); s == nil {
		// Not ours to time.
	} else if w, ok := ctx.Value(writeKey{}).(*write); ok && w.kind == writeCopy && !w.started {
		s.startWrite(w)
	} else {
		s.start(timedDML, sinceStart())
	}
	if t.copy == nil {
		return ctx
	}
	return t.copy.TraceCopyFromStart(ctx, conn, data)
}

func (t *connTracer) TraceCopyFromEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceCopyFromEndData) {
	t.leave(conn, data.Err)
	if t.copy != nil {
		t.copy.TraceCopyFromEnd(ctx, conn, data)
	}
}

func (t *connTracer) TracePrepareStart(ctx context.Context, conn *pgx.Conn, data pgx.TracePrepareStartData) context.Context {
	if conn == t.conn {
		t.preparing.name, t.preparing.sql = data.Name, data.SQL
	}
	if t.prepare == nil {
		return ctx
	}
	return t.prepare.TracePrepareStart(ctx, conn, data)
}

func (t *connTracer) TracePrepareEnd(ctx context.Context, conn *pgx.Conn, data pgx.TracePrepareEndData) {
	if conn == t.conn && data.Err == nil {
		t.state.pool.prepared.learn(t.preparing.name, t.preparing.sql)
	}
	if t.prepare != nil {
		t.prepare.TracePrepareEnd(ctx, conn, data)
	}
}

// ranOut reports whether a call failed because its time was up.
func ranOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err)
}
