package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield"
)

// sleeper is a read that holds its permit and costs the server nothing.
const sleeper = "select pg_sleep(0.05)"

// busy keeps n reads going on a pool until stopped.
func busy(t testing.TB, pool *pgyield.Pool, n int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := pool.Exec(ctx, sleeper); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(stop)
	return stop
}

// comesTrue waits until what holds, which it must within the time.
func comesTrue(t testing.TB, within time.Duration, what string, holds func() (state string, ok bool)) {
	t.Helper()
	begun := time.Now()
	for {
		state, ok := holds()
		if ok {
			t.Logf("%s after %v: %s", what, time.Since(begun).Round(10*time.Millisecond), state)
			return
		}
		if time.Since(begun) > within {
			t.Fatalf("%s: not within %v: %s", what, within, state)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// ceilingsAre tells whether the pools' ceilings are the wanted ones.
func ceilingsAre(pools []*pgyield.Pool, want func(ceilings []int) bool) func() (string, bool) {
	return func() (string, bool) {
		var got []int
		for _, p := range pools {
			got = append(got, p.ReadStat().Ceiling())
		}
		return fmt.Sprint(got), want(got)
	}
}

func allAre(n int) func([]int) bool {
	return func(list []int) bool {
		for _, x := range list {
			if x != n {
				return false
			}
		}
		return true
	}
}

const member = "pool_max_conns=20 yield_fleet_limit=12"

// TestFleet shares a limit of 12 between pools: evenly when all are busy, all to one when
// the others idle, anew when one ends; two fleets and a pool by itself do not touch.
func TestFleet(t *testing.T) {
	onServers(t, func(t *testing.T, dsn string) {
		params := append(strings.Fields(member), "yield_fleet=shop")
		pools := []*pgyield.Pool{newPool(t, dsn, params...), newPool(t, dsn, params...), newPool(t, dsn, params...)}
		other := newPool(t, dsn, append(strings.Fields(member), "yield_fleet=shop2")...)
		alone := newPool(t, dsn, "pool_max_conns=20")
		busy(t, pools[0], 30)
		comesTrue(t, 10*time.Second, "one busy pool has most", ceilingsAre(pools[:1], func(c []int) bool { return c[0] >= 10 }))
		var stops []func()
		for _, p := range pools[1:] {
			stops = append(stops, busy(t, p, 30))
		}
		comesTrue(t, 10*time.Second, "even shares", ceilingsAre(pools, allAre(4)))
		sum := func() (running int) {
			for _, p := range pools {
				running += p.ReadStat().Running()
			}
			return running
		}
		comesTrue(t, 2*time.Second, "the limit", func() (string, bool) { n := sum(); return fmt.Sprint(n, " run"), n <= 12 })
		for range 50 {
			if n := sum(); n > 15 {
				t.Errorf("%d run, on a limit of 12", n)
			}
			time.Sleep(20 * time.Millisecond)
		}
		stops[1]()
		pools[2].Close()
		comesTrue(t, 10*time.Second, "shares of two", ceilingsAre(pools[:2], allAre(6)))
		if got := other.ReadStat().Ceiling(); got != 12 {
			t.Errorf("the fleet with another name has a ceiling of %d, want 12", got)
		}
		if got := alone.ReadStat().Ceiling(); got != 16 {
			t.Errorf("the pool by itself has a ceiling of %d, want 16", got)
		}
	})
}

// TestFleetMember is a process of TestFleetProcesses, and nothing by itself.
func TestFleetMember(t *testing.T) {
	dsn := os.Getenv("PGYIELD_FLEET_MEMBER")
	if dsn == "" {
		return
	}
	config, err := pgyield.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgyield.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			s := pool.ReadStat()
			fmt.Printf("ceiling %d running %d\n", s.Ceiling(), s.Running())
			time.Sleep(50 * time.Millisecond)
		}
	}()
	busy(t, pool, 30)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the parent ends
	os.Exit(0)
}

// process is one that runs TestFleetMember.
type process struct {
	cmd *exec.Cmd

	mu               sync.Mutex
	ceiling, running int
}

func startMember(t *testing.T, dsn string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], "-test.run=^TestFleetMember$", "-test.timeout=120s")} //nolint:gosec // ourselves
	p.cmd.Env = append(os.Environ(), "PGYIELD_FLEET_MEMBER="+dsn)
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
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
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var c, r int
			if n, _ := fmt.Sscanf(lines.Text(), "ceiling %d running %d", &c, &r); n == 2 {
				p.mu.Lock()
				p.ceiling, p.running = c, r
				p.mu.Unlock()
			}
		}
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

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// TestFleetProcesses kills one process, and stops another for longer than the lease.
func TestFleetProcesses(t *testing.T) {
	dsn := withParams(newDatabase(t), append(strings.Fields(member), "yield_fleet=procs")...)
	members := []*process{startMember(t, dsn), startMember(t, dsn), startMember(t, dsn)}
	want := func(members []*process, ceiling int) func() (string, bool) {
		return func() (string, bool) {
			state, ok := "", true
			for _, m := range members {
				m.mu.Lock()
				state += fmt.Sprintf(" %d/%d", m.running, m.ceiling)
				ok = ok && m.ceiling == ceiling
				m.mu.Unlock()
			}
			return state, ok
		}
	}
	comesTrue(t, 20*time.Second, "even shares", want(members, 4))
	members[2].signal(t, syscall.SIGKILL)
	comesTrue(t, 10*time.Second, "shares without the killed", want(members[:2], 6))
	members[1].signal(t, syscall.SIGSTOP)
	comesTrue(t, 15*time.Second, "all without the stopped", want(members[:1], 12))
	members[1].signal(t, syscall.SIGCONT)
	comesTrue(t, 15*time.Second, "shares with the one that came back", want(members[:2], 6))

	// Each sees the names of the others, and so does anybody.
	conn, err := pgx.Connect(t.Context(), strings.Split(dsn, " pool_")[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var names int
	if err := conn.QueryRow(t.Context(), "select count(*) from pg_stat_activity where application_name like 'pgyield:procs:%'").Scan(&names); err != nil {
		t.Fatal(err)
	}
	if names != 2 {
		t.Errorf("%d sessions carry the fleet's name, want 2", names)
	}
}
