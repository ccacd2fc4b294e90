package pressure

import (
	"strings"
)

// part is a piece of the poll that a server or a role may refuse; what it reads is
// then absent and the rest of the poll goes on.
type part uint8

const (
	partWAL      part = 1 << iota // the WAL insert position
	partXID                       // the next transaction id
	partWALStats                  // WAL sync counters (14 and later)
	partSessions                  // what sessions do and wait for
	partServer                    // version and start of the server
	allParts     = partWAL | partXID | partWALStats | partSessions | partServer
)

// partNames are what the log calls the parts.
var partNames = map[part]string{
	partWAL: "WAL position", partXID: "transaction id", partWALStats: "WAL sync counters",
	partSessions: "sessions", partServer: "server version",
}

// queryKind decides the text of the poll.
type queryKind struct {
	version int  // server_version_num
	parts   part // those that work
	locks   bool // read pg_locks, because sessions are hidden from the role
	names   bool // set our application_name and read the others'
	mark    bool // leave our mark in the session and read what was there
}

// build returns the poll: one statement, so that it needs no transaction and no
// state of the session. Every reading is found by its column's name, so a column
// that is not there is an absent reading. The comment tells it from the application's
// statements in pg_stat_statements.
func (k queryKind) build() string {
	columns := []string{
		"r.rec AS in_recovery",
		"extract(epoch FROM clock_timestamp())::float8 AS server_ts",
	}
	from := []string{"(SELECT pg_is_in_recovery() AS rec) r"}
	add := func(p part, column, source string) {
		if k.parts&p == 0 {
			return
		}
		columns = append(columns, column)
		if source != "" {
			from = append(from, source)
		}
	}
	add(partServer, "current_setting('server_version_num')::int AS server_version_num,"+
		" extract(epoch FROM pg_postmaster_start_time())::float8 AS started", "")
	// A standby has no insert position; asking is an error there.
	add(partWAL, "CASE WHEN NOT r.rec THEN (pg_current_wal_insert_lsn()-'0/0'::pg_lsn)::float8 END AS wal_lsn_bytes", "")
	add(partXID, k.xid(), "")
	if column, source := k.walStats(); column != "" {
		add(partWALStats, column, source)
	}
	add(partSessions, "a.*", "("+k.sessions()+") a")
	if k.locks {
		add(partSessions, "l.*", "("+k.lockSQL()+") l")
	}
	const count = "(SELECT count(*) FROM pg_stat_get_backend_idset())::int AS sessions"
	if !k.names {
		add(partSessions, count, "")
	} else {
		columns = append(columns, "set_config('application_name', $1::text, false) AS own_name", count)
		if k.parts&partSessions == 0 {
			columns = append(columns, "n.names")
			from = append(from, "(SELECT "+namesColumn+" FROM pg_stat_get_activity(NULL) WHERE pid<>pg_backend_pid()) n")
		}
	}
	if k.mark {
		columns = append(columns, "m.mark", "set_config('pgyield.member', $3::text, false) AS own_mark")
		from = append(from, "("+markSQL+") m")
	}
	return "SELECT /* pgyield */ " + strings.Join(columns, ", ") + " FROM " + strings.Join(from, ", ")
}

func (k queryKind) xid() string {
	return "pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next_xid"
}

// walStats reads the WAL's sync counters, which moved to pg_stat_io in 18. Their
// time counts only under track_wal_io_timing; without it, it is absent, not zero.
func (k queryKind) walStats() (column, source string) {
	const timed = "CASE WHEN current_setting('track_wal_io_timing')::bool THEN "
	switch {
	case k.version >= 180000:
		return "w.wal_syncs, " + timed + "w.t END AS wal_sync_ms, extract(epoch FROM w.reset)::float8 AS stats_reset",
			"(SELECT sum(fsyncs)::float8 AS wal_syncs, sum(fsync_time) AS t, max(stats_reset) AS reset" +
				" FROM pg_stat_io WHERE object='wal' AND context='normal') w"
	case k.version >= 140000:
		return "w.wal_sync::float8 AS wal_syncs, " + timed + "w.wal_sync_time END AS wal_sync_ms," +
			" extract(epoch FROM w.stats_reset)::float8 AS stats_reset", "pg_stat_wal w"
	default:
		return "", ""
	}
}

