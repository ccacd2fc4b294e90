package intent

import "testing"

const (
	select40 = "select id, name from users where id = $1"

	select300 = `select u.id, u.name, u.email, count(o.id) as orders, coalesce(sum(o.total), 0) as total
from users u left join orders o on o.user_id = u.id and o.status in ('paid', 'shipped')
where u.created_at >= $1 and u.country = $2
group by u.id, u.name, u.email having count(o.id) > 3 order by total desc limit 50 offset 100`
)

// BenchmarkClassify is the cost on the pool's hot path. The texts below the
// cache's length are read every time; 300 bytes are read by examine itself, to
// show what a miss costs.
func BenchmarkClassify(b *testing.B) {
	c, err := New(Options{WritingFunctions: []string{"app.charge", "refund"}})
	if err != nil {
		b.Fatal(err)
	}
	for _, bench := range []struct {
		name, sql string
		want      Intent
	}{
		{"select 40 B", select40, Read},
		{"insert", "insert into orders (user_id, total) values ($1, $2) returning id", Write},
		{"begin", "begin", Write},
		{"cached 300 B", select300, Read},
		{"probe", "select 1", Trivial},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if c.Classify(bench.sql).Intent != bench.want {
					b.Fatal("wrong class")
				}
			}
		})
	}
	b.Run("uncached 300 B", func(b *testing.B) {
		b.ReportAllocs()
		f := &c.current().functions
		for b.Loop() {
			if examine(select300, f).Intent != Read {
				b.Fatal("wrong class")
			}
		}
	})
}
