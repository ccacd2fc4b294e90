package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield"
)

// gatedNow reports whether a statement queues when the gate is full.
func gatedNow(t testing.TB, pool *pgyield.Pool, sql string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := pool.Exec(ctx, sql)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%s: %v", sql, err)
	}
	return err != nil
}

// fullGate keeps the gate full until the test's end.
func fullGate(t testing.TB, pool *pgyield.Pool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	t.Cleanup(func() { cancel(); busy.Wait() })
	for range pool.ReadStat().Limit() {
		c, err := pool.AcquireRead(ctx)
		if err != nil {
			t.Fatal(err)
		}
		busy.Go(func() {
			defer c.Release()
			_, _ = c.Exec(ctx, "select pg_sleep(60)") // in the driver, so that no stall slot opens
		})
	}
}

// What the monitor learns: volatile functions of users, and aggregates over them, write;
// the two lists beat it, and built-in functions keep their class whatever shares their name.
func TestLearnedFunctions(t *testing.T) {
	onServers(t, func(t *testing.T, dsn string) {
		conn := connectTo(t, dsn)
		for _, sql := range []string{
			"create table touched (n int)",
			"create function touch(int) returns int language sql as 'insert into touched values ($1) returning n'",
			"create function peek(int) returns int language sql stable as 'select $1'",
			"create function trusted(int) returns int language sql volatile as 'select $1'",
			"create function declared(int) returns int language sql stable as 'select $1'",
			"create function add(int, int) returns int language plpgsql volatile as 'begin return $1 + $2; end'",
			"create aggregate total(int) (sfunc = add, stype = int, initcond = 0)",
			"create aggregate harmless(int) (sfunc = int4pl, stype = int, initcond = 0)",
			"create schema other",
			"create function other.upper(text) returns text language sql volatile as 'select $1'",
			"create procedure proc() language sql as 'select 1'",
		} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		config, err := pgyield.ParseConfig(withParams(dsn, "pool_max_conns=10", "yield_read_ceiling=1", "yield_busy_stall=10m"))
		if err != nil {
			t.Fatal(err)
		}
		pool, err := pgyield.NewWithOptions(t.Context(), config, pgyield.Options{
			WritingFunctions: []string{"declared"},
			ReadingFunctions: []string{"trusted"},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		fullGate(t, pool)
		eventually(t, 20*time.Second, "touch is learned", func() bool { return !gatedNow(t, pool, "select touch(1)") })
		for sql, gated := range map[string]bool{
			"select touch(2)":                             false,
			"select peek(1)":                              true,
			"select trusted(1)":                           true,
			"select declared(1)":                          false,
			"select total(n) from touched":                false,
			"select harmless(n) from touched":             true,
			"select upper('x') from touched":              true,
			"select count(*) from touched":                true,
			"select other.upper(n::text) from touched":    false, // that one is the user's
			"with x as (select touch(3)) select * from x": false,
		} {
			if got := gatedNow(t, pool, sql); got != gated {
				t.Errorf("%s: gated %v, want %v", sql, got, gated)
			}
		}
	})
}

// A statement prepared in AfterConnect and called by its name is what its text is.
func TestPreparedNamesOnAServer(t *testing.T) {
	dsn := newDatabase(t)
	config, err := pgyield.ParseConfig(withParams(dsn, "pool_max_conns=10", "yield_read_limit=1", "yield_adapt=off", "yield_busy_stall=10m"))
	if err != nil {
		t.Fatal(err)
	}
	conn := connectTo(t, dsn)
	if _, err := conn.Exec(t.Context(), "create table touched (n int)"); err != nil {
		t.Fatal(err)
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		for name, sql := range map[string]string{"report": "select count(*) from touched", "touch": "insert into touched values (1)"} {
			if _, err := conn.Prepare(ctx, name, sql); err != nil {
				return fmt.Errorf("prepare %s: %w", name, err)
			}
		}
		return nil
	}
	pool, err := pgyield.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	fullGate(t, pool)
	if !gatedNow(t, pool, "report") {
		t.Error("a prepared read is not gated")
	}
	if gatedNow(t, pool, "touch") {
		t.Error("a prepared write is gated")
	}
}
