package main

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/pgtest"
)

// accounts is how many accounts the writes spread over: enough that two writes
// seldom meet on one.
const accounts = 100_000

// mostRows is the most that a table may be told to have.
const mostRows = 100_000_000

// database is a command's place: a schema in a server, and that server when the
// command started it.
type database struct {
	command string         // the command's name
	server  *pgtest.Server // nil: the server was given
	dsn     string
	schema  string // quoted
	about   string // what server it is
}

// openDatabase finds or starts the server and makes the schema. What it made it
// takes back when it fails.
func openDatabase(ctx context.Context, command, dsn string, settings map[string]string, show *console) (*database, error) {
	server, err := pgtest.Start(ctx, pgtest.Options{
		DSN: dsn, Logf: show.sayf, Settings: settings,
	})
	if err != nil && dsn != "" {
		return nil, ofDSN(err)
	}
	if err != nil {
		return nil, err
	}
	db := &database{
		command: command, server: server, dsn: server.DSN(),
		schema: pgx.Identifier{"pgyield_" + command + "_" + strings.ToLower(crand.Text()[:8])}.Sanitize(),
	}
	if server.Way() == pgtest.Given {
		db.server = nil
	}
	if err := db.begin(ctx); err != nil {
		return nil, errors.Join(err, db.close(show))
	}
	show.sayf("Postgres %s, schema %s", db.about, db.schema)
	return db, nil
}

// withDatabase runs use on a place that is filled, and takes it back whatever happens.
func withDatabase(ctx context.Context, command, dsn string, settings map[string]string, rows int, show *console,
	use func(db *database) error,
) (err error) {
	db, err := openDatabase(ctx, command, dsn, settings, show)
	if err != nil {
		return err
	}
	defer func() {
		if ctx.Err() != nil {
			show.sayf("interrupted, cleaning up")
		}
		err = errors.Join(err, db.close(show))
	}()
	if err := db.load(ctx, rows, show); err != nil {
		return err
	}
	return use(db)
}

func (db *database) begin(ctx context.Context) error {
	conn, err := db.connect(ctx)
	if err != nil {
		return fmt.Errorf("pgyield: %s: connecting: %w", db.command, err)
	}
	defer closeConn(conn)
	if err := conn.QueryRow(ctx, "select current_setting('server_version')").Scan(&db.about); err != nil {
		return fmt.Errorf("pgyield: %s: %w", db.command, err)
	}
	if _, err := conn.Exec(ctx, "create schema "+db.schema); err != nil {
		return fmt.Errorf("pgyield: %s: creating a schema: %w", db.command, err)
	}
	return nil
}

// close drops the schema and stops the server, also after Ctrl-C. A server of
// our own needs no drop: its files go.
func (db *database) close(show *console) error {
	if db.server != nil {
		if err := db.server.Stop(); err != nil {
			return cleanupError{err}
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := db.drop(ctx)
	if err != nil {
		return cleanupError{fmt.Errorf("pgyield: %s: the schema %s could not be dropped, drop it by hand: %w", db.command, db.schema, err)}
	}
	show.sayf("dropped schema %s", db.schema)
	return nil
}

func (db *database) drop(ctx context.Context) error {
	conn, err := db.connect(ctx)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	_, err = conn.Exec(ctx, "drop schema if exists "+db.schema+" cascade")
	return err
}

// connect opens one connection outside any pool. The DSN may carry the
// parameters of a pool, which a server does not know.
func (db *database) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgyield.ParseConfig(db.dsn)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config.ConnConfig)
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx) // its work is done or has failed
}

// poolConfig is the same for both pools.
func (db *database) poolConfig(conns int) (*pgxpool.Config, error) {
	return db.poolConfigWith(conns, "")
}

// poolConfigWith adds parameters ("yield_tolerance=3 yield_read_limit=4") to the DSN.
func (db *database) poolConfigWith(conns int, params string) (*pgxpool.Config, error) {
	config, err := pgyield.ParseConfig(withParams(db.dsn, params))
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(conns)
	config.MinConns = min(int32(conns), 4)
	return config, nil
}

