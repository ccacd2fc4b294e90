package pgfake_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgyield/pgyield/internal/pgfake"
)

// bubble runs f in virtual time with a fake and a pool of four on it. Whatever
// is left over at the end makes synctest panic.
func bubble(t *testing.T, options pgfake.Options, f func(t *testing.T, fake *pgfake.Server, pool *pgxpool.Pool), params ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fake := pgfake.New(options)
		defer fake.Close()
		pool, err := pgxpool.NewWithConfig(t.Context(), fake.Config(t, append([]string{"pool_max_conns=4"}, params...)...))
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		f(t, fake, pool)
	})
}

func code(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryQueryMode(t *testing.T) {
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			bubble(t, pgfake.Options{}, func(t *testing.T, _ *pgfake.Server, pool *pgxpool.Pool) {
				ctx := t.Context()
				for range 3 { // the cached statement is used from the second on
					var i int
					var s string
					var b bool
					var big int64
					var null *string
					must(t, pool.QueryRow(ctx, "select 1, 'it', true, 5000000000, null").Scan(&i, &s, &b, &big, &null))
					if i != 1 || s != "it" || !b || big != 5_000_000_000 || null != nil {
						t.Fatalf("got %d %q %v %d %v", i, s, b, big, null)
					}
					must(t, pool.QueryRow(ctx, "select $1::int as n, $2::text, $3::bigint", 7, "x", int64(8)).Scan(&i, &s, &big))
					if i != 7 || s != "x" || big != 8 {
						t.Fatalf("got %d %q %d", i, s, big)
					}
					rows, err := pool.Query(ctx, "select n from generate_series(3, 6) n")
					must(t, err)
					got, err := pgx.CollectRows(rows, pgx.RowTo[string])
					must(t, err)
					if want := []string{"3", "4", "5", "6"}; !slices.Equal(got, want) {
						t.Fatalf("got %v", got)
					}
					tag, err := pool.Exec(ctx, "insert into t values ($1)", 1)
					must(t, err)
					if tag.String() != "INSERT 0 1" {
						t.Fatalf("tag %s", tag)
					}
					_, err = pool.Exec(ctx, "select 1/0")
					if code(err) != "22012" {
						t.Fatalf("got %v", err)
					}
				}
			}, "default_query_exec_mode="+mode)
		})
	}
}

func TestSleepsAndTimeouts(t *testing.T) {
	bubble(t, pgfake.Options{}, func(t *testing.T, fake *pgfake.Server, pool *pgxpool.Pool) {
		start := time.Now()
		_, err := pool.Exec(t.Context(), "select pg_sleep(10)")
		must(t, err)
		if d := time.Since(start); d != 10*time.Second {
			t.Fatalf("slept %v", d)
		}

		start = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = pool.Exec(ctx, "select pg_sleep(10)")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		synctest.Wait()
		// The client's cancel request ended it on the server too.
		statements := fake.Statements()
		last := statements[len(statements)-1]
		if code(last.Err) != "57014" || last.Ended.Sub(last.Started) != 3*time.Second {
			t.Fatalf("record %+v", last)
		}
		if fake.Running() != 0 || fake.Open() != 0 {
			t.Fatalf("running %d, open %d", fake.Running(), fake.Open())
		}
	})
}

// A handler that answers no cancel request: pgx waits 15 s for its connection.
func TestStubbornStatementOutlivesItsClient(t *testing.T) {
	handler := func(ctx context.Context, q pgfake.Query) pgfake.Result {
		if strings.Contains(q.SQL, "stubborn") {
			_ = pgfake.Sleep(context.WithoutCancel(ctx), time.Minute)
		}
		return pgfake.Default(ctx, q)
	}
	bubble(t, pgfake.Options{Handler: handler}, func(t *testing.T, fake *pgfake.Server, pool *pgxpool.Pool) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		conn, err := pool.Acquire(t.Context())
		must(t, err)
		_, err = conn.Exec(ctx, "select 'stubborn'")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		start := time.Now()
		<-conn.Conn().PgConn().CleanupDone()
		if d := time.Since(start); d != 15*time.Second {
			t.Fatalf("clean-up took %v", d)
		}
		conn.Release()
		if fake.Running() != 1 || fake.Open() != 1 {
			t.Fatalf("running %d, open %d: the server must not notice", fake.Running(), fake.Open())
		}
	})
}

