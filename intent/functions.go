package intent

import (
	"strings"
	"unicode/utf8"
)

// maxName is how many bytes of a name PostgreSQL keeps (NAMEDATALEN - 1).
const maxName = 63

// The built-in and contrib functions that write, take a lock or a slot, assign a
// transaction id, move a sequence, change the session or run SQL that they are
// given: facts of PostgreSQL 13 to 18.
const volatileWriters = `
	nextval setval
	loread lowrite
	pg_notify
	set_config setseed pg_export_snapshot pg_stat_clear_snapshot pg_stat_force_next_flush
	pg_extension_config_dump pg_nextoid pg_stop_making_pinned_objects
	pg_logical_emit_message pg_switch_wal pg_create_restore_point
	pg_backup_start pg_backup_stop pg_start_backup pg_stop_backup pg_promote pg_reload_conf
	pg_cancel_backend pg_terminate_backend pg_log_backend_memory_contexts
	pg_wal_replay_pause pg_wal_replay_resume pg_import_system_collations
	pg_replication_slot_advance pg_log_standby_snapshot pg_sync_replication_slots
	gin_clean_pending_list ts_stat ts_rewrite
	pg_prewarm pg_stat_statements_reset pg_truncate_visibility_map set_limit`

// plannedWriters are not declared volatile, so the planner calls them: with them
// even an EXPLAIN that runs nothing writes.
const plannedWriters = `txid_current pg_current_xact_id connectby xpath_table`

// writerPatterns are families: a * stands for any characters.
const writerPatterns = `
	pg_advisory_* pg_try_advisory_* lo_* pg_rotate_logfile*
	pg_create_*_slot pg_copy_*_slot pg_drop_*_slot pg_logical_slot_get_*
	pg_replication_origin_* pg_stat_reset* brin_summarize_* brin_desummarize_*
	query_to_xml* cursor_to_xml* binary_upgrade_*
	dblink* autoprewarm_* heap_force_* postgres_fdw_disconnect* pg_file_* pg_buffercache_evict*
	pg_set_*_stats pg_clear_*_stats pg_restore_*_stats`

const plannedPatterns = `crosstab*`

// harmless are members of those families that only read.
const harmless = `
	pg_replication_origin_oid pg_replication_origin_progress
	pg_replication_origin_session_is_setup pg_replication_origin_session_progress`

// pattern is a family of names with a reason.
type pattern struct {
	prefix, suffix string
	why            reason
}

func (p pattern) matches(name []byte) bool {
	tail := len(name) - len(p.suffix)
	return tail >= len(p.prefix) && string(name[:len(p.prefix)]) == p.prefix && string(name[tail:]) == p.suffix
}

// lengths holds, by initials, a bit for each length that a name has. Most calls
// are told from every known name by it.
type lengths [1024]uint64

func (l *lengths) add(name string) { l[initials(name)] |= 1 << len(name) }

// catalogue is the built-in part of the functions: names, and families by their
// first two letters.
type catalogue struct {
	names    map[string]reason
	families map[uint16][]pattern
	lengths  lengths
}

var builtins = newCatalogue()

func newCatalogue() *catalogue {
	c := &catalogue{names: map[string]reason{}, families: map[uint16][]pattern{}}
	for list, why := range map[string]reason{volatileWriters: builtinVolatile, plannedWriters: builtinPlanned, harmless: 0} {
		for name := range strings.FieldsSeq(list) {
			c.names[name] = why
			c.lengths.add(name)
		}
	}
	for list, why := range map[string]reason{writerPatterns: builtinVolatile, plannedPatterns: builtinPlanned} {
		for text := range strings.FieldsSeq(list) {
			prefix, suffix, _ := strings.Cut(text, "*")
			i := initials(prefix)
			c.families[i] = append(c.families[i], pattern{prefix, suffix, why})
			c.lengths[i] |= ^uint64(0) << (len(prefix) + len(suffix))
		}
	}
	return c
}

// initials is a number from the first two letters of a name, whatever their case.
func initials[T string | []byte](name T) uint16 {
	if len(name) < 2 {
		return 0
	}
	return uint16(name[0]&31)<<5 | uint16(name[1]&31)
}

// call returns why a built-in function of that folded name writes, or none.
func (c *catalogue) call(name []byte) reason {
	if why, ok := c.names[string(name)]; ok {
		return why
	}
	for _, p := range c.families[initials(name)] {
		if p.matches(name) {
			return p.why
		}
	}
	return none
}

// functions is everything known about names. It is immutable; the zero value
// knows the built-in ones.
type functions struct {
	// named holds what was registered or learned; none is a reading function.
	named   map[string]reason
	lengths lengths
}

// call returns why a call of the function with this name, as it stands in the
// text, writes; none when it does not, or nothing is known of it.
func (f *functions) call(text string, isQuoted bool) reason {
	if isQuoted {
		return f.callQuoted(text)
	}
	i := initials(text)
	if len(text) <= maxName && (builtins.lengths[i]|f.lengths[i])>>len(text)&1 == 0 {
		return none
	}
	var buffer [maxName]byte
	n := copy(buffer[:], clip(text))
	for j, b := range buffer[:n] {
		if b >= 'A' && b <= 'Z' {
			buffer[j] = b | 0x20
		}
	}
	return f.lookUp(buffer[:n])
}

// callQuoted is call for a name in quotes: doubled quotes inside are one.
func (f *functions) callQuoted(text string) reason {
	var buffer [maxName + utf8.UTFMax]byte
	n := 0
	for j := 1; j < len(text)-1 && n < len(buffer); j++ {
		buffer[n] = text[j]
		n++
		if text[j] == '"' {
			j++
		}
	}
	return f.lookUp(clip(buffer[:n]))
}

func (f *functions) lookUp(name []byte) reason {
	if f.named != nil {
		if why, ok := f.named[string(name)]; ok {
			return why
		}
	}
	return builtins.call(name)
}

// clip cuts a name where PostgreSQL does: at 63 bytes, but not inside a character.
func clip[T string | []byte](name T) T {
	if len(name) <= maxName {
		return name
	}
	n := maxName
	for n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n]
}

// name sets the names of f, which must not be in use.
func (f *functions) name(named map[string]reason) {
	f.named = named
	for name := range named {
		f.lengths.add(name)
	}
}
