package pressure

import "time"

// A poll looks at all sessions of the server, so it costs the server more the more there are:
// 1.4 to 2.3 ms of its processor with 500, on several machines.
const (
	crowd      = 250         // sessions; beyond, polls are rarer
	crowdPause = time.Second // the counters move no faster
)

// Pause is how far apart the polls of one monitor should be, at least, for the server's sake:
// 1 s where it has more than 250 sessions, so that polls cost it some 0.2 % of a core with 500,
// and more with more. 0 where it has fewer, or their number is unknown.
func (s *Sample) Pause() time.Duration {
	if s.Sessions > crowd {
		return crowdPause
	}
	return 0
}

// Sparse reports whether polls are further apart than the window that is judged: each is then
// worth several periods, and what takes a few of them takes long.
func (s *Sample) Sparse() bool { return s.Every > window }
