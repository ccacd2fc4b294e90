package pgfake

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// Causes that end a statement's context.
var (
	errCanceled = errors.New("pgfake: cancel request")
	errKilled   = errors.New("pgfake: session killed")
	errClosed   = errors.New("pgfake: server closed")
)

// session is one connection as the server sees it. Its goroutine (serve) owns
// every field that mu does not guard.
type session struct {
	f       *Server
	conn    net.Conn
	in      *inbox
	backend *pgproto3.Backend
	types   *pgtype.Map
	pid     uint32
	key     []byte
	started bool // past start-up; Server.mu guards it
	app     string

	tx       byte // transaction status: I, T or E
	dead     bool // nothing can be sent any more
	skipping bool // after an error: until Sync
	prepared map[string]*prepared
	portals  map[string]*portal

	mu     sync.Mutex // guards what follows; taken after no other lock
	cause  error      // why the session ends
	cancel context.CancelCauseFunc
}

func newSession(f *Server, conn net.Conn, pid uint32) *session {
	in := newInbox()
	return &session{
		f:        f,
		conn:     conn,
		in:       in,
		backend:  pgproto3.NewBackend(in, conn),
		types:    pgtype.NewMap(),
		pid:      pid,
		key:      newKey(),
		tx:       'I',
		prepared: make(map[string]*prepared),
		portals:  make(map[string]*portal),
	}
}

// end makes the session end with cause, from any goroutine.
func (s *session) end(cause error) {
	s.mu.Lock()
	if s.cause == nil {
		s.cause = cause
	}
	s.mu.Unlock()
	s.cancelStatement(cause)
	s.in.close(io.EOF)
	if errors.Is(cause, errClosed) {
		_ = s.conn.Close()
		return
	}
	// A client that does not read must not keep a killed session for ever.
	_ = s.conn.SetWriteDeadline(time.Now().Add(time.Second))
}

