package adaptive

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// Options configure a [Limit]. The zero value is the default of everything.
type Options struct {
	// Period is how often the limit is judged. Default 250 ms; 10 ms to 1 min.
	Period time.Duration
	// Periods is how many pressing and contended periods in a row lower the limit
	// (strong evidence takes one). Default 2; 1 to 1000.
	Periods int
	// Tolerance is how many times its idle latency a write may take before reads
	// yield. Default 1.6; 1.1 to 100.
	Tolerance float64
	// Hold is how long the limit stays below a level at which writes suffered before
	// that level is tried again; it doubles, up to HoldMax, each time it fails.
	// Default 8 s and 64 s; from Period to 1 h.
	Hold, HoldMax time.Duration
	// StaleAfter is how many periods with nothing to judge by pass before the limit
	// drifts back to its start. Default 20; 1 to 1,000,000.
	StaleAfter int
	// FloorAfter is how long the limit sits at its floor before the log says so.
	// Default 30 s; from Period to 24 h.
	FloorAfter time.Duration

	// Activity gives what the program did since it was last called; it is called
	// once a period. Without it own writes are not judged, and reads are taken to
	// run.
	Activity func() pressure.Activity
	// Pressure holds the thresholds, and how often the source is polled.
	Pressure pressure.Options
	// Logger receives what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
	// OnDecision is called after each period, one call at a time when the loop runs,
	// with no lock held. It must not call Stop.
	OnDecision func(Decision)
}

// Defaults of Options.
const (
	DefaultPeriod     = 250 * time.Millisecond
	DefaultPeriods    = 2
	DefaultHold       = 8 * time.Second
	DefaultHoldMax    = 64 * time.Second
	DefaultStaleAfter = 20
	DefaultFloorAfter = 30 * time.Second
)

// normalize replaces each zero by its default, or tells the field, its value and
// the bound it breaks.
func (o Options) normalize() (Options, error) {
	setDefault(&o.Period, DefaultPeriod)
	setDefault(&o.Periods, DefaultPeriods)
	setDefault(&o.Tolerance, pressure.DefaultTolerance)
	setDefault(&o.Hold, DefaultHold)
	setDefault(&o.HoldMax, max(DefaultHoldMax, o.Hold))
	setDefault(&o.StaleAfter, DefaultStaleAfter)
	setDefault(&o.FloorAfter, DefaultFloorAfter)
	for _, err := range []error{
		between("Period", o.Period, 10*time.Millisecond, time.Minute),
		between("Periods", o.Periods, 1, 1000),
		between("Hold", o.Hold, o.Period, time.Hour),
		between("HoldMax", o.HoldMax, o.Hold, time.Hour),
		between("StaleAfter", o.StaleAfter, 1, 1_000_000),
		between("FloorAfter", o.FloorAfter, o.Period, 24*time.Hour),
	} {
		if err != nil {
			return o, err
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	o.Pressure, err = o.Pressure.Normalize()
	return o, err
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func between[T int | time.Duration](name string, value, low, high T) error {
	if value < low || value > high {
		return fmt.Errorf("pgyield: adaptive option %s is %v: must be from %v to %v, or 0 for the default", name, value, low, high)
	}
	return nil
}
