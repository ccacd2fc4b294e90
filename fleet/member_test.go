package fleet

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// bench is a fleet on a bus, polled by hand.
type bench struct {
	t       *testing.T
	now     time.Time
	members []*Member
	loads   []Load
	names   []string
	log     bytes.Buffer
}

func newBench(t *testing.T, n int, options Options) *bench {
	b := &bench{t: t, now: start, loads: make([]Load, n), names: make([]string, n)}
	options.Logger = slog.New(slog.NewTextHandler(&b.log, nil))
	if options.Name == "" {
		options.Name = "shop"
	}
	for i := range n {
		options.Load = func() Load { return b.loads[i] }
		m, err := New(options)
		if err != nil {
			t.Fatal(err)
		}
		b.members = append(b.members, m)
	}
	return b
}

func (b *bench) others(i int) (names []string) {
	for j, name := range b.names {
		if j != i && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// poll lets one member poll; as in the server, what it sees may be from before its name
// was set, but not from before it polled.
func (b *bench) poll(i int, extra ...string) {
	b.names[i] = b.members[i].Name()
	b.members[i].Observe(b.now, View{
		Names: append(b.others(i), extra...), ServerTime: b.now, Mark: b.members[i].ID(), Marked: true,
	})
}

func (b *bench) round() {
	for i := range b.members {
		b.now = b.now.Add(10 * time.Millisecond)
		b.poll(i)
	}
	b.now = b.now.Add(500 * time.Millisecond)
}

func (b *bench) want(i, ceiling int) {
	b.t.Helper()
	if got := b.members[i].Ceiling(b.now); got != ceiling {
		b.t.Errorf("member %d has a ceiling of %d, want %d: %+v", i, got, ceiling, b.members[i].Stat(b.now))
	}
}

func TestLoneMemberHasAll(t *testing.T) {
	b := newBench(t, 1, Options{Limit: 40})
	b.want(0, 1) // before it has polled
	b.round()
	b.want(0, 1) // others may have started with it
	b.round()
	b.want(0, 40)
	b = newBench(t, 1, Options{Limit: 40, Most: 16})
	b.round()
	b.round()
	b.want(0, 16)
}

func TestSharesByDemand(t *testing.T) {
	b := newBench(t, 3, Options{Limit: 40})
	b.loads = []Load{{Running: 30, Waiting: 100}, {Running: 5, Waiting: 0}, {Running: 5}}
	for range 60 {
		b.round()
	}
	for i, want := range []int{30, 5, 5} {
		if got := b.members[i].Stat(b.now).Share; got != want {
			t.Errorf("member %d has a share of %d, want %d", i, got, want)
		}
	}
}

// TestStrictNeverPasses moves loads about at random while members poll in any order, each
// poll's look and name apart as they may be: what members hold never sums to more than
// the limit, but for the floors of members that have none yet.
func TestStrictNeverPasses(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	for round := range 30 {
		n := 2 + random.IntN(6)
		b := newBench(t, n, Options{Limit: 20, Strict: true})
		for step := range 2000 {
			i := random.IntN(n)
			b.now = b.now.Add(time.Duration(random.IntN(60)) * time.Millisecond)
			if random.IntN(3) == 0 {
				b.loads[i] = Load{Running: random.IntN(20), Waiting: random.IntN(30) * random.IntN(2)}
			}
			m := b.members[i]
			name := m.Name()
			seen := b.others(i) // looked before the name was set: the worst order
			j := random.IntN(n)
			if j != i && random.IntN(4) == 0 { // another's whole poll in between
				b.poll(j)
			}
			b.names[i] = name
			m.Observe(b.now, View{Names: seen})
			held := 0
			for _, m := range b.members {
				held += m.Ceiling(b.now)
			}
			if held > 20+n-1 || step > 200 && held > 20 {
				t.Fatalf("round %d, step %d: %d members hold %d of 20", round, step, n, held)
			}
		}
	}
}

func TestCannotPoll(t *testing.T) {
	b := newBench(t, 4, Options{Limit: 40, Lease: 3 * time.Second})
	b.loads = []Load{{Running: 5, Waiting: 90}, {Running: 2}, {Running: 2}, {Running: 2}}
	for range 60 {
		b.round()
	}
	m := b.members[0]
	share := m.Stat(b.now).Granted
	if share < 30 || m.Ceiling(b.now) < share {
		t.Fatalf("ceiling %d, granted %d", m.Ceiling(b.now), share)
	}
	for _, c := range []struct {
		after   time.Duration
		ceiling int
	}{{2 * time.Second, share}, {2900*time.Millisecond - 500*time.Millisecond, share}, {3100 * time.Millisecond, 10}, {time.Hour, 10}} {
		if got := m.Ceiling(b.now.Add(c.after)); got != c.ceiling {
			t.Errorf("%v after its last round the ceiling is %d, want %d", c.after, got, c.ceiling)
		}
	}
	if n := strings.Count(b.log.String(), "could not poll"); n != 1 {
		t.Errorf("said %d times:\n%s", n, b.log.String())
	}
	b.now = b.now.Add(2 * time.Hour)
	b.poll(0) // the others' names stand, but nothing is known of their age
	if b.members[0].Stat(b.now).Lost || !strings.Contains(b.log.String(), "polls again") {
		t.Error("still lost after a poll")
	}
	// Polled once, and saw nobody of those that started with it.
	b = newBench(t, 1, Options{Limit: 40, Size: 8, Lease: time.Second, Period: 100 * time.Millisecond})
	b.poll(0)
	b.now = b.now.Add(2 * time.Second)
	b.want(0, 5)
	// Never polled at all: the floor, then the limit over the size that is expected.
	b = newBench(t, 1, Options{Limit: 40, Size: 8, Lease: time.Second, Period: 100 * time.Millisecond})
	b.want(0, 1)
	b.now = b.now.Add(2 * time.Second)
	b.want(0, 5)
}

func TestStaleHeartbeat(t *testing.T) {
	b := newBench(t, 2, Options{Limit: 40, Lease: 2 * time.Second})
	b.loads = []Load{{Running: 20, Waiting: 50}, {Running: 20, Waiting: 50}}
	for range 10 {
		b.round()
	}
	b.want(0, 20)
	last := b.now
	for b.now.Sub(last) < 4*time.Second { // member 1's name stands, and does not move
		b.now = b.now.Add(250 * time.Millisecond)
		b.poll(0)
	}
	if s := b.members[0].Stat(b.now); s.Members != 1 || s.Ceiling != 40 {
		t.Errorf("a member whose heart stands still counts: %+v", s)
	}
	b.poll(1)
	b.poll(0)
	if s := b.members[0].Stat(b.now); s.Members != 2 {
		t.Errorf("a member that came back does not count: %+v", s)
	}
}

func TestOutsideText(t *testing.T) {
	b := newBench(t, 2, Options{Limit: 40})
	b.loads = []Load{{Running: 20, Waiting: 50}, {Running: 20, Waiting: 50}}
	junk := []string{"pgyield:shop:", "pgyield:shop:x", "psql", "pgyield:shop:0a1b2c3d:z:1:0:10:7:", "pgyield:shops:0a1b2c3d:z:1:0:10:7", ""}
	for range 10 {
		b.now = b.now.Add(500 * time.Millisecond)
		b.poll(0, junk...)
		b.poll(1, junk...)
	}
	b.want(0, 20)
	b.want(1, 20)
	if s := b.members[0].Stat(b.now); s.Members != 2 || s.Malformed != uint64(10*len(junk)) {
		t.Errorf("%+v", s)
	}
	// Two sessions of one member, one of them left behind, are one member.
	left := b.names[1]
	for range 4 {
		b.now = b.now.Add(500 * time.Millisecond)
		b.poll(1)
		b.poll(0, left)
	}
	if s := b.members[0].Stat(b.now); s.Members != 2 {
		t.Errorf("a session left behind counts: %+v", s)
	}
	crowd := make([]string, 3*MaxMembers)
	for i := range crowd {
		crowd[i] = message{id: fmt.Sprintf("%08d", i), beat: 1}.encode(b.members[0].Prefix())
	}
	b.poll(0, crowd...)
	if s := b.members[0].Stat(b.now); s.Members > MaxMembers+1 {
		t.Errorf("%d members are tracked", s.Members)
	}
}

// TestLiar claims all of the limit for ever: it can have no more than its share, once its
// lease is over.
func TestLiar(t *testing.T) {
	for _, strict := range []bool{false, true} {
		b := newBench(t, 2, Options{Limit: 40, Strict: strict, Lease: 3 * time.Second})
		b.loads = []Load{{Running: 10, Waiting: 50}, {Running: 10, Waiting: 50}}
		for beat := range uint32(40) {
			lie := message{id: "zzzzzzzz", beat: beat + 1, running: maxNumber, hungry: maxNumber, wish: maxNumber, claim: maxNumber}.encode(b.members[0].Prefix())
			b.now = b.now.Add(500 * time.Millisecond)
			b.poll(0, lie)
			b.poll(1, lie)
		}
		for i := range 2 {
			if got := b.members[i].Ceiling(b.now); got < 13 {
				t.Errorf("strict %v: member %d has %d of 40 beside a liar", strict, i, got)
			}
		}
	}
}

// TestForgedNames: a session that bears a member's name, of which it knows the id, adds at most
// to what the member is thought to do. No beat makes the member's own name look old.
func TestForgedNames(t *testing.T) {
	for _, strict := range []bool{false, true} {
		b := newBench(t, 2, Options{Limit: 40, Strict: strict, Lease: 3 * time.Second})
		b.loads = []Load{{Running: 10, Waiting: 50}, {Running: 10, Waiting: 50}}
		for range 5 {
			b.round()
		}
		prefix := b.members[0].Prefix()
		forged := func(k int, ahead uint32) string { // of which the holder runs and claims nothing
			return message{id: b.members[k].ID(), beat: (b.members[k].beat + ahead) % beats}.encode(prefix)
		}
		check := func(when string) {
			if sum := b.sum(); sum > 40 || b.members[0].Stat(b.now).Members != 2 || b.members[0].Ceiling(b.now) < 13 {
				t.Errorf("strict %v, %s: %d members, the first may run %d, all %d of 40",
					strict, when, b.members[0].Stat(b.now).Members, b.members[0].Ceiling(b.now), sum)
			}
		}
		standing := []string{forged(0, beats/2-1), forged(1, beats/2-1)}
		for when, names := range map[string]func(n uint32) []string{
			"beside names that stand": func(uint32) []string { return standing },
			"beside names that move":  func(n uint32) []string { return []string{forged(0, 7*n), forged(1, beats/2+7*n)} },
			"beside names one ahead":  func(uint32) []string { return []string{forged(0, 1), forged(1, 1)} },
			"afterwards":              func(uint32) []string { return nil },
		} {
			for n := range uint32(20) {
				for _, i := range []int{0, 1, 1, 0, 0} { // one polls again before the other has
					b.now = b.now.Add(250 * time.Millisecond)
					b.poll(i, names(n)...)
					check(when)
				}
			}
		}
	}
	// A name of its own in another session is no bouncer where the mark says that the session is its own.
	b := newBench(t, 1, Options{Limit: 40, Size: 2})
	m := b.members[0]
	for range 10 {
		name := m.Name()
		m.Name()
		m.Observe(b.now, View{Names: []string{name}, Mark: m.ID(), Marked: true})
	}
	b.want(0, 40)
}

// TestLongStop: the beats of the others may have wrapped while the process was stopped.
func TestLongStop(t *testing.T) {
	b := newBench(t, 2, Options{Limit: 40, Lease: 3 * time.Second})
	b.loads = []Load{{Running: 20, Waiting: 50}, {Running: 20, Waiting: 50}}
	for range 10 {
		b.round()
	}
	b.now = b.now.Add(60 * time.Hour)
	b.members[1].beat = (b.members[1].beat + beats/2 + beats/100) % beats
	for range 20 {
		b.round()
		if got := b.members[0].Ceiling(b.now); got > 20 || b.members[0].Stat(b.now).Members != 2 {
			t.Fatalf("it may run %d of 40 beside one that runs 20, as one of %d", got, b.members[0].Stat(b.now).Members)
		}
	}
}

// TestStrictClaimsStand: what two members are granted never sums to more than the limit,
// though demands move and one polls twice between two polls of the other: a grant grows only
// by what the name that stands claims, and the one before it claimed.
func TestStrictClaimsStand(t *testing.T) {
	b := newBench(t, 2, Options{Limit: 40, Strict: true, Period: 250 * time.Millisecond})
	random := rand.New(rand.NewPCG(1, 2))
	var due [2]time.Time
	for range 100_000 {
		i := 0
		if due[1].Before(due[0]) {
			i = 1
		}
		b.now = start.Add(due[i].Sub(time.Time{}))
		b.loads[i] = Load{Running: random.IntN(6)} // mostly little: shares are far above demands then, and jump
		if random.IntN(12) == 0 {
			b.loads[i] = Load{Running: random.IntN(36)}
		}
		b.poll(i)
		due[i] = due[i].Add(time.Duration(230+random.IntN(40)) * time.Millisecond)
		if a, c := b.members[0].Stat(b.now).Granted, b.members[1].Stat(b.now).Granted; a+c > 40 {
			t.Fatalf("after %v they are granted %d and %d of 40", b.now.Sub(start), a, c)
		}
	}
}

func TestBouncer(t *testing.T) {
	b := newBench(t, 1, Options{Limit: 40, Size: 4})
	m := b.members[0]
	for _, view := range []View{{}, {Mark: m.ID(), Marked: true}, {Mark: "0a1b2c3d"}, {Mark: m.ID(), Marked: true}} {
		m.Name()
		m.Observe(b.now, view) // the third is the first of another connection
	}
	b.want(0, 40)
	for _, mark := range []string{"0a1b2c3d", ""} {
		b = newBench(t, 1, Options{Limit: 40, Size: 4})
		m = b.members[0]
		for range 3 {
			m.Name()
			m.Observe(b.now, View{Mark: mark, Marked: true})
		}
		b.want(0, 10)
		if n := strings.Count(b.log.String(), "bouncer"); n != 1 || !m.Stat(b.now).Shared {
			t.Errorf("mark %q: said %d times: %s", mark, n, b.log.String())
		}
	}

	// Without marks: the member's own name moves on in other sessions.
	b = newBench(t, 1, Options{Limit: 40, Size: 2})
	m = b.members[0]
	names := []string{m.Name()}
	for range 5 {
		name := m.Name()
		m.Observe(b.now, View{Names: names})
		names = append(names, name)
	}
	b.want(0, 20)
	// One that a lost connection left behind stands still.
	b = newBench(t, 1, Options{Limit: 40, Size: 2})
	m = b.members[0]
	left := m.Name()
	for range 10 {
		m.Name()
		m.Observe(b.now, View{Names: []string{left}})
	}
	b.want(0, 40)
}

func TestPollEvery(t *testing.T) {
	for n, want := range map[int]time.Duration{1: 500 * time.Millisecond, 10: 500 * time.Millisecond, 40: 2 * time.Second} {
		b := newBench(t, n, Options{Limit: 400})
		b.round()
		b.round()
		if got := b.members[0].PollEvery(); got != want {
			t.Errorf("%d members poll every %v, want %v", n, got, want)
		}
	}
}

// TestPollsAreThrifty: the more sessions the server has, the more a poll costs it. Members
// poll so that all cost no more than 1.5 % of a core, but each 50 s; and as often as they are
// told, if they are.
func TestPollsAreThrifty(t *testing.T) {
	for _, c := range []struct {
		members, sessions int
		rate              float64
		want              time.Duration
	}{
		{1, 2000, 0, 500 * time.Millisecond},
		{20, 0, 0, time.Second},
		{20, 40, 0, time.Second},
		{20, 160, 0, 1200 * time.Millisecond},
		{20, 520, 0, 2400 * time.Millisecond},
		{80, 520, 0, 9600 * time.Millisecond},
		{200, 520, 0, 40 * time.Second}, // their backends have slept for long
		{200, 2000, 0, 50 * time.Second},
		{1200, 2000, 0, 50 * time.Second},
		{200, 40, 0.01, 50 * time.Second},
		{200, 2000, 20, 10 * time.Second},
	} {
		b := newBench(t, 1, Options{Limit: 400, PollRate: c.rate})
		m := b.members[0]
		var names []string
		for i := range c.members - 1 {
			names = append(names, message{id: fmt.Sprintf("%08d", i), beat: 1}.encode(m.Prefix()))
		}
		m.Name()
		m.Observe(b.now, View{Names: names, Sessions: c.sessions})
		if got := m.PollEvery(); got != 500*time.Millisecond {
			t.Errorf("a newcomer to %d members polls again after %v, want a period", c.members, got)
		}
		m.Name()
		m.Observe(b.now, View{Names: names, Sessions: c.sessions})
		if got := m.PollEvery(); got.Round(time.Millisecond) != c.want {
			t.Errorf("%d members on %d sessions poll every %v, want %v", c.members, c.sessions, got, c.want)
		}
	}
}

func TestUnmet(t *testing.T) {
	for _, c := range []struct {
		refused       int
		held, elapsed time.Duration
		want          int
	}{{10, 100 * time.Millisecond, time.Second, 1}, {11, 100 * time.Millisecond, time.Second, 2}, {0, 1, 1, 0}, {5, 0, 1, 0}, {5, 1, 0, 0}, {-1, 1, 1, 0}, {math.MaxInt, time.Hour, 1, maxNumber}} {
		if got := Unmet(c.refused, c.held, c.elapsed); got != c.want {
			t.Errorf("Unmet(%d, %v, %v) = %d, want %d", c.refused, c.held, c.elapsed, got, c.want)
		}
	}
}

func TestOptionErrors(t *testing.T) {
	load := func() Load { return Load{} }
	for _, c := range []struct {
		options Options
		want    []string
	}{
		{Options{Limit: 1, Load: load}, []string{"Name", "1 to 21"}},
		{Options{Name: strings.Repeat("x", 22), Limit: 1, Load: load}, []string{"22 bytes"}},
		{Options{Name: "a:b", Limit: 1, Load: load}, []string{`"a:b"`}},
		{Options{Name: "é", Limit: 1, Load: load}, []string{"ASCII"}},
		{Options{Name: "a", Limit: 1}, []string{"Load is nil"}},
		{Options{Name: "a", Load: load}, []string{"Limit is 0", "1000000"}},
		{Options{Name: "a", Limit: MaxLimit + 1, Load: load}, []string{"Limit is 1000001"}},
		{Options{Name: "a", Limit: 1, Most: -1, Load: load}, []string{"Most is -1"}},
		{Options{Name: "a", Limit: 1, Size: -1, Load: load}, []string{"Size is -1"}},
		{Options{Name: "a", Limit: 1, Lease: time.Millisecond, Load: load}, []string{"Lease is 1ms", "100ms"}},
		{Options{Name: "a", Limit: 1, Period: time.Hour, Load: load}, []string{"Period is 1h", "1m"}},
		{Options{Name: "a", Limit: 1, PollRate: math.NaN(), Load: load}, []string{"PollRate is NaN"}},
		{Options{Name: "a", Limit: 1, PollRate: -1, Load: load}, []string{"PollRate is -1"}},
	} {
		_, err := New(c.options)
		if err == nil {
			t.Errorf("%+v: no error", c.options)
			continue
		}
		for _, want := range append(c.want, "pgyield: fleet: ") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
	}
}
