package pgyield

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// AcquireTracer traces Acquire. A tracer in Config.ConnConfig.Tracer may implement it
// or pgxpool's interface of the same name, whose methods take pgxpool's Pool.
type AcquireTracer interface {
	// TraceAcquireStart is called at the beginning of Acquire. The returned context is
	// used for the rest of the call and passed to TraceAcquireEnd.
	TraceAcquireStart(ctx context.Context, pool *Pool, data TraceAcquireStartData) context.Context
	// TraceAcquireEnd is called when a connection has been acquired, or could not be.
	TraceAcquireEnd(ctx context.Context, pool *Pool, data TraceAcquireEndData)
}

// ReleaseTracer traces Release. As [AcquireTracer], it stands beside pgxpool's.
type ReleaseTracer interface {
	// TraceRelease is called at the beginning of Release.
	TraceRelease(pool *Pool, data TraceReleaseData)
}

// poolTracer returns the tracer to give to pgxpool, which looks there for its own two
// interfaces, and would silently ignore ours.
func (p *Pool) poolTracer(tracer pgx.QueryTracer) pgx.QueryTracer {
	ours := adaptedTracer{QueryTracer: tracer, pool: p}
	ours.acquire, _ = tracer.(AcquireTracer)
	ours.release, _ = tracer.(ReleaseTracer)
	if ours.acquire == nil && ours.release == nil {
		return tracer
	}
	ours.foreignAcquire, _ = tracer.(pgxpool.AcquireTracer)
	ours.foreignRelease, _ = tracer.(pgxpool.ReleaseTracer)
	return &ours
}

// adaptedTracer calls a tracer that was written against this package, wholly or in
// part, from pgxpool.
type adaptedTracer struct {
	pgx.QueryTracer
	pool           *Pool
	acquire        AcquireTracer
	release        ReleaseTracer
	foreignAcquire pgxpool.AcquireTracer
	foreignRelease pgxpool.ReleaseTracer
}

func (t *adaptedTracer) TraceAcquireStart(ctx context.Context, pool *pgxpool.Pool, data TraceAcquireStartData) context.Context {
	switch {
	case t.acquire != nil:
		return t.acquire.TraceAcquireStart(ctx, t.pool, data)
	case t.foreignAcquire != nil:
		return t.foreignAcquire.TraceAcquireStart(ctx, pool, data)
	default:
		return ctx
	}
}

func (t *adaptedTracer) TraceAcquireEnd(ctx context.Context, pool *pgxpool.Pool, data TraceAcquireEndData) {
	switch {
	case t.acquire != nil:
		t.acquire.TraceAcquireEnd(ctx, t.pool, data)
	case t.foreignAcquire != nil:
		t.foreignAcquire.TraceAcquireEnd(ctx, pool, data)
	}
}

func (t *adaptedTracer) TraceRelease(pool *pgxpool.Pool, data TraceReleaseData) {
	switch {
	case t.release != nil:
		t.release.TraceRelease(t.pool, data)
	case t.foreignRelease != nil:
		t.foreignRelease.TraceRelease(pool, data)
	}
}
