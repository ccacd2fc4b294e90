//go:build unix

package pgtest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// endings are the ways in which a program ends without a word to its server.
var endings = []struct {
	name, task string
	signal     os.Signal
}{
	{"panic", "panic", nil},
	{"exit", "exit", nil},
	{"interrupt", "wait", os.Interrupt},
	{"terminate", "wait", syscall.SIGTERM},
	{"kill", "wait", os.Kill},
}

// end lets the program end and waits for it.
func (p *program) end(t *testing.T, signal os.Signal) {
	t.Helper()
	if signal == nil {
		_ = p.input.Close()
	} else if err := p.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, p.output)
	if err := p.cmd.Wait(); err == nil {
		t.Fatal("the helper ended well, so it tested nothing")
	}
}

func TestLocalServerEndsWithProgram(t *testing.T) {
	needLocal(t)
	for _, ending := range endings {
		t.Run(ending.name, func(t *testing.T) {
			t.Parallel()
			program := startProgram(t, os.Args[0], ending.task)
			dsn, data := program.server(t)
			server := postmaster(t, data)
			if !answers(dsn) || !runs(server) {
				t.Fatal("there is no server to end")
			}
			program.end(t, ending.signal)
			eventually(t, "the server's folder is gone", func() bool { return !exists(filepath.Dir(data)) })
			// Without its folder a server would answer nobody and yet live on.
			if runs(server) {
				t.Error("the server still runs")
			}
		})
	}
}

// postmaster returns the process that a local server's folder names.
func postmaster(t *testing.T, data string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// runs reports whether a process is alive. One that has ended but that nobody has
// asked about, as an orphan's where the first process is no init, still has a
// number.
func runs(pid int) bool {
	state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && len(state) > 0 && !strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}

func TestContainerEndsWithProgram(t *testing.T) {
	name := image(t)
	for _, ending := range endings {
		if ending.name != "panic" && ending.name != "kill" {
			continue // to the guard all endings are one; the local ones are all tried
		}
		t.Run(ending.name, func(t *testing.T) {
			program := startProgram(t, os.Args[0], ending.task, "PGTEST_WAY=docker", EnvImage+"="+name)
			dsn, _ := program.server(t)
			config, err := pgx.ParseConfig(dsn)
			if err != nil {
				t.Fatal(err)
			}
			// A port of IPv4 may be another container's of IPv6, so Docker's own filter is not enough.
			listed, err := exec.Command("docker", "ps", "--format", "{{.ID}} {{.Ports}}").Output()
			id := ""
			for line := range strings.Lines(string(listed)) {
				if strings.Contains(line, "0.0.0.0:"+itoa(int(config.Port))+"->") {
					id, _, _ = strings.Cut(line, " ")
				}
			}
			if err != nil || id == "" {
				t.Fatalf("there is no container to end: %v", err)
			}
			program.end(t, ending.signal)
			eventually(t, "the container is removed", func() bool {
				return exec.Command("docker", "inspect", id).Run() != nil
			})
		})
	}
}

// TestUnprivileged runs the helper as most users do; the other tests are root's
// where root runs them.
func TestUnprivileged(t *testing.T) {
	needLocal(t)
	if os.Geteuid() != 0 {
		t.Skip("not applicable: all tests are unprivileged here")
	}
	credential, err := serverCredential()
	if err != nil {
		t.Fatal(err)
	}
	// The go command's own folder is closed to other users.
	folder, err := temporaryFolder(credential)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	binary := filepath.Join(folder, "helper")
	if output, err := exec.Command("cp", os.Args[0], binary).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	program := startProgram(t, binary, "wait", "TMPDIR="+folder)
	program.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	_, data := program.server(t)
	if !strings.HasPrefix(data, folder) {
		t.Errorf("the cluster lies in %s, outside TMPDIR %s", data, folder)
	}
	program.end(t, os.Kill)
	eventually(t, "the server's folder is gone", func() bool { return !exists(filepath.Dir(data)) })
}

// TestNoServerAnywhere takes all three ways away.
func TestNoServerAnywhere(t *testing.T) {
	program := startProgram(t, os.Args[0], "nothing-usual", "PGTEST_WAY=auto", EnvDSN+"=",
		"PATH=/nonexistent", "DOCKER_HOST=unix:///nonexistent.sock")
	line := program.run(t)
	for _, want := range []string{"pgyield: ", EnvDSN, "initdb, pg_ctl, postgres", "version 13 or later", "Docker", "postgres:17-alpine"} {
		if !strings.Contains(line, want) {
			t.Errorf("the error does not name %q: %s", want, line)
		}
	}
	err := program.cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("the error is no ErrNotFound: %v", err)
	}
}
