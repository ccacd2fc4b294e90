// Package oracle judges SQL by PostgreSQL's own grammar, to hold package intent
// to it. It shares nothing with intent but the definition of a read: it looks at
// the parse tree, where a keyword that is a column's name is no keyword.
package oracle

import (
	"fmt"
	"regexp"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Verdict is what a text is by its parse tree.
type Verdict struct {
	// Write is set when a statement of it writes, locks, holds something or is not
	// of a kind that may be a read, or when it has no statement.
	Write bool
	// DML is set when the first such statement changes rows.
	DML bool
	// Trivial is set for a read that names no table, calls no function and holds
	// no subquery.
	Trivial bool
	// Why says what made it a write.
	Why string
}

// Judge parses a text with the grammar of PostgreSQL 17. An error is a parse
// error: such a text is not judged. A text with a NUL is not either, for what the
// parser sees of it ends there.
func Judge(sql string) (Verdict, error) {
	if strings.IndexByte(sql, 0) >= 0 {
		return Verdict{}, fmt.Errorf("oracle: a NUL at byte %d", strings.IndexByte(sql, 0))
	}
	tree, err := pg.Parse(sql)
	if err != nil {
		return Verdict{}, err
	}
	if len(tree.Stmts) == 0 {
		return Verdict{Write: true, Why: "no statement"}, nil
	}
	all := Verdict{Trivial: true}
	for _, raw := range tree.Stmts {
		one := statement(raw.Stmt)
		if one.Write {
			return one, nil
		}
		all.Trivial = all.Trivial && one.Trivial
	}
	return all, nil
}

func statement(node *pg.Node) Verdict {
	switch n := node.GetNode().(type) {
	case *pg.Node_SelectStmt:
		w := walker{trivial: true}
		w.visit(n.SelectStmt.ProtoReflect())
		return w.verdict()
	case *pg.Node_VariableShowStmt:
		return Verdict{Trivial: true}
	case *pg.Node_ExplainStmt:
		return explain(n.ExplainStmt)
	case *pg.Node_InsertStmt, *pg.Node_UpdateStmt, *pg.Node_DeleteStmt, *pg.Node_MergeStmt:
		return Verdict{Write: true, DML: true, Why: "changes rows"}
	case *pg.Node_CopyStmt:
		return Verdict{Write: true, DML: n.CopyStmt.IsFrom, Why: "COPY"}
	default:
		return Verdict{Write: true, Why: fmt.Sprintf("%T", n)}
	}
}

// explain judges by what runs. Without ANALYZE the statement is planned, and the
// planner calls functions that are not volatile.
func explain(stmt *pg.ExplainStmt) Verdict {
	if analyzes(stmt.Options) {
		inner := statement(stmt.Query)
		inner.Trivial = false
		return inner
	}
	if stmt.Query.GetExecuteStmt() != nil {
		return Verdict{Write: true, Why: "EXPLAIN EXECUTE evaluates its arguments"}
	}
	w := walker{planOnly: true}
	w.visit(stmt.Query.ProtoReflect())
	return w.verdict()
}

// analyzes follows the server: the last ANALYZE counts, and its value is a
// boolean that is true when it is left out.
func analyzes(options []*pg.Node) bool {
	on := false
	for _, option := range options {
		element := option.GetDefElem()
		if element.GetDefname() != "analyze" {
			continue
		}
		switch value := element.GetArg(); {
		case value == nil:
			on = true
		case value.GetInteger() != nil:
			on = value.GetInteger().GetIval() != 0
		default:
			text := strings.ToLower(value.GetString_().GetSval())
			on = text != "false" && text != "off"
		}
	}
	return on
}

// walker looks for what writes anywhere below a node.
type walker struct {
	planOnly bool
	trivial  bool
	dml      bool
	depth    int
	why      string
}

func (w *walker) verdict() Verdict {
	return Verdict{Write: w.why != "", DML: w.dml, Trivial: w.trivial && w.why == "", Why: w.why}
}

func (w *walker) writesf(format string, args ...any) {
	if w.why == "" {
		w.why = fmt.Sprintf(format, args...)
	}
}

func (w *walker) visit(m protoreflect.Message) {
	switch n := m.Interface().(type) {
	case *pg.FuncCall:
		name := lastName(n.Funcname)
		if !syntax(n, name) {
			w.trivial = false
		}
		if writer(name, w.planOnly) {
			w.writesf("calls %s", name)
		}
	case *pg.SelectStmt:
		if w.depth > 0 {
			w.trivial = false
		}
		w.depth++
		defer func() { w.depth-- }()
	case *pg.RangeVar, *pg.SubLink, *pg.RangeFunction, *pg.WithClause:
		w.trivial = false
	}
	if !w.planOnly {
		switch n := m.Interface().(type) {
		case *pg.IntoClause:
			w.writesf("INTO")
		case *pg.LockingClause:
			w.writesf("locks rows: %v", n.Strength)
		case *pg.InsertStmt, *pg.UpdateStmt, *pg.DeleteStmt, *pg.MergeStmt:
			w.dml = true
			w.writesf("changes rows")
		}
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for list, i := value.List(), 0; i < list.Len(); i++ {
				w.visit(list.Get(i).Message())
			}
		default:
			w.visit(value.Message())
		}
		return true
	})
}

