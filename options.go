package pgyield

import (
	"fmt"
	"log/slog"
	"reflect"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/adaptive"
	"github.com/pgyield/pgyield/bulkhead"
	"github.com/pgyield/pgyield/pressure"
)

// Options are the settings that a [Config] cannot hold. The zero value is right for
// most programs. An option beats the `yield_*` parameter of the connection string,
// which beats the default.
type Options struct {
	// Mode is what the gate does at start; SetMode changes it. The default is Enforce.
	Mode Mode

	// Bulkhead holds the limit, its bounds and the queue. Limit, Floor and Ceiling
	// count cost. By default Ceiling is MaxConns less a reserve for writes (a fifth, at
	// least one), Limit is the ceiling, Floor is 1, the queue is unbounded and a read
	// waits as long as its context allows. A Limit without a Ceiling is its own
	// ceiling where it is above the default one. None may be above MaxConns.
	//
	// MayOverdraw and MaxPermits are the pool's own and must be unset.
	Bulkhead bulkhead.Options

	// Pressure holds how the server is polled and how samples are judged.
	Pressure pressure.Options

	// Adaptive holds how the limit moves. Activity, OnDecision, Logger and Pressure are
	// the pool's own and must be unset: use the fields beside it.
	Adaptive adaptive.Options

	// Fleet makes the pool share one limit with other processes' pools.
	Fleet FleetOptions

	// FixedLimit keeps the limit where it starts and opens no monitor connection
	// (`yield_adapt=off`). User functions are then not learned, so that a call of one
	// is a read unless WritingFunctions names it.
	FixedLimit bool

	// WritingFunctions are functions whose call makes a statement a write, beside the
	// built-in list and the volatile ones that the monitor learns.
	WritingFunctions []string

	// ReadingFunctions are volatile functions that do not write. They beat what is
	// learned.
	ReadingFunctions []string

	// MonitorConfig is how the monitor connects. The default is the pool's ConnConfig or,
	// where the pool has a BeforeConnect, what that made of it for the pool's last connection:
	// credentials that expire sooner than connections are made want
	// Options.Pressure.BeforeConnect. Set it behind a transaction-mode bouncer
	// or to poll with a role that sees more.
	MonitorConfig *pgx.ConnConfig

	// Logger gets the few events an operator wants: the monitor blind or lost, the
	// limit at its floor for long. The default discards them.
	Logger *slog.Logger

	// OnDecision is called after each period with what was decided. It runs on the
	// monitor's goroutine, after the limit has moved, with no lock held, and must not
	// call Close.
	OnDecision func(adaptive.Decision)
}

// settings are Options with every source merged and every default set that depends
// on the pool.
type settings struct {
	Options
	maxConns int
}

// resolve merges options, the connection string's parameters and the defaults, in
// that order, for a pool of maxConns.
func resolve(o Options, params map[string]string, maxConns int) (settings, error) {
	if err := o.rejectOwned(); err != nil {
		return settings{}, err
	}
	if err := applyParams(&o, params); err != nil {
		return settings{}, err
	}
	switch o.Mode {
	case Enforce, Shadow, Off:
	default:
		return settings{}, fmt.Errorf("pgyield: Options.Mode is %d, must be Enforce, Shadow or Off", o.Mode)
	}
	if err := boundLimits(&o.Bulkhead, maxConns); err != nil {
		return settings{}, err
	}
	if err := o.Fleet.check(o.FixedLimit); err != nil {
		return settings{}, err
	}
	if o.Fleet.Name != "" && o.Pressure.Period == 0 {
		o.Pressure.Period = fleetPeriod
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return settings{Options: o, maxConns: maxConns}, nil
}

// rejectOwned refuses the fields that the pool fills itself: accepting and then
// overwriting them would lose what the program asked for.
func (o *Options) rejectOwned() error {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"Bulkhead.MayOverdraw", o.Bulkhead.MayOverdraw != nil},
		{"Bulkhead.MaxPermits", o.Bulkhead.MaxPermits != 0},
		{"Adaptive.Activity", o.Adaptive.Activity != nil},
		{"Adaptive.OnDecision", o.Adaptive.OnDecision != nil},
		{"Adaptive.Logger", o.Adaptive.Logger != nil},
		{"Adaptive.Pressure (use Options.Pressure)", !reflect.ValueOf(o.Adaptive.Pressure).IsZero()},
		{"Pressure.Maintain", o.Pressure.Maintain != nil},
		{"Pressure.Name", o.Pressure.Name != nil},
		{"Pressure.NamePrefix", o.Pressure.NamePrefix != ""},
		{"Pressure.Mark", o.Pressure.Mark != ""},
	} {
		if f.set {
			return fmt.Errorf("pgyield: Options.%s is set, but belongs to the pool and must be unset", f.name)
		}
	}
	return nil
}

// boundLimits sets the limits that are unset and checks those that are set against
// the size of the pool and each other.
func boundLimits(b *bulkhead.Options, maxConns int) error {
	for _, f := range []struct {
		name  string
		value int
	}{{"Limit (yield_read_limit)", b.Limit}, {"Floor (yield_read_floor)", b.Floor}, {"Ceiling (yield_read_ceiling)", b.Ceiling}} {
		if f.value < 0 || f.value > maxConns {
			return fmt.Errorf("pgyield: Options.Bulkhead.%s is %d, must be from 1 to MaxConns (%d), or 0 for the default", f.name, f.value, maxConns)
		}
	}
	if b.Floor == 0 {
		b.Floor = 1
	}
	if b.Ceiling == 0 {
		b.Ceiling = max(defaultCeiling(maxConns), b.Limit, b.Floor)
	}
	if b.Limit == 0 {
		b.Limit = b.Ceiling
	}
	if b.Floor > b.Ceiling {
		return fmt.Errorf("pgyield: Options.Bulkhead.Floor (yield_read_floor) is %d, must be at most the ceiling (%d)", b.Floor, b.Ceiling)
	}
	if b.Limit < b.Floor || b.Limit > b.Ceiling {
		return fmt.Errorf("pgyield: Options.Bulkhead.Limit (yield_read_limit) is %d, must be from the floor (%d) to the ceiling (%d)",
			b.Limit, b.Floor, b.Ceiling)
	}
	return nil
}

// defaultCeiling leaves a fifth of the connections, at least one, to writes.
func defaultCeiling(maxConns int) int {
	return max(1, maxConns-max(1, maxConns/5))
}
