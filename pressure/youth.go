package pressure

import "time"

// youth is the time in which a baseline is young. A program's first writes wait until
// connections are made, and take many times what later ones do. Only once there are ten of
// those for each slow one would the 90th percentile say so, and until then it would hide what
// writes suffer. So a young baseline is replaced by a stretch of windows that are each at least
// twice as fast. An old one is not: writes that are now slow and now fast for reasons of their
// own would have what is fast for their norm. The zero youth begins with the first window.
type youth struct {
	began time.Time
	swift WriteStats // of the windows in a row that were so fast
	since time.Time
	last  time.Time // the end of the last window that taught
}

const (
	youthLasts   = baselineHalfLife
	swiftFactor  = 2
	swiftStretch = time.Second // at least, and with as many writes as strong evidence takes
)

// outgrown takes in a window that teaches the baseline, and returns what replaces that, if
// something does.
func (y *youth) outgrown(now, since time.Time, window WriteStats, baseline time.Duration) (swift WriteStats, ok bool) {
	if y.began.IsZero() {
		y.began = since
	}
	if !since.Equal(y.last) {
		y.swift = WriteStats{} // windows that do not teach lie between
	}
	y.last = now
	if now.Sub(y.began) > youthLasts || swiftFactor*window.P90() > baseline {
		y.swift = WriteStats{}
		return swift, false
	}
	if y.swift.Count == 0 {
		y.since = since
	}
	y.swift = y.swift.Add(window)
	if y.swift.Count < strongWrites || now.Sub(y.since) < swiftStretch {
		return swift, false
	}
	swift, y.swift = y.swift, WriteStats{}
	return swift, true
}
