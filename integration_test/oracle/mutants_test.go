package oracle_test

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/pgyield/pgyield/integration_test/oracle"
	"github.com/pgyield/pgyield/intent"
)

var (
	mutants    = flag.Int("mutants", 300_000, "how many mutated statements TestMutants judges")
	mutantSeed = flag.Uint64("mutant-seed", 1, "where TestMutants starts")
)

// fragments are what a mutation puts in or in place of a token: every word and
// mark that the rules or the lexer know.
var fragments = strings.Split(`into|into x|for|for update|for share|for no key update|for key share|update|share|no|key|
insert|insert into t values (1)|delete|delete from t|update t set a = 1|merge|merge into t using u on true when matched then delete|
with|with x as (delete from t returning 1)|with x as (select 1)|select|select 1|values|values (1)|table t|table|show|show all|
explain|explain analyze|explain (analyze)|explain (costs off)|explain ("analyze")|explain (values, analyze)|analyze|verbose|
nextval('s')|"nextval"('s')|pg_advisory_lock(1)|txid_current()|lo_get(1)|nextval|nextval(|"|""|'|''|$$|$a$|$1|$|\|\'|''\'|
e'|E'\'|E'a'|u&'|U&"|U&"a"|b'1'|x'1'|n'|/*|*/|/**/|--|-|/|*|+|;|(|)|((|))|,|.|..|:|::|[|]|1|1.|.5|1e|1e5|0x1|1a|1_0|a|_|é|
as|from|from t|where|where true|and|union|union all|all|in|on|only|of t|nowait|skip locked|read only|limit 1|order by 1|
"a"|"a""b"|t|t.|t.a|x as (|as x|as "x"|) x|returning *|set|copy t from stdin|copy|create table x as|begin|commit|execute p|prepare p as`, "|")

// breaks are white space and its kin, some of them no white space at all.
var breaks = []string{" ", "\n", "\r", "\t", "\f", "\v", "\x00", "\u00a0", "\ufeff", "--\n", "--\r", "/* */", "\x01"}

// mutator makes statements of statements.
type mutator struct {
	*rand.Rand
	corpus [][]string // token texts, white space and comments between them included
}

func newMutator(t testing.TB, seed uint64) *mutator {
	t.Helper()
	m := &mutator{Rand: rand.New(rand.NewPCG(seed, 0))}
	for _, s := range sqlTable(t) {
		scan, err := pg.Scan(s.SQL)
		if err != nil || strings.IndexByte(s.SQL, 0) >= 0 {
			m.corpus = append(m.corpus, strings.SplitAfter(s.SQL, " "))
			continue
		}
		var tokens []string
		last := 0
		for _, token := range scan.Tokens {
			tokens = append(tokens, s.SQL[last:token.Start], s.SQL[token.Start:token.End])
			last = int(token.End)
		}
		m.corpus = append(m.corpus, append(tokens, s.SQL[last:]))
	}
	return m
}

func pick[T any](m *mutator, from []T) T { return from[m.IntN(len(from))] }

// next returns a statement with one to five changes.
func (m *mutator) next() string {
	tokens := append([]string(nil), pick(m, m.corpus)...)
	for range 1 + m.IntN(5) {
		tokens = m.change(tokens)
	}
	text := strings.Join(tokens, "")
	if m.IntN(8) == 0 && text != "" {
		// Below the tokens: a byte less, or one twice.
		i := m.IntN(len(text))
		text = text[:i] + strings.Repeat(text[i:i+1], m.IntN(2)*2) + text[i+1:]
	}
	return text
}

func (m *mutator) change(tokens []string) []string {
	i := m.IntN(len(tokens) + 1)
	insert := func(text string) []string {
		return append(tokens[:i:i], append([]string{text}, tokens[i:]...)...)
	}
	switch kind := m.IntN(10); {
	case kind == 0:
		return insert(pick(m, breaks))
	case kind == 1:
		return insert(" " + pick(m, fragments) + " ")
	case kind == 2:
		return insert(strings.TrimSpace(pick(m, fragments)))
	case kind == 3:
		return insert(pick(m, pick(m, m.corpus)))
	case kind == 4:
		return append(append(append([]string(nil), tokens...), pick(m, []string{";", "; ", " ", "\n;", " union ", "--\n"})), pick(m, m.corpus)...)
	case kind == 5: // the head of one with the tail of another
		other := pick(m, m.corpus)
		return append(tokens[:i:i], other[m.IntN(len(other)+1):]...)
	case i == len(tokens):
		return tokens
	case kind == 6:
		return append(tokens[:i:i], tokens[i+1:]...)
	case kind == 7:
		tokens[i] = pick(m, fragments)
	case kind == 8:
		tokens[i] = strings.ToUpper(tokens[i])
	default:
		j := m.IntN(len(tokens))
		tokens[i], tokens[j] = tokens[j], tokens[i]
	}
	return tokens
}

// TestMutants judges statements that nobody would write. No write among them may
// be called a read; how many reads are, to both, shows that the search is not
// blunt.
func TestMutants(t *testing.T) {
	m := newMutator(t, *mutantSeed)
	reads, refused := 0, 0
	for range *mutants {
		text := m.next()
		got, _, parsed := checkText(t, text)
		switch {
		case parsed:
			reads++
		case got != intent.Write:
			refused++
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d mutants: %d are reads to both, %d called reads do not parse", *mutants, reads, refused)
	if reads < *mutants/20 {
		t.Errorf("only %d of %d mutants were reads to both", reads, *mutants)
	}
}

// TestMutantWrites counts from the other side: what the oracle calls a write must
// be called one, among mutants of which most parse.
func TestMutantWrites(t *testing.T) {
	m := newMutator(t, *mutantSeed+1)
	writes, lost, reads := 0, 0, 0
	for range *mutants / 10 {
		text := m.next()
		got := intent.Of(text)
		want, err := oracle.Judge(text)
		switch {
		case err != nil:
		case want.Write && got != intent.Write:
			t.Fatalf("a write is called %v:\n%q", got, text)
		case want.Write:
			writes++
		case got == intent.Write:
			lost++
		default:
			reads++
		}
	}
	t.Logf("%d writes; of %d reads %d are called writes", writes, reads+lost, lost)
	if writes < *mutants/200 {
		t.Errorf("only %d mutants were writes", writes)
	}
}
