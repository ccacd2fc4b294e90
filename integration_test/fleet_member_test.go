package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pgyield/pgyield"
)

const envFleetMember = "PGYIELD_FLEET_MEMBER"

// TestFleetMember is a process of the tests below, and nothing by itself: a pool with more
// reads than it may run, that tells what it does. Lines that it is sent are reads to hold.
func TestFleetMember(t *testing.T) {
	dsn := os.Getenv(envFleetMember)
	if dsn == "" {
		return
	}
	orders := bufio.NewScanner(os.Stdin)
	orders.Scan() // its network is there
	pool, err := pgyield.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	var errs atomic.Int64
	for range 30 {
		go func() {
			for {
				if _, err := pool.Exec(context.Background(), sleeper); err != nil {
					errs.Add(1)
					time.Sleep(50 * time.Millisecond)
				}
			}
		}()
	}
	go func() {
		for ; ; time.Sleep(10 * time.Millisecond) {
			s := pool.ReadStat()
			fmt.Printf("at %d ceiling %d running %d polls %d errors %d\n",
				time.Now().UnixNano(), s.Ceiling(), s.Running(), s.Polls().PollsOK, errs.Load())
		}
	}()
	for orders.Scan() {
		read := orders.Text()
		go func() {
			_, err := pool.Exec(context.Background(), read)
			fmt.Printf("held %v\n", err)
		}()
	}
	os.Exit(0) // the parent has ended, or wants us to
}

// report is what a member process tells of one moment.
type report struct {
	at               time.Time
	ceiling, running int
	polls, errors    int
}

// process is one that runs TestFleetMember.
type process struct {
	cmd    *exec.Cmd
	orders io.Writer

	mu      sync.Mutex // guards what follows
	reports []report
	held    []string // how held reads ended
}

func startMember(t *testing.T, dsn string) *process {
	t.Helper()
	p := newMember(t, dsn, &syscall.SysProcAttr{})
	p.order(t, "go")
	return p
}

// newMember starts a process that connects when it is given its first order.
func newMember(t *testing.T, dsn string, attributes *syscall.SysProcAttr) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], "-test.run=^TestFleetMember$", "-test.timeout=300s")} //nolint:gosec // ourselves
	p.cmd.Env = append(os.Environ(), envFleetMember+"="+dsn)
	p.cmd.SysProcAttr = attributes
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.orders = in
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.listen(out)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = in.Close()
		_ = p.cmd.Process.Kill()
		<-read
		_ = p.cmd.Wait()
	})
	return p
}

func (p *process) listen(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var r report
		var at int64
		n, _ := fmt.Sscanf(lines.Text(), "at %d ceiling %d running %d polls %d errors %d", &at, &r.ceiling, &r.running, &r.polls, &r.errors)
		ended, isHeld := strings.CutPrefix(lines.Text(), "held ")
		p.mu.Lock()
		switch {
		case n == 5:
			r.at = time.Unix(0, at)
			p.reports = append(p.reports, r)
		case isHeld:
			p.held = append(p.held, ended)
		}
		p.mu.Unlock()
	}
}

func (p *process) order(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(p.orders, line); err != nil {
		t.Fatal(err)
	}
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func (p *process) last() (r report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.reports) > 0 {
		r = p.reports[len(p.reports)-1]
	}
	return r
}

// since returns the reports from a time on.
func (p *process) since(at time.Time) []report {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, r := range p.reports {
		if !r.at.Before(at) {
			return p.reports[i:len(p.reports):len(p.reports)]
		}
	}
	return nil
}

// holdAll gives each member a read that takes so long. The returned function waits until
// all have ended, and fails the test where one ended badly.
func holdAll(t *testing.T, members []*process, takes time.Duration) (ended func()) {
	t.Helper()
	counts := make([]int, len(members))
	for i, m := range members {
		m.mu.Lock()
		counts[i] = len(m.held)
		m.mu.Unlock()
		m.order(t, fmt.Sprintf("select pg_sleep(%g)", takes.Seconds()))
	}
	return func() {
		t.Helper()
		comesTrue(t, takes+20*time.Second, "held reads end", func() (string, bool) {
			state, all := "", true
			for i, m := range members {
				m.mu.Lock()
				now := m.held[counts[i]:]
				all = all && len(now) > 0
				state += fmt.Sprint(now)
				m.mu.Unlock()
			}
			return state, all
		})
		for i, m := range members {
			m.mu.Lock()
			if got := m.held[counts[i]]; got != "<nil>" {
				t.Errorf("a read that ran all along ended with %s", got)
			}
			m.mu.Unlock()
		}
	}
}

// noErrors fails the test where a member's read has failed.
func noErrors(t *testing.T, members []*process) {
	t.Helper()
	for i, m := range members {
		if n := m.last().errors; n > 0 {
			t.Errorf("member %d: %d reads failed", i, n)
		}
	}
}

// sharesOf tells whether the members' ceilings are the wanted ones in some order: who has
// what does not divide is by their ids.
func sharesOf(members []*process, want ...int) func() (string, bool) {
	return func() (string, bool) {
		var got []int
		for _, m := range members {
			got = append(got, m.last().ceiling)
		}
		return fmt.Sprint(got), sameSorted(got, want)
	}
}
