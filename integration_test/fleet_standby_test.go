package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/pgtest"
)

// TestFleetOnStandby shares a limit on a server in recovery, where nothing can be written,
// and on, when it is promoted.
func TestFleetOnStandby(t *testing.T) {
	server := pgtest.New(t, pgtest.Options{Way: pgtest.Local})
	dsn := server.DSN()
	mustExec(t, connectTo(t, dsn), "copy (select 1) to program 'cat > standby.signal'")
	crashServer(t, dsn)
	comesTrue(t, 30*time.Second, "it is a standby", func() (string, bool) {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			return err.Error(), false
		}
		defer func() { _ = conn.Close(t.Context()) }()
		var recovers bool
		err = conn.QueryRow(t.Context(), "select pg_is_in_recovery()").Scan(&recovers)
		return fmt.Sprint(err), recovers
	})
	var pools []*pgyield.Pool
	var stops []func()
	for range 3 {
		p := newPool(t, dsn, append(strings.Fields(member), "yield_fleet=replica")...)
		pools, stops = append(pools, p), append(stops, busy(t, p, 30))
	}
	comesTrue(t, 10*time.Second, "even shares", ceilingsAre(pools, allAre(4)))
	stops[2]()
	pools[2].Close()
	comesTrue(t, 10*time.Second, "shares of two", ceilingsAre(pools[:2], allAre(6)))
	for i, p := range pools[:2] {
		if s := p.ReadStat(); s.Fleet().Shared || s.Fleet().Lost || s.Pressing() || s.Polls().PollsFailed > 0 {
			t.Errorf("member %d: %+v, pressing %v, %d polls failed", i, s.Fleet(), s.Pressing(), s.Polls().PollsFailed)
		}
	}
	mustExec(t, connectTo(t, dsn), "select pg_promote(true)")
	time.Sleep(time.Second)
	comesTrue(t, 5*time.Second, "shares of two, of a primary", ceilingsAre(pools[:2], func(c []int) bool {
		return allAre(6)(c) && !pools[0].ReadStat().LastDecision().Sample.Standby
	}))
}
