package pressure

import (
	"context"
	"time"
)

// Source gives samples of a database's state. [Poller] is the one for Postgres.
type Source interface {
	// Sample takes one sample. An error means that nothing is known now; the
	// caller may ask again at any time.
	Sample(ctx context.Context) (Sample, error)
}

// Reading is a number that a server, a version or a role may not offer. The zero
// Reading is absent, which is not the same as a known zero.
type Reading struct {
	Value float64
	Known bool
}

// Read returns a known Reading.
func Read(value float64) Reading { return Reading{Value: value, Known: true} }

// Sample is what one poll saw. Counters count since the server's statistics were
// reset; only the difference of two samples means something.
type Sample struct {
	// At is the local time at which the answer arrived, RoundTrip how long it took.
	At        time.Time
	RoundTrip time.Duration

	// ServerTime is the server's clock, by which rates are computed.
	ServerTime time.Time
	// Version is server_version_num, for example 170004; 0 is unknown.
	Version int
	// Started is when the server started, StatsReset when its WAL counters were
	// last reset; zero is unknown. A change of either makes the counters before
	// and after incomparable.
	Started    time.Time
	StatsReset time.Time
	// Standby is true while the server is in recovery: it takes no writes.
	Standby bool

	// WALBytes is the WAL insert position; NextXID the next transaction id, which
	// counts transactions that write. Both are counters.
	WALBytes Reading
	NextXID  Reading
	// WALSyncs counts WAL syncs and WALSyncMillis the milliseconds spent in
	// them; the latter is absent unless track_wal_io_timing is on (14 or later).
	WALSyncs      Reading
	WALSyncMillis Reading

	// Numbers of sessions at the moment of the poll: with a transaction that has
	// written; waiting for the WAL; for a synchronous standby; for a lock, a relation's
	// included (one on a virtual transaction is not: only DDL waits for that); for a
	// lock on a relation.
	WriteTransactions   Reading
	WALWaiters          Reading
	SyncRepWaiters      Reading
	LockWaiters         Reading
	RelationLockWaiters Reading
	// The oldest statement, in milliseconds, that waits for a lock; that waits for a
	// relation's lock; that has written and waits for no lock.
	LockWaitMillis         Reading
	RelationLockWaitMillis Reading
	WriteStatementMillis   Reading

	// Hidden is the number of sessions whose state the monitor's role may not
	// see. Above zero, readings taken from sessions are absent.
	Hidden int

	// Names are the application names of other sessions that begin with
	// [Options].NamePrefix: outside text, to be parsed with care.
	Names []string
	// Sessions is how many sessions the server has, its own processes included; 0: unknown.
	Sessions int

	// Every is how far apart the polls are of a source that keeps a pace of its own, as a
	// member of a large fleet does: what it saw stands until the next one. 0: as often as it
	// is asked.
	Every time.Duration

	// Mark is what this poll found in its session of the mark that the poll before left
	// there ([Options].Mark), empty when there was none. Marked: one on this connection
	// did leave it.
	Mark   string
	Marked bool
}

// millis gives a reading in milliseconds as a duration.
func millis(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
