package pgyield

import (
	"math"
	"testing"
	"time"

	"github.com/pgyield/pgyield/bulkhead"
	"github.com/pgyield/pgyield/fleet"
)

// NewFleetLimit returns the limit of a pool with that ceiling of its own, and its member.
func NewFleetLimit(t *testing.T, ceiling int, options fleet.Options) (*fleetLimit, *fleet.Member) {
	b, err := bulkhead.New(bulkhead.Options{Ceiling: ceiling})
	if err != nil {
		t.Fatal(err)
	}
	l := &fleetLimit{bulkhead: b, floor: 1, allowed: math.MaxInt, even: math.MaxInt}
	options.Load, options.Most = (&fleetLoad{bulkhead: b, held: l.held}).take, ceiling
	if l.member, err = fleet.New(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.stop)
	return l, l.member
}

// Bulkhead returns what the limit moves.
func (l *fleetLimit) Bulkhead() *bulkhead.Bulkhead { return l.bulkhead }

// Follow moves the limit to what the fleet gives now, as a poll does.
func (l *fleetLimit) Follow() { l.follow(time.Now()) }
