package intent

import (
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	c, err := New(Options{WritingFunctions: []string{"charge"}})
	if err != nil {
		t.Fatal(err)
	}
	c.Learn([]string{"log_visit"})
	tests := []struct {
		sql          string
		want         Intent
		reason       string
		offset       int
		line, column int
	}{
		{"select 1", Trivial, "reads no table and calls no function", 0, 1, 1},
		{"select 1; select * from t", Read, "reads only", 10, 1, 11},
		{"show all", Trivial, "shows a setting", 0, 1, 1},
		{"explain delete from t", Read, "plans its statement and does not run it", 0, 1, 1},
		{"explain analyze select 1", Read, "reads only", 16, 1, 17},
		{"select 1;\n\tdelete from t", Write, "DELETE changes rows", 11, 2, 2},
		{"select 'é' into x", Write, "INTO may create a table", 12, 1, 12},
		{"select 1\nfor\nshare", Write, "FOR SHARE locks rows", 13, 3, 1},
		{"with x as (insert into t values (1)) select 1", Write, "INSERT changes rows", 11, 1, 12},
		{"select NextVal('s')", Write, "calls NextVal, a built-in function that writes or holds something", 7, 1, 8},
		{`select app."charge"(1)`, Write, `calls "charge", registered as a writing function`, 11, 1, 12},
		{"select log_visit(1)", Write, "calls log_visit, which the database declares volatile", 7, 1, 8},
		{"vacuum", Write, "VACUUM is not the start of a read", 0, 1, 1},
		{"'my secret'", Write, "a statement starts with a word", 0, 1, 1},
		{"  ", Write, "holds no statement", 0, 1, 1},
		{"explain", Write, "a statement starts with a word", 7, 1, 8},
		{"explain execute p", Write, "EXECUTE is not the start of a read", 8, 1, 9},
		{"select 1;\n 'x', 1; select 2", Write, "a statement starts with a word", 11, 2, 2},
		{"select 'a\x00'", Write, "holds a NUL byte", 9, 1, 10},
		{"select {", Write, `"{" is no part of SQL that every server reads alike`, 7, 1, 8},
		{"select 'a", Write, "the string does not end", 7, 1, 8},
		{`select 'a\'`, Write, "where the string ends depends on standard_conforming_strings", 9, 1, 10},
		{"select E'é\\''", Write, "where the string ends depends on client_encoding", 11, 1, 11},
		{"select /* a", Write, "the comment does not end", 7, 1, 8},
		{`select "a`, Write, "the quoted name does not end", 7, 1, 8},
		{`select ""`, Write, "the quoted name is empty", 7, 1, 8},
		{`select U&"a"`, Write, "a name with Unicode escapes may be any name", 7, 1, 8},
		{"select 1a", Write, "servers disagree on where this number ends", 7, 1, 8},
		{"select (1", Write, "parentheses do not match", 9, 1, 10},
	}
	for _, test := range tests {
		got := c.Explain(test.sql)
		want := Verdict{Intent: test.want, DML: got.DML, Reason: test.reason, Offset: test.offset, Line: test.line, Column: test.column}
		if got != want {
			t.Errorf("%q:\n got %+v\nwant %+v", test.sql, got, want)
		}
		if class := c.Classify(test.sql); class != (Class{got.Intent, got.DML}) {
			t.Errorf("%q: Classify says %+v, Explain %+v", test.sql, class, got)
		}
	}
}

// TestReasonsAreWhole finds a reason without a sentence, and one that shows more
// of the text than a name.
func TestReasonsAreWhole(t *testing.T) {
	for why, text := range reasons {
		if text == "" && reason(why) != none && reason(why) != learnedNamesake {
			t.Errorf("reason %d has no sentence", why)
		}
	}
	long := "x" + strings.Repeat("é", 500)
	if got := new(Classifier).Explain(long).Reason; len(got) > 2*maxName+60 {
		t.Errorf("reason of %d bytes: %s", len(got), got)
	}
}

func TestPosition(t *testing.T) {
	for _, test := range []struct {
		sql          string
		offset       int
		line, column int
	}{
		{"", 0, 1, 1},
		{"ab", 1, 1, 2},
		{"a\nb", 2, 2, 1},
		{"a\r\nb", 3, 2, 1},
		{"éa", 2, 1, 2},
		{"ab", 9, 1, 3},
		{"ab", -1, 1, 1},
		{"\n\n", 2, 3, 1},
	} {
		if line, column := Position(test.sql, test.offset); line != test.line || column != test.column {
			t.Errorf("Position(%q, %d) = %d, %d; want %d, %d", test.sql, test.offset, line, column, test.line, test.column)
		}
	}
}
