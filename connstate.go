package pgyield

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/bulkhead"
)

// stateKey is where a connection's state stands in its custom data.
const stateKey = "pgyield"

// connState is what the pool remembers of one connection: the write that it carries
// and its latency so far, and the permit that holds it. As the connection, it belongs to
// one goroutine at a time.
//
// The sample of a transaction is the sum of what its writer waited for: the connection
// and begin, each DML statement, the commit. What the program does in between is its
// own time.
type connState struct {
	pool *Pool

	skip    bool          // the next statement is a read of the pool's: leave it alone
	timed   timed         // what the running statement counts as
	started time.Duration // from when it counts
	wait    time.Duration // waited for the connection, not yet in a sample
	spent   time.Duration // by the open transaction so far
	dirty   bool          // the open transaction holds DML

	permit bulkhead.Permit // of a read-only transaction or ReadConn on this connection
	kept   chan<- bool     // gets what AfterRelease says of the connection; see giveBack
}

// timed says what a running statement counts as in the own-write signal.
type timed uint8

const (
	timedNot timed = iota
	timedBegin
	timedDML
	timedCommit
)

// stateOf returns the state of a connection that the pool opened.
func stateOf(conn *pgx.Conn) *connState {
	s, _ := conn.PgConn().CustomData()[stateKey].(*connState)
	return s
}

// acquired starts a new holder's time on the connection, which it waited for.
func (s *connState) acquired(wait time.Duration) {
	s.settle()
	*s = connState{pool: s.pool, wait: wait}
}

// skipped reports whether the statement that starts is a read of the pool's.
func (s *connState) skipped() bool {
	skip := s.skip
	s.skip = false
	return skip
}

// startWrite notes that a write call of the pool has its connection.
func (s *connState) startWrite(w *write) {
	at := w.reach()
	switch {
	case !w.counts:
	case w.kind == writeBegin:
		s.start(timedBegin, at)
	default:
		s.start(timedDML, at)
	}
}

// start notes that a statement starts which counts from at on.
func (s *connState) start(kind timed, at time.Duration) {
	s.timed, s.started = kind, at
	s.pool.traffic.running.Add(1)
}

// outside takes a time that the program spent between rows of the running write out of its
// latency.
func (s *connState) outside(d time.Duration) { s.started += d }

// settle notes that the statement that was timed, if one was, has ended.
func (s *connState) settle() {
	if s.timed != timedNot {
		s.timed = timedNot
		s.pool.traffic.running.Add(-1)
	}
}

// startText notes that a statement starts of which only the text is known: it runs on an
// acquired connection or inside a transaction.
func (s *connState) startText(conn *pgx.Conn, sql string) {
	if conn.PgConn().TxStatus() == 'I' {
		s.spent, s.dirty = 0, false // an earlier transaction was rolled back
	}
	switch {
	case s.dirty && commits(sql):
		s.start(timedCommit, sinceStart())
	case s.pool.classOf(sql).DML:
		s.start(timedDML, sinceStart())
	}
}

// commits reports whether sql, run in a transaction, commits it.
func commits(sql string) bool {
	const longest = 6
	word := strings.TrimSpace(sql)
	if i := strings.IndexAny(word, " \t\n;"); i >= 0 {
		word = word[:i]
	}
	return len(word) <= longest && (strings.EqualFold(word, "commit") || strings.EqualFold(word, "end"))
}

// finish notes that the statement ended, and observes the write that ended with it.
func (s *connState) finish(conn *pgx.Conn, err error) {
	kind := s.timed
	if kind == timedNot {
		return
	}
	s.settle()
	took := sinceStart() - s.started
	switch {
	case err != nil:
		// A failed write tells nothing, but one that ran out of time tells most.
		if ranOut(err) {
			s.observe(took)
		}
	case kind == timedBegin:
		s.spent, s.dirty = took, false
	case kind == timedDML && conn.PgConn().TxStatus() != 'I':
		s.spent += took
		s.dirty = true
	default:
		s.observe(took)
	}
}

func (s *connState) observe(last time.Duration) {
	s.pool.writes.Observe(s.wait + s.spent + last)
	s.wait, s.spent, s.dirty = 0, 0, false
}
