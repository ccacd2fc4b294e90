// Package capacity computes how many reads a limit refuses, and how long it makes them
// wait.
//
// Two kinds of limit are modelled. A limit on a rate, counted in windows, refuses what
// exceeds it within a window: the number of arrivals is Poisson ([Tail], [MeanAbove],
// [Excess], [Window]). A limit on concurrency, such as a pool's read limit, is the
// telephone exchange of A. K. Erlang: [ErlangB] where reads may not wait, [ErlangC]
// where they wait for as long as it takes, [ErlangA] and [Deadline] where they wait for
// a while. [Split] divides either load over shards that do not know of each other,
// [Retry] lets refused reads come back, [Smallest] finds the limit that a target needs.
//
// Load is counted in erlangs: arrivals a second times the mean time, in seconds, for
// which one holds its permit. Times are counted in mean holding times. Both are plain
// numbers, so that no unit is hidden. From a live pool, the rate is the admitted and
// refused reads over time, and the mean holding time is the time held over the reads
// released.
//
// The trap: the models assume that arrivals are independent of each other (Poisson). It
// holds for many clients that do not coordinate. A job that starts its reads in a burst
// is refused more than any formula here says.
//
// All functions are pure and safe for concurrent use. Results are within a relative
// error of about 1e-9 up to 10^6 erlangs and 10^5 permits, as long as they do not
// underflow to 0.
package capacity
