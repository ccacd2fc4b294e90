package pressure

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// row is one answer to the poll: the text of each column that is not null.
type row map[string]string

// scanRow reads the only row as text. Text needs no type of the server's to be
// known, whichever way the row came.
func scanRow(rows pgx.Rows) (row, error) {
	defer rows.Close()
	r := row{}
	if rows.Next() {
		values := rows.RawValues()
		for i, f := range rows.FieldDescriptions() {
			if i < len(values) && values[i] != nil {
				r[f.Name] = string(values[i])
			}
		}
	}
	rows.Close()
	return r, rows.Err()
}

func (r row) reading(column string) Reading {
	text, ok := r[column]
	if !ok {
		return Reading{}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return Reading{}
	}
	return Read(v)
}

// instant reads a time given in seconds since 1970.
func (r row) instant(column string) time.Time {
	v := r.reading(column)
	// Beyond these the conversion would overflow, and no server is that old.
	if !v.Known || v.Value < 0 || v.Value > 1e11 {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(v.Value * 1e6)))
}

// sample makes a sample of the answer.
func (r row) sample() Sample {
	s := Sample{
		ServerTime: r.instant("server_ts"),
		Version:    int(r.reading("server_version_num").Value),
		Started:    r.instant("started"),
		StatsReset: r.instant("stats_reset"),
		Standby:    r["in_recovery"] == "t",

		WALBytes:      r.reading("wal_lsn_bytes"),
		NextXID:       r.reading("next_xid"),
		WALSyncs:      r.reading("wal_syncs"),
		WALSyncMillis: r.reading("wal_sync_ms"),

		WriteTransactions:      r.reading("write_xacts"),
		WALWaiters:             r.reading("wal_waiters"),
		SyncRepWaiters:         r.reading("syncrep_waiters"),
		LockWaiters:            r.reading("lock_waiters"),
		RelationLockWaiters:    r.reading("relation_lock_waiters"),
		LockWaitMillis:         r.reading("lock_wait_max_ms"),
		RelationLockWaitMillis: r.reading("relation_lock_wait_max_ms"),
		WriteStatementMillis:   r.reading("write_stmt_max_ms"),
		Hidden:                 int(r.reading("hidden").Value),
	}
	s.Mark = r["mark"]
	if names := r["names"]; names != "" {
		s.Names = strings.Split(names, "\n")
	}
	s.Sessions = int(r.reading("sessions").Value)
	if s.Hidden > 0 {
		r.unhide(&s)
	}
	return s
}

// unhide replaces what hidden sessions make too small: by pg_locks where it was
// read, else by nothing.
func (r row) unhide(s *Sample) {
	s.WALWaiters, s.SyncRepWaiters, s.WriteStatementMillis = Reading{}, Reading{}, Reading{}
	s.LockWaiters = r.reading("pg_locks_waiters")
	s.RelationLockWaiters = r.reading("pg_locks_relation_waiters")
	s.LockWaitMillis = r.reading("pg_locks_wait_max_ms")
	s.RelationLockWaitMillis = r.reading("pg_locks_relation_wait_max_ms")
}
