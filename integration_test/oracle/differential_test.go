package oracle_test

import (
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/pgyield/pgyield/integration_test/oracle"
	"github.com/pgyield/pgyield/intent"
	"github.com/pgyield/pgyield/internal/statements"
)

// sqlTable returns the statements that every test here starts from.
func sqlTable(t testing.TB) []statements.Statement {
	t.Helper()
	all, err := statements.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// checkText fails when a text that the oracle calls a write is called a read, or
// a read that is not trivial is called that. It returns what both said; parsed is
// false where the oracle's grammar refuses the text.
func checkText(t testing.TB, sql string) (got intent.Intent, want oracle.Verdict, parsed bool) {
	t.Helper()
	got = intent.Of(sql)
	if got == intent.Write {
		// The only answer that cannot do harm: not worth the price of a parse.
		return got, want, false
	}
	want, err := oracle.Judge(sql)
	if err != nil {
		return got, want, false
	}
	if want.Write {
		t.Errorf("a write (%s) is called %v:\n%q", want.Why, got, sql)
	}
	if got == intent.Trivial && !want.Trivial {
		t.Errorf("called trivial, and is not:\n%q", sql)
	}
	return got, want, true
}

// TestTableAgainstOracle holds the table to PostgreSQL's grammar in both
// directions: every line's class is the oracle's, but for the lines that say why
// not.
func TestTableAgainstOracle(t *testing.T) {
	judged := 0
	for _, s := range sqlTable(t) {
		checkText(t, s.SQL)
		want, err := oracle.Judge(s.SQL)
		if err != nil {
			// Its grammar refuses some texts that servers run. What a server says of
			// them a test against real servers finds out.
			if s.Intent != "write" {
				t.Logf("line %d: no statement to the oracle: %v\n%s", s.Line, err, s.SQL)
			}
			continue
		}
		judged++
		if isWrite := s.Intent == "write"; isWrite != want.Write && !s.Dubious {
			// Texts that servers or settings read differently are writes here, whatever
			// one of them makes of them.
			if !isWrite || intent.Of(s.SQL) != intent.Write || !readDifferently(s.SQL) {
				t.Errorf("line %d: %s in the table; write %v to the oracle %s\n%q", s.Line, s.Intent, want.Write, want.Why, s.SQL)
			}
		}
		if want.Write && want.DML != s.DML && !s.Dubious && !readDifferently(s.SQL) {
			t.Errorf("line %d: DML %v in the table, %v to the oracle\n%q", s.Line, s.DML, want.DML, s.SQL)
		}
		if s.Dubious && want.Write {
			t.Errorf("line %d: marked as a read that is called a write, and is a write\n%q", s.Line, s.SQL)
		}
	}
	t.Logf("%d statements judged", judged)
	if judged < 500 {
		t.Errorf("the oracle judged only %d statements", judged)
	}
}

// readDifferently is true for texts that are writes because they cannot be read
// without knowing the server: see the reasons of intent.
func readDifferently(sql string) bool {
	switch new(intent.Classifier).Explain(sql).Reason {
	case "where the string ends depends on standard_conforming_strings",
		"where the string ends depends on client_encoding",
		"a name with Unicode escapes may be any name",
		"servers disagree on where this number ends",
		`"\v" is no part of SQL that every server reads alike`:
		return true
	}
	return false
}

// TestCommentsEverywhere puts white space and comments, quotes in them, between
// all tokens of all statements. A write must stay one, and a read that still is
// one must not be lost.
func TestCommentsEverywhere(t *testing.T) {
	fillers := []string{" ", "/**/", "/* ' */", "/*\"/*;*/$$*/", "--'\n", "--\r", "\n", "\t-- \"\n\f"}
	texts, kept := 0, 0
	for _, s := range sqlTable(t) {
		scan, err := pg.Scan(s.SQL)
		if err != nil || s.Dubious {
			continue
		}
		for _, filler := range fillers {
			for _, text := range fillIn(s.SQL, scan.Tokens, filler) {
				texts++
				got, _, parsed := checkText(t, text)
				if parsed {
					kept++
				}
				if s.Intent == "write" || got != intent.Write || readDifferently(text) {
					continue
				}
				if want, err := oracle.Judge(text); err == nil && !want.Write {
					t.Errorf("line %d: with %q between tokens a read is called a write (%s):\n%q",
						s.Line, filler, new(intent.Classifier).Explain(text).Reason, text)
				}
			}
		}
	}
	t.Logf("%d texts, %d of them reads to both", texts, kept)
	if kept < 10_000 {
		t.Errorf("only %d of %d texts were reads to both", kept, texts)
	}
}

// fillIn returns the text with the filler at each boundary of tokens, one at a
// time, and at all of them.
func fillIn(sql string, tokens []*pg.ScanToken, filler string) []string {
	var texts []string
	all, last := "", 0
	for _, token := range tokens {
		at := int(token.Start)
		texts = append(texts, sql[:at]+filler+sql[at:])
		all += sql[last:at] + filler
		last = at
	}
	return append(texts, all+sql[last:]+filler)
}

// FuzzAgainstOracle looks for a write that is called a read.
func FuzzAgainstOracle(f *testing.F) {
	for _, s := range sqlTable(f) {
		f.Add(s.SQL)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		checkText(t, sql)
		// The same behind a read: the parts decide alone.
		checkText(t, "select 1;"+sql)
	})
}
