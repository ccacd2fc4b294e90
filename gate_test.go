package pgyield_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/bulkhead"
	"github.com/pgyield/pgyield/intent"
)

// With the gate full, what is ungated goes at once, and what is gated does not.
func TestWhatIsGated(t *testing.T) {
	begin := func(f *fixture, ctx context.Context, o pgx.TxOptions) error {
		tx, err := f.BeginTx(ctx, o)
		if err != nil {
			return err
		}
		return tx.Rollback(f.ctx)
	}
	batch := func(f *fixture, sqls ...string) error {
		b := &pgx.Batch{}
		for _, sql := range sqls {
			b.Queue(sql)
		}
		return f.SendBatch(f.ctx, b).Close()
	}
	exec := func(sql string, args ...any) func(*fixture) error {
		return func(f *fixture) error { _, err := f.Exec(f.ctx, sql, args...); return err }
	}
	queryRow := func(sql string, args ...any) func(*fixture) error {
		return func(f *fixture) error { return f.QueryRow(f.ctx, sql, args...).Scan(nil) }
	}
	for name, tt := range map[string]struct {
		gated bool
		call  func(f *fixture) error
	}{
		"read by Query": {true, func(f *fixture) error {
			rows, err := f.Query(f.ctx, read)
			return errors.Join(err, drain(rows))
		}},
		"read by QueryRow":     {true, queryRow(read)},
		"read by Exec":         {true, exec(read)},
		"read with options":    {true, queryRow(read, pgx.QueryExecModeExec)},
		"read with named args": {true, queryRow("select @n::int from t limit 0", pgx.NamedArgs{"n": 1})},
		"batch of reads":       {true, func(f *fixture) error { return batch(f, read, "select 1") }},
		"read-only transaction marked Trivial": {true, func(f *fixture) error {
			return begin(f, pgyield.WithIntent(f.ctx, intent.Trivial), pgx.TxOptions{AccessMode: pgx.ReadOnly})
		}},
		"read-only transaction": {true, func(f *fixture) error { return begin(f, f.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly}) }},
		"AcquireRead": {true, func(f *fixture) error {
			c, err := f.AcquireRead(f.ctx)
			if err == nil {
				c.Release()
			}
			return err
		}},
		"write said to be a read": {true, func(f *fixture) error {
			_, err := f.Exec(pgyield.WithIntent(f.ctx, intent.Read), "select nextval('s')")
			return err
		}},

		"select 1":               {false, queryRow("select 1")},
		"select $1::int":         {false, queryRow("select $1::int", 1)},
		"show":                   {false, exec("show work_mem")},
		"batch of trivial reads": {false, func(f *fixture) error { return batch(f, "select 1", "select 2") }},
		"insert":                 {false, exec("insert into t values (1)")},
		"insert returning":       {false, queryRow("insert into t values (1) returning 1")},
		"batch with a write":     {false, func(f *fixture) error { return batch(f, read, "insert into t values (1)") }},
		"batch whose begin is rewritten": {false, func(f *fixture) error {
			b := &pgx.Batch{}
			b.Queue("begin read only", rewriteFunc(func() error { return nil }))
			b.Queue("select 1")
			return f.SendBatch(f.ctx, b).Close()
		}},
		"empty batch":        {false, func(f *fixture) error { return batch(f) }},
		"advisory lock":      {false, exec("select pg_advisory_lock(1)")},
		"advisory unlock":    {false, queryRow("select pg_advisory_unlock(1)")},
		"listen":             {false, exec("listen c")},
		"begin":              {false, func(f *fixture) error { return begin(f, f.ctx, pgx.TxOptions{}) }},
		"begin serializable": {false, func(f *fixture) error { return begin(f, f.ctx, pgx.TxOptions{IsoLevel: pgx.Serializable}) }},
		"begin with a text of its own": {false, func(f *fixture) error {
			return begin(f, f.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly, BeginQuery: "begin"})
		}},
		"ping":                    {false, func(f *fixture) error { return f.Ping(f.ctx) }},
		"read said to be a write": {false, func(f *fixture) error { _, err := f.Exec(pgyield.WithIntent(f.ctx, intent.Write), read); return err }},
		"read said to be trivial": {false, func(f *fixture) error { _, err := f.Exec(pgyield.WithIntent(f.ctx, intent.Trivial), read); return err }},
		"ungated read":            {false, func(f *fixture) error { _, err := f.Exec(pgyield.Ungated(f.ctx), read); return err }},
		"ungated transaction": {false, func(f *fixture) error {
			return begin(f, pgyield.Ungated(f.ctx), pgx.TxOptions{AccessMode: pgx.ReadOnly})
		}},
		"ungated AcquireRead": {false, func(f *fixture) error {
			c, err := f.AcquireRead(pgyield.Ungated(f.ctx))
			if err == nil {
				c.Release()
			}
			return err
		}},
		"another rewriter": {false, queryRow(read, rewriteFunc(func() error { return nil }))},
		"copy": {false, func(f *fixture) error {
			_, err := f.CopyFrom(f.ctx, pgx.Identifier{"t"}, []string{"n"}, pgx.CopyFromRows([][]any{{"x"}}))
			return err
		}},
		"acquired": {false, func(f *fixture) error {
			return f.AcquireFunc(f.ctx, func(c *pgyield.Conn) error { _, err := c.Exec(f.ctx, read); return err })
		}},
		"read in a transaction": {false, func(f *fixture) error {
			tx, err := f.Begin(f.ctx)
			if err != nil {
				return err
			}
			_, err = tx.Exec(f.ctx, read)
			return errors.Join(err, tx.Commit(f.ctx))
		}},
		"unwrapped": {false, func(f *fixture) error { _, err := f.Unwrap().Exec(f.ctx, read); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			fixed("1").run(t, func(f *fixture) {
				f.fill(3 * time.Second)
				var err error
				d := took(func() { err = tt.call(f) })
				if err != nil && !errors.Is(err, pgx.ErrNoRows) {
					f.Errorf("error %v", err)
				}
				if tt.gated != (d >= 2*time.Second) {
					f.Errorf("with the gate full it took %v, gated: %v", d, tt.gated)
				}
			})
		})
	}
}

