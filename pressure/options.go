package pressure

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options configure a [Poller] and a [Judge]. The zero value is the default of
// everything.
type Options struct {
	// Period is how often the server is polled. Default 500 ms; 50 ms to 1 min. It
	// is slower than a judgement by own writes may be: the server's counters move
	// only about once a second. The adaptive limit polls a server with many
	// sessions more rarely ([Sample.Pause]).
	Period time.Duration
	// Timeout bounds one poll, a connect that it needs included. Default 2 s; 10 ms
	// to 1 min. Where connecting takes longer, one attempt at a time goes on beside the
	// polls for up to 16 s, or Timeout where that is longer.
	Timeout time.Duration
	// BackoffMin and BackoffMax bound the wait before another connect after failed
	// ones; it doubles with each and is jittered. Default 250 ms and 15 s; 1 ms to
	// 10 min. The first attempt after a lost connection does not wait, nor does one after
	// an attempt that ran out of time.
	BackoffMin, BackoffMax time.Duration

	// BeforeConnect, when set, is called before each connect with a copy of the
	// config, to change it: for a password that rotates. Its error fails the attempt to
	// connect. It must end with ctx, and be safe for concurrent use: one that takes longer
	// than a poll is called again beside that, by the next one.
	BeforeConnect func(ctx context.Context, config *pgx.ConnConfig) error

	// Maintain, when set, is called on the monitor's connection after it connects
	// and every MaintainEvery (default 10 min; at least 1 s), for at most
	// MaintainTimeout (default 10 s). Its error is logged once and ends nothing. It
	// must leave no session state behind.
	Maintain        func(ctx context.Context, conn *pgx.Conn) error
	MaintainEvery   time.Duration
	MaintainTimeout time.Duration

	// Name, when set, gives the application_name (at most 63 bytes) that each poll
	// sets on the monitor's connection; NamePrefix selects the other sessions' names
	// that come back in [Sample].Names. Both or neither. This is the one piece of
	// session state the poll keeps, with Mark: it needs a connection that no bouncer shares.
	Name       func() string
	NamePrefix string

	// Mark, when set, is left in the session by each poll as the setting pgyield.member,
	// and what the poll found there comes back in [Sample].Mark: other than what was left
	// there, the session is shared or changes, because of a bouncer. Needs Name.
	Mark string

	// Logger receives what an operator should know: a blind signal, a lost
	// connection. Default: nothing is logged.
	Logger *slog.Logger

	// Absolute thresholds, each replacing the comparison with a baseline of the
	// signal of that name. 0: compare with the baseline; else 1 µs to 1 h.
	OwnWrites      time.Duration
	WALSync        time.Duration
	WALWait        time.Duration
	WriteStatement time.Duration
	LockWait       time.Duration
}

// Defaults of Options.
const (
	DefaultPeriod          = 500 * time.Millisecond
	DefaultTimeout         = 2 * time.Second
	DefaultBackoffMin      = 250 * time.Millisecond
	DefaultBackoffMax      = 15 * time.Second
	DefaultMaintainEvery   = 10 * time.Minute
	DefaultMaintainTimeout = 10 * time.Second
	// DefaultTolerance is how many times its idle latency a write may take.
	DefaultTolerance = 1.6
)

// maxName is the longest application_name that Postgres keeps, in bytes.
const maxName = 63

// Normalize returns the options with each zero replaced by its default, or an
// error that names the field, its value and the bound it breaks.
func (o Options) Normalize() (Options, error) {
	type bound struct {
		name      string
		value     *time.Duration
		byDefault time.Duration
		low, high time.Duration
	}
	const us, ms, sec = time.Microsecond, time.Millisecond, time.Second
	for _, b := range []bound{
		{"Period", &o.Period, DefaultPeriod, 50 * ms, time.Minute},
		{"Timeout", &o.Timeout, DefaultTimeout, 10 * ms, time.Minute},
		{"BackoffMin", &o.BackoffMin, DefaultBackoffMin, ms, 10 * time.Minute},
		{"BackoffMax", &o.BackoffMax, max(DefaultBackoffMax, o.BackoffMin), ms, 10 * time.Minute},
		{"MaintainEvery", &o.MaintainEvery, DefaultMaintainEvery, sec, 24 * time.Hour},
		{"MaintainTimeout", &o.MaintainTimeout, DefaultMaintainTimeout, 10 * ms, 10 * time.Minute},
		{"OwnWrites", &o.OwnWrites, 0, us, time.Hour},
		{"WALSync", &o.WALSync, 0, us, time.Hour},
		{"WALWait", &o.WALWait, 0, us, time.Hour},
		{"WriteStatement", &o.WriteStatement, 0, us, time.Hour},
		{"LockWait", &o.LockWait, 0, us, time.Hour},
	} {
		if *b.value == 0 {
			*b.value = b.byDefault
			continue
		}
		if *b.value < b.low || *b.value > b.high {
			return o, fmt.Errorf("pgyield: pressure option %s is %v: must be from %v to %v, or 0 for the default",
				b.name, *b.value, b.low, b.high)
		}
	}
	if o.BackoffMax < o.BackoffMin {
		return o, fmt.Errorf("pgyield: pressure option BackoffMax is %v: must be at least BackoffMin, %v",
			o.BackoffMax, o.BackoffMin)
	}
	if (o.Name == nil) != (o.NamePrefix == "") {
		return o, fmt.Errorf("pgyield: pressure options Name and NamePrefix (%q) must be set together", o.NamePrefix)
	}
	if o.Mark != "" && o.Name == nil {
		return o, fmt.Errorf("pgyield: pressure option Mark is %q: must be empty without Name", o.Mark)
	}
	if len(o.NamePrefix) > maxName {
		return o, fmt.Errorf("pgyield: pressure option NamePrefix is %d bytes long: must be at most %d", len(o.NamePrefix), maxName)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// checkTolerance validates the factor of idle latency that writes may reach.
func checkTolerance(t float64) error {
	if math.IsNaN(t) || t < 1.1 || t > 100 {
		return fmt.Errorf("pgyield: Tolerance is %v: must be from 1.1 to 100, or 0 for the default %v", t, DefaultTolerance)
	}
	return nil
}
