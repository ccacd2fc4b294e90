package pgyield

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgyield/pgyield/intent"
)

// SendBatch sends b as [pgxpool.Pool.SendBatch] does. A batch whose every statement is
// a read takes one permit first, given back by Close of the results or, where
// [pgx.Batch.BeginTx] began a read-only transaction, at its end. Why it got none, if so,
// is the error of the results, as for [Pool.Query].
func (p *Pool) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	w := wishOf(ctx)
	class := p.classifyBatch(w, b)
	if !p.count(w, class) {
		if class.Intent != intent.Write {
			return p.inner.SendBatch(ctx, b)
		}
		call := p.newWrite(ctx, writeBatch, class.DML)
		call.batch = b
		defer call.end()
		return p.inner.SendBatch(call, b)
	}
	l, err := p.enter(ctx, w)
	if err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return l.sendBatch(ctx, b)
}

// classifyBatch returns what a batch is as a whole: a write when any statement is one,
// or when it is empty, for nothing proves it a read; trivial when all are.
func (p *Pool) classifyBatch(w wish, b *pgx.Batch) intent.Class {
	if b.Len() == 0 {
		return intent.Class{Intent: intent.Write}
	}
	whole := intent.Class{Intent: intent.Trivial}
	for i, q := range b.QueuedQueries {
		if i == 0 && len(q.Arguments) == 0 && beginsReadOnly(q.SQL) {
			whole.Intent = intent.Read
			continue
		}
		class := p.classify(wish{}, q.SQL, q.Arguments)
		whole.DML = whole.DML || class.DML
		switch {
		case class.Intent == intent.Write:
			whole.Intent = intent.Write
		case class.Intent == intent.Read && whole.Intent == intent.Trivial:
			whole.Intent = intent.Read
		}
	}
	if w.hasIntent {
		whole.Intent = w.intent
	}
	return whole
}

// beginsReadOnly reports whether sql is the statement that Batch.BeginTx queues for
// options that say ReadOnly. The batch keeps its options to itself, so the text tells,
// and only word for word: options may also carry a text of the caller's.
func beginsReadOnly(sql string) bool {
	rest, ok := strings.CutPrefix(sql, "begin")
	if !ok {
		return false
	}
	if after, has := strings.CutPrefix(rest, " isolation level "); has {
		rest = ""
		for _, level := range []pgx.TxIsoLevel{pgx.Serializable, pgx.RepeatableRead, pgx.ReadCommitted, pgx.ReadUncommitted} {
			if tail, is := strings.CutPrefix(after, string(level)); is {
				rest = tail
				break
			}
		}
	}
	rest, ok = strings.CutPrefix(rest, " read only")
	return ok && (rest == "" || rest == " deferrable" || rest == " not deferrable")
}

func (l *lease) sendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	sent := false
	defer func() {
		if !sent { // a rewriter of the caller's has panicked
			l.end()
		}
	}()
	l.skipTiming()
	br := l.conn.SendBatch(ctx, l.idleCallbacks(b))
	sent = true
	if br.Tx() != nil {
		l.hold()
	}
	return l.results(br)
}

// results wraps the results of a batch. Where it began a transaction, that one ends the
// lease.
func (l *lease) results(br pgx.BatchResults) *batch {
	l.permit.Idle()
	tx := br.Tx()
	if tx == nil {
		return &batch{br: br, lease: *l}
	}
	return &batch{br: br, lease: l.held(), tx: &readTx{tx: tx, lease: *l}}
}

// batch are the results of a batch that holds a permit.
type batch struct {
	br    pgx.BatchResults
	lease lease   // held, where a transaction of the batch ends it
	tx    *readTx // begun by the batch, or nil
}

func (b *batch) Exec() (pgconn.CommandTag, error) {
	b.lease.permit.Busy()
	defer b.lease.permit.Idle()
	return b.br.Exec()
}

func (b *batch) Query() (pgx.Rows, error) {
	b.lease.permit.Busy()
	r, err := b.br.Query()
	l := b.lease.held()
	return l.heldRows(r), err
}

func (b *batch) QueryRow() pgx.Row {
	b.lease.permit.Busy()
	r, _ := b.br.Query() //nolint:rowserrcheck // Scan has the error
	b.lease.permit.Idle()
	return &row{r: r, lease: b.lease.held()}
}

func (b *batch) Close() error {
	b.lease.permit.Busy()
	defer b.lease.end() // also when a callback panics
	return b.br.Close()
}

func (b *batch) Tx() pgx.Tx {
	if b.tx == nil {
		return nil
	}
	return b.tx
}

// idleCallbacks returns b with its callbacks wrapped, so that the holder is idle in
// them: pgx calls them from inside Close. The caller's own batch is left as it is.
func (l *lease) idleCallbacks(b *pgx.Batch) *pgx.Batch {
	if !needsWrap(b) {
		return b
	}
	c := *b
	c.QueuedQueries = make([]*pgx.QueuedQuery, len(b.QueuedQueries))
	for i, q := range b.QueuedQueries {
		wrapped := *q
		wrapped.Arguments = idleRewriters(q.Arguments, l.permit)
		if fn := q.Fn; fn != nil {
			held := l.held()
			wrapped.Fn = func(br pgx.BatchResults) error {
				held.permit.Idle()
				defer held.permit.Busy()
				return fn(&batch{br: br, lease: held})
			}
		}
		c.QueuedQueries[i] = &wrapped
	}
	return &c
}

func needsWrap(b *pgx.Batch) bool {
	for _, q := range b.QueuedQueries {
		if q.Fn != nil || rewrites(q.Arguments) {
			return true
		}
	}
	return false
}
