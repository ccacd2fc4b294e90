package integration_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/pgtest"
	"github.com/pgyield/pgyield/pressure"
)

// cutProxy stands between a client and a server, and can freeze, cut and redirect.
type cutProxy struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	target string
	frozen chan struct{} // not nil while frozen; closed to go on
	open   map[net.Conn]struct{}
}

func newCutProxy(t testing.TB, target string) *cutProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &cutProxy{listener: listener, target: target, open: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.thaw()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *cutProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		server, err := net.Dial("tcp", target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.open[client], p.open[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		p.wg.Go(func() { p.copy(server, client) })
		p.wg.Go(func() { p.copy(client, server) })
	}
}

func (p *cutProxy) copy(to, from net.Conn) {
	defer func() {
		_, _ = to.Close(), from.Close()
		p.mu.Lock()
		delete(p.open, to)
		p.mu.Unlock()
	}()
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		frozen := p.frozen
		p.mu.Unlock()
		if frozen != nil {
			<-frozen
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// freeze lets connections be made and nothing come through.
func (p *cutProxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen == nil {
		p.frozen = make(chan struct{})
	}
}

func (p *cutProxy) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
}

// cut closes every connection.
func (p *cutProxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *cutProxy) redirect(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// through returns a DSN that leads through the proxy.
func (p *cutProxy) through(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = p.listener.Addr().String()
	return u.String()
}

func addressOf(t testing.TB, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
}

// pollUntil polls until a sample fits or a time is over; it returns how many polls gave a
// sample.
func pollUntil(t testing.TB, p *pressure.Poller, limit time.Duration, fits func(pressure.Sample) bool) int {
	t.Helper()
	seen := 0
	deadline := time.Now().Add(limit)
	for time.Now().Before(deadline) {
		s, err := p.Sample(context.Background())
		if err == nil {
			if seen++; fits(s) {
				return seen
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("no fitting sample within %v; the last error is %v", limit, p.Stat().LastError)
	return 0
}

// TestPressureFrozenServer: connections stay open and nothing answers.
func TestPressureFrozenServer(t *testing.T) {
	dsn := serverDSN(t)
	p := newCutProxy(t, addressOf(t, dsn))
	poller, logged := newTestPoller(t, p.through(t, dsn), pressure.Options{Timeout: 300 * time.Millisecond})
	mustSample(t, poller)
	p.freeze()
	for range 6 {
		began := time.Now()
		if _, err := poller.Sample(context.Background()); err == nil {
			t.Fatal("a frozen server answered")
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("a poll with a timeout of 0.3 s took %v", d)
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.thaw()
	pollUntil(t, poller, 10*time.Second, func(pressure.Sample) bool { return true })
	if n := strings.Count(logged.String(), "no sample"); n != 1 {
		t.Errorf("the log tells %d times of one outage:\n%s", n, logged)
	}
	p.freeze()
	began := time.Now()
	poller.Close()
	if d := time.Since(began); d > 3*time.Second {
		t.Errorf("Close beside a frozen server took %v", d)
	}
}

// TestPressurePollBehindALock hangs the poll inside the server.
func TestPressurePollBehindALock(t *testing.T) {
	server := pgtest.New(t, pgtest.Options{Way: pgtest.Local})
	if server.Version() < 140000 || server.Version() >= 180000 {
		t.Skip("not applicable: this version reads no view that can be locked")
	}
	dsn := server.DSN()
	holder := connectTo(t, dsn)
	poller, _ := newTestPoller(t, dsn, pressure.Options{Timeout: 300 * time.Millisecond})
	mustSample(t, poller)
	mustExec(t, holder, "begin")
	mustExec(t, holder, "lock table pg_catalog.pg_stat_wal in access exclusive mode")
	for range 5 {
		if _, err := poller.Sample(context.Background()); err == nil {
			t.Fatal("the poll passed the lock")
		}
		time.Sleep(200 * time.Millisecond)
	}
	// What was given up is cancelled on the server too.
	var monitors int
	time.Sleep(300 * time.Millisecond)
	err := holder.QueryRow(context.Background(),
		"select count(*) from pg_stat_get_activity(null) where application_name = 'pgyield monitor'").Scan(&monitors)
	if err != nil || monitors > 1 {
		t.Errorf("%d monitors are on the server, %v", monitors, err)
	}
	mustExec(t, holder, "rollback")
	pollUntil(t, poller, 10*time.Second, func(s pressure.Sample) bool { return s.WALSyncs.Known })
	if r := poller.Stat().Refused; len(r) > 0 {
		t.Errorf("a lock was taken for a refusal of %v", r)
	}
}

// TestPressureStandbyPromotionAndCrash crashes a server into a standby, and promotes
// it.
func TestPressureStandbyPromotionAndCrash(t *testing.T) {
	server := pgtest.New(t, pgtest.Options{Way: pgtest.Local, Settings: map[string]string{"track_io_timing": "on"}})
	dsn := server.DSN()
	poller, logged := newTestPoller(t, dsn, pressure.Options{})
	before := mustSample(t, poller)

	// The server's working folder is its data; the signal file makes what follows
	// a crash a standby.
	mustExec(t, connectTo(t, dsn), "copy (select 1) to program 'cat > standby.signal'")
	crashServer(t, dsn)
	pollUntil(t, poller, 30*time.Second, func(s pressure.Sample) bool { return s.Standby })
	for range 10 {
		s := mustSample(t, poller)
		if !s.Standby || s.WALBytes.Known || !s.NextXID.Known || !s.LockWaiters.Known {
			t.Fatalf("a standby's sample is %+v", s)
		}
	}
	if v := verdictOf(t, poller, 10); v.Pressing || !v.Known {
		t.Errorf("a standby's verdict is %+v", v)
	}
	if lines := strings.Count(logged.String(), "\n"); lines > 4 {
		t.Errorf("%d lines are logged:\n%s", lines, logged)
	}

	mustExec(t, connectTo(t, dsn), "select pg_promote(true)")
	if n := pollUntil(t, poller, 10*time.Second, func(s pressure.Sample) bool { return !s.Standby && s.WALBytes.Known }); n > 2 {
		t.Errorf("the promotion was noticed by poll %d", n)
	}
	after := mustSample(t, poller)
	if before.Version >= 140000 && after.StatsReset.Equal(before.StatsReset) {
		t.Error("the crash does not show in the time of the reset")
	}
}

// crashServer kills a backend, so that the server starts over.
func crashServer(t testing.TB, dsn string) {
	t.Helper()
	victim := connectTo(t, dsn)
	killer := connectTo(t, dsn)
	_, err := killer.Exec(context.Background(), fmt.Sprintf("copy (select 1) to program 'kill -9 %d'", victim.PgConn().PID()))
	_ = err // the killer may be ended with the rest before it hears of it
}

// verdictOf judges n periods of samples beside contending reads.
func verdictOf(t testing.TB, poller *pressure.Poller, n int) pressure.Verdict {
	t.Helper()
	judge, err := pressure.NewJudge(0, pressure.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var v pressure.Verdict
	for range n {
		s := mustSample(t, poller)
		v = judge.Next(time.Now(), &s, pressure.Activity{Limit: 4, Running: 4, Waiting: 1, Contended: true})
		time.Sleep(50 * time.Millisecond)
	}
	return v
}

// TestPressureUpgradeUnderway: the address leads to another version from now on.
func TestPressureUpgradeUnderway(t *testing.T) {
	from, to := versionDSN(t, "15"), versionDSN(t, "18")
	for _, dsn := range []string{from, to} {
		admin := connectTo(t, dsn)
		mustExec(t, admin, "drop role if exists pressure_upgrade")
		mustExec(t, admin, "create role pressure_upgrade login password 'the same'")
		mustExec(t, admin, "grant pg_monitor to pressure_upgrade")
	}
	p := newCutProxy(t, addressOf(t, from))
	through, err := url.Parse(p.through(t, from))
	if err != nil {
		t.Fatal(err)
	}
	through.User = url.UserPassword("pressure_upgrade", "the same")
	poller, _ := newTestPoller(t, through.String(), pressure.Options{})
	old := mustSample(t, poller)
	if old.Version/10000 != 15 {
		t.Fatalf("version %d", old.Version)
	}
	p.redirect(addressOf(t, to))
	p.cut()
	pollUntil(t, poller, 10*time.Second, func(s pressure.Sample) bool { return s.Version/10000 == 18 && s.WALSyncs.Known })
	if s := poller.Stat(); s.Version/10000 != 18 || len(s.Refused) > 0 {
		t.Errorf("stat %+v", s)
	}
}

// TestPressureThroughBouncer polls through pgbouncer in transaction mode, where two
// polls may meet two different server connections.
func TestPressureThroughBouncer(t *testing.T) {
	dsn := startBouncer(t, serverDSN(t))
	busy, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for range 3 {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		conn, err := pgx.ConnectConfig(busy, config)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer func() { _ = conn.Close(context.Background()) }()
			for busy.Err() == nil {
				_, _ = conn.Exec(busy, "select pg_sleep(0.005)")
			}
		})
	}
	maintained := 0
	poller, logged := newTestPoller(t, dsn, pressure.Options{Maintain: func(ctx context.Context, conn *pgx.Conn) error {
		maintained++
		_, err := conn.Exec(ctx, "select proname from pg_proc where provolatile = $1", "v")
		return err
	}})
	for range 100 {
		s := mustSample(t, poller)
		if !s.NextXID.Known || !s.LockWaiters.Known {
			t.Fatalf("the sample is %+v", s)
		}
	}
	if s := poller.Stat(); s.PollsFailed > 0 || s.Connects != 1 || len(s.Refused) > 0 || s.MaintainError != nil || maintained != 1 {
		t.Errorf("stat %+v; the log:\n%s", s, logged)
	}
}

// startBouncer runs pgbouncer before a server and returns the DSN that leads through
// it.
func startBouncer(t testing.TB, dsn string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; !isFile(program) {
			t.Skip("pgbouncer is not installed (Debian's package is pgbouncer)")
		}
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	folder, err := os.MkdirTemp("", "pgyield-bouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	ini := fmt.Sprintf(`[databases]
app = host=%s port=%d dbname=%s user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
`, config.Host, config.Port, config.Database, config.User, config.Password, port)
	path := filepath.Join(folder, "pgbouncer.ini")
	if err := errors.Join(os.WriteFile(path, []byte(ini), 0o644), os.Chmod(folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "-q", path)
	command.Stdout, command.Stderr = io.Discard, io.Discard
	if os.Getuid() == 0 {
		// It refuses to run as root.
		command.SysProcAttr = &syscall.SysProcAttr{Credential: credentialOf(t, "nobody")}
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
	through := fmt.Sprintf("postgres://%s@127.0.0.1:%d/app?sslmode=disable", config.User, port)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		conn, err := pgx.Connect(context.Background(), through)
		if err == nil {
			_ = conn.Close(context.Background())
			return through
		}
		if time.Now().After(deadline) {
			t.Fatalf("pgbouncer does not answer: %v", err)
		}
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func credentialOf(t testing.TB, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
