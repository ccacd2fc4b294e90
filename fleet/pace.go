package fleet

import "time"

// A poll looks at all sessions of the server, so it costs the server more the more there
// are. That all members see the same number of them lets all keep the same pace.
const (
	pollCost    = 500 * time.Microsecond // of the server's processor, without a look at sessions
	sessionCost = 2500 * time.Nanosecond // for each
	pollShare   = 0.015                  // of one core, for all polls of the fleet

	// longestPause is as rarely as a member polls for the sake of that: the signals of
	// pressure that are seen in two polls need them less than half a minute apart.
	longestPause = 25 * time.Second
)

// pause is how long each of so many members waits between polls so that all of them cost
// the server no more than their share of a core; 0 where the number of sessions is unknown.
func pause(members, sessions int) time.Duration {
	if sessions <= 0 {
		return 0
	}
	cost := pollCost + time.Duration(sessions)*sessionCost
	return min(longestPause, time.Duration(float64(members)*float64(cost)/pollShare))
}
