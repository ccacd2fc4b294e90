package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// dropTimeout bounds the drop of a test's database: it waits for the sessions
// that it ends, and for a checkpoint.
const dropTimeout = time.Minute

// Database makes an empty database for one test and returns its DSN. It is
// dropped, its sessions ended, when the test and its subtests are over. Tests
// that run in parallel each have their own.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	dsn, drop, err := s.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
		defer cancel()
		if err := drop(ctx); err != nil {
			t.Error(err)
		}
	})
	return dsn
}

// CreateDatabase makes an empty database with a random name and returns its DSN
// and a function that drops it, which ends the sessions that are still in it.
func (s *Server) CreateDatabase(ctx context.Context) (dsn string, drop func(context.Context) error, err error) {
	name := "pgtest_" + strings.ToLower(rand.Text())
	dsn, err = withDatabase(s.dsn, name)
	if err != nil {
		return "", nil, err
	}
	// template0 has no session that could be in the way, unlike template1, which
	// CREATE DATABASE refuses to copy while somebody is connected to it.
	if err := s.run(ctx, "create database "+pgx.Identifier{name}.Sanitize()+" template template0"); err != nil {
		return "", nil, fmt.Errorf("pgyield: pgtest: creating a database for a test: %w", err)
	}
	drop = func(ctx context.Context) error {
		if s.stopped.Load() {
			return nil // it went with its server
		}
		if err := s.run(ctx, "drop database if exists "+pgx.Identifier{name}.Sanitize()+" with (force)"); err != nil {
			return fmt.Errorf("pgyield: pgtest: dropping the database of a test: %w", err)
		}
		return nil
	}
	return dsn, drop, nil
}

// run executes one statement on a connection of its own.
func (s *Server) run(ctx context.Context, sql string) error {
	conn, err := connect(ctx, s.dsn)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	_, err = conn.Exec(ctx, sql)
	return err
}

// withDatabase returns the DSN with another database in it.
func withDatabase(dsn, name string) (string, error) {
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		return dsn + " dbname=" + name, nil // of a keyword given twice the last counts
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", fmt.Errorf("pgyield: pgtest: the DSN is no URL: %w", redact(err))
	}
	query := u.Query()
	query.Del("dbname")
	query.Del("database")
	u.RawQuery = encode(query)
	u.Path = "/" + name
	u.RawPath = ""
	return u.String(), nil
}

// encode encodes a query for pgx, which takes a plus for a plus and not for a space.
func encode(query url.Values) string {
	return strings.ReplaceAll(query.Encode(), "+", "%20")
}

// redact takes the URL, which holds a password, out of a parse error.
func redact(err error) error {
	if parse, ok := err.(*url.Error); ok { //nolint:errorlint // url.Parse returns it unwrapped
		return parse.Err
	}
	return err
}
