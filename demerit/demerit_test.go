package demerit_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pgyield/pgyield/demerit"
)

var start = time.Now()

// after returns the moment d after start.
func after(d time.Duration) time.Time { return start.Add(d) }

// deny applies n denials that are gap apart, the first at start, and returns the
// score with the time of the last one.
func deny(policy demerit.Policy, budget, n int, gap time.Duration) (demerit.Score, time.Time) {
	var score demerit.Score
	now := start
	for i := range n {
		now = after(time.Duration(i) * gap)
		score = score.Deny(policy, budget, now)
	}
	return score, now
}

func TestOneBadSecond(t *testing.T) {
	var policy demerit.Policy
	score, last := deny(policy, 100, 1000, time.Millisecond)
	if got := score.At(policy, last); got != 103 {
		t.Fatalf("value after 1,000 denials in a second: %v, want 103", got)
	}

	endless := demerit.Policy{MaxDuration: time.Hour}
	for _, c := range []struct {
		name   string
		policy demerit.Policy
		at     time.Duration
		live   bool
	}{
		{"before the end", policy, 59900 * time.Millisecond, true},
		{"at the end", policy, 60 * time.Second, false},
		{"long after", policy, time.Hour, false},
		{"without an end, short of 343 s", endless, 343 * time.Second, true},
		{"without an end, past 343.4 s", endless, 344 * time.Second, false},
	} {
		value := score.At(c.policy, last.Add(c.at))
		if (value > 0) != c.live {
			t.Errorf("%s: value %v", c.name, value)
		}
	}
	if value := score.At(policy, last.Add(59900*time.Millisecond)); !policy.Penalised(value) {
		t.Errorf("not penalised 59.9 s after the last denial: %v", value)
	}
}

func TestCap(t *testing.T) {
	var policy demerit.Policy
	for _, c := range []struct {
		share int
		value float64
		want  int
	}{
		{50, 10, 40},
		{50, 103, 1},
		{50, 2.9, 50}, // below the threshold nothing is taken
		{50, 3, 47},
		{50, 9.5, 40}, // rounds half away from zero
		{100, 103, 1}, // a share as large as the budget is contained too
		{100, 100, 1},
		{1, 3, 1},
		{0, 0, 1},
		{50, 1e30, 1},
	} {
		if got := policy.Cap(c.share, c.value); got != c.want {
			t.Errorf("Cap(%d, %v) = %d, want %d", c.share, c.value, got, c.want)
		}
	}
	if policy.Penalised(2.9) || !policy.Penalised(3) {
		t.Error("penalised from 3 on, and not below")
	}
}

func TestDenialNearTheEndStartsANewTerm(t *testing.T) {
	var policy demerit.Policy
	score, last := deny(policy, 100, 1000, time.Millisecond)
	again := last.Add(59 * time.Second)
	score = score.Deny(policy, 100, again)
	if got, want := score.At(policy, again), 103-0.3*59+1; math.Abs(got-want) > 1e-9 {
		t.Errorf("value %v, want %v", got, want)
	}
	if value := score.At(policy, again.Add(59900*time.Millisecond)); !policy.Penalised(value) {
		t.Errorf("not penalised 59.9 s into the new term: %v", value)
	}
	if value := score.At(policy, again.Add(60*time.Second)); value != 0 {
		t.Errorf("value %v at the end of the new term", value)
	}
}

func TestHammeringStaysPenalised(t *testing.T) {
	var policy demerit.Policy
	var score demerit.Score
	for i := range 3600 { // one a second for an hour: 0.7 gained each time
		now := after(time.Duration(i) * time.Second)
		score = score.Deny(policy, 100, now)
		if i > 5 && !policy.Penalised(score.At(policy, now.Add(999*time.Millisecond))) {
			t.Fatalf("free after %d s of hammering", i)
		}
	}
}

