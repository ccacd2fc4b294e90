//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// needLocal skips where the machine has no server programs.
func needLocal(t *testing.T) {
	t.Helper()
	if _, err := findInstallation(context.Background(), ""); err != nil {
		if os.Getenv("PGYIELD_VERSIONS") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

func TestLocal(t *testing.T) {
	needLocal(t)
	t.Parallel()
	server, err := Start(t.Context(), Options{Way: Local, Settings: map[string]string{"max_connections": "17"}})
	if err != nil {
		t.Fatal(err)
	}
	if server.Way() != Local || server.Version() < 130_000 {
		t.Errorf("way %v, version %d", server.Way(), server.Version())
	}
	if got := query[string](t, server.DSN(), "show max_connections"); got != "17" {
		t.Errorf("max_connections is %s, want 17", got)
	}
	if got := query[string](t, server.DSN(), "show fsync"); got != "on" {
		t.Errorf("fsync is %s without Fast", got)
	}
	if !query[bool](t, server.SocketDSN(), "select inet_server_addr() is null and current_setting('is_superuser')::bool") {
		t.Error("SocketDSN connects over TCP, or as no superuser")
	}
	data := query[string](t, server.DSN(), "show data_directory")
	for range 2 {
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if exists(filepath.Dir(data)) || answers(server.DSN()) {
		t.Error("after Stop something is left")
	}
}

func TestLocalNeedsPassword(t *testing.T) {
	needLocal(t)
	t.Parallel()
	server := New(t, Options{Way: Local, Fast: true})
	for _, dsn := range []string{server.DSN(), server.SocketDSN()} {
		before, after, _ := strings.Cut(dsn, "@")
		user, _, _ := strings.Cut(strings.TrimPrefix(before, "postgres://"), ":")
		if answers("postgres://" + user + ":wrong@" + after) {
			t.Error("a wrong password is let in")
		}
	}
}

func TestFastAndSettings(t *testing.T) {
	needLocal(t)
	t.Parallel()
	server := New(t, Options{Way: Local, Fast: true, Settings: map[string]string{"synchronous_commit": "local"}})
	for name, want := range map[string]string{"fsync": "off", "full_page_writes": "off", "synchronous_commit": "local"} {
		if got := query[string](t, server.DSN(), "show "+name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestParallelStarts(t *testing.T) {
	needLocal(t)
	t.Parallel()
	const servers = 4
	type result struct {
		server *Server
		err    error
	}
	results := make(chan result)
	for range servers {
		go func() {
			server, err := Start(t.Context(), Options{Way: Local, Fast: true})
			results <- result{server, err}
		}()
	}
	seen := map[string]bool{}
	for range servers {
		r := <-results
		if r.err != nil {
			t.Error(r.err)
			continue
		}
		seen[query[string](t, r.server.DSN(), "show data_directory")] = true
		defer r.server.Stop()
	}
	if len(seen) != servers {
		t.Errorf("%d starts gave %d servers", servers, len(seen))
	}
}

// TestPortTaken gives the server a port that is in use, as a race would.
func TestPortTaken(t *testing.T) {
	needLocal(t)
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := listener.Addr().(*net.TCPAddr).Port
	calls := 0
	server := New(t, Options{Way: Local, Fast: true, freePort: func() (int, error) {
		calls++
		if calls == 1 {
			return taken, nil
		}
		return freePort()
	}})
	if calls != 2 || !answers(server.DSN()) {
		t.Errorf("%d ports were tried", calls)
	}
}

func TestStartFails(t *testing.T) {
	needLocal(t)
	t.Parallel()
	t.Run("bad setting", func(t *testing.T) {
		_, err := Start(t.Context(), Options{Way: Local, Settings: map[string]string{"no_such": "1"}})
		if !errors.Is(err, ErrNotFound) || !strings.Contains(fmt.Sprint(err), `"no_such"`) {
			t.Errorf("the error does not say what the server said: %v", err)
		}
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var folder string
		_, err := Start(ctx, Options{Way: Auto, freePort: func() (int, error) {
			folders, _ := filepath.Glob(filepath.Join(os.TempDir(), "pgtest-*"))
			folder = strings.Join(folders, " ")
			cancel()
			return freePort()
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("want the context's error, got %v", err)
		}
		if folder == "" {
			t.Error("the start did not come as far as it was to be cancelled")
		}
	})
}

// TestTemporaryFolder sends root's server to a place that it can reach.
func TestTemporaryFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not applicable: only root runs the server as somebody else")
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", closed)
	credential, err := serverCredential()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := temporaryFolder(credential)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if strings.HasPrefix(folder, closed) {
		t.Errorf("%s cannot be reached by the server's user", folder)
	}
}
