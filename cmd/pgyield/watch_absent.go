package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/pressure"
)

// notYet is why a signal is absent that will come by itself.
const notYet = "not judged yet: it takes five writes, two seconds or more apart from the first sample"

// absences says of each signal that a verdict lacks why it does.
func absences(v pressure.Verdict, s pressure.Sample, stat pressure.Stat) map[string]string {
	why := map[string]string{}
	for _, name := range pressure.SignalNames() {
		if _, there := v.Signal(name); !there {
			why[name] = absence(name, s, stat)
		}
	}
	return why
}

func absence(name string, s pressure.Sample, stat pressure.Stat) string {
	standsIn := name == pressure.WALWait || name == pressure.WriteStatement
	switch {
	case name == pressure.OwnWrites:
		return "a pool measures its own writes; this command makes none"
	case s.Standby:
		return "a standby takes no writes"
	case standsIn && s.WALSyncMillis.Known:
		return "not looked at: it stands in where wal_sync is missing"
	case slices.Contains(stat.BlindSignals, name):
		return "blind: other roles' sessions are hidden from this one; to see them: GRANT pg_monitor TO " +
			pgx.Identifier{stat.Role}.Sanitize()
	case name == pressure.WALSync && s.Version < 140000 && s.Version != 0:
		return fmt.Sprintf("PostgreSQL %d does not count WAL syncs: wal_wait and write_statement stand in", s.Version/10000)
	case len(stat.Refused) > 0 && !readable(name, s):
		return "the server refuses a part of the poll: " + strings.Join(stat.Refused, ", ")
	case name == pressure.WALSync && !s.WALSyncMillis.Known:
		return "track_wal_io_timing is off: set it to on, for no other signal of the server tells suffering as well"
	default:
		return notYet
	}
}

// readable is true when the sample has what a signal is made of.
func readable(name string, s pressure.Sample) bool {
	switch name {
	case pressure.WALSync:
		return s.WALSyncs.Known && s.NextXID.Known
	case pressure.WALWait:
		return s.WALWaiters.Known && s.NextXID.Known
	case pressure.WriteStatement:
		return s.WriteStatementMillis.Known && s.NextXID.Known
	case pressure.LockWait:
		return s.LockWaiters.Known && s.NextXID.Known
	default:
		return s.RelationLockWaitMillis.Known
	}
}
