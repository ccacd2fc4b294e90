package pgyield_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgyield/pgyield"
)

// panickyTracer panics once where it is told to.
type panickyTracer struct {
	fullTracer
	at string
}

func (t *panickyTracer) note(event string) {
	if event == t.at {
		t.at = ""
		panic(event)
	}
}

func (t *panickyTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	t.note("query start")
	return ctx
}

func (t *panickyTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {
	t.note("query end")
}

func (t *panickyTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	t.note("batch start")
	return ctx
}

func (t *panickyTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {
	t.note("batch query")
}

func (t *panickyTracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {
	t.note("batch end")
}

func (t *panickyTracer) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	t.note("acquire start")
	return ctx
}

func (t *panickyTracer) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {
}

// A tracer that panics costs no permit and no connection, whatever runs. (At the end of an
// acquire, and at the release, pgxpool itself loses the connection.)
func TestPanicInATracer(t *testing.T) {
	calls := map[string]func(f *fixture){
		"Exec":                        func(f *fixture) { _, _ = f.Exec(f.ctx, read) },
		"QueryRow":                    func(f *fixture) { _ = f.QueryRow(f.ctx, read).Scan(nil) },
		"QueryRow that scans nothing": func(f *fixture) { _ = f.QueryRow(f.ctx, read).Scan(&pgtype.DriverBytes{}) },
		"Query": func(f *fixture) {
			rows, err := f.Query(f.ctx, read)
			if err == nil {
				rows.Next()
				rows.Close()
			}
		},
		"Query to the end": func(f *fixture) {
			rows, err := f.Query(f.ctx, read)
			if err == nil {
				defer rows.Close() // as programs do
				_ = drain(rows)
			}
		},
		"SendBatch": func(f *fixture) {
			b := &pgx.Batch{}
			b.Queue(read)
			_ = f.SendBatch(f.ctx, b).Close()
		},
		"BeginTx": func(f *fixture) {
			tx, err := f.BeginTx(f.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
			if err == nil {
				_ = tx.Commit(f.ctx)
			}
		},
		"AcquireRead": func(f *fixture) {
			c, err := f.AcquireRead(f.ctx)
			if err == nil {
				defer c.Release()
				_, _ = c.Exec(f.ctx, read)
			}
		},
	}
	for _, at := range []string{"acquire start", "query start", "query end", "batch start", "batch query", "batch end"} {
		for name, call := range calls {
			t.Run(name+" "+at, func(t *testing.T) {
				tracer := &panickyTracer{}
				s := fixed("2")
				s.configure = func(c *pgyield.Config) { c.ConnConfig.Tracer = tracer }
				s.run(t, func(f *fixture) {
					tracer.at = at
					_ = panics(func() { call(f) })
					tracer.at = ""
					time.Sleep(time.Second)
					f.wholeLimitUsable()
				})
			})
		}
	}
}
