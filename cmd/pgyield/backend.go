package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// procFolder is where Linux tells of processes.
const procFolder = "/proc"

// backend is the process of a session of a server on this machine.
type backend struct{ folder string } // in procFolder

// backendOf finds the process that the server knows as pid. In a container the server
// counts by itself, so a process is known by both numbers, that and the client's port,
// which stands in its title. A server elsewhere has no such process here.
func backendOf(ctx context.Context, conn *pgx.Conn, pid string) (backend, error) {
	var client string
	err := conn.QueryRow(ctx, `select case when client_port > 0 then '(' || client_port || ')' else '[local]' end
		from pg_stat_activity where pid::text = $1::text`, pid).Scan(&client)
	if errors.Is(err, pgx.ErrNoRows) {
		return backend{}, unmetError{fmt.Sprintf("the server knows no session %s: something that pools stands before it", pid)}
	}
	if err != nil {
		return backend{}, err
	}
	found, err := findBackend(procFolder, pid, client)
	if err != nil {
		return backend{}, unmetError{"the server's processes must be this machine's, for their processor time is looked up in /proc: " + err.Error()}
	}
	_, err = found.processorTime()
	if err != nil {
		return backend{}, unmetError{"the processor time of the server's processes cannot be read: " + err.Error()}
	}
	return found, nil
}

func findBackend(proc, pid, client string) (backend, error) {
	titles, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "cmdline")) // the only error is of a bad pattern
	for _, file := range titles {
		title, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(title), "postgres") || !strings.Contains(string(title), client) {
			continue // also of a process that has ended since
		}
		folder := filepath.Dir(file)
		status, err := os.ReadFile(filepath.Join(folder, "status"))
		if err == nil && innermost(string(status)) == pid {
			return backend{folder}, nil
		}
	}
	return backend{}, fmt.Errorf("there is no postgres with number %s and %s in its title", pid, client)
}

// innermost is a process's number in the innermost of its name spaces.
func innermost(status string) string {
	for line := range strings.Lines(status) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			fields := strings.Fields(numbers)
			return fields[len(fields)-1]
		}
	}
	return ""
}

// processorTime is what the process has used so far. The kernel counts it in nanoseconds
// there; elsewhere in hundredths of a second, which is longer than a poll.
func (b backend) processorTime() (time.Duration, error) {
	file := filepath.Join(b.folder, "schedstat")
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	used, _, _ := strings.Cut(string(text), " ")
	ns, err := strconv.ParseInt(used, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return time.Duration(ns), nil
}
