package integration_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// road is a TCP address that leads to a server once it is opened, and refuses before.
type road struct {
	t        testing.TB
	to, from string

	mu       sync.Mutex // guards listener and conns
	listener net.Listener
	conns    []net.Conn
}

// newRoad chooses a free address on loopback and leaves it closed.
func newRoad(t testing.TB, dsn string) *road {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &road{t: t, to: net.JoinHostPort(config.Host, fmt.Sprint(config.Port)), from: l.Addr().String()}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

// dsn is the DSN of the same database by this road.
func (r *road) dsn(dsn string) string {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", config.User, config.Password, r.from, config.Database)
}

func (r *road) open() {
	l, err := net.Listen("tcp", r.from)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	r.listener = l
	r.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.carry(c)
		}
	}()
}

// carry moves bytes both ways until either side ends.
func (r *road) carry(c net.Conn) {
	s, err := net.Dial("tcp", r.to)
	if err != nil {
		_ = c.Close()
		return
	}
	r.mu.Lock()
	r.conns = append(r.conns, c, s)
	r.mu.Unlock()
	go func() {
		_, _ = io.Copy(s, c)
		_ = s.Close()
	}()
	_, _ = io.Copy(c, s)
	_ = c.Close()
}

func (r *road) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		_ = r.listener.Close()
	}
	for _, c := range r.conns {
		_ = c.Close()
	}
}
