package integration_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/IBM/pgxpoolprometheus"
	"github.com/exaring/otelpgx"
	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	plainpool "github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	// The one line that a program changes.
	pgxpool "github.com/pgyield/pgyield"
)

// dropIn opens a pool over a database with a table, and at the end of the test
// makes sure that no permit is left and that reads took some.
func dropIn(t *testing.T, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(newDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(context.Background(),
		"create table author (id bigint generated always as identity primary key, name text not null)"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stat := pool.ReadStat()
		if stat.Running() != 0 || stat.Waiting() != 0 {
			t.Errorf("%d permits are held and %d reads wait at the end", stat.Running(), stat.Waiting())
		}
		if stat.Admitted() == 0 {
			t.Error("no read took a permit")
		}
	})
	return pool
}

type author struct {
	ID   int64
	Name string
}

// dbtx has the shape that sqlc's generated code takes a pool, a connection or a
// transaction by.
type dbtx interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	Query(context.Context, string, ...any) (pgx.Rows, error)
	QueryRow(context.Context, string, ...any) pgx.Row
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
	CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error)
}

var (
	_ dbtx = (*pgxpool.Pool)(nil)
	_ dbtx = (*pgxpool.Conn)(nil)
	_ dbtx = pgx.Tx(nil)
)

// queries is written as sqlc writes its queries.
type queries struct{ db dbtx }

func (q *queries) withTx(tx pgx.Tx) *queries { return &queries{db: tx} }

func (q *queries) create(ctx context.Context, name string) (a author, err error) {
	err = q.db.QueryRow(ctx, "insert into author (name) values ($1) returning id, name", name).Scan(&a.ID, &a.Name)
	return a, err
}

func (q *queries) get(ctx context.Context, id int64) (a author, err error) {
	err = q.db.QueryRow(ctx, "-- name: Get :one\nselect id, name from author where id = $1", id).Scan(&a.ID, &a.Name)
	return a, err
}

func (q *queries) list(ctx context.Context) (authors []author, err error) {
	rows, err := q.db.Query(ctx, "-- name: List :many\nselect id, name from author order by id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var a author
		if err := rows.Scan(&a.ID, &a.Name); err != nil {
			return nil, err
		}
		authors = append(authors, a)
	}
	return authors, rows.Err()
}

