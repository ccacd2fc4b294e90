package integration_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/pgtest"
)

// container is what a test does to a server from outside. It needs Docker's command
// line.
type container struct {
	t  testing.TB
	id string
}

// containerOf finds the container that publishes a server's port.
func containerOf(t testing.TB, dsn string) container {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c := container{t: t}
	// A port of IPv4 may be another container's of IPv6, so Docker's own filter is not enough.
	published := fmt.Sprintf("0.0.0.0:%d->", config.Port)
	for line := range strings.Lines(c.docker("ps", "--no-trunc", "--format", "{{.ID}} {{.Ports}}")) {
		if id, ports, _ := strings.Cut(line, " "); strings.Contains(ports, published) {
			c.id = id
			return c
		}
	}
	t.Fatalf("no container publishes port %d", config.Port)
	return c
}

// docker runs a command of Docker's and returns what it prints. It may be called from
// any goroutine.
func (c container) docker(arguments ...string) string {
	output, err := exec.Command("docker", arguments...).Output()
	if err != nil {
		if failed, is := errors.AsType[*exec.ExitError](err); is {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		c.t.Errorf("docker %s: %v", strings.Join(arguments, " "), err)
	}
	return strings.TrimSpace(string(output))
}

// shell runs a script as the server's user, with the server's programs on the path.
func (c container) shell(script string) string {
	return c.docker("exec", "--user", "postgres", c.id, "bash", "-c", script)
}

// cpus bounds the processor time of all that runs in the container. No bound is the
// number of all processors: Docker takes none for "as before".
func (c container) cpus(n string) { c.docker("update", "--cpus", n, c.id) }

// address is where the server listens inside Docker's network, at a port of its own.
func (c container) address() string {
	return c.docker("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", c.id)
}

// ownContainer starts a container that this test alone uses, because it kills it.
func ownContainer(t testing.TB, version string, settings map[string]string) *pgtest.Server {
	t.Helper()
	versionDSN(t, version) // skips or fails where the version cannot run
	server := pgtest.New(t, pgtest.Options{
		Way: pgtest.Docker, Version: version, Image: imageOf(t.Context(), version), Settings: settings,
	})
	if err := timeWALSync(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	return server
}

// together runs a test's step for all versions at once. Where a step measures, the
// versions must be measured in turn instead.
func together[T any](each []T, step func(T)) {
	var wg sync.WaitGroup
	for _, one := range each {
		wg.Go(func() { step(one) })
	}
	wg.Wait()
}
