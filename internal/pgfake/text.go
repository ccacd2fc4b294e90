package pgfake

import (
	"fmt"
	"slices"
	"strings"
)

// scan calls visit with the index of every byte of sql that is outside quotes,
// comments and parentheses (the closing one counts as inside), until visit
// returns false. It knows enough of SQL for a test's statements.
func scan(sql string, visit func(i int) bool) {
	depth := 0
	for i := 0; i < len(sql); i++ {
		switch c := sql[i]; {
		case c == '\'' || c == '"':
			end := strings.IndexByte(sql[i+1:], c)
			if depth == 0 && !visit(i) {
				return
			}
			if end < 0 {
				return
			}
			i += end + 1
		case c == '-' && strings.HasPrefix(sql[i:], "--"):
			end := strings.IndexByte(sql[i:], '\n')
			if end < 0 {
				return
			}
			i += end
		case c == '/' && strings.HasPrefix(sql[i:], "/*"):
			end := strings.Index(sql[i:], "*/")
			if end < 0 {
				return
			}
			i += end + 1
		case c == '(':
			if depth == 0 && !visit(i) {
				return
			}
			depth++
		case c == ')':
			depth--
		case depth == 0:
			if !visit(i) {
				return
			}
		}
	}
}

// withoutComments replaces each comment by a space.
func withoutComments(sql string) string {
	if !strings.Contains(sql, "--") && !strings.Contains(sql, "/*") {
		return sql
	}
	var out strings.Builder
	for i := 0; i < len(sql); i++ {
		var length int
		open := sql[i:]
		switch {
		case sql[i] == '\'' || sql[i] == '"':
			length = strings.IndexByte(open[1:], sql[i]) + 2
			if length < 2 {
				length = len(open)
			}
			out.WriteString(open[:length])
			i += length - 1
			continue
		case strings.HasPrefix(open, "--"):
			length = strings.IndexByte(open, '\n') + 1
		case strings.HasPrefix(open, "/*"):
			length = strings.Index(open, "*/") + 2
		default:
			out.WriteByte(sql[i])
			continue
		}
		if length < 2 && open[0] != '-' || length < 1 {
			return out.String()
		}
		out.WriteByte(' ')
		i += length - 1
	}
	return out.String()
}

// split cuts sql at the top-level sep.
func split(sql string, sep byte) []string {
	var parts []string
	start := 0
	scan(sql, func(i int) bool {
		if sql[i] == sep {
			parts = append(parts, sql[start:i])
			start = i + 1
		}
		return true
	})
	return append(parts, sql[start:])
}

// splitStatements is the statements of a message, without the empty ones.
func splitStatements(text string) []string {
	var statements []string
	for _, part := range split(text, ';') {
		if word(part, 0) != "" || strings.HasPrefix(strings.TrimSpace(part), "(") {
			statements = append(statements, strings.TrimSpace(part))
		}
	}
	return statements
}

// words calls visit with each top-level word, in upper case, and its place.
func words(sql string, visit func(w string, start, end int) bool) {
	start, last := -1, -2
	emit := func() bool {
		if start < 0 {
			return true
		}
		w, from := strings.ToUpper(sql[start:last+1]), start
		start = -1
		return visit(w, from, last+1)
	}
	more := true
	scan(sql, func(i int) bool {
		isWord := isWordByte(sql[i])
		if start >= 0 && (!isWord || i != last+1) {
			if more = emit(); !more {
				return false
			}
		}
		if isWord {
			if start < 0 {
				start = i
			}
			last = i
		}
		return true
	})
	if more {
		emit()
	}
}

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c == '.' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// word is the n-th top-level word of sql in upper case, or empty.
func word(sql string, n int) string {
	found := ""
	words(sql, func(w string, _, _ int) bool {
		if n == 0 {
			found = w
			return false
		}
		n--
		return true
	})
	return found
}

// after is what follows the first top-level word w, and whether there is one.
func after(sql, w string) (string, bool) {
	at := -1
	words(sql, func(found string, _, end int) bool {
		if found == w {
			at = end
			return false
		}
		return true
	})
	if at < 0 {
		return "", false
	}
	return sql[at:], true
}

// before is what stands before the first top-level word of the given ones.
func before(sql string, stops ...string) string {
	at := len(sql)
	words(sql, func(found string, start, _ int) bool {
		if slices.Contains(stops, found) {
			at = start
			return false
		}
		return true
	})
	return sql[:at]
}

func endsTransaction(sql string) bool {
	switch word(sql, 0) {
	case "COMMIT", "END", "ROLLBACK", "ABORT":
		return true
	}
	return false
}

// nextStatus is the transaction status after sql succeeded.
func nextStatus(sql string, status byte) byte {
	switch word(sql, 0) {
	case "BEGIN", "START":
		return 'T'
	case "COMMIT", "END", "ABORT":
		return 'I'
	case "ROLLBACK":
		if word(sql, 1) == "TO" || word(sql, 2) == "TO" {
			return 'T'
		}
		return 'I'
	}
	return status
}

// commandTag is what a server says when sql succeeded with so many rows.
func commandTag(sql string, rows int64, status byte) string {
	first := word(sql, 0)
	switch first {
	case "SELECT", "VALUES", "TABLE", "WITH", "":
		return fmt.Sprintf("SELECT %d", rows)
	case "INSERT":
		return fmt.Sprintf("INSERT 0 %d", max(rows, 1))
	case "UPDATE", "DELETE", "MERGE":
		return fmt.Sprintf("%s %d", first, max(rows, 1))
	case "COPY", "FETCH":
		return fmt.Sprintf("%s %d", first, rows)
	case "COMMIT", "END":
		if status == 'E' {
			return "ROLLBACK"
		}
		return "COMMIT"
	case "ABORT":
		return "ROLLBACK"
	case "START":
		return "START TRANSACTION"
	case "CREATE", "DROP", "ALTER":
		return first + " " + word(sql, 1)
	}
	return first
}
