package pgyield

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
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
	t := adaptedTracer{QueryTracer: tracer, pool: p}
	t.add(tracer)
	if t.acquire == nil && t.release == nil {
		return tracer
	}
	t.foreignAcquire, _ = tracer.(pgxpool.AcquireTracer)
	t.foreignRelease, _ = tracer.(pgxpool.ReleaseTracer)
	return &t
}

// adaptedTracer calls a tracer that was written against this package, wholly or in
// part, from pgxpool.
type adaptedTracer struct {
	pgx.QueryTracer
	pool           *Pool
	acquire        []AcquireTracer
	release        []ReleaseTracer
	foreignAcquire pgxpool.AcquireTracer
	foreignRelease pgxpool.ReleaseTracer
}

// add finds our interfaces in a tracer. pgx's tracer of several calls those of its parts that
// are pgxpool's, and knows nothing of ours.
func (t *adaptedTracer) add(tracer pgx.QueryTracer) {
	if several, ok := tracer.(*multitracer.Tracer); ok && several != nil {
		for _, part := range several.QueryTracers {
			t.add(part)
		}
		return
	}
	if a, ok := tracer.(AcquireTracer); ok {
		t.acquire = append(t.acquire, a)
	}
	if r, ok := tracer.(ReleaseTracer); ok {
		t.release = append(t.release, r)
	}
}

func (t *adaptedTracer) TraceAcquireStart(ctx context.Context, pool *pgxpool.Pool, data TraceAcquireStartData) context.Context {
	for _, a := range t.acquire {
		ctx = a.TraceAcquireStart(ctx, t.pool, data) //nolint:fatcontext // each adds its own, of the few there are
	}
	if t.foreignAcquire != nil {
		ctx = t.foreignAcquire.TraceAcquireStart(ctx, pool, data)
	}
	return ctx
}

func (t *adaptedTracer) TraceAcquireEnd(ctx context.Context, pool *pgxpool.Pool, data TraceAcquireEndData) {
	for _, a := range t.acquire {
		a.TraceAcquireEnd(ctx, t.pool, data)
	}
	if t.foreignAcquire != nil {
		t.foreignAcquire.TraceAcquireEnd(ctx, pool, data)
	}
}

func (t *adaptedTracer) TraceRelease(pool *pgxpool.Pool, data TraceReleaseData) {
	for _, r := range t.release {
		r.TraceRelease(t.pool, data)
	}
	if t.foreignRelease != nil {
		t.foreignRelease.TraceRelease(pool, data)
	}
}