// syntax is true for calls that are not spelled as such: AT TIME ZONE, LIKE with
// ESCAPE and their kin.
func syntax(call *pg.FuncCall, name string) bool {
	return call.Funcformat == pg.CoercionForm_COERCE_SQL_SYNTAX || name == "like_escape" || name == "similar_to_escape"
}

func lastName(names []*pg.Node) string {
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1].GetString_().GetSval()
}

// The writing functions once more, as expressions: written down apart from
// intent's list so that a slip in one of them shows.
var (
	volatileWriter = regexp.MustCompile(`^(?:` + strings.Join([]string{
		`(?:next|set)val`, `set_config|setseed|set_limit`, `lo_.*|loread|lowrite`,
		`pg_(?:try_)?advisory_.*`, `pg_notify`,
		`pg_export_snapshot|pg_nextoid|pg_extension_config_dump|pg_stop_making_pinned_objects`,
		`pg_stat_(?:clear_snapshot|force_next_flush|reset.*|statements_reset)`,
		`pg_logical_emit_message|pg_logical_slot_get_.*`,
		`pg_switch_wal|pg_promote|pg_reload_conf|pg_rotate_logfile.*`,
		`pg_(?:create_restore_point|backup_start|backup_stop|start_backup|stop_backup)`,
		`pg_(?:cancel|terminate)_backend|pg_log_backend_memory_contexts|pg_log_standby_snapshot`,
		`pg_wal_replay_(?:pause|resume)|pg_import_system_collations`,
		`pg_(?:create|copy|drop)_.*_slot|pg_replication_slot_advance|pg_sync_replication_slots`,
		`pg_replication_origin_(?:create|drop|advance|session_setup|session_reset|xact_setup|xact_reset)`,
		`brin_(?:de)?summarize_.*|gin_clean_pending_list`,
		`(?:query|cursor)_to_xml.*`, `ts_stat|ts_rewrite`, `binary_upgrade_.*`, `dblink.*`,
		`pg_prewarm|autoprewarm_.*|pg_truncate_visibility_map|heap_force_.*`,
		`postgres_fdw_disconnect.*|pg_file_.*|pg_buffercache_evict.*`,
		`pg_(?:set|clear|restore)_.*_stats`,
	}, "|") + `)$`)
	plannedWriter = regexp.MustCompile(`^(?:txid_current|pg_current_xact_id|crosstab.*|connectby|xpath_table)$`)
)

func writer(name string, planOnly bool) bool {
	return plannedWriter.MatchString(name) || !planOnly && volatileWriter.MatchString(name)
}
