// Package demerit is the arithmetic of a penalty that decays and that ends.
//
// A caller accrues demerits by being denied and coming back at once. Each denial
// adds to a value that decays at a fixed rate; at a threshold the caller counts as
// penalised. Two bounds keep the penalty proportionate:
//
//   - Magnitude: the value stops growing where more of it could contain no further,
//     at the largest share a caller can have plus the threshold.
//   - Duration: once the last denial is older than [Policy.MaxDuration] the value is
//     dropped outright. Without that, a budget of 100 and a decay of 0.3 a second
//     would punish one bad second for 343 s. Clamping the value lower instead would
//     leave a hog on a large budget uncontained.
//
// So a caller that keeps hammering stays penalised for as long as it does, and one
// that backs off is free within MaxDuration.
//
// The trap: a stored value means nothing by itself. Always read it through
// [Score.At], so that everything which asks "how much, now?" gets one answer.
//
// Everything here is pure: no clock is read, nothing is shared, and all of it is
// safe for concurrent use.
package demerit

import (
	"fmt"
	"math"
	"time"
)

// The defaults of [Policy].
const (
	DefaultPerDenial      = 1.0
	DefaultDecayPerSecond = 0.3
	DefaultThreshold      = 3.0
	DefaultMaxDuration    = 60 * time.Second
)

// Policy says how demerits accrue, decay and end. A zero field takes its default, so
// the zero Policy is the default one.
type Policy struct {
	// PerDenial is what one denial adds. Default 1; more than 0.
	PerDenial float64
	// DecayPerSecond is what the value loses each second, whatever its size.
	// Default 0.3; more than 0.
	DecayPerSecond float64
	// Threshold is the value from which a caller is penalised. Default 3; more than 0.
	Threshold float64
	// MaxDuration is how long after the last denial the value is dropped, however
	// large it is. Default 60 s; more than 0.
	MaxDuration time.Duration
}

// WithDefaults returns p with its zero fields replaced by the defaults.
func (p Policy) WithDefaults() Policy {
	if p.PerDenial == 0 {
		p.PerDenial = DefaultPerDenial
	}
	if p.DecayPerSecond == 0 {
		p.DecayPerSecond = DefaultDecayPerSecond
	}
	if p.Threshold == 0 {
		p.Threshold = DefaultThreshold
	}
	if p.MaxDuration == 0 {
		p.MaxDuration = DefaultMaxDuration
	}
	return p
}

// Validate returns an error that names the first field out of its range, its value
// and the bound, or nil. Zero fields stand for the defaults and are in range.
func (p Policy) Validate() error {
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"PerDenial", p.PerDenial},
		{"DecayPerSecond", p.DecayPerSecond},
		{"Threshold", p.Threshold},
	} {
		if f.value < 0 || math.IsNaN(f.value) || math.IsInf(f.value, 0) {
			return fmt.Errorf("pgyield: demerit policy: %s is %v: want a finite number above 0 (0 means the default)", f.name, f.value)
		}
	}
	if p.MaxDuration < 0 {
		return fmt.Errorf("pgyield: demerit policy: MaxDuration is %v: want more than 0 (0 means the default)", p.MaxDuration)
	}
	return nil
}

// Penalised reports whether a value (as [Score.At] gives it) is at or above the
// threshold.
func (p Policy) Penalised(value float64) bool {
	return value >= p.WithDefaults().Threshold
}

// Cap returns how much cost a caller with the given share and value may have
// running: its share, and when penalised its share less the rounded value. It is
// never less than 1, so a penalised caller is slowed and not shut out.
func (p Policy) Cap(share int, value float64) int {
	if p.Penalised(value) {
		// Compared as floats: a huge value would overflow an int.
		if reduced := float64(share) - math.Round(value); reduced > 1 {
			return int(reduced)
		}
		return 1
	}
	return max(1, share)
}

// Score is what one caller has accrued: a value, and the time of its last denial.
// The zero Score is clean. Compare and read it only through its methods.
type Score struct {
	value float64
	last  time.Time
}

// At returns the live value at now: decayed, never below 0, and 0 once the last
// denial is [Policy.MaxDuration] old. A now before the last denial counts as the
// moment of that denial. Times that carry a monotonic reading, as time.Now gives
// them, are immune to steps of the wall clock.
func (s Score) At(policy Policy, now time.Time) float64 {
	if s.value == 0 {
		return 0
	}
	policy = policy.WithDefaults()
	elapsed := max(0, now.Sub(s.last))
	if elapsed >= policy.MaxDuration {
		return 0
	}
	return max(0, s.value-policy.DecayPerSecond*elapsed.Seconds())
}

// Deny returns the score after one more denial at now. Budget is the most cost a
// share can ever be (the limit's ceiling); the value is clamped at budget plus the
// threshold, where even the largest share is reduced to one and some is left to
// decay before it grows again.
func (s Score) Deny(policy Policy, budget int, now time.Time) Score {
	policy = policy.WithDefaults()
	value := s.At(policy, now) + policy.PerDenial
	last := now
	if s.value != 0 && s.last.After(now) {
		last = s.last // time does not run backwards
	}
	return Score{
		value: min(value, float64(max(0, budget))+policy.Threshold),
		last:  last,
	}
}

// PenalisedUntil returns when the score stops being penalised if no denial follows,
// and the zero Time when it never was. It may round up to the next nanosecond.
func (s Score) PenalisedUntil(policy Policy) time.Time {
	policy = policy.WithDefaults()
	if !policy.Penalised(s.value) {
		return time.Time{}
	}
	return s.reaches(policy, policy.Threshold)
}

// ClearAt returns when the score is 0 if no denial follows, and the zero Time when
// it is 0 already. It may round up to the next nanosecond.
func (s Score) ClearAt(policy Policy) time.Time {
	if s.value == 0 {
		return time.Time{}
	}
	return s.reaches(policy.WithDefaults(), 0)
}

// Rank orders scores by their live value without asking for the time: of two scores
// that are both still live, the one with the smaller Rank has the smaller value, and
// stays so, because all decay at one rate. Origin is any fixed time.
func (s Score) Rank(policy Policy, origin time.Time) float64 {
	policy = policy.WithDefaults()
	return s.value + policy.DecayPerSecond*s.last.Sub(origin).Seconds()
}

// reaches returns when the value has decayed to level or was dropped.
func (s Score) reaches(policy Policy, level float64) time.Time {
	seconds := (s.value - level) / policy.DecayPerSecond
	if seconds >= policy.MaxDuration.Seconds() {
		return s.last.Add(policy.MaxDuration)
	}
	return s.last.Add(time.Duration(math.Ceil(seconds*float64(time.Second))) + 1)
}
