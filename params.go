package pgyield

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgyield/pgyield/fleet"
)

// paramPrefix marks the connection string's parameters that are ours.
const paramPrefix = "yield_"

// param is one `yield_*` parameter: what its value must be, and where it goes. apply
// reports whether text is such a value; it leaves alone what an option already set.
type param struct {
	want  string
	apply func(o *Options, text string) bool
}

// params are the `yield_*` parameters. Ranges that depend on the size of the pool, or
// that a package checks itself, are checked where they are used; the messages there
// name the parameter too.
var params = map[string]param{
	"yield_mode": {"enforce, shadow or off", func(o *Options, text string) bool {
		mode, ok := map[string]Mode{"enforce": Enforce, "shadow": Shadow, "off": Off}[text]
		return ok && setZero(&o.Mode, mode)
	}},
	"yield_adapt": {"on or off", func(o *Options, text string) bool {
		return (text == "on" || text == "off") && setZero(&o.FixedLimit, text == "off")
	}},
	"yield_read_limit":   integer(math.MaxInt32, func(o *Options) *int { return &o.Bulkhead.Limit }),
	"yield_read_floor":   integer(math.MaxInt32, func(o *Options) *int { return &o.Bulkhead.Floor }),
	"yield_read_ceiling": integer(math.MaxInt32, func(o *Options) *int { return &o.Bulkhead.Ceiling }),
	"yield_max_callers":  integer(math.MaxInt32, func(o *Options) *int { return &o.Bulkhead.MaxCallers }),
	"yield_periods":      integer(1000, func(o *Options) *int { return &o.Adaptive.Periods }),
	"yield_max_waiting": {"an integer: how many reads may wait, 0 for no bound, -1 for none", func(o *Options, text string) bool {
		n, err := strconv.Atoi(text)
		return err == nil && n >= -1 && setZero(&o.Bulkhead.MaxWaiting, n)
	}},
	"yield_max_wait":    duration(1, math.MaxInt64, func(o *Options) *time.Duration { return &o.Bulkhead.MaxWait }),
	"yield_window":      duration(1, math.MaxInt64, func(o *Options) *time.Duration { return &o.Bulkhead.Window }),
	"yield_stall_after": duration(time.Microsecond, math.MaxInt64, func(o *Options) *time.Duration { return &o.Bulkhead.StallAfter }),
	"yield_busy_stall":  duration(time.Microsecond, math.MaxInt64, func(o *Options) *time.Duration { return &o.Bulkhead.BusyStall }),
	"yield_fleet": {"a name of 1 to 21 letters, digits, '_', '.' or '-'", func(o *Options, text string) bool {
		return fleet.CheckName(text) == nil && setZero(&o.Fleet.Name, text)
	}},
	"yield_fleet_limit": integer(fleet.MaxLimit, func(o *Options) *int { return &o.Fleet.Limit }),
	"yield_fleet_size":  integer(fleet.MaxLimit, func(o *Options) *int { return &o.Fleet.Size }),
	"yield_period":      duration(10*time.Millisecond, time.Minute, func(o *Options) *time.Duration { return &o.Adaptive.Period }),
	"yield_tolerance": {"a number from 1.1 to 100", func(o *Options, text string) bool {
		x, err := strconv.ParseFloat(text, 64)
		return err == nil && x >= 1.1 && x <= 100 && setZero(&o.Adaptive.Tolerance, x)
	}},
}

// setZero sets *field where it is zero, and reports true: to be beaten by an option is
// no error.
func setZero[T comparable](field *T, value T) bool {
	var zero T
	if *field == zero {
		*field = value
	}
	return true
}

// integer is a number of at least one and at most most.
func integer(most int, field func(*Options) *int) param {
	want := fmt.Sprintf("an integer from 1 to %d", most)
	if most == math.MaxInt32 {
		want = "an integer of at least 1"
	}
	return param{want, func(o *Options, text string) bool {
		n, err := strconv.Atoi(text)
		return err == nil && n >= 1 && n <= most && setZero(field(o), n)
	}}
}

func duration(least, most time.Duration, field func(*Options) *time.Duration) param {
	want := fmt.Sprintf("a duration from %v to %v, such as 2s", least, most)
	switch {
	case least == 1 && most == math.MaxInt64:
		want = "a duration above 0, such as 2s"
	case most == math.MaxInt64:
		want = fmt.Sprintf("a duration of at least %v, such as 2s", least)
	}
	return param{want, func(o *Options, text string) bool {
		d, err := time.ParseDuration(text)
		return err == nil && d >= least && d <= most && setZero(field(o), d)
	}}
}

// applyParams sets what o leaves zero from the parameters of a connection string. All
// are checked, also those that an option beats, so that a wrong one never hides.
func applyParams(o *Options, given map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		p, ok := params[key]
		if !ok {
			known := slices.Sorted(maps.Keys(params))
			return fmt.Errorf("pgyield: unknown parameter %s in the connection string, known are %s", key, strings.Join(known, ", "))
		}
		if !p.apply(o, given[key]) {
			return fmt.Errorf("pgyield: parameter %s in the connection string is %q, must be %s", key, given[key], p.want)
		}
	}
	return nil
}

// takeParams removes our parameters from runtime, the settings that pgx would send to
// the server (which would refuse the connection), and returns them.
func takeParams(runtime map[string]string) map[string]string {
	taken := map[string]string{}
	for key, value := range runtime {
		if strings.HasPrefix(key, paramPrefix) {
			taken[key] = value
			delete(runtime, key)
		}
	}
	return taken
}
