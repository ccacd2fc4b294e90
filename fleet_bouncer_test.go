package pgyield_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/internal/pgfake"
)

// sessions answers the polls of a fleet as a server does that keeps what each sets in its
// session. Of a bouncer, clients share one session.
type sessions struct {
	bouncer bool

	mu    sync.Mutex
	names map[uint32]string
	marks map[uint32]any
}

func (s *sessions) handle(ctx context.Context, q pgfake.Query) pgfake.Result {
	if !strings.Contains(q.SQL, "in_recovery") {
		return pgfake.Default(ctx, q)
	}
	session := q.PID
	if s.bouncer {
		session = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var others []string
	for pid, name := range s.names {
		if pid != session {
			others = append(others, name)
		}
	}
	mark := s.marks[session]
	s.names[session], s.marks[session] = q.Args[0].(string), q.Args[2]
	now := float64(time.Now().UnixMicro()) / 1e6
	return pgfake.Rows(pgfake.Cols("in_recovery", 0, "server_ts", 0, "names", 0, "mark", 0), []any{"f", now, strings.Join(others, "\n"), mark})
}

// TestFleetBehindABouncer lets two pools poll directly, and through a bouncer. There they
// find each other's mark, say so once, and divide by the size they were told.
func TestFleetBehindABouncer(t *testing.T) {
	for _, bouncer := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server := &sessions{bouncer: bouncer, names: map[uint32]string{}, marks: map[uint32]any{}}
			fake := pgfake.New(pgfake.Options{Handler: server.handle})
			defer fake.Close()
			var logs [2]bytes.Buffer
			var pools [2]*pgyield.Pool
			for i := range pools {
				config := fake.Config(t, "pool_max_conns=40", "yield_fleet=shop", "yield_fleet_limit=24", "yield_fleet_size=3")
				pool, err := pgyield.NewWithOptions(t.Context(), config, pgyield.Options{Logger: slog.New(slog.NewTextHandler(&logs[i], nil))})
				if err != nil {
					t.Fatal(err)
				}
				defer pool.Close()
				pools[i] = pool
			}
			time.Sleep(10 * time.Second)
			for i, pool := range pools {
				want, said := 12, 0 // and the slack, all of the other's
				if bouncer {
					want, said = 8, 1
				}
				s := pool.ReadStat()
				if s.Ceiling() < want || bouncer && s.Ceiling() != want || s.Fleet().Shared != bouncer {
					t.Errorf("bouncer %v: pool %d has a ceiling of %d, want %d: %+v", bouncer, i, s.Ceiling(), want, s.Fleet())
				}
				if n := strings.Count(logs[i].String(), "bouncer"); n != said {
					t.Errorf("bouncer %v: pool %d said it %d times:\n%s", bouncer, i, n, logs[i].String())
				}
				if !bouncer && (s.Fleet().Members != 2 || s.Fleet().Share != 12 || s.Fleet().Limit != 24 || s.Fleet().PollEvery != 250*time.Millisecond) {
					t.Errorf("%+v", s.Fleet())
				}
			}
		})
	}
}
