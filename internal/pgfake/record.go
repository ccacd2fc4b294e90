package pgfake

import (
	"maps"
	"slices"
	"time"
)

// Statement is the record of one statement that a session began to execute.
type Statement struct {
	SQL     string
	PID     uint32 // of the session
	App     string // application_name of the session at start-up
	Args    []any  // as Query.Args
	Simple  bool   // came through the simple protocol
	Started time.Time
	Ended   time.Time // zero while it runs
	Err     error     // what the client was told
	Rows    int64     // sent, or copied
}

// Session is the record of one session that passed start-up.
type Session struct {
	PID    uint32
	Params map[string]string // of the start-up message
	Opened time.Time
	Closed time.Time // zero while it is open
}

// recorder keeps the last statements and sessions. Server.mu guards it.
type recorder struct {
	limit      int
	statements []*Statement
	sessions   []*Session
	running    int
	peak       int
	executed   uint64
}

func (r *recorder) begin(st *Statement) {
	r.executed++
	r.running++
	r.peak = max(r.peak, r.running)
	if r.limit > 0 {
		r.statements = append(trim(r.statements, r.limit), st)
	}
}

func (r *recorder) open(pid uint32, params map[string]string) {
	if r.limit > 0 {
		r.sessions = append(trim(r.sessions, r.limit),
			&Session{PID: pid, Params: maps.Clone(params), Opened: time.Now()})
	}
}

func (r *recorder) close(pid uint32) {
	for _, s := range slices.Backward(r.sessions) {
		if s.PID == pid {
			s.Closed = time.Now()
			return
		}
	}
}

// trim drops the older half when list is full, so that a long run costs O(1) a
// statement.
func trim[T any](list []*T, limit int) []*T {
	if len(list) < limit {
		return list
	}
	return append([]*T(nil), list[len(list)/2+1:]...)
}

func copies[T any](list []*T) []T {
	out := make([]T, len(list))
	for i, item := range list {
		out[i] = *item
	}
	return out
}

// Statements returns the record so far, in the order in which they began.
func (f *Server) Statements() []Statement {
	f.mu.Lock()
	defer f.mu.Unlock()
	return copies(f.record.statements)
}

// Sessions returns the record of the sessions, in the order of their opening.
// Connections that only carried a cancel request are not among them.
func (f *Server) Sessions() []Session {
	f.mu.Lock()
	defer f.mu.Unlock()
	return copies(f.record.sessions)
}

// ResetRecord forgets the statements that have ended, the closed sessions, and
// the peak.
func (f *Server) ResetRecord() {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &f.record
	var running []*Statement
	for _, st := range r.statements {
		if st.Ended.IsZero() {
			running = append(running, st)
		}
	}
	var open []*Session
	for _, s := range r.sessions {
		if s.Closed.IsZero() {
			open = append(open, s)
		}
	}
	r.statements, r.sessions, r.peak = running, open, r.running
}

// Open is how many sessions are open on the server, whether or not their client
// is still there.
func (f *Server) Open() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ready()
}

// Dials is how many times DialFunc was called, refusals and cancel requests
// included.
func (f *Server) Dials() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dials
}

// Running is how many statements are in progress, Peak the most there were at
// once, Executed how many began in all (kept or not).
func (f *Server) Running() int { f.mu.Lock(); defer f.mu.Unlock(); return f.record.running }

// Peak is the most statements that were in progress at once.
func (f *Server) Peak() int { f.mu.Lock(); defer f.mu.Unlock(); return f.record.peak }

// Executed is how many statements began since New.
func (f *Server) Executed() uint64 { f.mu.Lock(); defer f.mu.Unlock(); return f.record.executed }

func (f *Server) beginStatement(st *Statement) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st.Started = time.Now()
	f.record.begin(st)
}

func (f *Server) endStatement(st *Statement, rows int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record.running--
	st.Ended, st.Rows, st.Err = time.Now(), rows, err
}
