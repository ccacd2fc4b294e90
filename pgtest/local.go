//go:build unix

package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// portTries bounds how often another port is tried: between the choice of a
	// free port and the server's bind somebody else may take it.
	portTries = 8

	// stopGrace bounds the wait for a server that was told to stop; then it is
	// killed.
	stopGrace = 15 * time.Second

	// questionTimeout bounds one attempt to connect during a start.
	questionTimeout = 5 * time.Second

	// maxSocketPath is the shortest limit of a unix socket's path, that of macOS
	// (104 bytes with the final NUL), less the file name that Postgres adds.
	maxSocketPath = 103 - len("/.s.PGSQL.65535")
)

// localGuard ends the server through its own pg_ctl, which knows a stale pid file
// from a live one, and removes the folder. The pid file may be a moment away when
// this process dies during a start.
const localGuard = `for try in 1 2 3; do
	"$1" -D "$2/data" -m immediate stop && break
	sleep 1
done
rm -rf "$2"
`

// cluster is a local server: its folder, and once it runs, its process.
type cluster struct {
	programs   installation
	folder     string // of everything that the server writes
	password   string
	credential *syscall.Credential
	guard      *guard
	process    *exec.Cmd
	exited     chan struct{} // closed when the process has ended
}

// startLocal makes a cluster in a temporary folder and starts it.
func startLocal(ctx context.Context, options Options) (_ *Server, err error) {
	ctx, cancel := context.WithTimeout(ctx, options.StartTimeout)
	defer cancel()
	programs, err := findInstallation(ctx, options.Version)
	if err != nil {
		return nil, err
	}
	options.Logf("pgtest: starting PostgreSQL %d of %s", programs.major, programs.folder)
	c := &cluster{programs: programs, password: rand.Text()}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.remove())
		}
	}()
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	for range portTries {
		server, err := c.start(ctx, options)
		if err == nil {
			return server, nil
		}
		if !errors.Is(err, errPortTaken) {
			return nil, err
		}
		options.Logf("pgtest: %v, trying another", err)
	}
	return nil, fmt.Errorf("%d free ports were each taken before the server had them", portTries)
}

// prepare makes the folder, sets its guard and runs initdb.
func (c *cluster) prepare(ctx context.Context) error {
	var err error
	if c.credential, err = serverCredential(); err != nil {
		return err
	}
	if c.folder, err = temporaryFolder(c.credential); err != nil {
		return err
	}
	if c.guard, err = startGuard(localGuard, c.credential, "/", c.programs.program("pg_ctl"), c.folder); err != nil {
		return err
	}
	secret := filepath.Join(c.folder, "password")
	if err := c.write(secret, c.password+"\n"); err != nil {
		return err
	}
	// Scram everywhere: a superuser that any user of this machine could become
	// would be a way to the account that the server runs as.
	initdb := c.command(ctx, "initdb", "--pgdata", c.data(), "--username", superuser, "--pwfile", secret,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--no-locale", "--no-sync")
	output, err := initdb.CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, tail(output))
	}
	return os.Remove(secret)
}

func (c *cluster) data() string { return filepath.Join(c.folder, "data") }

// command prepares one of the server programs: as the server's user, in a session
// of its own, so that a terminal's Ctrl-C reaches only the program, which may want
// the server for its own clean-up.
func (c *cluster) command(ctx context.Context, name string, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.programs.program(name), arguments...)
	cmd.Dir = c.folder
	cmd.Env = serverEnvironment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.credential}
	return cmd
}

// serverEnvironment is this process's without what would reach into the server:
// its own PG variables, and a locale in which its messages could not be read here.
func serverEnvironment() []string {
	var environment []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "PG") && !strings.HasPrefix(entry, "LC_") {
			environment = append(environment, entry)
		}
	}
	return append(environment, "LC_ALL=C")
}

// write makes a file that only the server's user can read.
func (c *cluster) write(file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	return own(file, c.credential)
}

var errPortTaken = errors.New("the port was taken by another process")

