package pressure

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgyield/pgyield/internal/pgfake"
)

// monitored is a fake server that answers polls, and what a test may do to it.
type monitored struct {
	t    *testing.T
	fake *pgfake.Server
	log  *bytes.Buffer

	mu      sync.Mutex
	answer  func(ctx context.Context, q pgfake.Query) *pgfake.Result // nil, or nil result: the usual one
	columns map[string]string
	started time.Time
}

// withPoller runs a test in virtual time against a poller of a fake server.
func withPoller(t *testing.T, options Options, test func(m *monitored, p *Poller)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &monitored{t: t, log: &bytes.Buffer{}, started: time.Now(), columns: map[string]string{
			"in_recovery": "f", "server_version_num": "170004", "started": "1000000", "next_xid": "10",
			"wal_lsn_bytes": "1000", "wal_syncs": "5", "wal_sync_ms": "2.5", "lock_waiters": "0", "hidden": "0",
		}}
		m.fake = pgfake.New(pgfake.Options{Handler: m.handle})
		defer m.fake.Close()
		options.Logger = slog.New(slog.NewTextHandler(m.log, nil))
		p, err := NewPoller(m.config(), options)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		test(m, p)
	})
}

func (m *monitored) config() *pgx.ConnConfig {
	config, err := pgx.ParseConfig(m.fake.ConnString())
	if err != nil {
		m.t.Fatal(err)
	}
	m.fake.Attach(&config.Config)
	return config
}

func (m *monitored) handle(ctx context.Context, q pgfake.Query) pgfake.Result {
	m.mu.Lock()
	answer := m.answer
	var columns []pgfake.Column
	var values []any
	if strings.Contains(q.SQL, "AS in_recovery") {
		columns = append(columns, pgfake.Column{Name: "server_ts"})
		values = append(values, time.Since(m.started).Seconds()+1e6)
	} else {
		columns = append(columns, pgfake.Column{Name: "role_name"})
		values = append(values, "watcher")
	}
	for name, value := range m.columns {
		columns, values = append(columns, pgfake.Column{Name: name}), append(values, value)
	}
	m.mu.Unlock()
	if answer != nil {
		if r := answer(ctx, q); r != nil {
			return *r
		}
	}
	return pgfake.Rows(columns, values)
}

func (m *monitored) set(answer func(ctx context.Context, q pgfake.Query) *pgfake.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = answer
}

func (m *monitored) column(name, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.columns[name] = value
}

// sockets counts the poller's open connections.
func (*monitored) sockets(p *Poller) int {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	return len(p.net.open)
}

func (m *monitored) logged(text string) int { return strings.Count(m.log.String(), text) }

func isPoll(q pgfake.Query) bool { return strings.Contains(q.SQL, "in_recovery") }

func hangPolls(ctx context.Context, q pgfake.Query) *pgfake.Result {
	if !isPoll(q) {
		return nil
	}
	r := pgfake.Hang(ctx)
	return &r
}

func TestPollerReadsByName(t *testing.T) {
	withPoller(t, Options{}, func(m *monitored, p *Poller) {
		if m.fake.Dials() != 0 {
			t.Error("it connected before the first poll")
		}
		s, err := p.Sample(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if s.Version != 170004 || s.Standby || s.NextXID != Read(10) || s.WALSyncMillis != Read(2.5) || s.Started.Unix() != 1000000 {
			t.Errorf("the sample is %+v", s)
		}
		if s.WALWaiters.Known || s.WriteStatementMillis.Known || !s.StatsReset.IsZero() {
			t.Errorf("a column that is not there was read: %+v", s)
		}
		sessions := m.fake.Sessions()
		if len(sessions) != 1 || sessions[0].Params["application_name"] != "pgyield monitor" {
			t.Errorf("the sessions are %+v", sessions)
		}
		stat := p.Stat()
		if stat.PollsOK != 1 || stat.Role != "watcher" || stat.Version != 170004 || !stat.Connected || stat.PollTime.Count() != 1 || stat.Connects != 1 {
			t.Errorf("stat %+v", stat)
		}
	})
}

func TestPollerUsesNoHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &monitored{t: t, log: &bytes.Buffer{}, started: time.Now(), columns: map[string]string{}}
		m.fake = pgfake.New(pgfake.Options{Handler: m.handle})
		defer m.fake.Close()
		config := m.config()
		touched := func() { t.Error("a hook of the program was called") }
		config.Tracer = tracer(touched)
		config.AfterConnect = func(context.Context, *pgconn.PgConn) error { touched(); return nil }
		config.ValidateConnect = func(context.Context, *pgconn.PgConn) error { touched(); return nil }
		config.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) { touched() }
		config.OnPgError = func(*pgconn.PgConn, *pgconn.PgError) bool { touched(); return true }
		config.RuntimeParams["application_name"] = "mine"
		p, err := NewPoller(config, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if _, err := p.Sample(context.Background()); err != nil {
			t.Fatal(err)
		}
		m.set(func(context.Context, pgfake.Query) *pgfake.Result { r := pgfake.Fail("57014", "no"); return &r })
		if _, err := p.Sample(context.Background()); err == nil {
			t.Error("no error")
		}
		if config.Tracer == nil || config.RuntimeParams["application_name"] != "mine" {
			t.Error("the program's config was changed")
		}
	})
}

