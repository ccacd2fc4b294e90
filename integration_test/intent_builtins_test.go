package integration_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/pgyield/pgyield/intent"
)

// harmlessVolatile are built-in functions that a server declares volatile and
// that write nothing: they only differ from call to call. Functions that no
// statement can call (of triggers, handlers, index support) are not looked at.
var harmlessVolatile = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`random|random_normal|array_sample|array_shuffle|gen_random_uuid|uuidv[47]`,
	`clock_timestamp|timeofday|timezone|currval|lastval|current_query|currtid2?`,
	`pg_sleep(?:_for|_until)?|bernoulli|system|amvalidate`,
	`pg_(?:database|relation|table|indexes|tablespace|total_relation)_size`,
	`pg_ls_.*|pg_stat_file|pg_read_(?:binary_)?file(?:_old)?|pg_current_logfile`,
	`pg_current_wal_.*|pg_last_.*|pg_(?:is|get)_wal_.*|pg_is_in_(?:recovery|backup)|pg_wal_summary_contents|pg_available_wal_summaries`,
	`pg_control_.*|pg_hba_file_rules|pg_ident_file_mappings|pg_show_.*|pg_lock_status|pg_jit_available`,
	`pg_(?:database_)?collation_actual_version|pg_notification_queue_usage|pg_prepared_xact`,
	`pg_(?:safe_snapshot_)?blocking_pids|pg_isolation_test_session_is_blocked`,
	`pg_partition_(?:tree|ancestors)|pg_sequence_last_value|pg_xact_.*|txid_status`,
	`pg_replication_origin_(?:progress|session_is_setup|session_progress)`,
	// They decode, and leave the slot where it is.
	`pg_logical_slot_peek_.*`,
	`pg_stat_get_.*|pg_stat_have_stats`,
	`pg_get_(?:backend_memory_contexts|shmem_allocations|shmem_allocations_numa|multixact_members|wait_events|aios|loaded_modules|sequence_data)`,
}, "|") + `)$`)

// TestVolatileBuiltins asks every version for the functions that it declares
// volatile: each is known to write, or known not to. A new version's show here.
func TestVolatileBuiltins(t *testing.T) {
	t.Run("shared", func(t *testing.T) { volatileBuiltins(t, serverDSN(t)) })
	for _, version := range postgresVersions {
		t.Run(version, func(t *testing.T) { volatileBuiltins(t, versionDSN(t, version)) })
	}
}

func volatileBuiltins(t *testing.T, dsn string) {
	rows, err := connectTo(t, dsn).Query(context.Background(), `select distinct proname from pg_proc
		where oid < 16384 and provolatile = 'v' and prokind <> 'p' and not 'internal'::regtype = any (proargtypes::oid[])
		and prorettype not in (select oid from pg_type where typname in ('trigger', 'event_trigger', 'internal') or typname like '%handler')
		and proname not like 'plpgsql%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	writers, harmless := 0, 0
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		isWrite := intent.Of("select "+name+"()") == intent.Write
		switch {
		case isWrite && harmlessVolatile.MatchString(name):
			t.Errorf("%s writes nothing and is called a write", name)
		case isWrite:
			writers++
		case harmlessVolatile.MatchString(name):
			harmless++
		default:
			t.Errorf("%s is volatile: is it a write?", name)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d writers, %d harmless", writers, harmless)
	if writers < 80 || harmless < 50 {
		t.Errorf("%d writers and %d harmless functions: the query is blunt", writers, harmless)
	}
}