func (s *session) cancelStatement(cause error) {
	s.mu.Lock()
	cancel := s.cancel
	s.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// statementContext is the context of the next statement, already done when the
// session is to end.
func (s *session) statementContext() context.Context {
	ctx, cancel := context.WithCancelCause(s.f.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = cancel
	if s.cause != nil {
		cancel(s.cause)
	}
	return ctx
}

func (s *session) statementOver() {
	s.mu.Lock()
	cancel := s.cancel
	s.cancel = nil
	s.mu.Unlock()
	if cancel != nil {
		cancel(nil)
	}
}

func (s *session) serve() {
	defer s.f.remove(s)
	defer s.in.close(io.EOF)
	defer func() { _ = s.conn.Close() }()
	defer s.dropPortals()
	s.f.running.Go(func() { s.in.pump(s.conn) })
	if !s.startUp() {
		return
	}
	for !s.dead {
		msg, err := s.backend.Receive()
		if err != nil {
			return
		}
		if !s.handle(msg) {
			return
		}
	}
}

// startUp answers the first messages and says whether the session goes on.
func (s *session) startUp() bool {
	if !s.wait(s.f.hanging()) {
		return false
	}
	for {
		msg, err := s.backend.ReceiveStartupMessage()
		if err != nil {
			return false
		}
		switch msg := msg.(type) {
		case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
			if _, err := s.conn.Write([]byte("N")); err != nil {
				return false
			}
		case *pgproto3.CancelRequest:
			s.f.cancelRequest(msg.ProcessID, msg.SecretKey)
			return false
		case *pgproto3.StartupMessage:
			return s.welcome(maps.Clone(msg.Parameters))
		default:
			return false
		}
	}
}

func (s *session) welcome(params map[string]string) bool {
	if s.f.options.StartupDelay > 0 {
		ready := make(chan struct{})
		timer := time.AfterFunc(s.f.options.StartupDelay, func() { close(ready) })
		defer timer.Stop()
		if !s.wait(ready) {
			return false
		}
	}
	for name := range params {
		if !knownParameter(name) {
			s.fatal(Errorf("42704", "unrecognized configuration parameter %q", name))
			return false
		}
	}
	if err := s.f.admit(s, params); err != nil {
		var pgErr *pgconn.PgError
		errors.As(err, &pgErr)
		s.fatal(pgErr)
		return false
	}
	s.app = params["application_name"]
	reported := map[string]string{
		"server_version":              "17.0",
		"client_encoding":             "UTF8",
		"standard_conforming_strings": "on",
		"application_name":            s.app,
	}
	maps.Copy(reported, s.f.options.Parameters)
	s.backend.Send(&pgproto3.AuthenticationOk{})
	for name, value := range reported {
		s.backend.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	s.backend.Send(&pgproto3.BackendKeyData{ProcessID: s.pid, SecretKey: s.key})
	s.ready()
	return true
}

// wait waits for c, or says that the client or the server left. A nil c is
// ready.
func (s *session) wait(c chan struct{}) bool {
	if c == nil {
		return true
	}
	select {
	case <-c:
		return true
	case <-s.in.done:
		return false
	}
}

// knownParameter tells the start-up parameters that a real server takes: its
// own settings (of which the common ones are listed) and any with a dot.
func knownParameter(name string) bool {
	switch strings.ToLower(name) {
	case "user", "database", "replication", "options", "application_name",
		"client_encoding", "datestyle", "timezone", "intervalstyle", "search_path",
		"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout",
		"transaction_timeout", "default_transaction_isolation", "role", "jit",
		"default_transaction_read_only", "standard_conforming_strings", "work_mem",
		"extra_float_digits", "synchronous_commit", "plan_cache_mode",
		"tcp_user_timeout", "client_min_messages":
		return true
	}
	return strings.Contains(name, ".") || strings.HasPrefix(name, "_pq_.")
}

// handle answers one message and says whether the session goes on.
func (s *session) handle(msg pgproto3.FrontendMessage) bool {
	switch msg := msg.(type) {
	case *pgproto3.Terminate:
		return false
	case *pgproto3.Query:
		s.skipping = false
		s.simple(msg.String)
	case *pgproto3.Sync:
		s.skipping = false
		s.dropPortals()
		s.ready()
	case *pgproto3.Flush:
		s.flush()
	default:
		if !s.skipping {
			s.extended(msg)
		}
	}
	return !s.dead
}

func (s *session) ready() {
	s.backend.Send(&pgproto3.ReadyForQuery{TxStatus: s.tx})
	s.flush()
}

func (s *session) flush() {
	if s.dead {
		return
	}
	if err := s.backend.Flush(); err != nil {
		s.dead = true
	}
}

// fail tells the client err, and what follows from it: the transaction is
// failed, the rest of an extended sequence skipped, a fatal error ends all.
func (s *session) fail(err error) {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		pgErr = Errorf("XX000", "%v", err)
	}
	if pgErr.Severity == "FATAL" {
		s.fatal(pgErr)
		return
	}
	if s.tx == 'T' {
		s.tx = 'E'
	}
	s.skipping = true
	s.backend.Send(errorResponse(pgErr))
}

func (s *session) fatal(err *pgconn.PgError) {
	err.Severity = "FATAL"
	s.backend.Send(errorResponse(err))
	s.flush()
	s.dead = true
}

func errorResponse(err *pgconn.PgError) *pgproto3.ErrorResponse {
	severity := err.Severity
	if severity == "" {
		severity = "ERROR"
	}
	return &pgproto3.ErrorResponse{
		Severity:            severity,
		SeverityUnlocalized: severity,
		Code:                err.Code,
		Message:             err.Message,
		Detail:              err.Detail,
		Hint:                err.Hint,
		Where:               err.Where,
		SchemaName:          err.SchemaName,
		TableName:           err.TableName,
		ColumnName:          err.ColumnName,
		ConstraintName:      err.ConstraintName,
	}
}
