package pgyield

import (
	"fmt"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ParseConfig parses connString as [pgxpool.ParseConfig] does and takes these
// parameters beside `pool_*`; an [Options] field beats its parameter. Integers, and
// durations as [time.ParseDuration] reads them; limits count cost.
//
//   - yield_mode: enforce, shadow or off (default enforce)
//   - yield_adapt: on, or off for a fixed limit without a monitor (default on)
//   - yield_read_limit: where the limit starts, 1 to pool_max_conns (default the ceiling)
//   - yield_read_floor: the lowest limit (default 1)
//   - yield_read_ceiling: the highest limit, at most pool_max_conns (default
//     pool_max_conns less a fifth, less at least one)
//   - yield_max_wait: longest wait for a permit (default as long as the context allows)
//   - yield_max_waiting: how many reads may wait, 0 for no bound, -1 for none (default 0)
//   - yield_max_callers: how many callers are told apart (default 1000)
//   - yield_window: how long a caller counts as active after its last read (default 5s)
//   - yield_stall_after: idle time of all running reads after which one read more may
//     run (default 100ms)
//   - yield_busy_stall: time without progress after which one read more may run
//     (default 5s)
//   - yield_period: time between two decisions (default 250ms)
//   - yield_periods: pressing periods in a row before a cut (default 2)
//   - yield_tolerance: how many times its idle latency a write may take before reads
//     yield (default 1.6)
//   - yield_fleet: the name of a fleet, whose pools share one limit (default none)
//   - yield_fleet_limit: that limit; needed with yield_fleet
//   - yield_fleet_size: how many pools to expect while they cannot be seen (default 1)
//
// The parameters stay in the connection string, where the constructors read them; they
// are not sent to the server. A value that cannot be right is an error here, one that
// only the size of the pool makes wrong is an error of the constructor.
func ParseConfig(connString string) (*Config, error) {
	config, err := pgxpool.ParseConfig(connString)
	if err != nil {
		return nil, err
	}
	var scratch Options
	if err := applyParams(&scratch, takeParams(config.ConnConfig.RuntimeParams)); err != nil {
		return nil, pgconn.NewParseConfigError(connString, "invalid pgyield parameter", err)
	}
	return config, nil
}

// paramsOf returns the `yield_*` parameters of config: those of the connection string
// that made it, for Config is pgxpool's type and has no room for them, and those that
// were set as runtime parameters, which beat them.
//
// What else the string was read with (a service file, a key) may be gone by now, and
// config does not need it. So that the string cannot be read again matters only where
// parameters would be lost.
func paramsOf(config *Config) (map[string]string, error) {
	taken := map[string]string{}
	parsed, err := pgx.ParseConfig(config.ConnString())
	switch {
	case err == nil:
		taken = takeParams(parsed.RuntimeParams)
	case strings.Contains(config.ConnString(), paramPrefix):
		return nil, fmt.Errorf("pgyield: read the yield_ parameters of the connection string: %w", err)
	}
	maps.Copy(taken, takeParams(maps.Clone(config.ConnConfig.RuntimeParams)))
	return taken, nil
}
