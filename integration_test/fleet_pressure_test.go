package integration_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/pressure"
)

// suffering is a write that takes 600 ms while more than bearable reads run in its database: what
// reads do to writes, on any machine, and more than a slow one does to them by itself.
var suffering = fmt.Sprintf(`with r as (select count(*) as n from pg_stat_activity
 where state = 'active' and datname = current_database() and query like 'select pg_sleep%%')
 insert into writes select pg_sleep(case when n > %d then 0.6 else 0 end)::text from r`, bearable)

// bearable is how many reads may run without making a write of suffering slow.
const bearable = 16

// overload keeps a pool's reads and writes going: more reads than it may run.
func overload(t *testing.T, pool *pgyield.Pool) {
	t.Helper()
	busy(t, pool, 40)
	stop := background(t.Context(), 8, func(ctx context.Context) {
		if _, err := pool.Exec(ctx, suffering); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		time.Sleep(100 * time.Millisecond)
	})
	t.Cleanup(stop)
}

// newPressed makes a pool whose writes suffer when they take half of what suffering adds.
func newPressed(t *testing.T, dsn, params string, options pgyield.Options) *pgyield.Pool {
	t.Helper()
	config, err := pgyield.ParseConfig(withParams(dsn, "pool_max_conns=40", "yield_read_ceiling=32", "synchronous_commit=off", params))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgyield.NewWithOptions(t.Context(), config, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// TestFleetUnderPressure overloads four members, and beside them one process by itself with
// the limit of all four, on a database of its own.
func TestFleetUnderPressure(t *testing.T) {
	ours, lone := newDatabase(t), newDatabase(t)
	for _, dsn := range []string{ours, lone} {
		mustExec(t, connectTo(t, dsn), "create table writes (x text)")
	}
	options := pgyield.Options{Pressure: pressure.Options{OwnWrites: 300 * time.Millisecond}}
	one := newPressed(t, lone, "", options)
	var members []*pgyield.Pool
	for range 4 {
		members = append(members, newPressed(t, ours, "yield_fleet=pressed yield_fleet_limit=32", options))
	}
	for _, p := range append([]*pgyield.Pool{one}, members...) {
		overload(t, p)
	}
	for i, p := range members {
		comesTrue(t, 20*time.Second, fmt.Sprintf("member %d yields", i), func() (string, bool) {
			s := p.ReadStat()
			return fmt.Sprint(s.Limit()), s.Lowered() > 0
		})
	}
	comesTrue(t, 20*time.Second, "one yields", func() (string, bool) { return "", one.ReadStat().Lowered() > 0 })

	const looks = 240
	var single, sum float64
	each := make([]float64, len(members))
	for range looks {
		single += float64(one.ReadStat().Limit()) / looks
		for i, p := range members {
			limit := float64(p.ReadStat().Limit()) / looks
			each[i] += limit
			sum += limit
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("mean limits: one process %.1f, four members %.1f: %.2f", single, sum, each)
	if single > 26 || sum > 26 {
		t.Errorf("at %.1f and %.1f of 32 on average, they have not come down", single, sum)
	}
	// A limit by itself may stay far below what writes bear for as long as its hold lasts; a
	// fleet that ends at what they bear has come down no less for that.
	if sum < single/2 || sum > max(single*1.5, bearable) {
		t.Errorf("four members come down to %.1f, one process to %.1f", sum, single)
	}
	// Limits are whole numbers, so of small ones a fifth is less than one.
	if low, high := slices.Min(each), slices.Max(each); high > max(1.2*low, low+1) {
		t.Errorf("members are at %.2f to %.2f on average, want them within a fifth, or one", low, high)
	}
}

// TestFleetMembersSeeTheServer has writers that wait for locks, none of them a member's; with
// polls as a small fleet has them, and four seconds apart, as one of eighty members does.
func TestFleetMembersSeeTheServer(t *testing.T) {
	for name, rate := range map[string]float64{"often": 0, "rarely": 1} {
		t.Run(name, func(t *testing.T) { membersSeeTheServer(t, rate) })
	}
}

func membersSeeTheServer(t *testing.T, pollRate float64) {
	dsn := newDatabase(t)
	admin := connectTo(t, dsn)
	mustExec(t, admin, "create table writes (x text)")
	var members []*pgyield.Pool
	for range 4 {
		p := newPressed(t, dsn, "yield_fleet=server yield_fleet_limit=16", pgyield.Options{
			Pressure: pressure.Options{LockWait: 20 * time.Millisecond}, Fleet: pgyield.FleetOptions{PollRate: pollRate},
		})
		members = append(members, p)
		busy(t, p, 30)
	}
	comesTrue(t, 20*time.Second, "even shares", ceilingsAre(members, allAre(4)))
	limits := func(want func(*pgyield.ReadStat) bool) func() (string, bool) {
		return func() (string, bool) {
			state, all := "", true
			for _, p := range members {
				s := p.ReadStat()
				state += fmt.Sprint(" ", s.Limit(), "/", s.Ceiling())
				all = all && want(s)
			}
			return state, all
		}
	}
	comesTrue(t, 5*time.Second, "nobody yields", limits(func(s *pgyield.ReadStat) bool { return s.Limit() == 4 && s.Lowered() == 0 }))

	writer := connectTo(t, dsn)
	stopWriting := background(t.Context(), 1, func(ctx context.Context) {
		_, _ = writer.Exec(context.WithoutCancel(ctx), "insert into writes values ('a')")
		time.Sleep(20 * time.Millisecond)
	})
	defer stopWriting()
	mustExec(t, admin, "select pg_advisory_lock(1)")
	var waiting sync.WaitGroup
	for range 6 {
		conn := connectTo(t, dsn)
		waiting.Go(func() {
			_, _ = conn.Exec(context.Background(), "select pg_advisory_xact_lock(1)")
		})
	}
	comesTrue(t, 30*time.Second, "all yield", limits(func(s *pgyield.ReadStat) bool { return s.Lowered() > 0 }))
	mustExec(t, admin, "select pg_advisory_unlock(1)")
	waiting.Wait()
	comesTrue(t, 60*time.Second, "and climb back", limits(func(s *pgyield.ReadStat) bool { return s.Limit() == 4 }))
}