func TestTransactions(t *testing.T) {
	bubble(t, pgfake.Options{}, func(t *testing.T, _ *pgfake.Server, pool *pgxpool.Pool) {
		ctx := t.Context()
		tx, err := pool.Begin(ctx)
		must(t, err)
		status := func(want byte) {
			t.Helper()
			if got := tx.Conn().PgConn().TxStatus(); got != want {
				t.Fatalf("status %c, want %c", got, want)
			}
		}
		status('T')
		nested, err := tx.Begin(ctx)
		must(t, err)
		_, err = nested.Exec(ctx, "select 1/0")
		if code(err) != "22012" {
			t.Fatal(err)
		}
		status('E')
		if _, err = nested.Exec(ctx, "select 1"); code(err) != "25P02" {
			t.Fatal(err)
		}
		must(t, nested.Rollback(ctx))
		status('T')
		_, err = tx.Exec(ctx, "select 1/0")
		if code(err) != "22012" {
			t.Fatal(err)
		}
		if err = tx.Commit(ctx); !errors.Is(err, pgx.ErrTxCommitRollback) {
			t.Fatalf("commit of a failed transaction: %v", err)
		}
		tx, err = pool.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		must(t, err)
		must(t, tx.Commit(ctx))
	})
}

// The server is held by a client that does not read, and released when it does
// or leaves.
func TestRowsAreStreamed(t *testing.T) {
	produced := 0
	handler := func(ctx context.Context, q pgfake.Query) pgfake.Result {
		if !strings.Contains(q.SQL, "stream") {
			return pgfake.Default(ctx, q)
		}
		return pgfake.Result{Rows: func(yield func([]any, error) bool) {
			for i := range 1000 {
				produced++
				if !yield([]any{i}, nil) {
					return
				}
			}
		}}
	}
	describe := func(sql string) (pgfake.Shape, bool) {
		return pgfake.Shape{Columns: pgfake.Cols("n", pgtype.Int4OID)}, strings.Contains(sql, "stream")
	}
	bubble(t, pgfake.Options{Handler: handler, Describe: describe}, func(t *testing.T, fake *pgfake.Server, pool *pgxpool.Pool) {
		rows, err := pool.Query(t.Context(), "select stream")
		must(t, err)
		if !rows.Next() {
			t.Fatal(rows.Err())
		}
		synctest.Wait()
		if produced > 3 || fake.Running() != 1 {
			t.Fatalf("%d rows produced for a client that read one; running %d", produced, fake.Running())
		}
		n := 1
		for rows.Next() {
			n++
		}
		must(t, rows.Err())
		if n != 1000 || produced != 1000 {
			t.Fatalf("%d rows read, %d produced", n, produced)
		}
	})
}

func TestErrorInTheMiddleOfRows(t *testing.T) {
	handler := func(context.Context, pgfake.Query) pgfake.Result {
		return pgfake.Result{Rows: func(yield func([]any, error) bool) {
			_ = yield([]any{1}, nil) && yield(nil, pgfake.Errorf("40001", "serialization"))
		}}
	}
	bubble(t, pgfake.Options{Handler: handler}, func(t *testing.T, fake *pgfake.Server, pool *pgxpool.Pool) {
		rows, err := pool.Query(t.Context(), "select n::int from t")
		must(t, err)
		got, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if code(err) != "40001" {
			t.Fatalf("got %v, %v", got, err)
		}
		if st := fake.Statements(); st[0].Rows != 1 || code(st[0].Err) != "40001" {
			t.Fatalf("record %+v", st)
		}
	})
}

func TestBatch(t *testing.T) {
	bubble(t, pgfake.Options{}, func(t *testing.T, fake *pgfake.Server, pool *pgxpool.Pool) {
		var batch pgx.Batch
		batch.Queue("select 1")
		batch.Queue("select 1/0")
		batch.Queue("select 2")
		results := pool.SendBatch(t.Context(), &batch)
		var n int
		must(t, results.QueryRow().Scan(&n))
		if err := results.QueryRow().Scan(&n); code(err) != "22012" {
			t.Fatal(err)
		}
		if err := results.QueryRow().Scan(&n); err == nil {
			t.Fatal("the statement after the failed one ran")
		}
		if err := results.Close(); code(err) != "22012" {
			t.Fatal(err)
		}
		must(t, pool.QueryRow(t.Context(), "select 3").Scan(&n))
		// A server skips what follows an error up to the next Sync.
		if statements := fake.Statements(); len(statements) != 3 || statements[2].SQL != "select 3" {
			t.Fatalf("executed %+v", statements)
		}
	})
}

// More than the pipe and the inbox hold, sent before any answer is read.
func TestLargeBatchDoesNotDeadlock(t *testing.T) {
	bubble(t, pgfake.Options{}, func(t *testing.T, fake *pgfake.Server, pool *pgxpool.Pool) {
		var batch pgx.Batch
		text := strings.Repeat("x", 10_000)
		for range 100 {
			batch.Queue("select $1::text", text)
		}
		must(t, pool.SendBatch(t.Context(), &batch).Close())
		if n := fake.Executed(); n != 100 {
			t.Fatalf("%d statements", n)
		}
	})
}

