package pressure

import (
	"fmt"
	"time"
)

// Activity is what the program itself did in one period.
type Activity struct {
	// Running and Waiting are the reads that run, and that wait for a permit, at
	// the period's end.
	Running, Waiting int
	// Limit is how many reads may run at once.
	Limit int
	// Contended is true when the limit held a read back in the period.
	Contended bool

	// Writes are the latencies of the period's own writes: INSERT, UPDATE, DELETE,
	// MERGE, COPY and commits of transactions that wrote, each from the moment at
	// which the program asked, so with its wait for a connection.
	Writes WriteStats
	// WritesRunning is the number of own writes begun and not ended. It is
	// optional; it keeps writes that take longer than a period from looking as if
	// they had stopped.
	WritesRunning int

	// ReadsDone is the number of reads that ended in the period, ReadTime the mean
	// time each held its permit.
	ReadsDone int
	ReadTime  time.Duration

	// Probing is true while the limit is held at its floor so that a first
	// baseline can be learned: what is seen then is the baseline. The adaptive
	// limit sets it.
	Probing bool
}

// reading is true when reads run, wait, or ran in the period.
func (a Activity) reading() bool { return a.Running > 0 || a.Waiting > 0 || a.ReadsDone > 0 }

// concurrency is the mean number of reads that ran in a period of length d, by
// Little's law, or the number that runs at its end where that is larger.
func (a Activity) concurrency(d time.Duration) float64 {
	c := float64(a.Running)
	if d > 0 {
		c = max(c, float64(a.ReadsDone)*float64(a.ReadTime)/float64(d))
	}
	return c
}

// Names of signals, as they stand in [Signal], [Verdict].Reason and metrics.
const (
	// OwnWrites is the 90th percentile of the program's own write latency.
	OwnWrites = "own_writes"
	// WALSync is the mean time of a WAL sync.
	WALSync = "wal_sync"
	// WALWait is the mean time a write waits for the WAL.
	WALWait = "wal_wait"
	// WriteStatement is the age of the oldest statement that has written and waits
	// for no lock.
	WriteStatement = "write_statement"
	// LockWait is the mean time a write waits for locks that are no relation's.
	LockWait = "lock_wait"
	// RelationLock is the age of the oldest wait for a lock on a relation. It never
	// presses: a lower limit releases no lock. It keeps the limit from rising.
	RelationLock = "relation_lock"
)

// SignalNames are the names of all signals.
func SignalNames() []string {
	return []string{OwnWrites, WALSync, WALWait, WriteStatement, LockWait, RelationLock}
}

// Signal is one signal in one period, beside what it is compared with.
type Signal struct {
	Name string
	// Value is the signal now; Baseline what it is when reads are quiet (0: not
	// learned yet); Threshold where it presses (0: cannot press yet).
	Value, Baseline, Threshold time.Duration
	// Pressing is true from the threshold on until the value fell half-way back to
	// the baseline.
	Pressing bool
	// Fresh is true when Value was measured anew in this period, from evidence
	// that began at Since; else it is the last one and still stands.
	Fresh bool
	Since time.Time
}

// Ratio returns Value over Baseline, or over Threshold where no baseline is known;
// 0 when there is neither.
func (s Signal) Ratio() float64 {
	switch {
	case s.Baseline > 0:
		return float64(s.Value) / float64(s.Baseline)
	case s.Threshold > 0:
		return float64(s.Value) / float64(s.Threshold)
	default:
		return 0
	}
}

// Reason is a short text: what it is over what it may be.
func (s Signal) Reason() string {
	return fmt.Sprintf("%s %v over %v", s.Name, s.Value.Round(time.Microsecond), s.Threshold.Round(time.Microsecond))
}

// Verdict says whether writes suffered in one period.
type Verdict struct {
	// Pressing is true when reads ran or waited, writes moved, and a signal is over
	// its threshold.
	Pressing bool
	// Known is false when there was nothing to judge by. Pressing is then false.
	Known bool
	// Fresh is true when the verdict rests on something measured in this period;
	// false when the last measurement still stands.
	Fresh bool
	// Strong is true when this one period is evidence enough.
	Strong bool
	// Freeze is true while something waits for a relation's lock behind others: the
	// limit should not rise; lowering it would release nothing.
	Freeze bool
	// NeedBaseline is true when writes move but nothing is known about how long they
	// take when reads are quiet, so that nothing can press.
	NeedBaseline bool
	// WritesMove is true when writes were seen, here or on the server.
	WritesMove bool
	// Reason is a short text: the signal that decided, or why none did.
	Reason string
	// Signals holds the signals that are known. One that the server, its version or
	// the role does not offer is not among them.
	Signals []Signal
}

// Signal returns the signal of that name.
func (v Verdict) Signal(name string) (Signal, bool) {
	for _, s := range v.Signals {
		if s.Name == name {
			return s, true
		}
	}
	return Signal{}, false
}

// Leading returns the pressing signal that stands furthest over its threshold.
func (v Verdict) Leading() (Signal, bool) {
	var lead Signal
	found := false
	for _, s := range v.Signals {
		if !s.Pressing {
			continue
		}
		if !found || over(s) > over(lead) {
			lead, found = s, true
		}
	}
	return lead, found
}

// over is how far a signal stands over its threshold, as a ratio.
func over(s Signal) float64 {
	if s.Threshold <= 0 {
		return 0
	}
	return float64(s.Value) / float64(s.Threshold)
}
