package adaptive

import (
	"strings"
	"testing"
	"time"
)

// TestNewsOfTheFloor: a stay at the floor is told of once, also when the limit looks
// above it now and then; a stay after a long time away is another one.
func TestNewsOfTheFloor(t *testing.T) {
	const after = 30 * time.Second
	var n news
	told := func(seconds, atFloor float64) int {
		d := Decision{At: at(seconds), From: 1, To: 1, AtFloor: time.Duration(atFloor * float64(time.Second))}
		lines := 0
		for _, line := range n.of(d, state{}, after) {
			if strings.Contains(line.text, "floor") {
				lines++
			}
		}
		return lines
	}
	for i, c := range []struct {
		at, atFloor float64
		want        int
	}{
		{1, 0.25, 0},
		{30, 29.9, 0},
		{31, 30, 1},
		{32, 31, 0},
		{40, 0, 0},
		{41, 0, 0}, // a probe
		{42, 0.25, 0},
		{80, 38, 0}, // the same stay
		{90, 0, 0},
		{119.9, 0, 0},
		{119.95, 0.25, 0},
		{149.95, 30, 0}, // away for less than that long
		{160, 0, 0},
		{170, 0, 0},
		{190, 0, 0}, // away for as long
		{191, 0.25, 0},
		{221, 30, 1},
	} {
		if got := told(c.at, c.atFloor); got != c.want {
			t.Errorf("step %d: told of it %d times", i, got)
		}
	}
}
