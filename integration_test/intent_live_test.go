package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/internal/statements"
)

// traces is what a statement may leave behind in its transaction and session.
// READ ONLY alone would not show most of it.
const traces = `select
	coalesce(pg_current_xact_id_if_assigned()::text, 'none'),
	(select coalesce(string_agg(format('%s %s', locktype, mode), ', '), 'none') from pg_locks
		where pid = pg_backend_pid() and (locktype in ('advisory', 'tuple', 'transactionid', 'object', 'page', 'extend')
			or locktype = 'relation' and mode not in ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock'))),
	(select coalesce(string_agg(schemaname || '.' || sequencename || ' ' || coalesce(last_value, 0), ', '), 'none') from pg_sequences),
	(select md5(string_agg(name || '=' || coalesce(setting, ''), ',' order by name)) from pg_settings
		where name not in ('transaction_isolation')),
	(select count(*) from pg_largeobject_metadata)::text,
	(select coalesce(string_agg(c, ','), 'none') from pg_listening_channels() c),
	(select count(*) from pg_prepared_statements)::text,
	(select count(*) from pg_cursors where name <> '')::text`

var traceNames = [...]string{
	"transaction id", "locks", "sequences", "settings", "large objects", "channels", "prepared statements", "cursors",
}

// changes runs a text on its own in a transaction and returns what it changed.
// An error is the server's on the text.
func changes(t *testing.T, conn *pgx.Conn, sql string) (changed []string, err error) {
	t.Helper()
	ctx := context.Background()
	if _, err := conn.Exec(ctx, "begin"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := conn.Exec(ctx, "rollback; select pg_advisory_unlock_all(); reset all"); err != nil {
			t.Fatal(err)
		}
	}()
	before := look(t, conn)
	if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		return nil, err
	}
	after := look(t, conn)
	for i, name := range traceNames {
		if before[i] != after[i] {
			changed = append(changed, fmt.Sprintf("%s: %s, before %s", name, after[i], before[i]))
		}
	}
	return changed, nil
}

func look(t *testing.T, conn *pgx.Conn) (seen [len(traceNames)]string) {
	t.Helper()
	into := make([]any, len(seen))
	for i := range seen {
		into[i] = &seen[i]
	}
	// The simple protocol keeps pgx from preparing it, which would be a trace.
	if err := conn.QueryRow(context.Background(), traces, pgx.QueryExecModeSimpleProtocol).Scan(into...); err != nil {
		t.Fatal(err)
	}
	return seen
}

func sqlTable(t testing.TB) []statements.Statement {
	t.Helper()
	all, err := statements.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestReadsChangeNothing runs every read of the table.
func TestReadsChangeNothing(t *testing.T) {
	t.Run("shared", func(t *testing.T) { readsChangeNothing(t, newDatabase(t)) })
	for _, version := range postgresVersions {
		t.Run(version, func(t *testing.T) { readsChangeNothing(t, versionServer(t, version).Database(t)) })
	}
}

func readsChangeNothing(t *testing.T, dsn string) {
	conn := connectTo(t, dsn)
	if _, err := conn.Exec(context.Background(), statements.Schema); err != nil {
		t.Fatal(err)
	}
	var version int
	if err := conn.QueryRow(context.Background(), "select current_setting('server_version_num')::int / 10000").Scan(&version); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, s := range sqlTable(t) {
		if s.Intent == "write" && !s.Dubious || s.NoServer || s.Since > version {
			continue
		}
		changed, err := changes(t, conn, s.SQL)
		switch {
		case err != nil && s.Dubious:
		case err != nil:
			t.Errorf("line %d: %v\n%s", s.Line, err, s.SQL)
		case len(changed) > 0:
			t.Errorf("line %d: a read changed %s\n%s", s.Line, strings.Join(changed, "; "), s.SQL)
		default:
			ran++
		}
	}
	t.Logf("PostgreSQL %d: %d reads ran and left no trace", version, ran)
	if ran < 250 {
		t.Errorf("only %d reads ran", ran)
	}
}

// TestTracesShow proves that the look sees what it looks for.
func TestTracesShow(t *testing.T) {
	conn := connectTo(t, newDatabase(t))
	if _, err := conn.Exec(context.Background(), statements.Schema); err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]string{
		"insert into t (id) values (1000)":                                "transaction id",
		"select * from t where id = 1 for update":                         "transaction id",
		"select * from t where id = 1 for key share":                      "transaction id",
		"select txid_current()":                                           "transaction id",
		"explain select * from t where a = txid_current()":                "transaction id",
		"select app.charge(1000)":                                         "transaction id",
		"select pg_advisory_lock(1)":                                      "locks",
		"select pg_try_advisory_xact_lock(1)":                             "locks",
		"lock table t in share mode":                                      "locks",
		"select nextval('s')":                                             "sequences",
		"select set_config('work_mem', '1MB', true)":                      "settings",
		"set local work_mem = '1MB'":                                      "settings",
		"select lo_create(0)":                                             "large objects",
		"prepare p as select 1; select 1":                                 "prepared statements",
		"declare c cursor for select 1":                                   "cursors",
		"prepare q(bigint) as select $1; explain execute q(nextval('s'))": "sequences",
	} {
		changed, err := changes(t, conn, sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
		}
		if !strings.Contains(strings.Join(changed, ";")+":", want+":") {
			t.Errorf("%s: saw %v, want %s", sql, changed, want)
		}
	}
}