func TestCopy(t *testing.T) {
	describe := func(string) (pgfake.Shape, bool) {
		return pgfake.Shape{Columns: pgfake.Cols("id", pgtype.Int4OID, "name", pgtype.TextOID)}, true
	}
	var seen int64
	handler := func(_ context.Context, q pgfake.Query) pgfake.Result {
		seen = q.CopyRows
		return pgfake.Result{}
	}
	bubble(t, pgfake.Options{Handler: handler, Describe: describe}, func(t *testing.T, _ *pgfake.Server, pool *pgxpool.Pool) {
		source := pgx.CopyFromSlice(5000, func(i int) ([]any, error) {
			if i%7 == 0 {
				return []any{i, nil}, nil
			}
			return []any{i, strings.Repeat("n", i%90)}, nil
		})
		n, err := pool.CopyFrom(t.Context(), pgx.Identifier{"t"}, []string{"id", "name"}, source)
		must(t, err)
		if n != 5000 || seen != 5000 {
			t.Fatalf("copied %d, handler saw %d", n, seen)
		}
		failing := pgx.CopyFromFunc(func() ([]any, error) { return nil, errors.New("source broke") })
		if _, err = pool.CopyFrom(t.Context(), pgx.Identifier{"t"}, []string{"id", "name"}, failing); err == nil {
			t.Fatal("no error")
		}
		must(t, pool.Ping(t.Context()))
	})
}

func TestCopyTo(t *testing.T) {
	handler := func(context.Context, pgfake.Query) pgfake.Result {
		return pgfake.Rows(nil, []any{"1\tone\n"}, []any{"2\ttwo\n"})
	}
	bubble(t, pgfake.Options{Handler: handler}, func(t *testing.T, _ *pgfake.Server, pool *pgxpool.Pool) {
		conn, err := pool.Acquire(t.Context())
		must(t, err)
		defer conn.Release()
		var out strings.Builder
		tag, err := conn.Conn().PgConn().CopyTo(t.Context(), &out, "copy t to stdout")
		must(t, err)
		if out.String() != "1\tone\n2\ttwo\n" || tag.String() != "COPY 2" {
			t.Fatalf("%q, %s", out.String(), tag)
		}
	})
}

func TestRefuseHangAccept(t *testing.T) {
	bubble(t, pgfake.Options{}, func(t *testing.T, fake *pgfake.Server, pool *pgxpool.Pool) {
		fake.Refuse(nil)
		if err := pool.Ping(t.Context()); !errors.Is(err, pgfake.ErrRefused) {
			t.Fatal(err)
		}
		fake.Accept()
		must(t, pool.Ping(t.Context()))
		fake.KillAll()
		synctest.Wait()
		if fake.Open() != 0 {
			t.Fatalf("open %d", fake.Open())
		}
		pool.Reset()

		fake.HangStartup()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if err := pool.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 5*time.Second {
			t.Fatalf("after %v", d)
		}
		time.AfterFunc(2*time.Second, fake.Accept)
		start = time.Now()
		must(t, pool.Ping(t.Context()))
		if d := time.Since(start); d != 2*time.Second {
			t.Fatalf("after %v", d)
		}
	})
}

func TestKillRunning(t *testing.T) {
	bubble(t, pgfake.Options{}, func(t *testing.T, fake *pgfake.Server, pool *pgxpool.Pool) {
		time.AfterFunc(time.Second, fake.KillAll)
		_, err := pool.Exec(t.Context(), "select pg_sleep(10)")
		if code(err) != "57P01" {
			t.Fatal(err)
		}
		must(t, pool.Ping(t.Context()))
		sessions := fake.Sessions()
		if len(sessions) != 2 || sessions[0].Closed.IsZero() || !sessions[1].Closed.IsZero() {
			t.Fatalf("sessions %+v", sessions)
		}
	})
}

func TestStartUpRefusals(t *testing.T) {
	bubble(t, pgfake.Options{MaxConnections: 2}, func(t *testing.T, fake *pgfake.Server, pool *pgxpool.Pool) {
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if _, err := pool.Exec(t.Context(), "select pg_sleep(1)"); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Millisecond)
		if _, err := pool.Acquire(t.Context()); code(err) != "53300" {
			t.Error(err)
		}
		wg.Wait()
		if fake.Peak() != 2 {
			t.Errorf("peak %d", fake.Peak())
		}
	})
	bubble(t, pgfake.Options{}, func(t *testing.T, fake *pgfake.Server, _ *pgxpool.Pool) {
		config := fake.Config(t, "yield_mode=off")
		if _, err := pgx.ConnectConfig(t.Context(), config.ConnConfig); code(err) != "42704" {
			t.Fatalf("an unknown parameter: %v", err)
		}
	})
	bubble(t, pgfake.Options{StartupDelay: time.Second}, func(t *testing.T, _ *pgfake.Server, pool *pgxpool.Pool) {
		start := time.Now()
		must(t, pool.Ping(t.Context()))
		if d := time.Since(start); d != time.Second {
			t.Fatalf("after %v", d)
		}
	})
}

