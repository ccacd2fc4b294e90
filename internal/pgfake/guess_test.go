package pgfake

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

func TestGuess(t *testing.T) {
	for sql, want := range map[string]string{
		"select 1": "[{?column? 23}]",
		"select distinct a, t.b::bigint as n from t":     "[{a 25} {n 20}]",
		"select count(*) from t where x = 'from'":        "[{count 20}]",
		"select f(a, b), 'x,y' from t":                   "[{f 25} {?column? 25}]",
		"with c as (select 1) select a from c":           "[{a 25}]",
		"values (1, 'a'), (2, 'b')":                      "[{column1 23} {column2 25}]",
		"insert into t (a) values (1) returning id::int": "[{id 23}]",
		"insert into t select 1":                         "[]",
		`select "id", "name" from "t"`:                   "[{id 25} {name 25}]",
		"show work_mem":                                  "[{work_mem 25}]",
		"begin":                                          "[]",
		"/* a, b */ select -- c\n 1":                     "[{?column? 23}]",
		"select from t":                                  "[]",
	} {
		shape := Guess(sql)
		if got := fmt.Sprint(append([]Column{}, shape.Columns...)); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
	got := Guess("select $2::int, $1, '$3' where a = $4::text").Params
	if want := []uint32{0, pgtype.Int4OID, 0, pgtype.TextOID}; !slices.Equal(got, want) {
		t.Errorf("params %v, want %v", got, want)
	}
}

func TestSplitStatements(t *testing.T) {
	got := splitStatements("select ';' ; -- a;b\n;insert into t values (1);/* ; */")
	want := []string{"select ';'", "-- a;b\n", "insert into t values (1)"}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[2] {
		t.Errorf("%q", got)
	}
	if got := splitStatements(" -- ping"); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestCopyCounterInPieces(t *testing.T) {
	stream := append([]byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
		0, 1, 0, 0, 0, 1, 'a', 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0xff, 0xff)
	for size := 1; size <= len(stream); size++ {
		c := copyCounter{binary: true}
		for part := range slices.Chunk(stream, size) {
			c.add(part)
		}
		if c.rows != 3 {
			t.Errorf("pieces of %d: %d rows", size, c.rows)
		}
	}
}
