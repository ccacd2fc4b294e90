package intent

import (
	"testing"

	"github.com/pgyield/pgyield/internal/statements"
)

// table returns the statements that every test here starts from.
func table(t testing.TB) []statements.Statement {
	t.Helper()
	all, err := statements.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestStatements(t *testing.T) {
	c := newClassifier(t, Options{})
	for _, s := range table(t) {
		got := c.Classify(s.SQL)
		if got.Intent.String() != s.Intent || got.DML != s.DML {
			t.Errorf("line %d: %v, DML %v, want %s, %v (%s)\n%s",
				s.Line, got.Intent, got.DML, s.Intent, s.DML, c.Explain(s.SQL).Reason, s.SQL)
		}
		if of := Of(s.SQL); of != got.Intent {
			t.Errorf("line %d: Of says %v, Classify %v", s.Line, of, got.Intent)
		}
	}
}