func TestBeginIsPgxpoolsTx(t *testing.T) {
	fixed("1").run(t, func(f *fixture) {
		tx, err := f.Begin(f.ctx)
		if err != nil {
			f.Fatal(err)
		}
		if _, ok := tx.(*pgyield.Tx); !ok {
			f.Errorf("Begin returns %T, want *pgxpool.Tx", tx)
		}
		_ = tx.Rollback(f.ctx)
	})
}

// A statement prepared in AfterConnect and called by name is what its text is.
func TestPreparedNames(t *testing.T) {
	s := fixed("1")
	s.configure = func(c *pgyield.Config) {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			var err error
			for name, sql := range map[string]string{"report": read, "add": "insert into t values (1)", "select 7 from x": "insert into t values (2)"} {
				_, e := conn.Prepare(ctx, name, sql)
				err = errors.Join(err, e)
			}
			if conn.PgConn().PID()%2 == 0 {
				_, e := conn.Prepare(ctx, "both", read)
				return errors.Join(err, e)
			}
			_, e := conn.Prepare(ctx, "both", "delete from t")
			return errors.Join(err, e)
		}
	}
	s.run(t, func(f *fixture) {
		var both sync.WaitGroup // two connections, so that both texts of "both" are known
		for range 2 {
			both.Go(func() { _, _ = f.Exec(f.ctx, "insert into t select pg_sleep(0.1)") })
		}
		both.Wait()
		f.fill(3 * time.Second)
		for name, gated := range map[string]bool{"report": true, "add": false, "select 7 from x": false, "both": false, "unheard_of": false} {
			ctx, cancel := context.WithTimeout(f.ctx, 100*time.Millisecond)
			_, err := f.Exec(ctx, name)
			cancel()
			if waited := errors.Is(err, context.DeadlineExceeded); waited != gated {
				f.Errorf("prepared %q: error %v, gated: %v", name, err, gated)
			}
		}
	})
}

func TestRefusal(t *testing.T) {
	fixed("1", "yield_max_waiting=-1").run(t, func(f *fixture) {
		f.fill(time.Second)
		before := f.fake.Executed()
		_, err := f.Query(pgyield.WithCaller(f.ctx, "reports"), read)
		var refused *pgyield.RefusedError
		if !errors.Is(err, pgyield.ErrRefused) || !errors.As(err, &refused) {
			f.Fatalf("error is %v, want a refusal", err)
		}
		if refused.Caller != "reports" || refused.Limit != 1 || refused.Running != 1 || refused.RetryAfter <= 0 {
			f.Errorf("refusal is %+v", refused)
		}
		if pgconn.SafeToRetry(err) {
			f.Error("a refusal claims to be safe to retry at once")
		}
		if got := f.fake.Executed(); got != before {
			f.Errorf("%d statements were sent for a refused read", got-before)
		}
		b := &pgx.Batch{}
		b.Queue(read)
		for what, err := range map[string]error{
			"QueryRow":  f.QueryRow(f.ctx, read).Scan(),
			"Exec":      second(f.Exec(f.ctx, read)),
			"BeginTx":   second(f.BeginTx(f.ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})),
			"SendBatch": f.SendBatch(f.ctx, b).Close(),
		} {
			if !errors.Is(err, pgyield.ErrRefused) {
				f.Errorf("%s: error is %v, want a refusal", what, err)
			}
		}
		time.Sleep(time.Second)
	})
}

func second[T any](_ T, err error) error { return err }

func TestContextErrorSaysThatItWaited(t *testing.T) {
	fixed("1").run(t, func(f *fixture) {
		f.fill(3 * time.Second)
		ctx, cancel := context.WithTimeout(f.ctx, time.Second)
		defer cancel()
		err := f.QueryRow(ctx, read).Scan()
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "read permit") {
			f.Errorf("error is %v, want the context's that tells of the read permit", err)
		}
	})
}

