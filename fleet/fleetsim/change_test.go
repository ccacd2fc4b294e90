package fleetsim_test

import (
	"testing"
	"time"

	"github.com/pgyield/pgyield/fleet/fleetsim"
)

const beat = 250 * time.Millisecond

// ceilings sums those of the members that are up.
func ceilings(members []fleetsim.Snapshot) (sum int) {
	for _, m := range members {
		if m.Up {
			sum += m.Ceiling
		}
	}
	return sum
}

// saturated is a fleet of which each member has far more demand than its share.
func saturated(kind fleetsim.Kind, limit, members int) fleetsim.Config {
	return fleetsim.Config{
		Kind: kind, Limit: limit, Members: members, Rate: 30 * float64(limit), MaxWait: time.Hour,
		Tick: 10 * time.Millisecond, Warmup: time.Second, Length: 19 * time.Second, Seed: 3,
	}
}

// TestSettles saturates: ceilings sum to the limit, each the even share.
func TestSettles(t *testing.T) {
	for _, kind := range []fleetsim.Kind{fleetsim.Shared, fleetsim.Strict} {
		for _, members := range []int{1, 3, 7, 40} {
			c := saturated(kind, 40, members)
			settled := 0
			c.Inspect = func(at time.Duration, list []fleetsim.Snapshot) {
				if at < 10*time.Second {
					return
				}
				settled++
				if sum := ceilings(list); sum != 40 {
					t.Fatalf("kind %v, %d members, at %v: ceilings sum to %d, want 40", kind, members, at, sum)
				}
				for i, m := range list {
					if m.Ceiling != 40/members && m.Ceiling != 40/members+1 || m.Running != m.Ceiling {
						t.Fatalf("kind %v, %d members, at %v: member %d has ceiling %d and runs %d", kind, members, at, i, m.Ceiling, m.Running)
					}
				}
			}
			if run(t, c); settled < 100 {
				t.Fatalf("looked only %d times", settled)
			}
		}
	}
}

// TestNewcomer and the dead: a member that starts has its floor within a period and its
// share within three; the share of one that dies is free within two, of one that is cut
// off within the lease. A strict fleet, which first hears that all have made room, takes a
// period more.
func TestNewcomer(t *testing.T) {
	const begin, kill, deaf = 5 * time.Second, 8 * time.Second, 10 * time.Second
	for _, kind := range []fleetsim.Kind{fleetsim.Shared, fleetsim.Strict} {
		for seed := range uint64(20) {
			c := saturated(kind, 40, 4)
			c.Seed, c.Lease = seed, 2*time.Second
			c.Changes = []fleetsim.Change{
				{At: begin, Member: 3, Do: fleetsim.Start}, {At: kill, Member: 2, Do: fleetsim.Kill}, {At: deaf, Member: 1, Do: fleetsim.Deafen},
			}
			c.Inspect = func(at time.Duration, list []fleetsim.Snapshot) {
				// A period is up to 5 % longer than the heartbeat, and a look 10 ms late.
				within := func(from time.Duration, periods float64) bool {
					if kind == fleetsim.Strict && periods > 1 {
						periods++
					}
					return at >= from+time.Duration(1.05*periods*float64(beat))+20*time.Millisecond
				}
				wrong := ""
				switch {
				case at < begin:
				case at < kill:
					if within(begin, 1) && list[3].Ceiling < 1 {
						wrong = "the newcomer has no floor"
					}
					if within(begin, 3) && list[3].Ceiling != 10 {
						wrong = "the newcomer has not its share"
					}
				case at < deaf:
					if within(kill, 2) && list[0].Ceiling+list[1].Ceiling+list[3].Ceiling < 40 {
						wrong = "the share of the dead is not free"
					}
				case at < deaf+2*time.Second:
					if list[1].Ceiling < 13 {
						wrong = "one that cannot poll lost its share within the lease"
					}
				case at > deaf+2*time.Second+8*beat:
					if list[1].Ceiling != 13 || list[0].Ceiling != 20 || list[3].Ceiling != 20 {
						wrong = "one that cannot poll should have 40 / 3, the others all"
					}
				}
				if wrong != "" {
					t.Fatalf("kind %v, seed %d, at %v: %s: %+v", kind, seed, at, wrong, list)
				}
			}
			run(t, c)
		}
	}
}

