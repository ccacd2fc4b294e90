package fleet

import "time"

// A poll looks at all sessions of the server, so it costs the server more the more there
// are. That all members see the same number of them lets all keep the same pace.
const (
	pollCost    = 500 * time.Microsecond // of the server's processor, without a look at sessions
	sessionCost = 2500 * time.Nanosecond // for each
	pollShare   = 0.015                  // of one core, for all polls of the fleet

	// A backend that has slept for long finds nothing of its own in the processor's caches.
	longSleep = 10 * time.Second
	wakeCost  = 1200 * time.Microsecond // of the server's processor, besides

	// longestPause is as rarely as a member polls, unless its period is longer: the signals
	// of pressure that are seen in two polls need them less than a minute apart.
	longestPause = 50 * time.Second
)

// pause is how long each of so many members waits between polls so that all of them cost
// the server no more than their share of a core; 0 where the number of sessions is unknown.
func pause(members, sessions int) time.Duration {
	if sessions <= 0 {
		return 0
	}
	at := func(cost time.Duration) time.Duration {
		return time.Duration(float64(members) * float64(cost) / pollShare)
	}
	cost := pollCost + time.Duration(sessions)*sessionCost
	if every := at(cost); every <= longSleep {
		return every
	}
	return at(cost + wakeCost)
}
