package main

import (
	"io"
	"testing"
	"time"

	"github.com/pgyield/pgyield/pgtest"
)

func TestRowsFor(t *testing.T) {
	for _, c := range []struct {
		wanted, took time.Duration
		rows, want   int
	}{
		{400 * time.Millisecond, 100 * time.Millisecond, 600_000, 2_400_000},
		{400 * time.Millisecond, 300 * time.Millisecond, 600_000, 800_000},
		{400 * time.Millisecond, 800 * time.Millisecond, 600_000, 300_000},
		{400 * time.Millisecond, 333 * time.Millisecond, 600_000, 720_000}, // in tens of thousands
		{400 * time.Millisecond, 0, 600_000, mostRows},
	} {
		if got := rowsFor(c.wanted, c.took, c.rows); got != c.want {
			t.Errorf("%d rows take %v: for %v it wants %d, want %d", c.rows, c.took, c.wanted, got, c.want)
		}
	}
}

// TestFit: the table grows until an aggregate takes about as long as is wanted. How busy the
// machine is between two timings is chance, so no more than its size is asked for.
func TestFit(t *testing.T) {
	show := newConsole(io.Discard, io.Discard)
	db, err := openDatabase(t.Context(), "bench", pgtest.New(t, pgtest.Options{Fast: true}).Database(t), nil, show)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.close(show); err != nil {
			t.Error(err)
		}
	}()
	const rows = 100_000
	if err := db.load(t.Context(), rows, show); err != nil {
		t.Fatal(err)
	}
	as := benchResult{Rows: rows}
	if err := db.fit(t.Context(), false, &as, show); err != nil || as.Rows != rows || as.ReadMs <= 0 {
		t.Errorf("%d rows, read in %v ms: %v", as.Rows, as.ReadMs, err)
	}
	fitted := benchResult{Rows: rows}
	if err := db.fit(t.Context(), true, &fitted, show); err != nil {
		t.Fatal(err)
	}
	if fitted.Rows < 2*rows || fitted.ReadMs < 100 || fitted.ReadMs > 1600 {
		t.Errorf("%d rows, read in %v ms", fitted.Rows, fitted.ReadMs)
	}
	conn, err := db.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	var there int
	if err := conn.QueryRow(t.Context(), "select count(*) from "+db.schema+".event").Scan(&there); err != nil || there != fitted.Rows {
		t.Errorf("%d rows are there, %d are told: %v", there, fitted.Rows, err)
	}
}