// TestBeforeConnectIsAskedEachTime: it may change who connects, and adds no hook.
func TestBeforeConnectIsAskedEachTime(t *testing.T) {
	asked := 0
	options := Options{BeforeConnect: func(_ context.Context, config *pgx.ConnConfig) error {
		asked++
		config.User = "rotated"
		config.Tracer = tracer(func() { t.Error("a tracer was let in") })
		if asked == 2 {
			return errors.New("no password today")
		}
		return nil
	}}
	withPoller(t, options, func(m *monitored, p *Poller) {
		if _, err := p.Sample(context.Background()); err != nil {
			t.Fatal(err)
		}
		m.set(hangPolls) // the next is given up, and cancelled while another connects
		_, _ = p.Sample(context.Background())
		m.set(nil)
		if _, err := p.Sample(context.Background()); err == nil || !strings.Contains(err.Error(), "no password today") {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Second)
		if _, err := p.Sample(context.Background()); err != nil || asked != 3 {
			t.Errorf("asked %d times, %v", asked, err)
		}
		for _, s := range m.fake.Sessions() {
			if s.Params["user"] != "rotated" {
				t.Errorf("a session of %q", s.Params["user"])
			}
		}
	})
}

// tracer calls a function for each query and connect.
type tracer func()

func (f tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	f()
	return ctx
}
func (f tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) { f() }
func (f tracer) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	f()
	return ctx
}
func (f tracer) TraceConnectEnd(context.Context, pgx.TraceConnectEndData) { f() }

func TestTargetSessionAttrsStay(t *testing.T) {
	config, err := pgx.ParseConfig("host=localhost target_session_attrs=read-write")
	if err != nil {
		t.Fatal(err)
	}
	if c := monitorConfig(config, newTransport()); c.ValidateConnect == nil {
		t.Error("the monitor would look at any server, not at the one that is written to")
	}
}