// start runs the server on a port that was free a moment ago, until it answers.
func (c *cluster) start(ctx context.Context, options Options) (*Server, error) {
	port, err := options.freePort()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(c.folder, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	socket := c.folder
	if len(socket) > maxSocketPath {
		socket = ""
	}
	arguments := append([]string{
		"-D", c.data(), "-p", strconv.Itoa(port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + socket,
	}, options.arguments()...)
	// Not bound to the context, which ends with the start.
	c.process = c.command(context.WithoutCancel(ctx), "postgres", arguments...)
	c.process.Stdout, c.process.Stderr = log, log
	if err := c.process.Start(); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	c.exited = make(chan struct{})
	go func(process *exec.Cmd, exited chan struct{}) {
		_ = process.Wait() // how it ended stands in its log
		close(exited)
	}(c.process, c.exited)

	server := &Server{dsn: c.dsn("127.0.0.1", port), way: Local, stop: c.remove}
	if socket != "" {
		server.socketDSN = c.dsn(socket, port)
	}
	if server.version, err = c.await(ctx, server.dsn); err != nil {
		return nil, err
	}
	return server, nil
}

// dsn returns a URL; a unix socket's folder goes into a parameter, where pgx and
// libpq alike look for it.
func (c *cluster) dsn(host string, port int) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(superuser, c.password), Path: "/postgres"}
	query := url.Values{"sslmode": {"disable"}}
	if filepath.IsAbs(host) {
		query.Set("host", host)
		query.Set("port", strconv.Itoa(port))
	} else {
		u.Host = net.JoinHostPort(host, strconv.Itoa(port))
	}
	u.RawQuery = encode(query)
	return u.String()
}

// await asks the server until it answers, and makes sure that it is this one: on
// a port that was taken another may answer, or accept and say nothing, so each
// question is dropped when the server has ended, or after a while.
func (c *cluster) await(ctx context.Context, dsn string) (version int, err error) {
	alive, cancel := context.WithCancel(ctx)
	defer cancel()
	go func(exited <-chan struct{}) {
		select {
		case <-exited:
			cancel()
		case <-alive.Done():
		}
	}(c.exited)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		question, done := context.WithTimeout(alive, questionTimeout)
		answer, err := ask(question, dsn)
		done()
		if err == nil && sameFolder(answer.folder, c.data()) {
			return answer.version, nil
		}
		select {
		case <-c.exited:
			return 0, c.whyExited()
		case <-ctx.Done():
			return 0, fmt.Errorf("postgres did not answer in time: %w: last answer: %w: its log: %s",
				context.Cause(ctx), err, c.logTail())
		case <-ticker.C:
		}
	}
}

func (c *cluster) whyExited() error {
	log := c.logTail()
	if strings.Contains(log, "could not create any TCP/IP sockets") || strings.Contains(log, "could not bind") {
		return fmt.Errorf("%w: %s", errPortTaken, log)
	}
	return fmt.Errorf("postgres ended during its start: %s", log)
}

func (c *cluster) logTail() string {
	log, err := os.ReadFile(filepath.Join(c.folder, "log"))
	if err != nil {
		return err.Error()
	}
	return tail(log)
}

// remove ends the server, its guard and its folder; nothing that was not begun is
// missed. The data is thrown away, so the server need not write it out first: an
// immediate shutdown skips the checkpoint, which after a load test takes seconds.
func (c *cluster) remove() error {
	var errs []error
	if c.exited != nil {
		_ = c.process.Process.Signal(syscall.SIGQUIT) // it may have ended by itself
		select {
		case <-c.exited:
		case <-time.After(stopGrace):
			_ = c.process.Process.Kill()
			<-c.exited
			errs = append(errs, fmt.Errorf("the server did not stop within %v and was killed", stopGrace))
		}
	}
	if c.guard != nil {
		c.guard.release()
	}
	if c.folder != "" {
		errs = append(errs, removeFolder(c.folder))
	}
	return errors.Join(errs...)
}

// removeFolder tolerates what a child of a killed server still writes.
func removeFolder(folder string) error {
	var err error
	for range 5 {
		if err = os.RemoveAll(folder); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

func sameFolder(a, b string) bool {
	if a == b {
		return true
	}
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
