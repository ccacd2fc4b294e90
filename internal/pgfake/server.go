package pgfake

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrRefused is what a dial returns after Refuse(nil), and after Close.
var ErrRefused = errors.New("pgfake: connection refused")

// Options of a Server; the zero value is a server that answers by [Default].
type Options struct {
	// Handler decides what a statement does. Nil: Default.
	Handler Handler

	// Describe tells the shape of a statement before it runs; false leaves it
	// to Guess. Nil: always Guess.
	Describe func(sql string) (Shape, bool)

	// Parameters are reported to the client at start-up, over the defaults
	// (server_version 17.0, client_encoding UTF8, standard_conforming_strings on).
	Parameters map[string]string

	// MaxConnections is how many sessions may be open at once; one more gets
	// SQLSTATE 53300. 0: no bound.
	MaxConnections int

	// StartupDelay is how long a new session takes until it is ready, in the
	// time of the bubble. 0: none.
	StartupDelay time.Duration

	// RecordLimit is how many statements and how many sessions are kept for
	// Statements and Sessions; the oldest go first. 0: 100,000. Negative: none.
	RecordLimit int
}

// Server is the fake. Make it with New inside the bubble that uses it. All
// methods may be called from many goroutines.
type Server struct {
	options Options
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex // guards what follows; never held over I/O
	closed   bool
	refuse   error
	hang     chan struct{} // not nil: new sessions wait until it is closed
	sessions map[uint32]*session
	lastPID  uint32
	dials    int
	record   recorder
}

// New starts a Server. It listens nowhere: connections come through DialFunc.
func New(options Options) *Server {
	if options.Handler == nil {
		options.Handler = Default
	}
	if options.RecordLimit == 0 {
		options.RecordLimit = 100_000
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Server{
		options:  options,
		ctx:      ctx,
		stop:     stop,
		sessions: make(map[uint32]*session),
		lastPID:  1000,
		record:   recorder{limit: max(options.RecordLimit, 0)},
	}
}

// Close ends every session and every running handler, and waits for them. It
// may be called more than once.
func (f *Server) Close() {
	f.mu.Lock()
	f.closed = true
	f.refuse = ErrRefused
	f.mu.Unlock()
	f.endAll(errClosed)
	f.stop()
	f.running.Wait()
}

// DialFunc is for pgconn.Config.DialFunc. Network and address are ignored.
func (f *Server) DialFunc(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials++
	if f.refuse != nil {
		return nil, f.refuse
	}
	client, server := net.Pipe()
	f.lastPID++
	s := newSession(f, server, f.lastPID)
	f.sessions[s.pid] = s
	// Add under the lock: Close sets refuse under it before it waits.
	f.running.Go(s.serve)
	return client, nil
}

// LookupFunc is for pgconn.Config.LookupFunc: one address, without asking DNS.
func (f *Server) LookupFunc(context.Context, string) ([]string, error) {
	return []string{"192.0.2.1"}, nil
}

// Attach makes config connect to the fake: dial, lookup, no TLS, no fallback.
func (f *Server) Attach(config *pgconn.Config) {
	config.DialFunc = f.DialFunc
	config.LookupFunc = f.LookupFunc
	config.TLSConfig = nil
	config.Fallbacks = nil
}

// ConnString is a connection string for pgx; params ("key=value") are added to
// it. The config that it is parsed into still needs Attach.
func (f *Server) ConnString(params ...string) string {
	return "postgres://fake@pgfake:5432/fake?" +
		strings.Join(append([]string{"sslmode=disable"}, params...), "&")
}

// Config is a pool's config that connects to the fake; params as ConnString's.
func (f *Server) Config(tb testing.TB, params ...string) *pgxpool.Config {
	tb.Helper()
	config, err := pgxpool.ParseConfig(f.ConnString(params...))
	if err != nil {
		tb.Fatalf("pgfake: %v", err)
	}
	f.Attach(&config.ConnConfig.Config)
	return config
}

// Refuse makes every later dial fail with err; nil stands for ErrRefused. What
// is connected stays. Accept ends it.
func (f *Server) Refuse(err error) {
	if err == nil {
		err = ErrRefused
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = err
}

// HangStartup lets every later dial succeed and then says nothing, until
// Accept. Cancel requests are not answered either.
func (f *Server) HangStartup() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hang == nil {
		f.hang = make(chan struct{})
	}
}

// Accept ends Refuse and HangStartup; sessions that hung go on.
func (f *Server) Accept() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.refuse = nil
	if f.hang != nil {
		close(f.hang)
		f.hang = nil
	}
}

// Kill ends the session of pid as pg_terminate_backend does: a running
// statement gets SQLSTATE 57P01, then the connection is closed. It says whether
// there was such a session.
func (f *Server) Kill(pid uint32) bool {
	f.mu.Lock()
	s := f.sessions[pid]
	f.mu.Unlock()
	if s != nil {
		s.end(errKilled)
	}
	return s != nil
}

// KillAll ends every open session, as a restart of the server does.
func (f *Server) KillAll() { f.endAll(errKilled) }

func (f *Server) endAll(cause error) {
	f.mu.Lock()
	open := make([]*session, 0, len(f.sessions))
	for _, s := range f.sessions {
		open = append(open, s)
	}
	f.mu.Unlock()
	for _, s := range open {
		s.end(cause)
	}
}

// cancelRequest cancels the running statement of pid when the key is right. As
// with Postgres nobody is told whether it was, and an idle session ignores it.
func (f *Server) cancelRequest(pid uint32, key []byte) {
	f.mu.Lock()
	s := f.sessions[pid]
	f.mu.Unlock()
	if s != nil && string(key) == string(s.key) {
		s.cancelStatement(errCanceled)
	}
}

// admit says whether s may become a session, and counts it.
func (f *Server) admit(s *session, params map[string]string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if bound := f.options.MaxConnections; bound > 0 && f.ready() >= bound {
		return Errorf("53300", "sorry, too many clients already")
	}
	s.started = true
	f.record.open(s.pid, params)
	return nil
}

// ready counts the sessions past start-up. f.mu must be held.
func (f *Server) ready() int {
	n := 0
	for _, s := range f.sessions {
		if s.started {
			n++
		}
	}
	return n
}

func (f *Server) remove(s *session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, s.pid)
	if s.started {
		f.record.close(s.pid)
	}
}

func (f *Server) hanging() chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hang
}

// Errorf is an error with a SQLSTATE, as a handler returns it.
func Errorf(code, format string, args ...any) *pgconn.PgError {
	return &pgconn.PgError{Severity: "ERROR", Code: code, Message: fmt.Sprintf(format, args...)}
}

func newKey() []byte {
	key := make([]byte, 4)
	_, _ = rand.Read(key) // never fails
	return key
}
