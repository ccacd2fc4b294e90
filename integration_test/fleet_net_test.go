package integration_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// cable is a server in a container that can be paused and restarted, on a network of its
// own on which it keeps its address, and to which a process can be plugged.
type cable struct {
	id     string // the container's
	bridge string // the network's interface here
	subnet netip.Prefix
	direct string // DSN, by the container's own address
}

// newCable starts a server and its network, which go with the test.
func newCable(t *testing.T, version string) *cable {
	t.Helper()
	versionServer(t, version) // skips or fails where there is none to be had
	server, err := startVersion(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	name := "pgyield-" + strings.ToLower(rand.Text()[:10])
	network := mustRun(t, "docker", "network", "create", name)
	removed := removeWithUs(t, name)
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
		removed()
	})
	config, err := pgx.ParseConfig(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{bridge: "br-" + network[:12]}
	c.id = containerOf(t, server.DSN()).id
	c.subnet = netip.MustParsePrefix(mustRun(t, "docker", "network", "inspect", "--format", "{{(index .IPAM.Config 0).Subnet}}", name))
	mustRun(t, "docker", "network", "connect", name, c.id)
	// It has the network for itself, so after a restart it has the same address.
	address := mustRun(t, "docker", "inspect", "--format", fmt.Sprintf("{{(index .NetworkSettings.Networks %q).IPAddress}}", name), c.id)
	c.direct = fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", config.User, config.Password, net.JoinHostPort(address, "5432"), config.Database)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.direct)
	if err != nil {
		t.Skipf("not applicable: containers here cannot be reached by their own addresses: %v", err)
	}
	_ = conn.Close(t.Context())
	return c
}

// address is the network's nth.
func (c *cable) address(n int) netip.Addr {
	a := c.subnet.Masked().Addr()
	for range n {
		a = a.Next()
	}
	return a
}

// removeWithUs starts a shell that removes a network when it is told to, and when this
// process is gone, however it went.
func removeWithUs(t *testing.T, network string) (removed func()) {
	t.Helper()
	guard := exec.Command("sh", "-c", "cat; for i in 1 2 3 4 5 6 7 8 9 10; do docker network rm "+network+" && exit; sleep 1; done") //nolint:gosec // our own name
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := guard.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := guard.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = in.Close()
		if err := guard.Wait(); err != nil {
			t.Errorf("removing the network: %v", err)
		}
	}
}

// startMemberApart starts a member in a network namespace of its own, plugged into the
// server's network. Pulling the plug drops what is sent, and neither end is told; the
// namespace ends with the process.
func (c *cable) startMemberApart(t *testing.T, params ...string) (p *process, plug func(in bool)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not applicable: only root can give a process a network of its own")
	}
	p = newMember(t, withParams(c.direct, params...), &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET})
	pid := fmt.Sprint(p.cmd.Process.Pid)
	end := "pgy" + pid // at most 15 bytes
	mustRun(t, "ip", "link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", pid)
	inside := func(args ...string) {
		mustRun(t, "nsenter", append([]string{"--target", pid, "--net", "ip"}, args...)...)
	}
	inside("addr", "add", fmt.Sprintf("%s/%d", c.address(200), c.subnet.Bits()), "dev", "eth0")
	inside("link", "set", "eth0", "up")
	mustRun(t, "ip", "link", "set", end, "up")
	plug = func(in bool) {
		t.Helper()
		if in {
			mustRun(t, "ip", "link", "set", end, "master", c.bridge)
		} else {
			mustRun(t, "ip", "link", "set", end, "nomaster")
		}
	}
	plug(true)
	p.order(t, "go")
	return p, plug
}

// mustRun runs a program that must succeed, and returns what it printed.
func mustRun(t testing.TB, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
