package bulkhead

import "strconv"

// Mode says what a [Bulkhead] does with reads. The zero Mode is [Enforce].
type Mode int

const (
	// Enforce holds reads back at the limit.
	Enforce Mode = iota
	// Shadow accounts for reads and judges contention as Enforce would, but holds
	// nothing back and charges no demerit.
	Shadow
	// Off lets every read go at once. Reads that run are still accounted for, so that
	// switching back loses nothing.
	Off
)

// String returns the mode's name in lower case.
func (m Mode) String() string {
	switch m {
	case Enforce:
		return "enforce"
	case Shadow:
		return "shadow"
	case Off:
		return "off"
	default:
		return "Mode(" + strconv.Itoa(int(m)) + ")"
	}
}
