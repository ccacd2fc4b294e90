package capacity

import (
	"errors"
	"math"
)

// ErlangB returns the probability that a read is refused where none may wait: permits
// are held by reads that arrive at random, with a load of that many erlangs, and one
// that finds no permit free goes away. It depends on the holding time's mean alone, not
// its distribution. (A. K. Erlang, 1917.)
func ErlangB(permits int, erlangs float64) (float64, error) {
	if err := checkErlang("ErlangB", permits, erlangs); err != nil {
		return 0, err
	}
	return erlangB(permits, erlangs), nil
}

// ErlangC returns the queue of reads that wait for as long as it takes, in the order of
// their arrival, with exponential holding times. At a load of permits or more it never
// settles: every read waits, and the mean wait is infinite.
func ErlangC(permits int, erlangs float64) (Queue, error) {
	if err := checkErlang("ErlangC", permits, erlangs); err != nil {
		return Queue{}, err
	}
	n := float64(permits)
	if erlangs >= n {
		return Queue{Waits: 1, MeanWait: math.Inf(1), over: surely, longest: math.Inf(1)}, nil
	}
	b := erlangB(permits, erlangs)
	waits := n * b / (n - erlangs*(1-b))
	drain := n - erlangs
	return Queue{
		Waits:    waits,
		MeanWait: waits / drain,
		over:     func(t float64) float64 { return waits * math.Exp(-drain*t) },
		longest:  math.Inf(1),
	}, nil
}

func checkErlang(where string, permits int, erlangs float64) error {
	return first(checkInt(where, "permits", permits, 0, MaxLimit), checkFloat(where, "erlangs", erlangs, MaxLoad))
}

// erlangB climbs from no permits. Each step multiplies and divides by positive numbers
// of like size, so nothing overflows and rounding errors shrink as it goes.
func erlangB(permits int, erlangs float64) float64 {
	b := 1.0
	for n := 1.0; n <= float64(permits); n++ {
		b = erlangs * b / (n + erlangs*b)
		if b == 0 {
			return 0
		}
	}
	return b
}

// PermitsFor returns the fewest permits with which ErlangB is at most refused, a
// probability above 0.
func PermitsFor(erlangs, refused float64) (int, error) {
	err := first(checkFloat("PermitsFor", "erlangs", erlangs, MaxLimit/2), checkFloat("PermitsFor", "refused", refused, 1))
	if err != nil {
		return 0, err
	}
	if refused == 0 {
		return 0, errors.New("pgyield: capacity: PermitsFor: refused is 0, must be above 0")
	}
	b, n := 1.0, 0
	for b > refused {
		n++
		b = erlangs * b / (float64(n) + erlangs*b)
	}
	return n, nil
}
