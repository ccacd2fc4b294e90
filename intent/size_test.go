package intent

import (
	"strings"
	"testing"
	"time"
)

// sizes are texts that tempt a reader to take quadratic time or to recurse, by a
// number of bytes.
var sizes = map[string]struct {
	text func(n int) string
	want Intent
}{
	"IN list": {func(n int) string {
		return "select * from t where id in (1" + strings.Repeat(", 12345678", n/10) + ")"
	}, Read},
	"parentheses":     {func(n int) string { return "select " + strings.Repeat("(", n) }, Write},
	"leading":         {func(n int) string { return strings.Repeat("(", n) + "select 1" + strings.Repeat(")", n) }, Trivial},
	"matched":         {func(n int) string { return "select " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) }, Trivial},
	"comments":        {func(n int) string { return "select 1 " + strings.Repeat("/*", n/2) }, Write},
	"nested comments": {func(n int) string { return strings.Repeat("/*", n/4) + strings.Repeat("*/", n/4) + "select 1" }, Trivial},
	"short comments":  {func(n int) string { return "select 1 " + strings.Repeat("/**/", n/4) }, Trivial},
	"line comments":   {func(n int) string { return "select 1 " + strings.Repeat("--\n", n/3) }, Trivial},
	"quotes":          {func(n int) string { return "select '" + strings.Repeat("''", n/2) + "'" }, Trivial},
	"strings":         {func(n int) string { return "select 1" + strings.Repeat(",''", n/3) }, Trivial},
	"odd quotes":      {func(n int) string { return "select " + strings.Repeat("'", n|1) }, Write},
	"names":           {func(n int) string { return `select "` + strings.Repeat(`""`, n/2) + `"` }, Trivial},
	"escapes":         {func(n int) string { return "select E'" + strings.Repeat(`\'`, n/2) + "'" }, Trivial},
	"continued":       {func(n int) string { return "select E''" + strings.Repeat("\n''", n/3) }, Trivial},
	"not continued":   {func(n int) string { return "select E''" + strings.Repeat("\n--\n", n/4) }, Trivial},
	"dollars":         {func(n int) string { return "select $a$" + strings.Repeat("$a", n/2) + "$a$" }, Trivial},
	"dollar tags":     {func(n int) string { return "select 1" + strings.Repeat(",$a$$a$", n/7) }, Trivial},
	"open dollars":    {func(n int) string { return "select " + strings.Repeat("$a$ $b$ ", n/8) + "$c$" }, Write},
	"semicolons":      {func(n int) string { return "select 1" + strings.Repeat(";", n) }, Trivial},
	"statements":      {func(n int) string { return strings.Repeat("select 1;", n/9) }, Trivial},
	"dots":            {func(n int) string { return "select a" + strings.Repeat(".a", n/2) + " from t" }, Read},
	"one word":        {func(n int) string { return "select " + strings.Repeat("a", n) + "(1)" }, Read},
	"calls":           {func(n int) string { return "select " + strings.Repeat("count(", n/12) + strings.Repeat(")", n/12) }, Read},
	"with": {func(n int) string {
		return strings.Repeat("with x as (select ", n/19) + "1" + strings.Repeat(")", n/19)
	}, Read},
	"operators":      {func(n int) string { return "select 1" + strings.Repeat("/-", n/2) + "1" }, Trivial},
	"late write":     {func(n int) string { return "with x as (select nextval('s')) select " + strings.Repeat("a,", n/2) }, Write},
	"copy":           {func(n int) string { return "copy t " + strings.Repeat("(", n) }, Write},
	"explain":        {func(n int) string { return "explain (" + strings.Repeat("a,", n/2) + "a) select 1" }, Read},
	"explain nested": {func(n int) string { return "explain " + strings.Repeat("(", n) }, Write},
	"digits":         {func(n int) string { return "select 1" + strings.Repeat("_1", n/2) }, Trivial},
}

// TestSizeIsLinear compares the times of 100 kB and 1 MB: a quadratic reader
// would take a hundred times as long, not ten. The times are the best of a few,
// without a cache.
func TestSizeIsLinear(t *testing.T) {
	c := newClassifier(t, Options{CacheEntries: -1})
	for name, size := range sizes {
		t.Run(name, func(t *testing.T) {
			n := 1_000_000
			if raceEnabled {
				n /= 10
			}
			small, large := size.text(n/10), size.text(n)
			for _, text := range []string{small, large} {
				if got := c.Of(text); got != size.want {
					t.Fatalf("%v, want %v (%s)", got, size.want, c.Explain(text).Reason)
				}
			}
			var short, long time.Duration
			for range 20 { // other load on the machine can only make them longer
				short, long = atMost(short, c, small), atMost(long, c, large)
				if long < 30*short && long < 50*time.Millisecond {
					break
				}
			}
			t.Logf("%d bytes: %v, %d bytes: %v", len(small), short, len(large), long)
			if long > 40*short {
				t.Errorf("a text ten times as long takes %v, not %v", long, short)
			}
			if long > 50*time.Millisecond && !raceEnabled {
				t.Errorf("1 MB takes %v", long)
			}
			if allocs := testing.AllocsPerRun(3, func() { c.Of(large) }); allocs != 0 {
				t.Errorf("%v allocations", allocs)
			}
		})
	}
}

// atMost classifies a text and returns the time that took, or best when that is
// set and less.
func atMost(best time.Duration, c *Classifier, text string) time.Duration {
	start := time.Now()
	c.Of(text)
	took := time.Since(start)
	if best == 0 {
		return took
	}
	return min(best, took)
}

// BenchmarkSize is the cost of 1 MB of each.
func BenchmarkSize(b *testing.B) {
	c := newClassifier(b, Options{CacheEntries: -1})
	for name, size := range sizes {
		b.Run(name, func(b *testing.B) {
			text := size.text(1_000_000)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				c.Of(text)
			}
		})
	}
}

// TestNoAllocations holds every statement of the table, and every way through
// the cache but the one that puts a text in.
func TestNoAllocations(t *testing.T) {
	c := newClassifier(t, Options{WritingFunctions: []string{"charge", `"Refund"`}})
	c.Learn([]string{"visit", "lower"})
	texts := []string{
		select40, select300, longText(1), "select charge(1)", `select "Refund"(1)`, "select app.lower(a) from t",
		"select " + strings.Repeat("é", 100) + "(1)", `select "` + strings.Repeat("é", 100) + `"(1)`,
	}
	for _, s := range table(t) {
		texts = append(texts, s.SQL)
	}
	for _, text := range texts {
		for range 2 {
			c.Classify(text)
		}
		if allocs := testing.AllocsPerRun(5, func() { c.Classify(text); Of(text) }); allocs != 0 {
			t.Errorf("%v allocations: %s", allocs, text)
		}
	}
	n := 0
	once := make([]string, 200)
	for i := range once {
		once[i] = longText(i + 1000)
	}
	if allocs := testing.AllocsPerRun(100, func() { c.Classify(once[n]); n++ }); allocs != 0 {
		t.Errorf("%v allocations for a text seen once", allocs)
	}
}
