package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNotFound is wrapped by the error of [Start] when no way gave a server; the
// error's text says what stood in the way of each.
var ErrNotFound = errors.New("no Postgres found")

// superuser is the role of a started server, and its first database.
const superuser = "postgres"

// Server is a running PostgreSQL server. Its methods are safe for concurrent use.
type Server struct {
	dsn       string
	socketDSN string
	way       Way
	version   int // server_version_num

	stopOnce sync.Once
	stopped  atomic.Bool  // set before a server that was started ends
	stop     func() error // ends what was started; nil for a given server
	stopErr  error
}

// Start finds or starts a server. The context bounds the search and the start
// alone: the server lives until [Server.Stop], or until this process ends. Many
// servers may be started at once.
//
// With Auto, a server that is named by a DSN is used or its error returned; a
// local start that fails leaves Docker to be tried.
func Start(ctx context.Context, options Options) (*Server, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	switch options.Way {
	case Given:
		return useGiven(ctx, options)
	case Local:
		server, err := startLocal(ctx, options)
		return server, notFound(err)
	case Docker:
		server, err := startDocker(ctx, options)
		return server, notFound(err)
	case Auto:
	}
	if options.DSN != "" {
		return useGiven(ctx, options)
	}
	server, localErr := startLocal(ctx, options)
	if localErr == nil {
		return server, nil
	}
	if ctx.Err() != nil {
		return nil, givenUp(ctx, localErr)
	}
	options.Logf("pgtest: no local server: %v", localErr)
	server, dockerErr := startDocker(ctx, options)
	if dockerErr == nil {
		return server, nil
	}
	if ctx.Err() != nil {
		return nil, givenUp(ctx, dockerErr)
	}
	return nil, fmt.Errorf("pgyield: pgtest: %w, three ways were tried: "+
		"(1) a running server: set %s or Options.DSN; "+
		"(2) programs of this machine: %w; "+
		"(3) Docker with image %s: %w", ErrNotFound, EnvDSN, localErr, options.Image, dockerErr)
}

// notFound makes one way's error that of Start.
func notFound(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pgyield: pgtest: %w: %w", ErrNotFound, err)
}

// givenUp is the error of a start that ctx ended: what a killed initdb says is not
// why there is no server, and the caller knows by ctx's error what to make of it.
func givenUp(ctx context.Context, err error) error {
	return fmt.Errorf("pgyield: pgtest: starting a server: %w (%w)", ctx.Err(), err)
}

// New is [Start] for a test: it fails the test at once when there is no server,
// and stops the server when the test and its subtests are over.
func New(t testing.TB, options Options) *Server {
	t.Helper()
	if options.Logf == nil {
		options.Logf = t.Logf
	}
	server, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// DSN returns a connection string for a superuser of a started server, over TCP;
// for a given server it is what was given.
func (s *Server) DSN() string { return s.dsn }

// SocketDSN returns a connection string over a unix socket, or "" where there is
// none: only a server that was started locally has one.
func (s *Server) SocketDSN() string { return s.socketDSN }

// Way tells how the server was found: Given, Local or Docker.
func (s *Server) Way() Way { return s.way }

// Version returns the server's version number as server_version_num has it: the
// major version times 10,000 plus the minor one.
func (s *Server) Version() int { return s.version }

// Stop ends the server and removes its files; a given server is left alone. It
// waits until that is done. The first call does it, every call returns its
// result.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() {
		if s.stop == nil {
			return
		}
		s.stopped.Store(true)
		if err := s.stop(); err != nil {
			s.stopErr = fmt.Errorf("pgyield: pgtest: stopping the %v server: %w", s.way, err)
		}
	})
	return s.stopErr
}

// useGiven checks that the server that the DSN names answers and fits.
func useGiven(ctx context.Context, options Options) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, options.StartTimeout)
	defer cancel()
	answer, err := ask(ctx, options.DSN)
	if err != nil {
		return nil, fmt.Errorf("pgyield: pgtest: the server that %s names: %w", options.dsnFrom, err)
	}
	if err := answer.check(options.Version); err != nil {
		return nil, fmt.Errorf("pgyield: pgtest: the server that %s names: %w", options.dsnFrom, err)
	}
	options.Logf("pgtest: using the server that is given")
	return &Server{dsn: options.DSN, way: Given, version: answer.version}, nil
}

// facts are what a server says of itself.
type facts struct {
	version int
	folder  string // data_directory; empty for a role that may not see it
}

func (f facts) check(version string) error {
	if version != "" && fmt.Sprint(f.version/10_000) != version {
		return fmt.Errorf("its version is %d, but Options.Version wants %s", f.version/10_000, version)
	}
	return nil
}

// ask connects once and asks.
func ask(ctx context.Context, dsn string) (facts, error) {
	conn, err := connect(ctx, dsn)
	if err != nil {
		return facts{}, err
	}
	defer closeConn(conn)
	var f facts
	err = conn.QueryRow(ctx, `select current_setting('server_version_num')::int,
		case when pg_has_role(current_user, 'pg_read_all_settings', 'usage')
		then current_setting('data_directory') else '' end`).Scan(&f.version, &f.folder)
	return f, err
}

// connect opens one connection. Parameters of a pool may stand in a DSN and would
// be refused by the server.
func connect(ctx context.Context, dsn string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	for name := range config.RuntimeParams {
		if strings.HasPrefix(name, "pool_") || strings.HasPrefix(name, "yield_") {
			delete(config.RuntimeParams, name)
		}
	}
	return pgx.ConnectConfig(ctx, config)
}

// closeConn ends a connection whose work is done or has failed; what the close
// itself says no longer matters.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// tail returns the last lines of an output for an error's text.
func tail(output []byte) string {
	const lines = 6
	all := bytes.Split(bytes.TrimSpace(output), []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return string(bytes.Join(all, []byte(" | ")))
}
