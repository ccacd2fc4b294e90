package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
	"github.com/testcontainers/testcontainers-go/wait"
)

// readyLine is logged twice by the official image: by the server of the set-up,
// which takes no TCP connection, and by the one that stays.
const readyLine = "database system is ready to accept connections"

// shmSize is the container's /dev/shm, in bytes. Docker's 64 MB do not hold what
// parallel queries of an analytic load share.
const shmSize = 256 << 20

// startDocker runs a container.
func startDocker(ctx context.Context, options Options) (_ *Server, err error) {
	// Where there is no daemon at all testcontainers panics.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("no Docker: %v", r)
		}
	}()
	if err := ensureImage(ctx, options); err != nil {
		return nil, err
	}
	options.Logf("pgtest: starting a container of %s", options.Image)
	ctx, cancel := context.WithTimeout(ctx, options.StartTimeout)
	defer cancel()
	session := rand.Text()
	guard, err := guardContainer(sessionLabel, session)
	if err != nil {
		return nil, err
	}
	password := rand.Text()
	box, err := postgres.Run(ctx, options.Image,
		postgres.WithUsername(superuser),
		postgres.WithPassword(password),
		postgres.WithDatabase(superuser),
		// The module's own command line has fsync off.
		testcontainers.WithCmd(append([]string{"postgres"}, options.arguments()...)...),
		testcontainers.WithLabels(map[string]string{sessionLabel: session}),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) { host.ShmSize = shmSize }),
		// The log alone: a wait for the port would dial the host that
		// testcontainers takes for the daemon's, see daemonHosts.
		testcontainers.WithWaitStrategyAndDeadline(options.StartTimeout,
			wait.ForLog(readyLine).WithOccurrence(2).WithStartupTimeout(options.StartTimeout)),
		testcontainers.WithLogger(log.NewNoopLogger()),
	)
	stop := func() error {
		if box != nil {
			if err := testcontainers.TerminateContainer(box, testcontainers.StopTimeout(0)); err != nil {
				return err // the guard removes it when this process ends
			}
		}
		guard.release()
		return nil
	}
	if err != nil {
		return nil, errors.Join(withLog(box, err), stop())
	}
	server := &Server{way: Docker, stop: stop}
	if err := server.findHost(ctx, box, password); err != nil {
		return nil, errors.Join(withLog(box, err), stop())
	}
	if err := (facts{version: server.version}).check(options.Version); err != nil {
		return nil, errors.Join(fmt.Errorf("image %s: %w", options.Image, err), stop())
	}
	return server, nil
}

// findHost connects through the first host on which the published port answers.
func (s *Server) findHost(ctx context.Context, box testcontainers.Container, password string) error {
	port, err := box.MappedPort(ctx, "5432/tcp")
	if err != nil {
		return err
	}
	hosts, err := daemonHosts(ctx, box)
	if err != nil {
		return err
	}
	for {
		var last error
		for _, host := range hosts {
			u := url.URL{
				Scheme: "postgres", User: url.UserPassword(superuser, password),
				Host: net.JoinHostPort(host, port.Port()), Path: "/" + superuser, RawQuery: "sslmode=disable",
			}
			attempt, cancel := context.WithTimeout(ctx, 3*time.Second)
			answer, err := ask(attempt, u.String())
			cancel()
			if err == nil {
				s.dsn, s.version = u.String(), answer.version
				return nil
			}
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the container's server did not answer on %s: %w", strings.Join(hosts, ", "), last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// withLog adds the end of the container's log to an error.
func withLog(box testcontainers.Container, err error) error {
	if box == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	reader, logErr := box.Logs(ctx)
	if logErr != nil {
		return err
	}
	defer reader.Close()
	output, _ := io.ReadAll(io.LimitReader(reader, 1<<20))
	if len(output) == 0 {
		return err
	}
	return fmt.Errorf("%w: its log: %s", err, tail(output))
}
