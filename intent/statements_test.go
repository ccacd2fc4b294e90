package intent

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
)

// statement is a line of testdata/statements.txt.
type statement struct {
	line  int
	sql   string
	class Class
	flags string // "?", "~", "@16" or none
}

// statements reads the table.
func statements(t testing.TB) []statement {
	t.Helper()
	file, err := os.Open("testdata/statements.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []statement
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		head, sql, ok := strings.Cut(lines.Text(), "\t")
		if strings.HasPrefix(head, "#") {
			continue
		}
		if !ok {
			t.Fatalf("line %d has no tab", n)
		}
		s := statement{line: n, sql: sql}
		if len(sql) > 1 && sql[0] == '"' && strings.HasSuffix(sql, `"`) {
			if s.sql, err = strconv.Unquote(sql); err != nil {
				t.Fatalf("line %d: %v", n, err)
			}
		}
		name := strings.TrimRight(head, "?~@0123456789")
		s.flags = head[len(name):]
		switch name {
		case "trivial":
			s.class.Intent = Trivial
		case "read":
			s.class.Intent = Read
		case "write":
		case "dml":
			s.class.DML = true
		default:
			t.Fatalf("line %d: class %q", n, name)
		}
		all = append(all, s)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestStatements(t *testing.T) {
	all := statements(t)
	if len(all) < 600 {
		t.Fatalf("only %d statements: is the table whole?", len(all))
	}
	c, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if got := c.Classify(s.sql); got != s.class {
			t.Errorf("line %d: %+v, want %+v (%s)\n%s", s.line, got, s.class, c.Explain(s.sql).Reason, s.sql)
		}
		if got := Of(s.sql); got != s.class.Intent {
			t.Errorf("line %d: Of says %v, want %v", s.line, got, s.class.Intent)
		}
	}
}
