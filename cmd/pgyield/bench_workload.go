package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// wideRows of about a kilobyte are more than the server's cache holds.
const wideRows = 260_000

// loadBench makes the tables that only the benchmark has.
func (db *database) loadBench(ctx context.Context, show *console) (err error) {
	const rows = wideRows
	conn, err := db.connect(ctx)
	if err != nil {
		return fmt.Errorf("pgyield: %s: connecting: %w", db.command, err)
	}
	defer closeConn(conn)
	bar := show.progress(fmt.Sprintf("loading %d wide rows", rows), rows)
	defer func() { bar.done(err) }()
	table := db.schema + ".wide"
	for _, statement := range []string{
		"create table " + table + " (id int not null, body text not null) with (parallel_workers = 0)",
		"alter table " + table + " alter body set storage plain", // its length is what is wanted, not its text
		"insert into " + table + " select i, repeat(md5(i::text), 30) from generate_series(1, " + fmt.Sprint(rows) + ") i",
		"vacuum analyze " + table,
		"create table " + db.schema + ".bulk (id bigint not null, body text not null)",
		"create table " + db.schema + ".hot (id int primary key, n bigint not null)",
		"insert into " + db.schema + ".hot values (1, 0)",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("pgyield: %s: loading: %w", db.command, err)
		}
	}
	bar.set(rows)
	return db.checkpoint(ctx, conn)
}

// checkpoint writes what loading left behind, so that no arm pays for it. A role that may
// not is no error: the first rounds are then a little slower for all arms.
func (db *database) checkpoint(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "checkpoint")
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "42501" {
		return nil
	}
	return err
}

// rest empties what earlier runs filled.
func (db *database) rest(ctx context.Context) error {
	conn, err := db.connect(ctx)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	for _, statement := range []string{"truncate " + db.schema + ".bulk", "vacuum " + db.schema + ".account", "vacuum " + db.schema + ".hot"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return db.checkpoint(ctx, conn)
}

// sort is a read that sorts more than the default work_mem holds: with temporary files.
func (db *database) sort(ctx context.Context, p pool, _ time.Duration) error {
	return db.drain(ctx, p, "select max(n) from (select row_number() over (order by amount, customer, kind) n from "+
		db.schema+".event where customer < 1500) sorted")
}

// scan is a read of a table that the server's cache does not hold.
func (db *database) scan(ctx context.Context, p pool, _ time.Duration) error {
	return db.drain(ctx, p, "select count(*), max(id), sum(length(body)) from "+db.schema+".wide")
}

// point is a short read by key.
func (db *database) point(ctx context.Context, p pool, _ time.Duration) error {
	return db.drain(ctx, p, "select balance from "+db.schema+".account where id = $1", 1+rand.IntN(accounts)) //nolint:gosec // a load
}

// sleep is a read that uses nothing but its connection: it cannot be to blame.
func (db *database) sleep(ctx context.Context, p pool, _ time.Duration) error {
	return db.drain(ctx, p, "select pg_sleep(0.2)")
}

// think is a write transaction whose program thinks in the middle of it.
func (db *database) think(ctx context.Context, p pool) error {
	return pgx.BeginFunc(ctx, p, func(tx pgx.Tx) error {
		account := 1 + rand.IntN(accounts) //nolint:gosec // a load
		if _, err := tx.Exec(ctx, "update "+db.schema+".account set balance = balance + 1 where id = $1", account); err != nil {
			return err
		}
		pause(ctx, 50*time.Millisecond)
		_, err := tx.Exec(ctx, "insert into "+db.schema+".history (account, delta) values ($1, 1)", account)
		return err
	})
}

// bulkLoad copies rows without a pause, in transactions of ten thousand.
func (db *database) bulkLoad(ctx context.Context) error {
	return db.repeat(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "insert into "+db.schema+".bulk select i, repeat('x', 200) from generate_series(1, 10000) i")
		return err
	})
}

// hotRow updates one row from several connections without a pause.
func (db *database) hotRow(ctx context.Context) error {
	const clients = 6
	var all sync.WaitGroup
	failed := make([]error, clients)
	for i := range clients {
		all.Go(func() {
			failed[i] = db.repeat(ctx, func(conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, "update "+db.schema+".hot set n = n + 1 where id = 1")
				return err
			})
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// checkpoints asks for a checkpoint every three seconds, after which each first write to a
// page logs the whole page.
func (db *database) checkpoints(ctx context.Context) error {
	return db.repeat(ctx, func(conn *pgx.Conn) error {
		err := db.checkpoint(ctx, conn)
		pause(ctx, 3*time.Second)
		return err
	})
}

// repeat runs f on a connection of its own, outside the pools, until ctx ends, and returns
// the first error that was not the end's. A failed connection is made anew.
func (db *database) repeat(ctx context.Context, f func(conn *pgx.Conn) error) (first error) {
	for ctx.Err() == nil {
		conn, err := db.connect(ctx)
		if err == nil {
			for err == nil && ctx.Err() == nil {
				err = f(conn)
			}
			closeConn(conn)
		}
		if err != nil && first == nil && ctx.Err() == nil {
			first = err
		}
		pause(ctx, 100*time.Millisecond)
	}
	return first
}
