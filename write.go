package pgyield

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// writeKind says how a write reaches its connection, and so how the connection's
// tracer knows it again.
type writeKind uint8

const (
	writeStatement writeKind = iota
	writeBatch
	writeBegin
	writeCopy
)

// write is a call of the pool that takes no permit, and the context that pgxpool runs
// it with: so the connection's tracer can tell from where the latency counts (the
// arrival: the wait for a connection is part of what a writer suffers) and need not
// classify the text again.
type write struct {
	context.Context
	arrival

	pool    *Pool
	kind    writeKind
	sql     string
	batch   *pgx.Batch
	counts  bool // its latency is a sample: DML, or the begin of a transaction that may hold some
	started bool // it reached its connection
}

type writeKey struct{}

func (w *write) Value(key any) any {
	if _, ok := key.(writeKey); ok {
		return w
	}
	return w.Context.Value(key)
}

// Deadline, Done and Err come from the embedded context.

func (p *Pool) newWrite(ctx context.Context, kind writeKind, counts bool) *write {
	counts = counts && ctx.Err() == nil // too late from the start: it waits for nothing
	return &write{Context: ctx, arrival: p.traffic.arrive(), pool: p, kind: kind, counts: counts}
}

// end notes that pgxpool's call has returned. A write that ran out of time before it
// had a connection suffered most of all; no statement will tell. One that was cancelled
// tells nothing.
func (w *write) end() {
	w.served()
	if w.counts && !w.started && ranOut(w.Err()) {
		w.pool.writes.Observe(w.age())
	}
}

// begun reports whether the statement that starts on a connection is this write, and
// not one that a hook runs with the same context on the way.
func (w *write) begun(sql string) bool {
	if w.started {
		return false
	}
	switch w.kind {
	case writeStatement:
		return sql == w.sql
	case writeBegin:
		return sql == w.sql || w.sql == "" && strings.HasPrefix(sql, "begin")
	default:
		return false
	}
}

// reach marks the write as on its connection and returns from when its latency counts.
func (w *write) reach() time.Duration {
	w.started = true
	w.served()
	return w.at
}
