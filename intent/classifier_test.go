package intent

import (
	"fmt"
	"strings"
	"testing"
)

func newClassifier(t testing.TB, options Options) *Classifier {
	t.Helper()
	c, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestString(t *testing.T) {
	for intent, want := range map[Intent]string{Write: "write", Read: "read", Trivial: "trivial", 99: "write"} {
		if got := intent.String(); got != want {
			t.Errorf("Intent(%d) is %q, want %q", intent, got, want)
		}
	}
	var zero Intent
	if zero != Write {
		t.Error("the zero Intent must be Write")
	}
}

func TestRegisteredNames(t *testing.T) {
	long := strings.Repeat("é", 31) + "xé" // 65 bytes; PostgreSQL keeps 63
	c := newClassifier(t, Options{
		WritingFunctions: []string{"Charge", "app.refund", `"Mixed"`, `app . "a""b"`, "x", "lower", long, " padded "},
		ReadingFunctions: []string{"nextval", "pg_catalog.lo_get", "audit"},
	})
	c.Learn([]string{"audit", "charge", "Learned"})
	for sql, want := range map[string]Intent{
		"select charge(1)":                     Write,
		"select CHARGE (1)":                    Write,
		"select other.charge(1)":               Write,
		`select "charge"(1)`:                   Write,
		`select "Charge"(1)`:                   Read,
		"select refund(1)":                     Write,
		"select other.refund(1)":               Write,
		`select "Mixed"(1)`:                    Write,
		"select mixed(1)":                      Read,
		"select Mixed(1)":                      Read,
		`select "a""b"(1)`:                     Write,
		`select "a"(1)`:                        Read,
		"select x(1)":                          Write,
		"select X(1)":                          Write,
		`select "x"(1)`:                        Write,
		"select x from t":                      Read,
		"select padded(1)":                     Write,
		"select lower('A')":                    Write, // an explicit word is believed
		"select nextval('s')":                  Read,
		"select setval('s', 1)":                Write,
		"select lo_get(1)":                     Read,
		"select lo_put(1, 0, 'x')":             Write,
		"select audit(1)":                      Read,
		`select "Learned"(1)`:                  Write,
		"select learned(1)":                    Read,
		"select " + long + "(1)":               Write,
		"select " + long + "more(1)":           Write,
		`select "` + long + `"(1)`:             Write,
		"select " + long[:len(long)-3] + "(1)": Read,
		"explain select charge(1)":             Write, // it may be declared stable
		`explain select "Learned"(1)`:          Read,
		"explain select nextval('s')":          Read,
	} {
		if got := c.Of(sql); got != want {
			t.Errorf("%s: %v, want %v (%s)", sql, got, want, c.Explain(sql).Reason)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    []string
	}{
		{Options{WritingFunctions: []string{"ok", ""}}, []string{"WritingFunctions[1]", "not a function's name"}},
		{Options{WritingFunctions: []string{"charge()"}}, []string{"WritingFunctions[0]", `"charge()"`}},
		{Options{ReadingFunctions: []string{"a b"}}, []string{"ReadingFunctions[0]", `"a b"`}},
		{Options{ReadingFunctions: []string{"a."}}, []string{"ReadingFunctions[0]"}},
		{Options{ReadingFunctions: []string{".a"}}, []string{"ReadingFunctions[0]"}},
		{Options{ReadingFunctions: []string{"a;b"}}, []string{"ReadingFunctions[0]"}},
		{Options{ReadingFunctions: []string{"a,b"}}, []string{"ReadingFunctions[0]"}},
		{Options{ReadingFunctions: []string{"lo_*"}}, []string{"ReadingFunctions[0]"}},
		{Options{ReadingFunctions: []string{"-a"}}, []string{"ReadingFunctions[0]"}},
		{Options{ReadingFunctions: []string{`"a`}}, []string{"ReadingFunctions[0]"}},
		{Options{ReadingFunctions: []string{`""`}}, []string{"ReadingFunctions[0]"}},
		{Options{ReadingFunctions: []string{"1a"}}, []string{"ReadingFunctions[0]"}},
		{Options{ReadingFunctions: []string{"a\x00"}}, []string{"ReadingFunctions[0]"}},
		{Options{ReadingFunctions: []string{`"a` + "\x00" + `"`}}, []string{"ReadingFunctions[0]"}},
		{Options{ReadingFunctions: []string{`U&"a"`}}, []string{"ReadingFunctions[0]", "Unicode escapes"}},
		{Options{WritingFunctions: []string{"a.f"}, ReadingFunctions: []string{"b.F"}}, []string{"ReadingFunctions[0]", "WritingFunctions too"}},
		{Options{CacheEntries: maxCacheEntries + 1}, []string{"CacheEntries", "1048576"}},
	} {
		_, err := New(test.options)
		if err == nil {
			t.Errorf("%+v was accepted", test.options)
			continue
		}
		for _, part := range append(test.want, "pgyield: ") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	}
}

func TestLearn(t *testing.T) {
	var c Classifier // the zero value learns too
	long := "select visit(id) from t where " + strings.Repeat("a = 1 and ", 50) + "true"
	for range 3 {
		if got := c.Of(long); got != Read {
			t.Fatalf("a call of an unknown function is %v, want read", got)
		}
	}
	c.Learn([]string{"visit", "lower", "setval", ""})
	for sql, want := range map[string]Intent{
		long:                             Write, // what the cache knew is dropped
		"select VISIT(1)":                Write,
		"select app.visit(1)":            Write,
		"select lower('A')":              Read, // most likely the built-in one
		"select pg_catalog.lower('A')":   Read,
		`select "pg_catalog".lower('A')`: Read,
		"select app.lower('A')":          Write, // certainly not
		"select app /**/ . lower('A')":   Write,
		`select "app"."lower"('A')`:      Write,
		"select app.t, lower('A')":       Read,
		"select setval('s', 1)":          Write,
	} {
		if got := c.Of(sql); got != want {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
	// The catalogue's name is what is left of one that is cut inside a character.
	c.Learn([]string{"other", strings.Repeat("é", 31)})
	for _, call := range []string{strings.Repeat("é", 32), `"` + strings.Repeat("é", 32) + `"`, strings.Repeat("é", 31)} {
		if got := c.Of("select " + call + "(1)"); got != Write {
			t.Errorf("%s: %v", call, got)
		}
	}
	if got := c.Of("select visit(1)"); got != Read {
		t.Errorf("a forgotten function is %v: Learn must replace the set", got)
	}
	if got := c.Of("select setval('s', 1)"); got != Write {
		t.Errorf("setval is %v", got)
	}
	c.Learn(nil)
	if got := c.Of("select other(1)"); got != Read {
		t.Errorf("after Learn(nil) a call is %v", got)
	}
	if Of("select visit(1)") != Read {
		t.Error("the package's own classifier learned from another")
	}
}

// TestEveryWriter calls every listed function bare, quoted, qualified and in
// capitals.
func TestEveryWriter(t *testing.T) {
	lists := volatileWriters + " " + plannedWriters + " " + strings.ReplaceAll(writerPatterns+" "+plannedPatterns, "*", "x1")
	for name := range strings.FieldsSeq(lists) {
		for _, call := range []string{name, strings.ToUpper(name), `"` + name + `"`, "pg_catalog." + name, "x . " + name + " "} {
			if got := Of("select " + call + "(1)"); got != Write {
				t.Errorf("%s: %v", call, got)
			}
		}
		if got := Of(fmt.Sprintf(`select "%s"(1)`, strings.ToUpper(name))); got != Read {
			t.Errorf("%s in quoted capitals is another name: %v", name, got)
		}
	}
	for name := range strings.FieldsSeq(harmless) {
		if got := Of("select " + name + "()"); got != Read {
			t.Errorf("%s: %v", name, got)
		}
	}
}
