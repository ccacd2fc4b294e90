package pgyield_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgyield/pgyield"
)

// baseTracer records which of pgx's tracing methods were called.
type baseTracer struct {
	mu     sync.Mutex
	events []string
}

func (t *baseTracer) note(event string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, event)
}

func (t *baseTracer) seen() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	sorted := slices.Clone(t.events)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

func (t *baseTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	t.note("query start")
	return ctx
}

func (t *baseTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {
	t.note("query end")
}

// fullTracer has all that pgx itself asks for.
type fullTracer struct{ baseTracer }

func (t *fullTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	t.note("batch start")
	return ctx
}

func (t *fullTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {
	t.note("batch query")
}

func (t *fullTracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {
	t.note("batch end")
}

func (t *fullTracer) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	t.note("copy start")
	return ctx
}

func (t *fullTracer) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {
	t.note("copy end")
}

func (t *fullTracer) TracePrepareStart(ctx context.Context, _ *pgx.Conn, _ pgx.TracePrepareStartData) context.Context {
	t.note("prepare start")
	return ctx
}

func (t *fullTracer) TracePrepareEnd(context.Context, *pgx.Conn, pgx.TracePrepareEndData) {
	t.note("prepare end")
}

func (t *fullTracer) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	t.note("connect start")
	return ctx
}

func (t *fullTracer) TraceConnectEnd(context.Context, pgx.TraceConnectEndData) {
	t.note("connect end")
}

// theirTracer was written for pgxpool, ourTracer against this package's import, and
// mixedTracer for both.
type (
	theirTracer struct{ fullTracer }
	ourTracer   struct{ fullTracer }
	mixedTracer struct{ fullTracer }
)

func (t *theirTracer) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	t.note("acquire start")
	return ctx
}

func (t *theirTracer) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {
	t.note("acquire end")
}
func (t *theirTracer) TraceRelease(*pgxpool.Pool, pgxpool.TraceReleaseData) { t.note("release") }

func (t *ourTracer) TraceAcquireStart(ctx context.Context, p *pgyield.Pool, _ pgyield.TraceAcquireStartData) context.Context {
	p.ReadStat() // the pool is whole
	t.note("acquire start")
	return ctx
}

func (t *ourTracer) TraceAcquireEnd(context.Context, *pgyield.Pool, pgyield.TraceAcquireEndData) {
	t.note("acquire end")
}
func (t *ourTracer) TraceRelease(*pgyield.Pool, pgyield.TraceReleaseData) { t.note("release") }

func (t *mixedTracer) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	t.note("acquire start")
	return ctx
}

func (t *mixedTracer) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {
	t.note("acquire end")
}
func (t *mixedTracer) TraceRelease(*pgyield.Pool, pgyield.TraceReleaseData) { t.note("release") }

var (
	_ pgxpool.AcquireTracer = (*theirTracer)(nil)
	_ pgyield.AcquireTracer = (*ourTracer)(nil)
	_ pgyield.ReleaseTracer = (*mixedTracer)(nil)
)

func TestTracers(t *testing.T) {
	queries := []string{"query end", "query start"}
	all := []string{
		"acquire end", "acquire start", "batch end", "batch query", "batch start", "connect end", "connect start",
		"copy end", "copy start", "prepare end", "prepare start", "query end", "query start", "release",
	}
	type tracer interface {
		pgx.QueryTracer
		seen() []string
	}
	for name, tt := range map[string]struct {
		tracer tracer
		want   []string
	}{
		"queries only":     {&baseTracer{}, queries},
		"for pgxpool":      {&theirTracer{}, all},
		"for this package": {&ourTracer{}, all},
		"for both":         {&mixedTracer{}, all},
	} {
		t.Run(name, func(t *testing.T) {
			s := fixed("2")
			s.configure = func(c *pgyield.Config) { c.ConnConfig.Tracer = tt.tracer }
			s.run(t, func(f *fixture) {
				_ = f.QueryRow(f.ctx, read).Scan(nil)
				b := &pgx.Batch{}
				b.Queue(read)
				if err := f.SendBatch(f.ctx, b).Close(); err != nil {
					f.Error(err)
				}
				if _, err := f.CopyFrom(f.ctx, pgx.Identifier{"t"}, []string{"n"}, pgx.CopyFromRows([][]any{{"x"}})); err != nil {
					f.Error(err)
				}
				if got := tt.tracer.seen(); !slices.Equal(got, tt.want) {
					f.Errorf("traced %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// pgx's tracer of several knows nothing of what was written against this package.
func TestTracerOfSeveral(t *testing.T) {
	ours, theirs := &ourTracer{}, &theirTracer{}
	s := fixed("2")
	s.configure = func(c *pgyield.Config) {
		c.ConnConfig.Tracer = multitracer.New(&baseTracer{}, theirs, multitracer.New(ours))
	}
	s.run(t, func(f *fixture) {
		_ = f.QueryRow(f.ctx, read).Scan(nil)
		for _, seen := range [][]string{ours.seen(), theirs.seen()} {
			for _, want := range []string{"acquire start", "acquire end", "query end", "release"} {
				if !slices.Contains(seen, want) {
					f.Errorf("traced %q, want %q too", seen, want)
				}
			}
		}
	})
}

// The tracer that BeforeConnect puts in is the one that traces.
func TestTracerOfBeforeConnect(t *testing.T) {
	tracer := &fullTracer{}
	s := fixed("2")
	s.configure = func(c *pgyield.Config) {
		c.BeforeConnect = func(_ context.Context, cc *pgx.ConnConfig) error { cc.Tracer = tracer; return nil }
	}
	s.run(t, func(f *fixture) {
		_ = f.QueryRow(f.ctx, read).Scan(nil)
		if got := tracer.seen(); !slices.Contains(got, "query end") {
			f.Errorf("traced %q", got)
		}
	})
}
