package bulkhead

import (
	"fmt"
	"time"

	"github.com/pgyield/pgyield/demerit"
)

// The defaults of [Options].
const (
	DefaultWindow     = 5 * time.Second
	DefaultStallAfter = 100 * time.Millisecond
	DefaultBusyStall  = 5 * time.Second
	DefaultMaxCallers = 1000
)

// Options configures a [Bulkhead]. Limit or Ceiling must be given; every other zero
// field takes its default.
type Options struct {
	// Limit is how much cost may run at once to start with. Default: Ceiling.
	Limit int
	// Floor is the least that the limit can be set to. Default 1; at most Limit.
	Floor int
	// Ceiling is the most that the limit can be set to. At least Limit. Left 0, it is
	// Limit, and a higher limit set later raises it.
	Ceiling int

	// MaxPermits bounds the number of permits, whatever they cost, that run within the
	// limit (overdrafts are bounded by MayOverdraw). 0: no bound but the limit.
	MaxPermits int

	// MaxWaiting is how many reads may wait. 0: any number. Negative: none, a read
	// that does not fit is refused at once.
	MaxWaiting int
	// MaxWait is how long a read may wait. 0: as long as its context allows.
	MaxWait time.Duration

	// Window is how long a caller that was seen counts as active, and how long a
	// refusal holds others to their share where reads may not wait. Default 5 s.
	Window time.Duration
	// StallAfter is how long all running permits must have been idle before a waiting
	// read goes above the limit. Default 100 ms; at least 1 µs.
	StallAfter time.Duration
	// BusyStall is how long nothing must have been granted or given back before one
	// waiting read goes, idle permits or not. It doubles with each such read, up to
	// 60 s (or BusyStall, if that is more), until a permit is given back. Default 5 s;
	// at least 1 µs.
	BusyStall time.Duration
	// MayOverdraw is asked before a read goes above the limit; permits is how many run
	// (not their cost). It is called without a lock and may be called concurrently. If
	// it says no it is asked again after StallAfter. nil: always yes.
	MayOverdraw func(kind Overdraft, permits int) bool

	// MaxCallers is how many callers are told apart; those past it share one account.
	// Default 1,000. It bounds memory, not how many names one client can make up: take
	// the caller from an authenticated value.
	MaxCallers int
	// Demerit says how demerits accrue, decay and end. Zero fields take the defaults.
	Demerit demerit.Policy
}

// validated returns o with its defaults, or an error that names the field, its value
// and its bound.
func (o Options) validated() (Options, error) {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"Limit", o.Limit},
		{"Floor", o.Floor},
		{"Ceiling", o.Ceiling},
		{"MaxPermits", o.MaxPermits},
		{"MaxCallers", o.MaxCallers},
	} {
		if f.value < 0 {
			return o, fmt.Errorf("pgyield: bulkhead: %s is %d: want at least 1 (0 means the default)", f.name, f.value)
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"MaxWait", o.MaxWait, 1},
		{"Window", o.Window, 1},
		{"StallAfter", o.StallAfter, time.Microsecond},
		{"BusyStall", o.BusyStall, time.Microsecond},
	} {
		if f.value != 0 && f.value < f.least {
			return o, fmt.Errorf("pgyield: bulkhead: %s is %v: want at least %v (0 means the default)", f.name, f.value, f.least)
		}
	}
	if err := o.Demerit.Validate(); err != nil {
		return o, err
	}
	if o.Limit == 0 && o.Ceiling == 0 {
		return o, fmt.Errorf("pgyield: bulkhead: Limit is 0 and so is Ceiling: want at least one of them, at least 1")
	}
	o = o.withDefaults()
	return o, checkBounds(o.Floor, o.Limit, "Limit", o.Ceiling)
}

func (o Options) withDefaults() Options {
	if o.Ceiling == 0 {
		o.Ceiling = o.Limit
	}
	if o.Limit == 0 {
		o.Limit = o.Ceiling
	}
	if o.Floor == 0 {
		o.Floor = 1
	}
	if o.Window == 0 {
		o.Window = DefaultWindow
	}
	if o.StallAfter == 0 {
		o.StallAfter = DefaultStallAfter
	}
	if o.BusyStall == 0 {
		o.BusyStall = DefaultBusyStall
	}
	if o.MaxCallers == 0 {
		o.MaxCallers = DefaultMaxCallers
	}
	o.Demerit = o.Demerit.WithDefaults()
	return o
}

// checkBounds returns an error unless 1 <= floor <= start <= ceiling.
func checkBounds(floor, start int, startName string, ceiling int) error {
	switch {
	case floor < 1:
		return fmt.Errorf("pgyield: bulkhead: Floor is %d: want at least 1", floor)
	case floor > ceiling:
		return fmt.Errorf("pgyield: bulkhead: Floor is %d: want at most Ceiling (%d)", floor, ceiling)
	case start < floor:
		return fmt.Errorf("pgyield: bulkhead: %s is %d: want at least Floor (%d)", startName, start, floor)
	case start > ceiling:
		return fmt.Errorf("pgyield: bulkhead: %s is %d: want at most Ceiling (%d)", startName, start, ceiling)
	}
	return nil
}