func TestTimeBackwardsCountsAsNoTime(t *testing.T) {
	var policy demerit.Policy
	score, last := deny(policy, 100, 10, 0)
	if got := score.At(policy, last.Add(-time.Hour)); got != 10 {
		t.Errorf("an hour back: %v, want 10", got)
	}
	score = score.Deny(policy, 100, last.Add(-time.Hour))
	if got := score.At(policy, last); got != 11 {
		t.Errorf("a denial an hour back: %v, want 11", got)
	}
	if got := score.At(policy, last.Add(time.Second)); math.Abs(got-10.7) > 1e-9 {
		t.Errorf("a second on: %v, want 10.7", got)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for _, c := range []struct {
		policy demerit.Policy
		want   string
	}{
		{demerit.Policy{}, ""},
		{demerit.Policy{PerDenial: -1}, "PerDenial is -1"},
		{demerit.Policy{DecayPerSecond: math.NaN()}, "DecayPerSecond is NaN"},
		{demerit.Policy{Threshold: math.Inf(1)}, "Threshold is +Inf"},
		{demerit.Policy{MaxDuration: -time.Second}, "MaxDuration is -1s"},
	} {
		err := c.policy.Validate()
		if c.want == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.policy, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "pgyield: ") {
			t.Errorf("%+v: error %v, want one with %q", c.policy, err, c.want)
		}
	}
}

// FuzzScore checks, for any rhythm of denials: the value stays in its range, only
// falls between denials and no faster than it decays, the announced ends are the real
// ones, and Rank orders live scores as their values do.
func FuzzScore(f *testing.F) {
	f.Add(uint16(100), uint16(1000), uint32(1), uint32(60_000))
	f.Add(uint16(0), uint16(3), uint32(0), uint32(59_999))
	f.Add(uint16(5), uint16(40), uint32(900), uint32(13))
	f.Fuzz(func(t *testing.T, budget, denials uint16, gapMillis, laterMillis uint32) {
		var policy demerit.Policy
		n := int(denials%2000) + 1
		score, last := deny(policy, int(budget), n, time.Duration(gapMillis%100_000)*time.Millisecond)
		value := score.At(policy, last)
		if value < 1 && budget > 0 || value > float64(budget)+3 {
			t.Fatalf("value %v, budget %d", value, budget)
		}

		later := time.Duration(laterMillis%120_000) * time.Millisecond
		decayed := score.At(policy, last.Add(later))
		switch {
		case decayed < 0 || decayed > value:
			t.Fatalf("value %v became %v", value, decayed)
		case later >= 60*time.Second && decayed != 0:
			t.Fatalf("value %v outlives its term", decayed)
		case later < 60*time.Second && value-decayed > 0.3*later.Seconds()+1e-9:
			t.Fatalf("value fell from %v to %v in %v", value, decayed, later)
		}

		if end := score.ClearAt(policy); score.At(policy, end) != 0 || score.At(policy, end.Add(-time.Microsecond)) == 0 {
			t.Fatalf("not clear exactly at %v", end.Sub(last))
		}
		if end := score.PenalisedUntil(policy); !end.IsZero() {
			if policy.Penalised(score.At(policy, end)) || !policy.Penalised(score.At(policy, end.Add(-time.Microsecond))) {
				t.Fatalf("penalty does not end exactly at %v", end.Sub(last))
			}
		} else if policy.Penalised(value) {
			t.Fatal("penalised, and no end announced")
		}

		other := demerit.Score{}.Deny(policy, int(budget), last.Add(later/2))
		at := last.Add(later)
		a, b := score.At(policy, at), other.At(policy, at)
		if a > 0 && b > 0 && math.Abs(a-b) > 1e-6 && (a < b) != (score.Rank(policy, start) < other.Rank(policy, start)) {
			t.Fatalf("live values %v, %v rank %v, %v", a, b, score.Rank(policy, start), other.Rank(policy, start))
		}
	})
}

func ExampleScore_Deny() {
	// A caller is denied twice, a second apart: the first has decayed by 0.3.
	var policy demerit.Policy
	now := time.Now()
	score := demerit.Score{}.Deny(policy, 100, now)
	now = now.Add(time.Second)
	score = score.Deny(policy, 100, now)
	value := score.At(policy, now)
	fmt.Printf("%.1f, penalised: %v\n", value, policy.Penalised(value))
	// Output: 1.7, penalised: false
}
