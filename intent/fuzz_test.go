package intent

import (
	"strings"
	"testing"
)

// FuzzOf looks for panics, and for classes that change where they must not.
func FuzzOf(f *testing.F) {
	for _, s := range table(f) {
		f.Add(s.SQL)
	}
	f.Add("select 1;" + strings.Repeat("(", 100))
	c := newClassifier(f, Options{WritingFunctions: []string{"charge"}, CacheEntries: 16})
	f.Fuzz(func(t *testing.T, sql string) {
		class := c.Classify(sql)
		v := c.Explain(sql)
		if v.Intent != class.Intent || v.DML != class.DML {
			t.Errorf("Classify says %+v, Explain %+v", class, v)
		}
		if v.Offset < 0 || v.Offset > len(sql) || v.Line < 1 || v.Column < 1 || v.Reason == "" {
			t.Errorf("%+v on %d bytes", v, len(sql))
		}
		if class.DML && class.Intent != Write {
			t.Errorf("a %v that changes rows", class.Intent)
		}
		if got := c.Classify(" \n/* a */" + sql); got != class {
			t.Errorf("behind white space %+v, else %+v", got, class)
		}
		empty := v.Reason == reasons[emptyText] && !strings.Contains(sql, "\x00")
		if got := c.Of("table t;" + sql); (got == Write) != (class.Intent == Write && !empty) {
			t.Errorf("behind a read %v, alone %v", got, class.Intent)
		}
		if class.Intent == Write {
			return
		}
		for tail, want := range map[string]Intent{"\n; table t": Read, "\n;delete from t": Write, "\n--": class.Intent, "\ninto x": Write} {
			if got := c.Of(sql + tail); got != want && !(tail == "\ninto x" && planned(sql)) {
				t.Errorf("%v, with %q behind it %v", class.Intent, tail, got)
			}
		}
		parts := 0
		for offset, part := range Split(sql) {
			parts++
			if c.Of(part) == Write {
				t.Errorf("a %v with a part that is a write: %q", class.Intent, part)
			}
			if sql[offset:offset+len(part)] != part {
				t.Errorf("%q is not at %d", part, offset)
			}
		}
		if parts == 0 {
			t.Errorf("a %v without a statement", class.Intent)
		}
	})
}

// planned is true when the last statement is not run, so that INTO behind it
// means nothing.
func planned(sql string) bool {
	last := ""
	for _, part := range Split(sql) {
		last = part
	}
	if strings.HasSuffix(strings.TrimRight(sql, " \t\n\r\f"), ";") {
		return false
	}
	return new(Classifier).Explain(last).Reason == reasons[plansOnly] || strings.EqualFold(last[:min(4, len(last))], "show")
}
