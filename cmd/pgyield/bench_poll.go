package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgyield/pgyield"
)

// pollSessions is how many idle sessions the server has while polls are measured: a poll
// looks at each.
const pollSessions = 500

// idleName is what they are called on the server.
const idleName = "pgyield bench, idle"

// pollCost is what the monitor's polls cost the server. The server is this machine's, or
// nothing can be measured: its own statistics do not tell processor time.
func pollCost(params string) *scenario {
	m := &pollMeter{params: params}
	return &scenario{
		name: "poll cost", about: fmt.Sprintf("The monitor's polls of a server with %d idle sessions, beside the same writes.", pollSessions),
		arms:   []arm{{name: armYield, open: m.open, learns: true}},
		timing: timing{2 * time.Second, time.Second, 20 * time.Second},
		setUp: func(_ *database, l *load) {
			// Not without the writes: on a virtual machine that is idle all things are slow, polls too.
			l.readers = 0
			l.beside, l.besideAt = m.measure, l.lead+time.Second
		},
		custom: func(_ *phase, f figures) { m.tell(f) },
		claims: func(r runs) []claim {
			return []claim{
				atMost("processor time of the polls, % of one core", 0.3, r.values("poll_core_percent", armYield)).
					beside("ms a poll", r.values("poll_ms", armYield)).beside("polls/s", r.values("polls_per_s", armYield)),
			}
		},
	}
}

// unmetError is why a scenario cannot be run on this server.
type unmetError struct{ reason string }

func (e unmetError) Error() string { return e.reason }

// pollMeter measures one run after the other.
type pollMeter struct {
	params  string
	monitor backend            // of the run
	polls   func() (ok uint64) // of the run, so far
	took    time.Duration      // processor time of the monitor's backend
	seen    uint64             // polls in that time
	length  time.Duration      // of the measurement
}

// open fills the server with sessions, and opens a pool beside them.
func (m *pollMeter) open(ctx context.Context, db *database, conns int) (_ target, err error) {
	admin, err := db.connect(ctx)
	if err != nil {
		return target{}, err
	}
	defer closeConn(admin)
	if err := pollable(ctx, admin, conns); err != nil {
		return target{}, err
	}
	idle, err := openSessions(ctx, db, admin)
	closeIdle := func() {
		for _, conn := range idle {
			closeConn(conn)
		}
	}
	defer func() {
		if err != nil {
			closeIdle()
		}
	}()
	if err != nil {
		return target{}, err
	}
	others, err := monitors(ctx, admin)
	if err != nil {
		return target{}, err
	}
	config, err := db.poolConfigWith(conns, m.params)
	if err != nil {
		return target{}, err
	}
	pool, err := pgyield.NewWithConfig(ctx, config)
	if err != nil {
		return target{}, err
	}
	t := targetOf(pool)
	m.polls = func() uint64 { return pool.ReadStat().Polls().PollsOK }
	if m.monitor, err = m.find(ctx, admin, others); err != nil {
		t.close()
		return target{}, err
	}
	closePool := t.close
	t.close = func() { closePool(); closeIdle() }
	return t, nil
}

// pollable fails where the server has not enough room, or is not this machine's.
func pollable(ctx context.Context, admin *pgx.Conn, conns int) error {
	var most, used, leaving int
	// Those of the round before may still be on their way out.
	for until := time.Now().Add(30 * time.Second); ; pause(ctx, 100*time.Millisecond) {
		err := admin.QueryRow(ctx, `select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
			count(*), count(*) filter (where application_name = $1) from pg_stat_activity where datid is not null`, idleName).Scan(&most, &used, &leaving)
		if err != nil {
			return err
		}
		if leaving == 0 || time.Now().After(until) {
			break
		}
	}
	if needed := used + pollSessions + conns + 2; needed > most {
		return unmetError{fmt.Sprintf("the server has room for %d sessions and %d are needed: raise max_connections", most, needed)}
	}
	_, err := backendOf(ctx, admin, fmt.Sprint(admin.PgConn().PID()))
	return err
}

// openSessions opens the idle ones; also those that it opened before it failed are returned.
func openSessions(ctx context.Context, db *database, admin *pgx.Conn) (idle []*pgx.Conn, err error) {
	config, err := pgyield.ParseConfig(db.dsn)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.RuntimeParams["application_name"] = idleName
	for range pollSessions {
		conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
			// The role's or the database's own limit, or others that have come meanwhile.
			return idle, unmetError{fmt.Sprintf("of %d sessions the server lets us have %d: %s", pollSessions, len(idle), refused.Message)}
		}
		if err != nil {
			return idle, err
		}
		idle = append(idle, conn)
	}
	var there int
	if err := admin.QueryRow(ctx, "select count(*) from pg_stat_activity where application_name = $1", idleName).Scan(&there); err != nil {
		return idle, err
	}
	if there < pollSessions {
		return idle, unmetError{fmt.Sprintf("of %d connections the server sees %d: something that pools stands before it", pollSessions, there)}
	}
	return idle, nil
}

// monitors are the process ids of the monitors' sessions.
func monitors(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	rows, err := conn.Query(ctx, `select pid::text from pg_stat_activity
		where application_name = 'pgyield monitor' and datname = current_database() and usename = current_user`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// find waits for the pool's monitor and finds its backend: the one that was not there before.
func (m *pollMeter) find(ctx context.Context, admin *pgx.Conn, others []string) (backend, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, unmetError{"the pool's monitor did not poll within 30 s"})
	defer cancel()
	for m.polls() == 0 {
		if !pause(ctx, 50*time.Millisecond) {
			return backend{}, context.Cause(ctx)
		}
	}
	all, err := monitors(ctx, admin)
	if err != nil {
		return backend{}, err
	}
	own := slices.DeleteFunc(all, func(pid string) bool { return slices.Contains(others, pid) })
	if len(own) != 1 {
		return backend{}, unmetError{fmt.Sprintf("%d sessions could be the monitor's: other pools with pgyield use this database", len(own))}
	}
	return backendOf(ctx, admin, own[0])
}

// measure counts from now until ctx ends.
func (m *pollMeter) measure(ctx context.Context) error {
	m.took, m.seen, m.length = 0, 0, 0
	begun, polls := time.Now(), m.polls()
	before, err := m.monitor.processorTime()
	if err != nil {
		return err
	}
	<-ctx.Done()
	after, err := m.monitor.processorTime()
	if err != nil {
		return err
	}
	m.took, m.seen, m.length = after-before, m.polls()-polls, time.Since(begun)
	return nil
}

func (m *pollMeter) tell(f figures) {
	if m.seen == 0 {
		return
	}
	f["poll_core_percent"] = 100 * m.took.Seconds() / m.length.Seconds()
	f["poll_ms"] = 1000 * m.took.Seconds() / float64(m.seen)
	f["polls_per_s"] = float64(m.seen) / m.length.Seconds()
}