// surge doubles four members at 15 s, and halves them again; the load that there is moves
// to who is there.
func surge(c *fleetsim.Config) {
	for i := 4; i < 8; i++ {
		c.Changes = append(c.Changes, fleetsim.Change{At: 15 * time.Second, Member: i, Do: fleetsim.Start},
			fleetsim.Change{At: 28 * time.Second, Member: i, Do: fleetsim.Kill},
			fleetsim.Change{At: 15 * time.Second, Member: i, Do: fleetsim.Load, Weight: 1},
			fleetsim.Change{At: 28 * time.Second, Member: i, Do: fleetsim.Load, Weight: 0})
	}
	for i := range c.Weights {
		c.Weights[i] = float64(1 - i/4)
	}
}

// swing moves ten times the load to another two of eight members every 2 s.
func swing(c *fleetsim.Config) {
	for n := range 20 {
		for i := range 8 {
			weight := 1.0
			if (i+n)%8 < 2 {
				weight = 10
			}
			c.Changes = append(c.Changes, fleetsim.Change{At: time.Duration(n) * 2 * time.Second, Member: i, Do: fleetsim.Load, Weight: weight})
		}
	}
}

// burst lets eight idle members start at once, every 4 s: each goes by what it saw last.
func burst(c *fleetsim.Config) {
	for n := range 20 {
		for i := range 8 {
			c.Changes = append(c.Changes, fleetsim.Change{At: time.Duration(n) * 2 * time.Second, Member: i, Do: fleetsim.Load, Weight: float64(n % 2)})
		}
	}
}

// TestSurge doubles the members and halves them again, and moves demand about, at 95 %.
func TestSurge(t *testing.T) {
	for name, script := range map[string]func(*fleetsim.Config){"surge": surge, "swing": swing, "burst": burst} {
		for _, kind := range []fleetsim.Kind{fleetsim.Shared, fleetsim.Strict} {
			for _, load := range []float64{0.95, 3} {
				worst := fleetsim.Result{}
				for seed := range uint64(5) {
					c := fleetsim.Config{Kind: kind, Limit: 40, Members: 8, Weights: make([]float64, 8), Rate: 400 * load, Warmup: time.Second, Length: 40 * time.Second, Seed: seed}
					if script(&c); name != "surge" {
						c.Weights[0] = 1 // until the first change
					}
					r := run(t, c)
					worst.Peak = max(worst.Peak, r.Peak)
					worst.Over += r.Over / 5
					worst.Refused += r.Refused / 5
				}
				t.Logf("%s, kind %v, load %.2f: refused %.1f %%, over %.2f %% of the time, peak %d", name, kind, load, 100*worst.Refused, 100*worst.Over, worst.Peak)
				switch {
				case kind == fleetsim.Strict && (worst.Over > 0.03 || worst.Peak > 44):
					t.Errorf("%s: a strict fleet passed the limit by more than the first permits of four newcomers", name)
				case name == "surge" && load > 1 && (worst.Over > 0.05 || worst.Peak > 60):
					t.Errorf("%s: overload passes the limit for %.3f of the time, peak %d", name, worst.Over, worst.Peak)
				case name == "burst" && worst.Peak > 8*40/2: // each may take half of what it saw free
					t.Errorf("idle members that start at once run %d of 40", worst.Peak)
				case name != "burst" && load < 1 && (worst.Over > 0.15 || worst.Peak > 60):
					t.Errorf("%s: over for %.3f of the time, peak %d", name, worst.Over, worst.Peak)
				}
			}
		}
	}
}