// sessions counts what other sessions do. It reads the function below
// pg_stat_activity, which spares two joins. A session that the role may not see has
// no backend_type and no state: it must be counted, not dropped by a comparison with
// them. Idle sessions, most of many, are left out before anything is counted; nothing
// that is counted happens in one, but its name may be wanted.
func (k queryKind) sessions() string {
	columns, rows := sessionColumns, "state IS DISTINCT FROM 'idle'"
	if k.names {
		columns, rows = namesColumn+","+columns, "("+rows+" OR starts_with(application_name, $2::text))"
	}
	return "SELECT " + columns + " FROM pg_stat_get_activity(NULL) WHERE pid<>pg_backend_pid()" +
		" AND (backend_type IS NULL OR backend_type IN ('client backend','parallel worker')) AND " + rows
}

// sessionColumns are the counts. Only a statement that runs can wait for a lock or for
// the WAL, so most need no look at the state. One that waits for a virtual transaction
// is no write: it is DDL that lets old transactions end (CREATE INDEX CONCURRENTLY).
const sessionColumns = `
 count(backend_xid)::int AS write_xacts,
 count(*) FILTER (WHERE wait_event IN ('WALSync','WalSync','WALWrite','WalWrite'))::int AS wal_waiters,
 count(*) FILTER (WHERE wait_event='SyncRep')::int AS syncrep_waiters,
 count(*) FILTER (WHERE wait_event_type='Lock' AND wait_event<>'virtualxid')::int AS lock_waiters,
 count(*) FILTER (WHERE wait_event_type='Lock' AND wait_event='relation')::int AS relation_lock_waiters,
 coalesce(extract(epoch FROM clock_timestamp()-min(query_start)
  FILTER (WHERE wait_event_type='Lock' AND wait_event<>'virtualxid'))*1000,0)::float8 AS lock_wait_max_ms,
 coalesce(extract(epoch FROM clock_timestamp()-min(query_start)
  FILTER (WHERE wait_event_type='Lock' AND wait_event='relation'))*1000,0)::float8 AS relation_lock_wait_max_ms,
 coalesce(extract(epoch FROM clock_timestamp()-min(query_start)
  FILTER (WHERE state='active' AND backend_xid IS NOT NULL AND wait_event_type IS DISTINCT FROM 'Lock'))*1000,0)::float8 AS write_stmt_max_ms,
 count(*) FILTER (WHERE backend_type IS NULL AND datid IS NOT NULL)::int AS hidden`

// lockSQL counts the same waits in pg_locks, which every role sees. When a wait began
// is known from 14 on.
func (k queryKind) lockSQL() string {
	age := "NULL::float8"
	relationAge := age
	if k.version >= 140000 {
		const oldest = "coalesce(extract(epoch FROM clock_timestamp()-min(waitstart)"
		age = oldest + ")*1000,0)::float8"
		relationAge = oldest + " FILTER (WHERE locktype='relation'))*1000,0)::float8"
	}
	return "SELECT count(*)::int AS pg_locks_waiters," +
		" count(*) FILTER (WHERE locktype='relation')::int AS pg_locks_relation_waiters, " +
		age + " AS pg_locks_wait_max_ms, " + relationAge + " AS pg_locks_relation_wait_max_ms" +
		" FROM pg_locks WHERE NOT granted AND locktype<>'virtualxid'"
}

// namesColumn reads the names of other sessions that begin with $2, at most so many that a
// crowd of them cannot make the answer large. It goes with the counts of sessions where
// those are read: to look at all sessions once more is half of what a poll costs.
const namesColumn = `array_to_string((array_agg(application_name)
 FILTER (WHERE starts_with(application_name, $2::text)))[1:2000], E'\n') AS names`

// markSQL reads the mark that was left in the session. OFFSET keeps it a query of its own,
// whose row is there before the new mark is set.
const markSQL = `SELECT current_setting('pgyield.member', true) AS mark OFFSET 0`

// probeSQL asks for one part alone, to find out which of them is refused.
func (k queryKind) probeSQL(p part) string {
	k.parts, k.names, k.mark = p, false, false
	return k.build()
}
