package pgtest

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestDocker(t *testing.T) {
	server := New(t, Options{
		Way: Docker, Version: "17", Image: image(t),
		Settings: map[string]string{"max_connections": "17"},
	})
	if server.Way() != Docker || server.Version()/10_000 != 17 || server.SocketDSN() != "" {
		t.Errorf("way %v, version %d, socket %q", server.Way(), server.Version(), server.SocketDSN())
	}
	if got := query[string](t, server.DSN(), "show max_connections"); got != "17" {
		t.Errorf("max_connections is %s, want 17", got)
	}
	if got := query[string](t, server.DSN(), "show fsync"); got != "on" {
		t.Errorf("fsync is %s without Fast", got)
	}
	dsn := server.Database(t)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if answers(dsn) {
		t.Error("after Stop the server answers")
	}
}

func TestDockerWrongImage(t *testing.T) {
	name := image(t)
	start := time.Now()
	_, err := Start(t.Context(), Options{Way: Docker, Image: "pgyield.invalid/none:1"})
	if err == nil || !strings.Contains(err.Error(), "pulled") {
		t.Errorf("an image that does not exist: %v", err)
	}
	if wait := time.Since(start); wait > time.Minute {
		t.Errorf("it took %v to say so", wait)
	}
	if _, err := Start(t.Context(), Options{Way: Docker, Image: name, Version: "13"}); err == nil ||
		!strings.Contains(err.Error(), "version is 17") {
		t.Errorf("an image of another version: %v", err)
	}
}

// anyServer starts what the machine has, for tests that need just a server.
func anyServer(t *testing.T) *Server {
	t.Helper()
	if _, err := findInstallation(t.Context(), ""); err != nil {
		t.Setenv(EnvImage, image(t))
	}
	return New(t, Options{Fast: true})
}

func TestGiven(t *testing.T) {
	t.Setenv(EnvDSN, "")
	owner := anyServer(t)

	t.Run("option", func(t *testing.T) {
		server := New(t, Options{DSN: owner.DSN()})
		if server.Way() != Given || server.DSN() != owner.DSN() || server.Version() != owner.Version() {
			t.Errorf("way %v, DSN %s, version %d", server.Way(), server.DSN(), server.Version())
		}
		if err := server.Stop(); err != nil || !answers(owner.DSN()) {
			t.Errorf("Stop ended a server that is not its own: %v", err)
		}
	})
	t.Run("environment", func(t *testing.T) {
		t.Setenv(EnvDSN, owner.DSN())
		for _, way := range []Way{Auto, Given} {
			if server := New(t, Options{Way: way}); server.Way() != Given {
				t.Errorf("%v: a DSN in the environment gave a %v server", way, server.Way())
			}
		}
	})
	t.Run("parameters of a pool", func(t *testing.T) {
		server := New(t, Options{DSN: owner.DSN() + "&pool_max_conns=3&yield_mode=off"})
		if dsn := server.Database(t); !strings.Contains(dsn, "pool_max_conns=3") {
			t.Errorf("the parameters are lost: %s", dsn)
		}
	})
	t.Run("wrong version", func(t *testing.T) {
		_, err := Start(t.Context(), Options{DSN: owner.DSN(), Version: "99"})
		if err == nil || !strings.Contains(err.Error(), "wants 99") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nothing there", func(t *testing.T) {
		port, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		_, err = Start(t.Context(), Options{DSN: "host=127.0.0.1 user=x password=secret port=" + itoa(port)})
		if err == nil || !strings.Contains(err.Error(), "Options.DSN names") || strings.Contains(err.Error(), EnvDSN) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
		t.Setenv(EnvDSN, "host=127.0.0.1 user=x password=secret port="+itoa(port))
		_, err = Start(t.Context(), Options{})
		if err == nil || !strings.Contains(err.Error(), EnvDSN+" names") || strings.Contains(err.Error(), "Options.DSN") {
			t.Errorf("got %v", err)
		}
	})
}

func TestDatabase(t *testing.T) {
	server := anyServer(t)
	var first, second string
	t.Run("tests", func(t *testing.T) {
		first, second = server.Database(t), server.Database(t)
		query[string](t, first, "select 'x' from (select set_config('a.b', 'c', false)) s")
		// A session that outlives its test does not keep the database.
		if _, err := connect(context.Background(), first); err != nil {
			t.Fatal(err)
		}
	})
	if first == second {
		t.Error("two databases are one")
	}
	if answers(first) || answers(second) {
		t.Error("a database outlives its test")
	}
	if n := query[int](t, server.DSN(), "select count(*)::int from pg_database where datname like 'pgtest%'"); n != 0 {
		t.Errorf("%d databases are left", n)
	}
}

// TestNewFails makes sure that a test without its server does not go on.
func TestNewFails(t *testing.T) {
	fake := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		New(fake, Options{Way: -1})
	}()
	<-done
	if !fake.fatal {
		t.Error("New returned")
	}
}
