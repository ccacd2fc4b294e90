package pgyield_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// querier is what both pools are to a program.
type querier interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
	QueryRow(context.Context, string, ...any) pgx.Row
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
	BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)
}

func say(v ...any) string { return fmt.Sprintf("%v", v) }

// probes tell all that a program sees of a call.
var probes = map[string]func(f *fixture, p querier) string{
	"rows after close": func(f *fixture, p querier) string {
		r, err := p.Query(f.ctx, read)
		r.Next()
		r.Close()
		v, e2 := r.Values()
		return say(err, r.Next(), r.Err(), r.Scan(nil), v, e2, r.CommandTag(), len(r.FieldDescriptions()), r.RawValues(), r.Conn() != nil, r.TypeMap() != nil)
	},
	"scan wrong count": func(f *fixture, p querier) string {
		r, _ := p.Query(f.ctx, read)
		r.Next()
		var a, b int
		return say(r.Scan(&a, &b), r.Err(), r.Next())
	},
	"scan type": func(f *fixture, p querier) string {
		var a time.Time
		return say(p.QueryRow(f.ctx, read).Scan(&a))
	},
	"driver bytes": func(f *fixture, p querier) string {
		var a pgtype.DriverBytes
		return say(p.QueryRow(f.ctx, read).Scan(&a))
	},
	"row twice": func(f *fixture, p querier) string {
		var a int
		r := p.QueryRow(f.ctx, read)
		return say(r.Scan(&a), r.Scan(&a))
	},
	"row scan before next": func(f *fixture, p querier) string {
		r, _ := p.Query(f.ctx, read)
		var a int
		return say(r.Scan(&a), r.Err())
	},
	"broken": func(f *fixture, p querier) string {
		r, err := p.Query(f.ctx, broken)
		x := r.Next()
		_, e3 := p.Exec(f.ctx, broken)
		return say(err, x, r.Err(), p.QueryRow(f.ctx, broken).Scan(nil), e3)
	},
	"args": func(f *fixture, p querier) string {
		r, err := p.Query(f.ctx, read, 1, 2)
		x := r.Next()
		_, e3 := p.Exec(f.ctx, read, 1, 2)
		return say(err, x, r.Err(), p.QueryRow(f.ctx, read, 1, 2).Scan(nil), e3)
	},
	"exec": func(f *fixture, p querier) string { ct, err := p.Exec(f.ctx, read); return say(ct, err) },
	"cancelled": func(f *fixture, p querier) string {
		ctx, c := context.WithCancel(f.ctx)
		c()
		r, err := p.Query(ctx, read)
		x := r.Next()
		_, e3 := p.Exec(ctx, read)
		tx, e4 := p.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		return say(err, x, r.Err(), p.QueryRow(ctx, read).Scan(nil), e3, tx == nil, e4)
	},
	"cancel in rows": func(f *fixture, p querier) string {
		ctx, c := context.WithTimeout(f.ctx, time.Second)
		defer c()
		r, err := p.Query(ctx, "select pg_sleep(3)")
		return say(err, r.Next(), r.Err())
	},
	"tx": func(f *fixture, p querier) string {
		tx, err := p.BeginTx(f.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		e1 := tx.Commit(f.ctx)
		_, e2 := tx.Exec(f.ctx, read)
		r, e3 := tx.Query(f.ctx, read)
		n := r.Next()
		b := &pgx.Batch{}
		b.Queue(read)
		br := tx.SendBatch(f.ctx, b)
		_, e5 := br.Exec()
		sub, e4 := tx.Begin(f.ctx)
		return say(err, e1, e2, n, r.Err(), e3, sub == nil, e4, tx.QueryRow(f.ctx, read).Scan(nil), e5, br.Close(), tx.Rollback(f.ctx), tx.Commit(f.ctx), br.Tx() == nil)
	},
	"tx failed": func(f *fixture, p querier) string {
		tx, err := p.BeginTx(f.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		_, e1 := tx.Exec(f.ctx, broken)
		return say(err, e1, tx.Commit(f.ctx), tx.Commit(f.ctx))
	},
	"batch": func(f *fixture, p querier) string {
		b := &pgx.Batch{}
		var got []string
		b.Queue(read).Query(func(rows pgx.Rows) error {
			v, err := pgx.CollectRows(rows, pgx.RowTo[int])
			got = append(got, say(v, err))
			return nil
		})
		b.Queue(read).QueryRow(func(row pgx.Row) error { var n int; got = append(got, say(row.Scan(&n), n)); return nil })
		b.Queue(read).Exec(func(ct pgconn.CommandTag) error { got = append(got, say(ct)); return nil })
		b.Queue(broken)
		b.Queue(read).Exec(func(ct pgconn.CommandTag) error { got = append(got, say(ct)); return nil })
		br := p.SendBatch(f.ctx, b)
		e1, e2 := br.Close(), br.Close()
		_, e3 := br.Exec()
		r, e4 := br.Query()
		return say(got, e1, e2, e3, e4, r.Next(), r.Err(), br.QueryRow().Scan(nil), br.Tx() == nil)
	},
	"batch by hand": func(f *fixture, p querier) string {
		b := &pgx.Batch{}
		b.Queue(read)
		b.Queue(read)
		b.Queue(read)
		br := p.SendBatch(f.ctx, b)
		r, e1 := br.Query()
		v, e2 := pgx.CollectRows(r, pgx.RowTo[int])
		var n int
		e3 := br.QueryRow().Scan(&n)
		ct, e4 := br.Exec()
		_, e5 := br.Exec()
		return say(e1, v, e2, e3, n, ct, e4, e5, br.Close())
	},
	"batch callback error": func(f *fixture, p querier) string {
		b := &pgx.Batch{}
		b.Queue(read).Query(func(rows pgx.Rows) error { return errTest })
		b.Queue(read).Query(func(rows pgx.Rows) error { panic("no") })
		br := p.SendBatch(f.ctx, b)
		return say(br.Close(), br.Close())
	},
	"batch tx": func(f *fixture, p querier) string {
		b := &pgx.Batch{}
		b.BeginTx(pgx.TxOptions{AccessMode: pgx.ReadOnly})
		b.Queue(broken)
		br := p.SendBatch(f.ctx, b)
		return say(br.Close(), br.Tx().Commit(f.ctx), br.Tx().Commit(f.ctx), br.Tx().Rollback(f.ctx))
	},
	"batch bad args tx": func(f *fixture, p querier) string {
		b := &pgx.Batch{}
		b.BeginTx(pgx.TxOptions{AccessMode: pgx.ReadOnly})
		b.Queue("select $1::int from t", "a", 3)
		br := p.SendBatch(f.ctx, b)
		_, e := br.Tx().Exec(f.ctx, read)
		return say(br.Close(), e, br.Tx().Commit(f.ctx), br.Tx().Commit(f.ctx), br.Tx().Rollback(f.ctx))
	},
	"batch cancelled": func(f *fixture, p querier) string {
		ctx, c := context.WithCancel(f.ctx)
		c()
		b := &pgx.Batch{}
		b.BeginTx(pgx.TxOptions{AccessMode: pgx.ReadOnly})
		b.Queue(read)
		br := p.SendBatch(ctx, b)
		_, e := br.Exec()
		return say(e, br.Close(), br.Tx() == nil, br.Tx().Commit(f.ctx))
	},
	"named": func(f *fixture, p querier) string {
		var n int
		e := p.QueryRow(f.ctx, "select generate_series(1, 3) where @a::int = 1", pgx.NamedArgs{"b": 1}).Scan(&n)
		e2 := p.QueryRow(f.ctx, "select generate_series(1, 3) where @a::int = 1", pgx.StrictNamedArgs{"b": 1}).Scan(&n)
		return say(e, e2)
	},
	"collect": func(f *fixture, p querier) string {
		type rec struct{ GenerateSeries int }
		r, _ := p.Query(f.ctx, read)
		v, err := pgx.CollectRows(r, pgx.RowToStructByName[rec])
		r, _ = p.Query(f.ctx, read)
		m, e2 := pgx.CollectOneRow(r, pgx.RowToMap)
		r, _ = p.Query(f.ctx, read)
		var n int
		ct, e3 := pgx.ForEachRow(r, []any{&n}, func() error { return nil })
		r, _ = p.Query(f.ctx, read)
		_, e4 := pgx.CollectExactlyOneRow(r, pgx.RowTo[int])
		return say(v, err, m, e2, ct, e3, e4)
	},
	"closed": func(f *fixture, p querier) string {
		if c, ok := p.(interface{ Close() }); ok {
			c.Close()
		}
		r, err := p.Query(f.ctx, read)
		b := &pgx.Batch{}
		b.BeginTx(pgx.TxOptions{AccessMode: pgx.ReadOnly})
		b.Queue(read)
		br := p.SendBatch(f.ctx, b)
		_, e2 := p.BeginTx(f.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		return say(err, r.Err(), br.Close(), br.Tx().Commit(f.ctx), e2)
	},
}

// Reads return what pgxpool's do, value for value and error for error, also where a
// program does what it should not.
func TestReadsAreAsPgxpools(t *testing.T) {
	for name, probe := range probes {
		t.Run(name, func(t *testing.T) {
			var ours, theirs string
			s := fixed("5")
			s.handler = unhurried
			s.run(t, func(f *fixture) { ours = probe(f, f.Pool) })
			s.run(t, func(f *fixture) { theirs = probe(f, f.Unwrap()) })
			if ours != theirs {
				t.Errorf("a read returns\n%s, pgxpool's\n%s", ours, theirs)
			}
		})
	}
}
