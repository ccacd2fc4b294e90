package integration_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/pgtest"
)

// fleetArm is a fleet whose members have a connection each beside their monitor's.
type fleetArm struct {
	pools []*pgyield.Pool
}

func newFleetArm(b *testing.B, server *pgtest.Server, name string, members int, pollRate float64) *fleetArm {
	b.Helper()
	a := &fleetArm{}
	for range members {
		pool := crowdPool(b, server.DSN(), "yield_fleet="+name+" yield_fleet_limit=400", pgyield.Options{
			Fleet: pgyield.FleetOptions{PollRate: pollRate},
		})
		if _, err := pool.Exec(b.Context(), "select 1"); err != nil {
			b.Fatal(err)
		}
		a.pools = append(a.pools, pool)
	}
	return a
}

func (a *fleetArm) close() {
	for _, p := range a.pools {
		p.Close()
	}
}

// settle waits until each member has heard of all.
func (a *fleetArm) settle(b *testing.B) {
	b.Helper()
	comesTrue(b, 2*time.Minute, "all have polled three times", func() (string, bool) {
		for _, p := range a.pools {
			if p.ReadStat().Polls().PollsOK < 3 {
				return "", false
			}
		}
		return "", true
	})
}

func (a *fleetArm) polls() (n float64) {
	for _, p := range a.pools {
		n += float64(p.ReadStat().Polls().PollsOK)
	}
	return n
}

// BenchmarkFleetPolls tells what part of a core the polls of 200 members cost a server that
// has 500 sessions, at the pace that they choose, at 20 polls a second, and beside that what
// they would if each polled each period. An iteration is a stretch of each, in turns: 80 s of
// the first, 20 s of the others.
func BenchmarkFleetPolls(b *testing.B) {
	const members, sessions, stretch = 200, 500, 80 * time.Second // two pauses of a member
	server := pgtest.New(b, pgtest.Options{Way: pgtest.Local, Settings: map[string]string{"max_connections": "600"}})
	for range sessions - 2*members {
		connectTo(b, server.DSN())
	}
	arms := []struct {
		name         string
		rate         float64
		cores, polls []float64
	}{{name: "paced"}, {name: "20-a-second", rate: 20}, {name: "each-period", rate: 100_000}}
	var idle []float64
	for b.Loop() {
		idle = append(idle, coresUsed(b, server, stretch/10))
		for i := range arms {
			arm := &arms[i]
			fleet := newFleetArm(b, server, "cost", members, arm.rate)
			fleet.settle(b)
			before := fleet.polls()
			length := stretch
			if arm.rate > 0 {
				length /= 4 // they poll often enough
			}
			arm.cores = append(arm.cores, coresUsed(b, server, length))
			arm.polls = append(arm.polls, (fleet.polls()-before)/length.Seconds())
			fleet.close()
		}
	}
	b.ReportMetric(0, "ns/op") // it takes as long as it was told to
	b.ReportMetric(100*median(idle), "%core-without")
	for _, arm := range arms {
		b.ReportMetric(100*median(arm.cores), "%core-"+arm.name)
		b.ReportMetric(median(arm.polls), "polls/s-"+arm.name)
	}
}

// coresUsed returns how many cores the server's processes kept busy for a time.
func coresUsed(b *testing.B, server *pgtest.Server, stretch time.Duration) float64 {
	b.Helper()
	parent := postmaster(b, server)
	before, begun := cpuTime(b, parent), time.Now()
	time.Sleep(stretch)
	return (cpuTime(b, parent) - before).Seconds() / time.Since(begun).Seconds()
}

// postmaster returns the process that all the server's others are children of.
func postmaster(b *testing.B, server *pgtest.Server) string {
	b.Helper()
	conn := connectTo(b, server.DSN())
	stat := procStat(b, strconv.Itoa(int(conn.PgConn().PID())))
	_ = conn.Close(b.Context())
	return stat[1]
}

// cpuTime is what a process and its children have used, those that have ended too.
func cpuTime(b *testing.B, parent string) time.Duration {
	b.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		b.Skipf("not applicable: no /proc: %v", err)
	}
	ticks := 0
	for _, e := range entries {
		stat := procStat(b, e.Name())
		switch {
		case stat == nil:
		case e.Name() == parent:
			ticks += sum(b, stat[11:15]) // with the children it has waited for
		case stat[1] == parent:
			ticks += sum(b, stat[11:13])
		}
	}
	return time.Duration(ticks) * time.Second / 100 // USER_HZ
}

// procStat returns the fields of a process's stat from the state on: the parent is 1, the
// user and system times are 11 and 12, those of the children it has waited for 13 and 14.
func procStat(b *testing.B, pid string) []string {
	b.Helper()
	if _, err := strconv.Atoi(pid); err != nil {
		return nil
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
	if err != nil {
		return nil // it has ended
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.Fields(rest)
}

func sum(b *testing.B, fields []string) (n int) {
	b.Helper()
	for _, f := range fields {
		v, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		n += v
	}
	return n
}
