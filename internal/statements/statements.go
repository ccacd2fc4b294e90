// Package statements is a table of SQL statements and what they do, for the
// tests of everything that tells reads from writes. The trap: a line that no
// server runs proves nothing, so the reads are run too (see Schema).
package statements

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// Statement is one line of the table.
type Statement struct {
	Line int // in statements.txt
	SQL  string
	// Intent is "trivial", "read" or "write".
	Intent string
	DML    bool
	// Dubious marks a read that is called a write, knowingly.
	Dubious bool
	// NoServer marks a read that no server runs as it stands.
	NoServer bool
	// Since is the first major version that runs it, or 0.
	Since int
}

//go:embed statements.txt
var table string

// Schema makes, in an empty database, what the reads name.
//
//go:embed schema.sql
var Schema string

// All returns the table. An error names the line that is malformed.
func All() ([]Statement, error) {
	var all []Statement
	for i, line := range strings.Split(strings.TrimSuffix(table, "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		s, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("statements.txt:%d: %w", i+1, err)
		}
		s.Line = i + 1
		all = append(all, s)
	}
	return all, nil
}

func parse(line string) (Statement, error) {
	head, sql, ok := strings.Cut(line, "\t")
	if !ok {
		return Statement{}, fmt.Errorf("no tab in %q", line)
	}
	s := Statement{SQL: sql}
	if len(sql) > 1 && sql[0] == '"' && strings.HasSuffix(sql, `"`) {
		var err error
		if s.SQL, err = strconv.Unquote(sql); err != nil {
			return Statement{}, fmt.Errorf("%s: %w", sql, err)
		}
	}
	name, since, versioned := strings.Cut(head, "@")
	if versioned {
		var err error
		if s.Since, err = strconv.Atoi(since); err != nil {
			return Statement{}, err
		}
	}
	name, s.Dubious = strings.CutSuffix(name, "~")
	name, s.NoServer = strings.CutSuffix(name, "?")
	switch name {
	case "trivial", "read", "write":
		s.Intent = name
	case "dml":
		s.Intent, s.DML = "write", true
	default:
		return Statement{}, fmt.Errorf("class %q", head)
	}
	return s, nil
}
