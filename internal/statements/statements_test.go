package statements

import "testing"

func TestAll(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	count, lines := map[string]int{}, map[string]int{}
	for _, s := range all {
		count[s.Intent]++
		if at, twice := lines[s.SQL]; twice {
			t.Errorf("lines %d and %d are the same: %s", at, s.Line, s.SQL)
		}
		lines[s.SQL] = s.Line
	}
	for intent, least := range map[string]int{"trivial": 60, "read": 200, "write": 300} {
		if count[intent] < least {
			t.Errorf("only %d of class %s: is the table whole?", count[intent], intent)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, line := range []string{"read select 1", "reads\tselect 1", "read@x\tselect 1", "read\t\"\\z\""} {
		if s, err := parse(line); err == nil {
			t.Errorf("%q became %+v", line, s)
		}
	}
}