// TestStrictAtEveryInstant holds that a strict fleet passes its limit by nothing but reads
// beneath which a share shrank, and the first permits of newcomers.
func TestStrictAtEveryInstant(t *testing.T) {
	for _, c := range []struct {
		name      string
		script    func(*fleetsim.Config)
		newcomers int
	}{{"surge", surge, 4}, {"swing", swing, 0}, {"burst", burst, 0}} {
		for _, load := range []float64{0.6, 0.95, 3} {
			for _, wait := range []time.Duration{0, 10 * time.Second} {
				for seed := range uint64(8) {
					config := fleetsim.Config{
						Kind: fleetsim.Strict, Limit: 40, Members: 8, Weights: make([]float64, 8), Rate: 400 * load, MaxWait: wait,
						Tick: 50 * time.Millisecond, Length: 35 * time.Second, Seed: seed,
					}
					if c.script(&config); c.name != "surge" {
						config.Weights[0] = 1 // until the first change
					}
					if r := run(t, config); r.Excess > c.newcomers {
						t.Errorf("%s, load %.2f, wait %v, seed %d: %d more than the limit, newcomers' %d included", c.name, load, wait, seed, r.Excess, c.newcomers)
					}
				}
			}
		}
	}
}

// TestCrowd has 300 members for a limit of 40: they take turns.
func TestCrowd(t *testing.T) {
	for _, idle := range []bool{false, true} {
		c := fleetsim.Config{
			Kind: fleetsim.Shared, Limit: 40, Members: 300, Rate: 2000, Hold: 20 * time.Millisecond, MaxWait: time.Hour,
			Tick: 10 * time.Millisecond, Warmup: 3 * time.Second, Length: 12 * time.Second, PollRate: 300,
		}
		if idle { // all but one
			c.Weights = make([]float64, c.Members)
			c.Weights[17] = 1
		}
		served := map[int]bool{}
		lowest, highest, all, looks := 1000, 0, 0, 0
		c.Inspect = func(at time.Duration, list []fleetsim.Snapshot) {
			if at < 9*time.Second {
				return
			}
			sum := ceilings(list)
			lowest, highest = min(lowest, sum), max(highest, sum)
			all, looks = all+sum, looks+1
			for i, m := range list {
				served[i] = served[i] || m.Ceiling > 0
				if m.Ceiling > 1 && !idle {
					t.Fatalf("at %v member %d has a ceiling of %d", at, i, m.Ceiling)
				}
			}
			if idle && list[17].Ceiling < 30 {
				t.Fatalf("at %v the one with demand has %d", at, list[17].Ceiling)
			}
		}
		r := run(t, c)
		t.Logf("idle %v: ceilings sum to %d to %d; %d members served; over %.2f %% of the time, peak %d", idle, lowest, highest, len(served), 100*r.Over, r.Peak)
		if len(served) != 300 {
			t.Errorf("only %d of 300 were ever let in", len(served))
		}
		// Members go by what each saw last, and ticks are 10 ms apart where turns move on
		// each 12.5 ms: the sum sways about the limit.
		if mean := float64(all) / float64(looks); mean < 38 || mean > 42 || lowest < 28 || highest > 52 {
			t.Errorf("ceilings sum to %d to %d, %.1f on average, want 40 or close to it", lowest, highest, mean)
		}
	}
}

