package oracle

import "testing"

func TestJudge(t *testing.T) {
	for sql, want := range map[string]Verdict{
		"select 1":                                       {Trivial: true},
		"show all; select 1":                             {Trivial: true},
		"select * from t":                                {},
		"select (select 1)":                              {},
		"select pg_sleep(1)":                             {},
		"select 1 union select 2":                        {},
		"select 1 as into":                               {Trivial: true},
		"select t.into from t":                           {},
		"select 1 into t":                                {Write: true},
		"select * from t for share":                      {Write: true},
		"select * from (select 1 from t for share) x":    {Write: true},
		"insert into t values (1)":                       {Write: true, DML: true},
		"select 1; delete from t":                        {Write: true, DML: true},
		"with x as (delete from t returning 1) select 1": {Write: true, DML: true},
		"select * from (with x as (delete from t returning 1) select 1) y": {Write: true, DML: true},
		"copy t from stdin":                            {Write: true, DML: true},
		"copy t to stdout":                             {Write: true},
		"select a.\"nextval\"('s')":                    {Write: true},
		"select \"NEXTVAL\"('s')":                      {},
		"explain delete from t":                        {},
		"explain analyze delete from t":                {Write: true, DML: true},
		"explain (analyze off) delete from t":          {},
		"explain (analyze 0) delete from t":            {},
		"explain (analyze 'OFF') delete from t":        {},
		"explain (analyze off, analyze) delete from t": {Write: true, DML: true},
		"explain (\"analyze\") delete from t":          {Write: true, DML: true},
		"explain select nextval('s')":                  {},
		"explain select txid_current()":                {Write: true},
		"explain analyze select nextval('s')":          {Write: true},
		"explain execute p(nextval('s'))":              {Write: true},
		"begin":                                        {Write: true},
		"-- nothing":                                   {Write: true},
	} {
		got, err := Judge(sql)
		got.Why = ""
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", sql, got, err, want)
		}
	}
	for _, sql := range []string{"selec 1", "select 1\x00", "select (", "select 'a"} {
		if got, err := Judge(sql); err == nil {
			t.Errorf("%q was judged: %+v", sql, got)
		}
	}
}