// load makes the tables and fills them.
func (db *database) load(ctx context.Context, rows int, show *console) error {
	conn, err := db.connect(ctx)
	if err != nil {
		return fmt.Errorf("pgyield: %s: connecting: %w", db.command, err)
	}
	defer closeConn(conn)
	return db.loading(show, fmt.Sprintf("loading %d rows", rows), rows, func(loaded func(rows int)) error {
		return db.fill(ctx, conn, rows, loaded)
	})
}

// loading runs what fills a table, behind a progress bar.
func (db *database) loading(show *console, what string, rows int, fill func(loaded func(rows int)) error) error {
	bar := show.progress(what, rows)
	err := fill(bar.set)
	bar.done(err)
	if err != nil {
		return fmt.Errorf("pgyield: %s: loading: %w", db.command, err)
	}
	return nil
}

func (db *database) fill(ctx context.Context, conn *pgx.Conn, rows int, loaded func(rows int)) error {
	// Without parallel workers one read is one core's work, on any server.
	for _, statement := range []string{
		"create table " + db.schema + ".account (id int primary key, balance bigint not null) with (fillfactor = 70)",
		"create table " + db.schema + ".history (account int not null, delta int not null, at timestamptz not null default now())",
		"create table " + db.schema + ".event (customer int not null, kind int not null, amount float8 not null) with (parallel_workers = 0)",
		"insert into " + db.schema + ".account select i, 0 from generate_series(1, " + fmt.Sprint(accounts) + ") i",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, "vacuum analyze "+db.schema+".account"); err != nil {
		return err
	}
	return db.addEvents(ctx, conn, 0, rows, loaded)
}

// addEvents fills the table that is analysed, from a number of rows to another.
func (db *database) addEvents(ctx context.Context, conn *pgx.Conn, from, to int, loaded func(rows int)) error {
	const chunk = 50_000
	for at := from; at < to; at += chunk {
		_, err := conn.Exec(ctx, "insert into "+db.schema+".event select (i * 7919) % 5000, i % 13, (i * 31 % 1000)::float8 / 10"+
			" from generate_series($1::bigint, $2::bigint) i", at, min(at+chunk, to)-1)
		if err != nil {
			return err
		}
		loaded(min(at+chunk, to))
	}
	// Hint bits are set now, so that the first reads of the load write nothing.
	_, err := conn.Exec(ctx, "vacuum analyze "+db.schema+".event")
	return err
}

// write is one small write transaction: a balance and its history.
func (db *database) write(ctx context.Context, pool pool) error {
	account, delta := 1+rand.IntN(accounts), rand.IntN(100) //nolint:gosec // a load, no secret
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "update "+db.schema+".account set balance = balance + $1 where id = $2", delta, account); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "insert into "+db.schema+".history (account, delta) values ($1, $2)", account, delta)
		return err
	})
}

// read is one analytic read: a pass over all events, bound by the CPU, about a
// third of a second for a million of them on one core.
func (db *database) read(ctx context.Context, pool pool, _ time.Duration) error {
	return db.drain(ctx, pool, db.readSQL())
}

func (db *database) readSQL() string {
	return "select customer % 500 as c, count(*), avg(amount), stddev(amount), corr(amount, kind)," +
		" avg(ln(amount + kind + 1)), regr_slope(amount, customer) from " + db.schema + ".event group by 1 order by 3 desc limit 20"
}

// drain runs a read and reads all it returns.
func (db *database) drain(ctx context.Context, pool pool, sql string, args ...any) error {
	rows, err := pool.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// withParams adds parameters in keyword form without quotes ("a=1 b=2") to a DSN of either form.
func withParams(dsn, params string) string {
	if params == "" {
		return dsn
	}
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		return dsn + " " + params
	}
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	var parts []string
	for p := range strings.FieldsSeq(params) {
		name, value, _ := strings.Cut(p, "=")
		parts = append(parts, name+"="+url.QueryEscape(value)) // there are no spaces, which pgx wants as %20
	}
	return dsn + sep + strings.Join(parts, "&")
}