func TestDropInSQLC(t *testing.T) {
	ctx := context.Background()
	pool := dropIn(t, nil)
	q := &queries{db: pool}
	created, err := q.create(ctx, "Ada")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := q.get(ctx, created.ID); err != nil || got != created {
		t.Errorf("got %+v, %v, want %+v", got, err, created)
	}
	if _, err := q.get(ctx, -1); err != pgx.ErrNoRows { //nolint:errorlint // pgx promises it bare
		t.Errorf("a row that is not there: %v", err)
	}
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.withTx(tx).create(ctx, "Grace"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if n, err := pool.CopyFrom(ctx, pgx.Identifier{"author"}, []string{"name"},
		pgx.CopyFromRows([][]any{{"Edsger"}, {"Barbara"}})); n != 2 || err != nil {
		t.Errorf("copied %d, %v", n, err)
	}
	batch := &pgx.Batch{}
	for _, id := range []int64{created.ID, created.ID} {
		batch.Queue("select name from author where id = $1", id)
	}
	results := pool.SendBatch(ctx, batch)
	for range batch.Len() {
		var name string
		if err := results.QueryRow().Scan(&name); err != nil || name != "Ada" {
			t.Errorf("in a batch: %q, %v", name, err)
		}
	}
	if err := results.Close(); err != nil {
		t.Error(err)
	}
	authors, err := q.list(ctx)
	names := make([]string, 0, len(authors))
	for _, a := range authors {
		names = append(names, a.Name)
	}
	if got := strings.Join(names, " "); err != nil || got != "Ada Edsger Barbara" {
		t.Errorf("listed %q, %v", got, err)
	}
}

func TestDropInScany(t *testing.T) {
	ctx := context.Background()
	pool := dropIn(t, nil)
	if _, err := pool.Exec(ctx, "insert into author (name) values ('Ada'), ('Grace')"); err != nil {
		t.Fatal(err)
	}
	var authors []author
	if err := pgxscan.Select(ctx, pool, &authors, "select id, name from author order by id"); err != nil {
		t.Fatal(err)
	}
	if len(authors) != 2 || authors[1].Name != "Grace" {
		t.Errorf("selected %+v", authors)
	}
	var one author
	if err := pgxscan.Get(ctx, pool, &one, "select id, name from author where name = $1", "Ada"); err != nil || one.Name != "Ada" {
		t.Errorf("got %+v, %v", one, err)
	}
	if err := pgxscan.Get(ctx, pool, &one, "select id, name from author where id = -1"); !pgxscan.NotFound(err) {
		t.Errorf("a row that is not there: %v", err)
	}
	// More rows than fit: scany closes the rows before their end.
	if err := pgxscan.Get(ctx, pool, &one, "select id, name from author"); err == nil {
		t.Error("two rows were read as one")
	}
	rows, err := pool.Query(ctx, "select id, name from author")
	if err != nil {
		t.Fatal(err)
	}
	if err := pgxscan.ScanAll(&authors, rows); err != nil || len(authors) != 2 {
		t.Errorf("scanned %+v, %v", authors, err)
	}
}

func TestDropInOtelpgx(t *testing.T) {
	spans, plainSpans := &spanNames{}, &spanNames{}
	traced := func(names *spanNames) func(*pgxpool.Config) {
		return func(config *pgxpool.Config) {
			config.ConnConfig.Tracer = otelpgx.NewTracer(otelpgx.WithTracerProvider(names))
		}
	}
	pool := dropIn(t, traced(spans))
	if err := otelpgx.RecordStats(pool); err != nil {
		t.Error(err)
	}
	config := pool.Config()
	traced(plainSpans)(config)
	plain, err := plainpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	// The pool has traced its first connection by now.
	if err := plain.Ping(context.Background()); err != nil {
		t.Fatal(err)
	}
	spans.clear()
	plainSpans.clear()
	for _, p := range []tracedPool{pool, plain} {
		if err := workUnderSpan(p); err != nil {
			t.Fatal(err)
		}
	}
	got, want := spans.sorted(), plainSpans.sorted()
	for _, name := range []string{"pool.acquire", "batch start", "SELECT", "INSERT"} {
		if !slices.Contains(want, name) {
			t.Errorf("no span %q over pgxpool: the test shows nothing", name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("spans %q, over pgxpool %q", got, want)
	}
}

// tracedPool is what both pools offer.
type tracedPool interface {
	dbtx
	Begin(ctx context.Context) (pgx.Tx, error)
}

// workUnderSpan does a bit of everything under a span that records, as a
// request's handler would.
func workUnderSpan(pool tracedPool) error {
	ctx := trace.ContextWithSpan(context.Background(), recordingSpan{})
	var n int
	if err := pool.QueryRow(ctx, "select count(*) from author").Scan(&n); err != nil {
		return err
	}
	batch := &pgx.Batch{}
	batch.Queue("select id from author")
	if err := pool.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if _, err := pool.CopyFrom(ctx, pgx.Identifier{"author"}, []string{"name"}, pgx.CopyFromRows([][]any{{"Ada"}})); err != nil {
		return err
	}
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "insert into author (name) values ($1)", "Grace"); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// spanNames is a TracerProvider that keeps the names of the spans.
type spanNames struct {
	embedded.TracerProvider
	mu    sync.Mutex
	names []string
}

func (s *spanNames) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return namingTracer{spans: s}
}

func (s *spanNames) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = nil
}

func (s *spanNames) sorted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.names))
}

type namingTracer struct {
	noop.Tracer
	spans *spanNames
}

func (n namingTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	n.spans.mu.Lock()
	n.spans.names = append(n.spans.names, name)
	n.spans.mu.Unlock()
	return trace.ContextWithSpan(ctx, recordingSpan{}), recordingSpan{}
}

type recordingSpan struct{ noop.Span }

func (recordingSpan) IsRecording() bool { return true }

func TestDropInPgxpoolprometheus(t *testing.T) {
	ctx := context.Background()
	pool := dropIn(t, nil)
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(pgxpoolprometheus.NewCollector(pool, map[string]string{"db": "x"})); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, "select id from author"); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		metric := family.GetMetric()[0]
		values[family.GetName()] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
	}
	if values["pgxpool_max_conns"] != float64(pool.Config().MaxConns) || values["pgxpool_acquire_count"] < 2 {
		t.Errorf("collected %v", values)
	}
}

// TestDropInStdlib uses what needs pgxpool's concrete type.
func TestDropInStdlib(t *testing.T) {
	pool := dropIn(t, nil)
	if _, err := pool.Exec(context.Background(), "select id from author"); err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDBFromPool(pool.Unwrap())
	defer db.Close()
	var n int
	if err := db.QueryRowContext(t.Context(), "select count(*) from author").Scan(&n); err != nil || n != 0 {
		t.Errorf("counted %d, %v", n, err)
	}
}
