package integration_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/pressure"
)

// BenchmarkPressurePollCost is what polls cost a server that has 500 sessions, by the
// processor time of the one that answers them.
func BenchmarkPressurePollCost(b *testing.B) {
	for _, version := range postgresVersions {
		b.Run(version, func(b *testing.B) {
			server := ownContainer(b, version, map[string]string{"max_connections": "600"})
			box := containerOf(b, server.DSN())
			for range 500 {
				conn, err := pgx.Connect(b.Context(), server.DSN())
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = conn.Close(b.Context()) }()
			}
			poller, _ := newTestPoller(b, server.DSN(), pressure.Options{})
			first := mustSample(b, poller)
			if first.Sessions < 500 {
				b.Fatalf("the poll sees %d sessions", first.Sessions)
			}
			admin := connectTo(b, server.DSN())
			var pid string
			err := admin.QueryRow(b.Context(), "select pid::text from pg_stat_activity where application_name = 'pgyield monitor'").Scan(&pid)
			if err != nil {
				b.Fatal(err)
			}
			const polls = 400
			before, trips := box.processorTime(pid), time.Duration(0)
			for b.Loop() {
				for range polls {
					trips += mustSample(b, poller).RoundTrip
					time.Sleep(5 * time.Millisecond) // the server rests between polls, as it does in life
				}
			}
			each := (box.processorTime(pid) - before) / time.Duration(polls*b.N)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(each.Seconds()*1000, "server-ms/poll")
			b.ReportMetric(trips.Seconds()*1000/float64(polls*b.N), "round-trip-ms/poll")
			b.ReportMetric(100*each.Seconds()/max(pressure.DefaultPeriod, first.Pause()).Seconds(), "%core")
		})
	}
}

// processorTime is what a process of the container has used, to a hundredth of a second.
func (c container) processorTime(pid string) time.Duration {
	text := c.docker("exec", c.id, "cat", "/proc/"+pid+"/stat")
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	var ticks int
	for _, field := range fields[11:13] { // of the program, and of the kernel for it
		n, err := strconv.Atoi(field)
		if err != nil {
			c.t.Errorf("/proc/%s/stat: %q: %v", pid, text, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
