package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/pgtest"
)

// A process counts only with the number that its server knows, and its client's port: the
// same number in another container, and the same port of another program, are somebody else's.
func TestFindBackend(t *testing.T) {
	proc := t.TempDir()
	for pid, p := range map[string][3]string{
		"100": {"nginx: (5000)", "NSpid:\t100\n", "1 0 1"},
		"200": {"postgres: u d 127.0.0.1(6000) idle", "NSpid:\t200\t77\n", "2 0 1"},
		"300": {"postgres: u d 127.0.0.1(5000) idle", "Name:\tpostgres\nNSpid:\t300\t77\n", "1500000 8 9\n"},
		"400": {"postgres: u d 127.0.0.1(5000) idle", "NSpid:\t400\t78\n", "4 0 1"},
		"500": {"postgres: u d [local] idle", "NSpid:\t500\n", "nonsense"},
		"600": {"postgres: u d [local] idle", "Pid:\t600\n", "6 0 1"}, // a kernel without name spaces
	} {
		folder := filepath.Join(proc, pid)
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"cmdline", "status", "schedstat"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(p[i]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	b, err := findBackend(proc, "77", "(5000)")
	if err != nil || filepath.Base(b.folder) != "300" {
		t.Fatalf("found %s, %v, want 300", b.folder, err)
	}
	if took, err := b.processorTime(); err != nil || took != 1500*time.Microsecond {
		t.Errorf("took %v, %v, want 1.5ms", took, err)
	}
	for _, none := range [][2]string{{"100", "(5000)"}, {"300", "(5000)"}, {"77", "(7000)"}, {"600", "[local]"}} {
		if b, err := findBackend(proc, none[0], none[1]); err == nil {
			t.Errorf("%v: found %s", none, b.folder)
		}
	}
	if b, err = findBackend(proc, "500", "[local]"); err != nil {
		t.Fatal(err)
	}
	if took, err := b.processorTime(); err == nil {
		t.Errorf("took %v of nonsense", took)
	}
	if _, err := findBackend(filepath.Join(proc, "none"), "77", "(5000)"); err == nil || !strings.Contains(err.Error(), "77 and (5000)") {
		t.Errorf("without /proc: %v", err)
	}
}

// A pooler greets with a number of its own, and a role may have fewer sessions than the
// server: both leave the scenario out, and do not break the benchmark off.
func TestPollCostIsLeftOut(t *testing.T) {
	server := pgtest.New(t, pgtest.Options{Fast: true})
	conn, err := pgx.Connect(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	for _, pid := range []string{"1", "4294967295"} {
		_, err := backendOf(t.Context(), conn, pid)
		if unmet, ok := errors.AsType[unmetError](err); !ok || !strings.Contains(unmet.reason, "something that pools") {
			t.Errorf("session %s: %v", pid, err)
		}
	}
	if _, err := conn.Exec(t.Context(), "create role few login password 'x' connection limit 3"); err != nil {
		t.Fatal(err)
	}
	config := conn.Config()
	dsn := fmt.Sprintf("host=%s port=%d dbname=%s user=few password=x sslmode=disable", config.Host, config.Port, config.Database)
	idle, err := openSessions(t.Context(), &database{dsn: dsn}, conn)
	for _, c := range idle {
		closeConn(c)
	}
	if unmet, ok := errors.AsType[unmetError](err); !ok || len(idle) != 3 || !strings.Contains(unmet.reason, "lets us have 3: too many connections") {
		t.Errorf("%d sessions, %v", len(idle), err)
	}
}
