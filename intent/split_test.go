package intent

import (
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	tests := []struct {
		name, script string
		want         []string
	}{
		{"empty", " \n-- nothing\n/* at all */ ", nil},
		{"semicolons only", ";; ;", nil},
		{"one without an end", "select 1", []string{"select 1"}},
		{"two", "select 1;\n select 2 ;", []string{"select 1", "select 2 "}},
		{"comments before", "-- a;b\n/* c;d */ select 1;", []string{"select 1"}},
		{"comments within", "select /* ; */ 1 -- ;\n; table t", []string{"select /* ; */ 1 -- ;\n", "table t"}},
		{"literals", `select ';', E'\';', $$;$$, ";"; select 2`, []string{`select ';', E'\';', $$;$$, ";"`, "select 2"}},
		{
			"rule", "create rule r as on update to t do (select 1; select 2); select 3",
			[]string{"create rule r as on update to t do (select 1; select 2)", "select 3"},
		},
		{
			"function body", "create function f() returns int begin atomic select case when true then 1 end; select 2; end; select 3",
			[]string{"create function f() returns int begin atomic select case when true then 1 end; select 2; end", "select 3"},
		},
		{"no body", "select begin atomic; select 2", []string{"select begin atomic", "select 2"}},
		{"transaction", "begin; select 1; end; select 2", []string{"begin", "select 1", "end", "select 2"}},
		{"unbalanced", "select 1); select 2", []string{"select 1)", "select 2"}},
		{
			"bad bytes", "select {1}; select 1a; select U&\"x;\"; select \"\"; select 2",
			[]string{"select {1}", "select 1a", `select U&"x;"`, `select ""`, "select 2"},
		},
		{"backslash before a quote", `select 'a\'; select 2`, []string{`select 'a\'`, "select 2"}},
		{"backslash behind a letter", `select E'é\n'; select E'é\'; x'; select 2`, []string{`select E'é\n'`, `select E'é\'; x'`, "select 2"}},
		{"no end", "select 1; select 'a; select 2", []string{"select 1", "select 'a; select 2"}},
		{"no end of a comment", "select 1; /* select 2", []string{"select 1", "/* select 2"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for offset, sql := range Split(test.script) {
				if !strings.HasPrefix(test.script[offset:], sql) {
					t.Errorf("%q is not at %d", sql, offset)
				}
				got = append(got, sql)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestSplitStops(t *testing.T) {
	for _, sql := range Split("select 1; select 2") {
		if sql != "select 1" {
			t.Errorf("went on to %q", sql)
		}
		break
	}
}