// Handlers that bring their own columns where nothing was described before.
func TestOwnColumns(t *testing.T) {
	handler := func(_ context.Context, q pgfake.Query) pgfake.Result {
		if q.SQL == "broken" {
			return pgfake.Fail("42P01", "no such thing")
		}
		return pgfake.Rows(pgfake.Cols("a", pgtype.Float8OID, "b", pgtype.BoolOID), []any{0.5, true})
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		bubble(t, pgfake.Options{Handler: handler}, func(t *testing.T, fake *pgfake.Server, pool *pgxpool.Pool) {
			var a float64
			var b bool
			must(t, pool.QueryRow(t.Context(), "select something unguessable", mode).Scan(&a, &b))
			if a != 0.5 || !b {
				t.Fatal(a, b)
			}
			if _, err := pool.Exec(t.Context(), "broken", mode); code(err) != "42P01" {
				t.Fatal(err)
			}
			if fake.Running() != 0 {
				t.Fatalf("running %d", fake.Running())
			}
		})
	}
}

func TestApplicationNameIsRecorded(t *testing.T) {
	bubble(t, pgfake.Options{}, func(t *testing.T, fake *pgfake.Server, pool *pgxpool.Pool) {
		must(t, pool.Ping(t.Context()))
		if s := fake.Sessions(); len(s) != 1 || s[0].Params["application_name"] != "probe" {
			t.Fatalf("%+v", s)
		}
		if st := fake.Statements(); len(st) != 1 || st[0].App != "probe" || st[0].SQL != "-- ping" {
			t.Fatalf("%+v", st)
		}
		fake.ResetRecord()
		if len(fake.Statements()) != 0 || len(fake.Sessions()) != 1 {
			t.Fatal("reset forgot the wrong things")
		}
	}, "application_name=probe")
}

// Close while clients wait: they get an error, and nothing is left.
func TestCloseEndsWaitingClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := pgfake.New(pgfake.Options{Handler: func(ctx context.Context, _ pgfake.Query) pgfake.Result { return pgfake.Hang(ctx) }})
		pool, err := pgxpool.NewWithConfig(t.Context(), fake.Config(t))
		must(t, err)
		failed := make(chan error)
		go func() {
			_, err := pool.Exec(t.Context(), "select 1")
			failed <- err
		}()
		synctest.Wait()
		fake.Close()
		fake.Close()
		if err := <-failed; err == nil {
			t.Error("no error")
		}
		if err := pool.Ping(t.Context()); !errors.Is(err, pgfake.ErrRefused) {
			t.Error(err)
		}
		pool.Close()
	})
}

func TestRecordIsBounded(t *testing.T) {
	bubble(t, pgfake.Options{RecordLimit: 10}, func(t *testing.T, fake *pgfake.Server, pool *pgxpool.Pool) {
		for range 35 {
			must(t, pool.Ping(t.Context()))
		}
		if n := len(fake.Statements()); n > 10 || n < 4 {
			t.Fatalf("%d kept", n)
		}
		if fake.Executed() != 35 {
			t.Fatal(fake.Executed())
		}
	})
}

func TestCancelRequestNeedsTheKey(t *testing.T) {
	bubble(t, pgfake.Options{}, func(t *testing.T, fake *pgfake.Server, pool *pgxpool.Pool) {
		conn, err := pool.Acquire(t.Context())
		must(t, err)
		defer conn.Release()
		pg := conn.Conn().PgConn()
		cancel := func(key []byte) {
			client, err := fake.DialFunc(t.Context(), "", "")
			must(t, err)
			message, err := (&pgproto3.CancelRequest{ProcessID: pg.PID(), SecretKey: key}).Encode(nil)
			must(t, err)
			_, err = client.Write(message)
			must(t, err)
			_, _ = client.Read(make([]byte, 1)) // the server hangs up
			must(t, client.Close())
		}
		cancel(pg.SecretKey()) // of an idle session: ignored
		time.AfterFunc(time.Second, func() { cancel([]byte("nope")) })
		time.AfterFunc(2*time.Second, func() { cancel(pg.SecretKey()) })
		start := time.Now()
		_, err = conn.Exec(t.Context(), "select pg_sleep(10)")
		if code(err) != "57014" || time.Since(start) != 2*time.Second {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		_, err = conn.Exec(t.Context(), "select 1")
		must(t, err)
	})
}
