package integration_test

import (
	"os/exec"
	"testing"
	"time"
)

// evenFleet starts four members on a server of their own, watched, and waits until they share
// its limit evenly.
func evenFleet(t *testing.T, version string) (c *cable, w *watch, members []*process, even time.Time) {
	t.Helper()
	c = newCable(t, version)
	w = startWatch(t, c.direct)
	members = startMembers(t, 4, withParams(c.direct, crew))
	comesTrue(t, 20*time.Second, "even shares", sharesOf(members, 4, 4, 4, 4))
	return c, w, members, time.Now()
}

// TestFleetServerPaused stops the server whole for longer than the lease: connections
// stand and nothing answers.
func TestFleetServerPaused(t *testing.T) {
	t.Parallel()
	c, w, members, even := evenFleet(t, "17")
	ended := holdAll(t, members, 10*time.Second)
	mustRun(t, "docker", "pause", c.id)
	t.Cleanup(func() { c.unpause() })
	time.Sleep(lease + 2*time.Second)
	for i, m := range members {
		if r := m.last(); r.ceiling != 4 {
			t.Errorf("member %d, that cannot poll, has a ceiling of %d, want its even part, 4", i, r.ceiling)
		}
	}
	mustRun(t, "docker", "unpause", c.id)
	onAgain := time.Now()
	comesTrue(t, 30*time.Second, "all poll again", pollSince(members, onAgain))
	comesTrue(t, 20*time.Second, "even shares again", sharesOf(members, 4, 4, 4, 4))
	time.Sleep(time.Second)
	w.within(t, "after the pause", 16, onAgain)
	w.within(t, "all along", 16, even)
	ended()
	noErrors(t, members)
}

// TestFleetServerRestarted ends every session, running reads too.
func TestFleetServerRestarted(t *testing.T) {
	t.Parallel()
	c, w, members, even := evenFleet(t, "15")
	mustRun(t, "docker", "restart", "--time", "10", c.id)
	onAgain := time.Now()
	comesTrue(t, 30*time.Second, "all poll again", pollSince(members, onAgain))
	comesTrue(t, 20*time.Second, "even shares again", sharesOf(members, 4, 4, 4, 4))
	time.Sleep(time.Second)
	w.within(t, "before and after the restart", 16, even)
	for i, m := range members {
		errors := m.last().errors
		if errors == 0 {
			t.Errorf("member %d saw nothing of the restart", i)
		}
		comesTrue(t, 5*time.Second, "it runs its share", func() (string, bool) { return "", m.last().running == 4 })
	}
}

// TestFleetMemberCut cuts the network of one member for longer than the lease, by dropping
// what is sent: neither end is told, and the member's sessions stay on the server.
func TestFleetMemberCut(t *testing.T) {
	t.Parallel()
	c := newCable(t, "17")
	w := startWatch(t, c.direct)
	members := startMembers(t, 2, withParams(c.direct, crew))
	apart, plug := c.startMemberApart(t, crew)
	all := append([]*process{apart}, members...)
	comesTrue(t, 20*time.Second, "even shares", sharesOf(all, 6, 5, 5))
	even := time.Now()
	ended := holdAll(t, all, 9*time.Second)
	cut := time.Now()
	plug(false)
	comesTrue(t, 20*time.Second, "shares without the one that is cut off", sharesOf(members, 8, 8))
	for _, m := range members {
		took(t, "its part of what the cut one had, from the lease on", members, cut.Add(lease), 2, ceilingAbove(m, 8))
	}
	time.Sleep(2 * time.Second)
	if r := apart.last(); r.ceiling != 5 {
		t.Errorf("the one that is cut off has a ceiling of %d, want its even part, 5", r.ceiling)
	}
	plug(true)
	comesTrue(t, 40*time.Second, "shares with the one that came back", sharesOf(all, 6, 5, 5))
	time.Sleep(time.Second)
	w.within(t, "all along", 16, even)
	ended()
	noErrors(t, all)
}

// pollSince tells whether all have polled since.
func pollSince(members []*process, at time.Time) func() (string, bool) {
	return func() (string, bool) {
		all := true
		for _, m := range members {
			list := m.since(at)
			all = all && len(list) > 0 && list[len(list)-1].polls > list[0].polls
		}
		return "", all
	}
}

func (c *cable) unpause() { _ = exec.Command("docker", "unpause", c.id).Run() } //nolint:gosec // our own container