func TestCloseWithAFullGate(t *testing.T) {
	fixed("2").run(t, func(f *fixture) {
		f.fill(3 * time.Second)
		errs := make(chan error, 20)
		for range cap(errs) {
			go func() { errs <- f.QueryRow(f.ctx, read).Scan() }()
		}
		synctest.Wait()
		closed := make(chan time.Duration)
		go func() { closed <- took(f.Close) }()
		d := took(func() {
			for range cap(errs) {
				if err := <-errs; err == nil || err.Error() != "closed pool" {
					f.Errorf("a queued read got %v, want pgxpool's closed error", err)
				}
			}
		})
		if d != 0 {
			f.Errorf("queued reads got their errors after %v, want at once", d)
		}
		if got := <-closed; got < 2*time.Second {
			f.Errorf("Close returned after %v, with reads of 3 s running", got)
		}
		theirs := second(f.Unwrap().Exec(f.ctx, read))
		if err := second(f.Exec(f.ctx, read)); !errors.Is(err, theirs) {
			f.Errorf("after Close a read gets %v, pgxpool's is %v", err, theirs)
		}
	})
}

func TestModes(t *testing.T) {
	fixed("1").run(t, func(f *fixture) {
		f.fill(4 * time.Second)
		done := make(chan error, 5)
		for range cap(done) {
			go func() { done <- f.QueryRow(f.ctx, read).Scan(nil) }()
		}
		synctest.Wait()
		if got := f.ReadStat().Waiting(); got != 5 {
			f.Errorf("%d wait, want 5", got)
		}
		d := took(func() {
			f.SetMode(pgyield.Off)
			for range cap(done) {
				if err := <-done; err != nil {
					f.Error(err)
				}
			}
		})
		if d != 0 {
			f.Errorf("Off let the waiting reads go after %v, want at once", d)
		}
		if got := f.ReadStat().Mode(); got != pgyield.Off {
			f.Errorf("mode is %v, want Off", got)
		}
		f.SetMode(pgyield.Shadow)
		if d := took(func() { _, _ = f.Exec(f.ctx, read) }); d != 0 {
			f.Errorf("in Shadow a read waited %v", d)
		}
		f.SetMode(pgyield.Enforce)
		if d := took(func() { _, _ = f.Exec(f.ctx, read) }); d < 3*time.Second {
			f.Errorf("back in Enforce a read waited %v, want the rest of 4 s", d)
		}
		f.wholeLimitUsable()
	})
}

func TestModeAtStart(t *testing.T) {
	s := fixed("1", "yield_mode=off")
	s.options.Mode = pgyield.Shadow // an option beats the string
	s.run(t, func(f *fixture) {
		if got := f.ReadStat().Mode(); got != pgyield.Shadow {
			f.Errorf("mode is %v, want Shadow", got)
		}
	})
}

func TestConfigGivesTheCallersOwnBack(t *testing.T) {
	s := fixed("1")
	tracer := &ourTracer{}
	s.configure = func(c *pgyield.Config) { c.ConnConfig.Tracer = tracer }
	s.run(t, func(f *fixture) {
		c := f.Config()
		if c.ConnConfig.Tracer != pgx.QueryTracer(tracer) || c.BeforeConnect != nil || c.AfterRelease != nil {
			f.Error("Config shows what the pool put into it")
		}
	})
}

func TestCallersAndCost(t *testing.T) {
	s := fixed("4")
	s.options.Bulkhead = bulkhead.Options{MaxWaiting: -1}
	s.run(t, func(f *fixture) {
		c, err := f.AcquireRead(pgyield.WithCost(pgyield.WithCaller(f.ctx, "a"), 3))
		if err != nil {
			f.Fatal(err)
		}
		if got := f.ReadStat(); got.Running() != 3 || got.Callers() != 1 {
			f.Errorf("running %d of %d callers, want a cost of 3 by one", got.Running(), got.Callers())
		}
		c.Release()
	})
}

// A batch may begin a transaction on an acquired connection, too.
func TestBatchTransactionOnAReadConn(t *testing.T) {
	fixed("1").run(t, func(f *fixture) {
		c, err := f.AcquireRead(f.ctx)
		if err != nil {
			f.Fatal(err)
		}
		defer c.Release()
		b := &pgx.Batch{}
		b.BeginTx(pgx.TxOptions{AccessMode: pgx.ReadOnly})
		b.Queue(read)
		br := c.SendBatch(f.ctx, b)
		tx := br.Tx()
		if tx == nil {
			f.Fatal("no transaction")
		}
		if err := errors.Join(br.Close(), second(tx.Exec(f.ctx, read)), tx.Commit(f.ctx)); err != nil {
			f.Error(err)
		}
		if got := f.ReadStat().Running(); got != 1 {
			f.Errorf("%d run after the transaction's end, want the connection's 1", got)
		}
	})
}
