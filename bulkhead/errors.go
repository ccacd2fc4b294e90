package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrRefused is what every [*RefusedError] matches with errors.Is.
	ErrRefused = errors.New("pgyield: read refused")
	// ErrClosed is what reads get after [Bulkhead.Close] was called with no cause.
	ErrClosed = errors.New("pgyield: bulkhead closed, no SQL was sent")
)

// Reason says why a read was refused. The set is bounded ([Reasons]), so it may be a
// metric label.
type Reason string

const (
	// ReasonLimit: the read may not wait, and the limit has no room for it.
	ReasonLimit Reason = "limit"
	// ReasonCap: the read may not wait, and its caller runs what it may while others
	// want more.
	ReasonCap Reason = "cap"
	// ReasonQueueFull: as many reads wait as may wait.
	ReasonQueueFull Reason = "queue_full"
	// ReasonEvicted: the read waited, and made room for one of a caller that has less.
	ReasonEvicted Reason = "evicted"
	// ReasonMaxWait: the read waited as long as a read may.
	ReasonMaxWait Reason = "max_wait"
)

// reasons is every Reason; a reason's place here is its place in the counters.
var reasons = [...]Reason{ReasonLimit, ReasonCap, ReasonQueueFull, ReasonEvicted, ReasonMaxWait}

// Reasons returns every [Reason] there is.
func Reasons() []Reason { return append([]Reason(nil), reasons[:]...) }

func (r Reason) index() int {
	for i, other := range reasons {
		if r == other {
			return i
		}
	}
	return -1
}

// RefusedError is a read that was refused. It was refused before any SQL was sent.
// It is not to be retried at once: that is what demerits are charged for.
type RefusedError struct {
	Reason Reason
	// Caller is the account that the read was counted on: its caller, or "" for none.
	Caller string
	// Limit and Running count cost, Waiting counts reads, as they were when the read
	// was refused; Waiting includes the read itself if it waited.
	Limit, Running, Waiting int
	// Waited is how long the read had waited.
	Waited time.Duration
	// RetryAfter is when a permit can be expected, from how long reads run and how
	// many are before this one. It is jittered and more than 0.
	RetryAfter time.Duration
}

// Error says why the read was refused, and that no SQL was sent.
func (e *RefusedError) Error() string {
	why := map[Reason]string{
		ReasonLimit:     "the limit is reached and the read may not wait",
		ReasonCap:       "its caller runs its share while others want more",
		ReasonQueueFull: "the queue is full",
		ReasonEvicted:   "it made room for a caller that has less",
		ReasonMaxWait:   "it waited as long as a read may",
	}[e.Reason]
	return fmt.Sprintf("pgyield: read refused, no SQL was sent: %s (caller %q, limit %d, running %d, waiting %d, waited %v, retry after %v)",
		why, e.Caller, e.Limit, e.Running, e.Waiting, e.Waited.Round(time.Microsecond), e.RetryAfter.Round(time.Microsecond))
}

// Is reports whether target is [ErrRefused].
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// contextError is a context that ended before its read had a permit.
type contextError struct {
	err    error
	waited time.Duration
}

func (e *contextError) Error() string {
	return fmt.Sprintf("pgyield: waited %v for a read permit, no SQL was sent: %v", e.waited.Round(time.Microsecond), e.err)
}

// Unwrap keeps the context's error what it is to errors.Is.
func (e *contextError) Unwrap() error { return e.err }

// Timeout makes a deadline look like one to code that asks net.Error-style.
func (e *contextError) Timeout() bool { return errors.Is(e.err, context.DeadlineExceeded) }