// TestThousand has 1,000 members, of whom a tenth is replaced, over a bus in memory.
func TestThousand(t *testing.T) {
	tenth := 100
	if testing.Short() {
		tenth = 20
	}
	c := fleetsim.Config{
		Kind: fleetsim.Shared, Limit: 40 * tenth, Members: 10 * tenth, Heartbeat: 2 * time.Second, PollRate: 1000,
		Tick: time.Second, Warmup: time.Second, Length: 51 * time.Second, Lease: 6 * time.Second,
		// Outside text, and a name that a process left behind.
		Noise: []string{"pgyield:sim:", "pgyield:sim:x", "pgyield:sim:0a1b2c3d:z:1:0:10:7:", "psql", "pgyield:sim:0a1b2c3d:z:1:0:10:7"},
	}
	c.Changes = append(c.Changes, fleetsim.Change{At: 33 * time.Second, Member: 8 * tenth, Do: fleetsim.Deafen})
	for i := range tenth {
		c.Changes = append(c.Changes, fleetsim.Change{At: 18 * time.Second, Member: i, Do: fleetsim.Kill},
			fleetsim.Change{At: 18 * time.Second, Member: 9*tenth + i, Do: fleetsim.Start})
	}
	// The first ones die: another must do the looking.
	c.Watch = 5 * tenth
	looks := 0
	c.Inspect = func(at time.Duration, list []fleetsim.Snapshot) {
		seen := 9 * tenth
		switch {
		case at < 15*time.Second, at > 18*time.Second && at < 30*time.Second, at > 33*time.Second && at < 49*time.Second:
			return // the lease of whoever is gone without a word, and periods to settle in
		case at > 33*time.Second:
			seen-- // whose heartbeat stands still
		}
		looks++
		up, granted := 0, 0
		for i, m := range list {
			if !m.Up || at > 33*time.Second && i == 8*tenth {
				continue
			}
			up++
			granted += m.Stat.Granted
			if m.Stat.Members != seen || m.Stat.Malformed == 0 {
				t.Fatalf("at %v a member sees %d of %d, and %d malformed names", at, m.Stat.Members, seen, m.Stat.Malformed)
			}
		}
		if up != seen || granted != c.Limit {
			t.Fatalf("at %v %d members are granted %d, want %d and %d", at, up, granted, seen, c.Limit)
		}
	}
	if run(t, c); looks < 5 {
		t.Errorf("looked only %d times", looks)
	}
}

// TestPollRate stretches the members' periods.
func TestPollRate(t *testing.T) {
	for _, members := range []int{2, 5, 20, 200} {
		c := fleetsim.Config{Kind: fleetsim.Shared, Limit: 400, Members: members, Rate: 100, PollRate: 20, Warmup: 60 * time.Second, Length: 100 * time.Second}
		r := run(t, c)
		if want := min(20, 4*float64(members)); r.Polls < 0.9*want || r.Polls > 1.03*want {
			t.Errorf("%d members poll %.1f times a second, want %v", members, r.Polls, want)
		}
	}
}

// TestThriftyPolls tells what it costs the reads that polls are rarer where the server has
// many sessions: 20 polls a second of all members, and as many as cost 1.5 % of a core.
func TestThriftyPolls(t *testing.T) {
	for _, f := range []struct{ members, limit, sessions int }{{20, 100, 500}, {200, 400, 500}} {
		for _, load := range []float64{0.6, 0.95} {
			for _, thrifty := range []bool{false, true} {
				c := fleetsim.Config{
					Kind: fleetsim.Shared, Members: f.members, Limit: f.limit, Rate: load * 10 * float64(f.limit), PollRate: 20,
					Warmup: 2 * time.Minute, Length: 2 * time.Minute, Seed: 5,
				}
				if thrifty {
					c.PollRate, c.Sessions = 0, f.sessions
				}
				r := run(t, c)
				c.Kind = fleetsim.Pooled
				one := run(t, c)
				c.Kind = fleetsim.Split
				split := run(t, c)
				t.Logf("%d members, limit %d, load %.2f, thrifty %v: %.1f polls/s, refused %.2f %% (one limit %.2f, divided %.2f), over for %.1f %%, peak %d",
					f.members, f.limit, load, thrifty, r.Polls, 100*r.Refused, 100*one.Refused, 100*split.Refused, 100*r.Over, r.Peak)
				if r.Refused > split.Refused || r.Over > 0.2 || r.Peak > f.limit*3/2 {
					t.Errorf("refused %.3f, divided for good %.3f; over for %.2f of the time, peak %d", r.Refused, split.Refused, r.Over, r.Peak)
				}
			}
		}
	}
}
