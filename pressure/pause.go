package pressure

import "time"

// A poll looks at all sessions of the server, so it costs the server more the more there are.
const (
	pollCost     = 500 * time.Microsecond // of the server's processor, without a look at sessions
	sessionCost  = 3 * time.Microsecond   // for each
	pollShare    = 0.0025                 // of one core, for all polls of one monitor
	longestPause = time.Second            // a dip for a first baseline wants two polls
)

// Pause is how long the polls of one monitor should be apart, at least, so that they cost the
// server no more than a quarter of a percent of a core, as far as that can be told from the
// sample's number of sessions: 0.2 s with few, 0.8 s with 500; at most 1 s, and 0 where the
// number is unknown.
func (s *Sample) Pause() time.Duration {
	if s.Sessions <= 0 {
		return 0
	}
	cost := pollCost + time.Duration(s.Sessions)*sessionCost
	return min(longestPause, time.Duration(float64(cost)/pollShare))
}
