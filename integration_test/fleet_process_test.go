package integration_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

// crew are the parameters of the member processes: together they may run 16.
const crew = "pool_max_conns=20 yield_fleet=crew yield_fleet_limit=16"

// TestFleetProcesses has real processes share a limit while they come, die, are stopped
// for longer than the lease and go on.
func TestFleetProcesses(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	dsn := withParams(database, crew)
	w := startWatch(t, withParams(database))
	begun := time.Now()
	members := startMembers(t, 4, dsn)
	comesTrue(t, 20*time.Second, "even shares of four", sharesOf(members, 4, 4, 4, 4))
	time.Sleep(time.Second)
	w.within(t, "all start at once", 16, begun)
	even := time.Now()

	ended := holdAll(t, members, 5*time.Second) // through the surge and back
	surge := startMembers(t, 4, dsn)
	all := slices.Concat(members, surge)
	comesTrue(t, 20*time.Second, "even shares of eight", sharesOf(all, 2, 2, 2, 2, 2, 2, 2, 2))
	for i, m := range surge {
		took(t, fmt.Sprintf("newcomer %d: its share", i), all, firstPoll(m), 3, ceilingAbove(m, 2))
	}
	time.Sleep(2 * time.Second) // of eight
	killed := time.Now()
	for _, m := range surge {
		m.signal(t, syscall.SIGKILL)
	}
	comesTrue(t, 20*time.Second, "even shares of the four that live", sharesOf(members, 4, 4, 4, 4))
	for i, m := range members {
		took(t, fmt.Sprintf("member %d: its part of what the dead had", i), members, killed, 2, ceilingAbove(m, 4))
	}
	time.Sleep(time.Second)
	w.within(t, "four, eight, four", 16, even)
	ended()
	noErrors(t, all)

	ended = holdAll(t, members[1:], 8*time.Second)
	stopped := time.Now()
	members[0].signal(t, syscall.SIGSTOP)
	comesTrue(t, 20*time.Second, "shares without the stopped", sharesOf(members[1:], 6, 5, 5))
	for i, m := range members[1:] {
		took(t, fmt.Sprintf("member %d: its part of what the stopped had", i), members[1:], stopped.Add(lease), 2, ceilingAbove(m, 5))
	}
	time.Sleep(time.Second)
	members[0].signal(t, syscall.SIGCONT)
	comesTrue(t, 20*time.Second, "shares with the one that came back", sharesOf(members, 4, 4, 4, 4))
	time.Sleep(time.Second)
	w.within(t, "one stopped, and on again", 16, stopped)
	ended()
	noErrors(t, members)

	// Each sees the names of the others, and so does anybody.
	var names int
	if err := connectTo(t, withParams(database)).QueryRow(t.Context(),
		"select count(*) from pg_stat_activity where application_name like 'pgyield:crew:%' and datname = current_database()").Scan(&names); err != nil {
		t.Fatal(err)
	}
	if names != 4 {
		t.Errorf("%d sessions carry the fleet's name, want 4", names)
	}
}

// lease is the default.
const lease = 5 * time.Second

func startMembers(t *testing.T, n int, dsn string) (members []*process) {
	t.Helper()
	for range n {
		members = append(members, startMember(t, dsn))
	}
	return members
}

// firstPoll is when a member had heard of the others.
func firstPoll(m *process) time.Time {
	for _, r := range m.since(time.Time{}) {
		if r.polls > 0 {
			return r.at
		}
	}
	return time.Now()
}

func ceilingAbove(m *process, least int) func(from time.Time) time.Time {
	return func(from time.Time) time.Time {
		for _, r := range m.since(from) {
			if r.ceiling >= least {
				return r.at
			}
		}
		return time.Now()
	}
}

// took fails the test where what was to come from a time on took longer than that many
// periods. A period is the longest time between two polls of one of the members meanwhile:
// on a busy machine all is late, not only what is measured.
func took(t *testing.T, what string, members []*process, from time.Time, periods int, came func(from time.Time) time.Time) {
	t.Helper()
	at := came(from)
	period := longestPeriod(members, from, at)
	text := fmt.Sprintf("%s after %v, periods of up to %v", what, at.Sub(from).Round(time.Millisecond), period.Round(time.Millisecond))
	t.Log(text)
	// The reports come each 10 ms.
	if at.Sub(from) > time.Duration(periods)*period+50*time.Millisecond {
		t.Errorf("%s, want at most %d periods", text, periods)
	}
}

// longestPeriod is the longest time between two polls of one member, of those that lie at
// least in part in the stretch.
func longestPeriod(members []*process, from, to time.Time) (longest time.Duration) {
	for _, m := range members {
		var last report
		for _, r := range m.since(time.Time{}) {
			if r.polls == last.polls {
				continue
			}
			if last.polls > 0 && r.at.After(from) {
				longest = max(longest, r.at.Sub(last.at))
			}
			if last = r; r.at.After(to) {
				break
			}
		}
	}
	return longest
}