// TestPollerUsesNoPreparedStatement holds what a bouncer in transaction mode needs.
func TestPollerUsesNoPreparedStatement(t *testing.T) {
	name := func() string { return "pgyield/x" }
	for _, options := range []Options{{}, {Name: name, NamePrefix: "pgyield/"}} {
		withPoller(t, options, func(m *monitored, p *Poller) {
			for range 3 {
				if _, err := p.Sample(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(p.conn.PgConn().ParameterStatus("server_version")); n == 0 {
				t.Error("the fake told no version")
			}
			for _, s := range m.fake.Statements() {
				for _, word := range []string{"PREPARE", "SET ", "BEGIN", "LISTEN", "DECLARE"} {
					if strings.Contains(strings.ToUpper(s.SQL), word) && !strings.Contains(s.SQL, "OFFSET ") {
						t.Errorf("%q needs a session", s.SQL)
					}
				}
			}
		})
	}
}

// TestPollerMarksItsSession: the mark is sent with each poll, what was found comes back,
// and counts only once a poll on the same connection has left it.
func TestPollerMarksItsSession(t *testing.T) {
	options := Options{Name: func() string { return "pgyield/x" }, NamePrefix: "pgyield/", Mark: "0a1b2c3d"}
	withPoller(t, options, func(m *monitored, p *Poller) {
		var sent []any
		m.set(func(_ context.Context, q pgfake.Query) *pgfake.Result {
			if isPoll(q) {
				sent = q.Args
			}
			return nil
		})
		want := func(what, mark string, marked bool) {
			t.Helper()
			m.column("mark", mark)
			s, err := p.Sample(context.Background())
			if err != nil || s.Mark != mark || s.Marked != marked || len(sent) != 3 || sent[2] != "0a1b2c3d" {
				t.Errorf("%s: mark %q, %v, with %v; %v", what, s.Mark, s.Marked, sent, err)
			}
		}
		want("what another left before", "zzzzzzzz", false)
		want("our own", "0a1b2c3d", true)
		want("another's", "zzzzzzzz", true)
		m.fake.KillAll()
		_, _ = p.Sample(context.Background()) // notices
		want("a new connection", "", false)
	})
}

func TestPollerOutlastsAHangingPoll(t *testing.T) {
	withPoller(t, Options{}, func(m *monitored, p *Poller) {
		if _, err := p.Sample(context.Background()); err != nil {
			t.Fatal(err)
		}
		m.set(hangPolls)
		for range 5 {
			start := time.Now()
			_, err := p.Sample(context.Background())
			if err == nil {
				t.Fatal("a poll that hangs gave a sample")
			}
			if d := time.Since(start); d > 2*time.Second {
				t.Errorf("it hung for %v", d)
			}
		}
		if m.fake.Peak() > 1 {
			t.Errorf("%d polls were in flight at once", m.fake.Peak())
		}
		m.set(nil)
		// The next is as far away as the back-off, not the clean-up of 15 s.
		start := time.Now()
		for {
			if _, err := p.Sample(context.Background()); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("it took %v to come back", d)
		}
		stat := p.Stat()
		if stat.PollsFailed < 2 || stat.PollsOK != 2 || stat.LastError != nil {
			t.Errorf("stat %+v", stat)
		}
		if m.logged("no sample") != 1 || m.logged("sampled again") != 1 {
			t.Errorf("the log:\n%s", m.log)
		}
	})
}

// TestPollerOutlastsASlowConnect: a server that takes longer than a poll to let one in is
// polled all the same, over one connection that is made once.
func TestPollerOutlastsASlowConnect(t *testing.T) {
	const slow = 11 * time.Second
	withPoller(t, Options{}, func(m *monitored, p *Poller) {
		m.set(func(ctx context.Context, q pgfake.Query) *pgfake.Result {
			if !isPoll(q) { // who we are and whom we talk to, asked once for each connection
				_ = pgfake.Sleep(ctx, slow)
			}
			return nil
		})
		start := time.Now()
		for {
			began := time.Now()
			_, err := p.Sample(context.Background())
			if d := time.Since(began); d > 2*time.Second {
				t.Errorf("a poll took %v", d)
			}
			time.Sleep(time.Millisecond)
			if n := m.sockets(p); n > 1 {
				t.Errorf("after a poll %d connections are open or being made", n)
			}
			if err == nil {
				break
			}
			if time.Since(start) > time.Minute {
				t.Fatal("no poll in a minute")
			}
			time.Sleep(500 * time.Millisecond)
		}
		if d := time.Since(start); d > slow+3*time.Second {
			t.Errorf("the first poll succeeded after %v", d)
		}
		if s := p.Stat(); s.Connects != 1 || m.logged("no sample") != 1 {
			t.Errorf("stat %+v, the log:\n%s", s, m.log)
		}
	})
}

// TestNewAttemptBesideAHungOne: a server that has forgotten the attempt of before, and
// answers again, is polled at once.
func TestNewAttemptBesideAHungOne(t *testing.T) {
	withPoller(t, Options{}, func(m *monitored, p *Poller) {
		m.set(func(ctx context.Context, _ pgfake.Query) *pgfake.Result {
			r := pgfake.Hang(ctx)
			return &r
		})
		_, _ = p.Sample(context.Background())
		m.set(nil) // for those who ask from now on
		if _, err := p.Sample(context.Background()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Millisecond)
		if n := m.sockets(p); n != 1 || m.fake.Dials() < 2 {
			t.Errorf("%d connections are open of %d", n, m.fake.Dials())
		}
	})
}

// TestSlowRefusal: what a server takes longer than a poll to say is heard all the same, and
// the next attempt waits as after any refusal.
func TestSlowRefusal(t *testing.T) {
	var asked atomic.Int64
	options := Options{BeforeConnect: func(ctx context.Context, _ *pgx.ConnConfig) error {
		asked.Add(1)
		if err := pgfake.Sleep(ctx, 3*time.Second); err != nil {
			return err
		}
		return errors.New("no password today")
	}}
	withPoller(t, options, func(_ *monitored, p *Poller) {
		heard := 0
		for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(500 * time.Millisecond) {
			if _, err := p.Sample(context.Background()); err != nil && strings.Contains(err.Error(), "no password today") {
				heard++
			}
		}
		// Without waiting there would be 24 attempts.
		if n := asked.Load(); heard < 4 || n < 5 || n > 16 {
			t.Errorf("heard %d times, %d attempts", heard, n)
		}
	})
}

// TestElderIsTakenFirst: a connection that is ready is used without another attempt, also
// while it is too early for one.
func TestElderIsTakenFirst(t *testing.T) {
	withPoller(t, Options{}, func(m *monitored, p *Poller) {
		m.set(func(ctx context.Context, q pgfake.Query) *pgfake.Result {
			if !isPoll(q) {
				_ = pgfake.Sleep(ctx, 3*time.Second)
			}
			return nil
		})
		_, _ = p.Sample(context.Background())
		time.Sleep(2 * time.Second)
		p.retryAt = time.Now().Add(time.Hour)
		if _, err := p.Sample(context.Background()); err != nil {
			t.Error(err)
		}
		if n := m.fake.Dials(); n != 1 {
			t.Errorf("%d attempts", n)
		}
	})
}

// TestConnectingLeavesTimeForThePoll: one that finds its connection late does not begin
// what it would have to give up, and the connection with it.
func TestConnectingLeavesTimeForThePoll(t *testing.T) {
	withPoller(t, Options{}, func(m *monitored, p *Poller) {
		m.set(func(ctx context.Context, q pgfake.Query) *pgfake.Result {
			slow := 1900 * time.Millisecond
			if isPoll(q) {
				slow = 300 * time.Millisecond
			}
			_ = pgfake.Sleep(ctx, slow)
			return nil
		})
		for p.Stat().PollsOK == 0 && p.Stat().PollsFailed < 10 {
			_, _ = p.Sample(context.Background())
		}
		if s := p.Stat(); s.PollsOK != 1 || s.Connects != 1 {
			t.Errorf("stat %+v", s)
		}
	})
}

func TestPollerComesBackAtOnce(t *testing.T) {
	withPoller(t, Options{}, func(m *monitored, p *Poller) {
		if _, err := p.Sample(context.Background()); err != nil {
			t.Fatal(err)
		}
		m.fake.KillAll()
		if _, err := p.Sample(context.Background()); err == nil {
			t.Fatal("a killed session answered")
		}
		if _, err := p.Sample(context.Background()); err != nil {
			t.Errorf("the first attempt after a lost connection: %v", err)
		}
	})
}

func TestPollerBacksOff(t *testing.T) {
	withPoller(t, Options{BackoffMin: 100 * time.Millisecond, BackoffMax: 2 * time.Second}, func(m *monitored, p *Poller) {
		m.fake.Refuse(nil)
		backoffs := 0
		for range 600 { // a minute
			_, err := p.Sample(context.Background())
			if err == nil {
				t.Fatal("a refused connection gave a sample")
			}
			if errors.Is(err, ErrBackoff) {
				backoffs++
			}
			time.Sleep(100 * time.Millisecond)
		}
		// About five short waits, then one every two seconds; pgx dials twice a time.
		if n := p.Stat().PollsFailed; n < 25 || n > 60 || backoffs < 500 {
			t.Errorf("%d attempts in a minute, %d too early", n, backoffs)
		}
		if m.logged("no sample") != 1 {
			t.Errorf("the log:\n%s", m.log)
		}
		m.fake.Accept()
		start := time.Now()
		for {
			if _, err := p.Sample(context.Background()); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if d := time.Since(start); d > 2600*time.Millisecond {
			t.Errorf("it took %v to come back", d)
		}
	})
}

func TestPollerLeavesOutWhatIsRefused(t *testing.T) {
	for _, c := range []struct{ word, code, part string }{
		{"pg_stat_wal", "42P01", "WAL sync counters"},
		{"pg_stat_get_activity", "42501", "sessions"},
		{"pg_snapshot_xmax", "42883", "transaction id"},
		{"pg_current_wal_insert_lsn", "55000", "WAL position"},
		{"pg_postmaster_start_time", "42501", "server version"},
	} {
		withPoller(t, Options{}, func(m *monitored, p *Poller) {
			m.set(func(_ context.Context, q pgfake.Query) *pgfake.Result {
				if !strings.Contains(q.SQL, c.word) {
					return nil
				}
				r := pgfake.Fail(c.code, "refused")
				return &r
			})
			for range 3 {
				s, err := p.Sample(context.Background())
				if err != nil || !s.NextXID.Known {
					t.Fatalf("%s: %+v, %v", c.word, s, err)
				}
			}
			stat := p.Stat()
			if len(stat.Refused) != 1 || stat.Refused[0] != c.part || stat.PollsFailed != 0 || stat.Connects != 1 {
				t.Errorf("%s: %+v", c.word, stat)
			}
			if m.logged("refuses a part") != 1 {
				t.Errorf("%s: the log:\n%s", c.word, m.log)
			}
		})
	}
}

func TestPassingErrorCostsNoConnection(t *testing.T) {
	withPoller(t, Options{}, func(m *monitored, p *Poller) {
		_, _ = p.Sample(context.Background())
		m.set(func(context.Context, pgfake.Query) *pgfake.Result { r := pgfake.Fail("57014", "canceled"); return &r })
		if _, err := p.Sample(context.Background()); err == nil {
			t.Fatal("no error")
		}
		m.set(nil)
		if _, err := p.Sample(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := p.Stat().Connects; n != 1 {
			t.Errorf("%d connects", n)
		}
	})
}

func TestBlindness(t *testing.T) {
	withPoller(t, Options{}, func(m *monitored, p *Poller) {
		m.column("hidden", "3")
		m.column("wal_waiters", "0")
		_, _ = p.Sample(context.Background())
		if s := p.Stat(); !s.Blind || len(s.BlindSignals) != 4 {
			t.Errorf("before pg_locks was read: %+v", s.BlindSignals)
		}
		m.column("pg_locks_waiters", "2")
		m.column("pg_locks_relation_wait_max_ms", "0")
		s, err := p.Sample(context.Background())
		if err != nil || s.WALWaiters.Known || s.LockWaiters != Read(2) {
			t.Errorf("%+v, %v", s, err)
		}
		if s := p.Stat(); !s.Blind || len(s.BlindSignals) != 2 {
			t.Errorf("with pg_locks: %+v", s.BlindSignals)
		}
		statements := m.fake.Statements()
		if !strings.Contains(statements[len(statements)-1].SQL, "FROM pg_locks") {
			t.Error("pg_locks was not asked for")
		}
		if m.logged(`GRANT pg_monitor TO \"watcher\"`) != 1 {
			t.Errorf("the log:\n%s", m.log)
		}
	})
}

func TestStandbyIsSaidOnce(t *testing.T) {
	withPoller(t, Options{}, func(m *monitored, p *Poller) {
		m.column("in_recovery", "t")
		for range 5 {
			if s, err := p.Sample(context.Background()); err != nil || !s.Standby {
				t.Fatalf("%+v, %v", s, err)
			}
		}
		if n := m.logged("changed its part"); n != 1 || !p.Stat().Standby {
			t.Errorf("said %d times:\n%s", n, m.log)
		}
	})
}

func TestMaintain(t *testing.T) {
	var runs atomic.Int64
	options := Options{Maintain: func(ctx context.Context, conn *pgx.Conn) error {
		runs.Add(1)
		_, err := conn.Exec(ctx, "select upkeep")
		return err
	}}
	withPoller(t, options, func(m *monitored, p *Poller) {
		for range 5 {
			if _, err := p.Sample(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if n := runs.Load(); n != 1 {
			t.Errorf("it ran %d times at the first connect", n)
		}
		time.Sleep(DefaultMaintainEvery)
		_, _ = p.Sample(context.Background())
		if n := runs.Load(); n != 2 {
			t.Errorf("it ran %d times after ten minutes", n)
		}
		m.fake.KillAll()
		_, _ = p.Sample(context.Background())
		if _, err := p.Sample(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := runs.Load(); n != 3 {
			t.Errorf("it ran %d times after a new connect", n)
		}
	})
}

func TestMaintainMayFailAndHang(t *testing.T) {
	for name, fail := range map[string]func(context.Context) *pgfake.Result{
		"fails": func(context.Context) *pgfake.Result { r := pgfake.Fail("42501", "no"); return &r },
		"hangs": func(ctx context.Context) *pgfake.Result { r := pgfake.Hang(ctx); return &r },
	} {
		options := Options{Maintain: func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "select upkeep")
			return err
		}}
		withPoller(t, options, func(m *monitored, p *Poller) {
			m.set(func(ctx context.Context, q pgfake.Query) *pgfake.Result {
				if q.SQL == "select upkeep" {
					return fail(ctx)
				}
				return nil
			})
			ok := 0
			for range 240 { // two minutes
				if _, err := p.Sample(context.Background()); err == nil {
					ok++
				}
				time.Sleep(500 * time.Millisecond)
			}
			if ok < 230 || m.logged("upkeep") != 1 || p.Stat().MaintainError == nil {
				t.Errorf("%s: %d of 240 polls, %v, log:\n%s", name, ok, p.Stat().MaintainError, m.log)
			}
		})
	}
}

func TestCloseWaitsForEverything(t *testing.T) {
	for name, prepare := range map[string]func(m *monitored, p *Poller){
		"unused": func(*monitored, *Poller) {},
		"idle":   func(m *monitored, p *Poller) { _, _ = p.Sample(context.Background()) },
		"in a poll that hangs": func(m *monitored, p *Poller) {
			m.set(hangPolls)
			go func() { _, _ = p.Sample(context.Background()) }()
			synctest.Wait()
		},
		"connecting to a server that says nothing": func(m *monitored, p *Poller) {
			m.fake.HangStartup()
			go func() { _, _ = p.Sample(context.Background()) }()
			synctest.Wait()
		},
		"connecting without a poll that waits": func(m *monitored, p *Poller) {
			m.fake.HangStartup()
			_, _ = p.Sample(context.Background())
		},
		"cleaning up": func(m *monitored, p *Poller) {
			_, _ = p.Sample(context.Background())
			m.set(hangPolls)
			_, _ = p.Sample(context.Background())
			m.fake.HangStartup()
		},
	} {
		t.Run(name, func(t *testing.T) {
			withPoller(t, Options{}, func(m *monitored, p *Poller) {
				m.t = t
				prepare(m, p)
				under := p.elder
				start := time.Now()
				p.Close()
				if under != nil {
					select {
					case <-under.done:
					default:
						t.Error("an attempt to connect goes on")
					}
				}
				p.Close()
				if d := time.Since(start); d > 1100*time.Millisecond {
					t.Errorf("Close took %v", d)
				}
				if n := m.sockets(p); n != 0 {
					t.Errorf("%d sockets are open", n)
				}
				if _, err := p.Sample(context.Background()); !errors.Is(err, ErrClosed) {
					t.Errorf("after Close: %v", err)
				}
			})
		})
	}
}

func TestGivingUpIsNotAFailure(t *testing.T) {
	withPoller(t, Options{}, func(m *monitored, p *Poller) {
		m.set(hangPolls)
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if _, err := p.Sample(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if s := p.Stat(); s.PollsFailed != 0 || m.log.Len() > 0 {
			t.Errorf("stat %+v, log %s", s, m.log)
		}
	})
}

func TestOnePollAtATime(t *testing.T) {
	withPoller(t, Options{}, func(m *monitored, p *Poller) {
		m.set(func(ctx context.Context, _ pgfake.Query) *pgfake.Result {
			_ = pgfake.Sleep(ctx, 100*time.Millisecond)
			return nil
		})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := p.Sample(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if m.fake.Peak() != 1 || m.fake.Dials() != 1 {
			t.Errorf("%d statements at once over %d connections", m.fake.Peak(), m.fake.Dials())
		}
	})
}

func TestVersionIsNoticedWithoutReconnect(t *testing.T) {
	withPoller(t, Options{}, func(m *monitored, p *Poller) {
		_, _ = p.Sample(context.Background())
		m.column("server_version_num", "180001")
		_, _ = p.Sample(context.Background())
		_, _ = p.Sample(context.Background())
		statements := m.fake.Statements()
		if last := statements[len(statements)-1].SQL; !strings.Contains(last, "pg_stat_io") || p.Stat().Version != 180001 {
			t.Errorf("the poll is still %q", last)
		}
	})
}
