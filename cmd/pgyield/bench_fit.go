package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// The targets are for aggregates of 0.4 s: one that takes twice as long is still running when
// the time in which its end is looked for is over.
const (
	wantedRead = 400 * time.Millisecond
	fitRows    = 600_000 // what is loaded to find out how many rows that are
)

// fit times an aggregate, and where wanted loads as many rows as make it take so long.
func (db *database) fit(ctx context.Context, wanted bool, out *benchResult, show *console) error {
	conn, err := db.connect(ctx)
	if err != nil {
		return fmt.Errorf("pgyield: %s: connecting: %w", db.command, err)
	}
	defer closeConn(conn)
	took, err := db.timeRead(ctx, conn)
	if err != nil {
		return err
	}
	if rows := rowsFor(wantedRead, took, out.Rows); wanted && rows > out.Rows {
		what := fmt.Sprintf("loading %d rows, for aggregates of %v", rows, wantedRead)
		err := db.loading(show, what, rows, func(loaded func(rows int)) error {
			return db.addEvents(ctx, conn, out.Rows, rows, loaded)
		})
		if err != nil {
			return err
		}
		out.Rows = rows
		if took, err = db.timeRead(ctx, conn); err != nil {
			return err
		}
	}
	out.ReadMs = float64(took.Microseconds()) / 1000
	return nil
}

// rowsFor is how many rows make a read take that long, if so many took so long.
func rowsFor(wanted, took time.Duration, rows int) int {
	const grain = 10_000
	n := float64(rows) * float64(wanted) / float64(max(took, time.Millisecond))
	return int(min(n, mostRows)) / grain * grain
}

// timeRead is how long an aggregate takes alone: the median of a few, after one that warms
// the cache.
func (db *database) timeRead(ctx context.Context, conn *pgx.Conn) (time.Duration, error) {
	var all []float64
	for range 6 {
		begun := time.Now()
		if _, err := conn.Exec(ctx, db.readSQL()); err != nil {
			return 0, fmt.Errorf("pgyield: %s: timing a read: %w", db.command, err)
		}
		all = append(all, float64(time.Since(begun)))
	}
	return time.Duration(median(all[1:])), nil
}
