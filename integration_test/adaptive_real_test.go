package integration_test

import (
	"testing"
	"time"

	"github.com/pgyield/pgyield/adaptive"
)

// TestAdaptiveFollowsPressure overloads a real server with greedy reads and looks at
// what becomes of its writes, and of its reads when the pressure is gone.
func TestAdaptiveFollowsPressure(t *testing.T) {
	dsn := newDatabase(t)
	l := newLoad(t, dsn, newGate(1, 16))
	_, path := l.adapt(dsn, adaptive.Options{})
	l.write(200)
	l.measure(2 * time.Second)
	idle := l.measure(4 * time.Second)
	t.Logf("idle:       %v", idle)

	path.begin()
	l.read(16)
	onset := l.measure(5 * time.Second)
	t.Logf("onset, 5 s: %v", onset)
	held := l.measure(15 * time.Second)
	t.Logf("held, 15 s: %v", held)
	t.Logf("the limit:\n%v", path)

	path.begin()
	l.rate.Store(0)
	l.measure(5 * time.Second)
	t.Logf("relief:\n%v", path)
}
