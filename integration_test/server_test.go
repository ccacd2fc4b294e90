package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/pgtest"
)

// envVersions lists the Postgres versions that must be tested, such as "13 17".
// Set, a version in it that cannot run fails and the others are left out. Unset,
// every version runs that can, and one that cannot is skipped with the reason.
const envVersions = "PGYIELD_VERSIONS"

// postgresVersions are the versions that pgyield supports and that are told apart
// somewhere: the oldest, the newest, and those between which statistics changed.
var postgresVersions = []string{"13", "15", "17", "18"}

// lazyServer is started by the first test that needs it.
type lazyServer struct {
	once   sync.Once
	server *pgtest.Server
	err    error
	start  func(context.Context) (*pgtest.Server, error)
}

func (l *lazyServer) get() (*pgtest.Server, error) {
	l.once.Do(func() { l.server, l.err = l.start(context.Background()) })
	return l.server, l.err
}

// stop also keeps a server that was never started from being so.
func (l *lazyServer) stop() error {
	l.once.Do(func() { l.err = errors.New("the tests are over") })
	if l.server == nil {
		return nil
	}
	return l.server.Stop()
}

var shared = &lazyServer{start: startShared}

// startShared starts the server that tests share. Its data is synced to disk, as
// in production: what writes cost is the subject.
func startShared(ctx context.Context) (*pgtest.Server, error) {
	server, err := pgtest.Start(ctx, pgtest.Options{Settings: map[string]string{"max_connections": "200"}})
	if err != nil {
		return nil, err
	}
	return server, timeWALSync(ctx, server)
}

// timeWALSync turns on the timing of WAL syncs, which 13 does not have. A server
// that was given is its owner's to configure.
func timeWALSync(ctx context.Context, server *pgtest.Server) error {
	if server.Way() == pgtest.Given || server.Version() < 140_000 {
		return nil
	}
	conn, err := pgx.Connect(ctx, server.DSN())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "alter system set track_wal_io_timing = on"); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "select pg_reload_conf()")
	return err
}

// sharedServer returns the server that all tests share.
func sharedServer(t testing.TB) *pgtest.Server {
	t.Helper()
	server, err := shared.get()
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// serverDSN returns the DSN of a superuser on the shared server.
func serverDSN(t testing.TB) string {
	t.Helper()
	return sharedServer(t).DSN()
}

// newDatabase makes a database of the test's own on the shared server and returns
// its DSN. It is dropped after the test.
func newDatabase(t testing.TB) string {
	t.Helper()
	return sharedServer(t).Database(t)
}

var byVersion = func() map[string]*lazyServer {
	servers := map[string]*lazyServer{}
	for _, version := range postgresVersions {
		servers[version] = &lazyServer{start: func(ctx context.Context) (*pgtest.Server, error) {
			return startVersion(ctx, version)
		}}
	}
	return servers
}()

// startVersion starts a container of one version.
func startVersion(ctx context.Context, version string) (*pgtest.Server, error) {
	server, err := pgtest.Start(ctx, pgtest.Options{
		Way: pgtest.Docker, Version: version, Image: imageOf(ctx, version),
		Settings: map[string]string{"max_connections": "200"},
	})
	if err != nil {
		return nil, fmt.Errorf("Postgres %s needs Docker and an image, which `make images` pulls or builds: %w", version, err)
	}
	return server, timeWALSync(ctx, server)
}

// imageOf returns the official image, unless only a locally built one is here.
func imageOf(ctx context.Context, version string) string {
	official := "postgres:" + version + "-alpine"
	built := "pgyield-postgres:" + version
	for _, image := range []string{official, built} {
		if exec.CommandContext(ctx, "docker", "image", "inspect", image).Run() == nil {
			return image
		}
	}
	return official
}

// stopVersions ends the containers that were started, all at once.
func stopVersions() error {
	errs := make([]error, len(postgresVersions))
	var wg sync.WaitGroup
	for i, version := range postgresVersions {
		wg.Go(func() { errs[i] = byVersion[version].stop() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// versionDSN returns the DSN of a superuser on a container of a major version,
// which all tests share; see envVersions for what happens where there is none.
func versionDSN(t testing.TB, version string) string {
	t.Helper()
	return versionServer(t, version).DSN()
}

// versionServer is versionDSN for those who need more than the DSN.
func versionServer(t testing.TB, version string) *pgtest.Server {
	t.Helper()
	lazy, known := byVersion[version]
	if !known {
		t.Fatalf("version %s is none of %v", version, postgresVersions)
	}
	wanted := os.Getenv(envVersions)
	must := wanted != ""
	if must && !slices.Contains(strings.Fields(wanted), version) {
		t.Skipf("%s=%q leaves version %s out", envVersions, wanted, version)
	}
	server, err := lazy.get()
	switch {
	case err != nil && must:
		t.Fatal(err)
	case err != nil:
		t.Skip(err)
	}
	return server
}

// connectTo opens a plain connection for the time of a test.
func connectTo(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
