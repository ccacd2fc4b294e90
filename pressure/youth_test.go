package pressure

import (
	"testing"
	"time"
)

// TestYouth: a baseline that began with slow writes is replaced once a second of windows was
// twice as fast, but only while it is young, and by windows in a row.
func TestYouth(t *testing.T) {
	const period = 250 * time.Millisecond
	type part struct {
		windows, writes int
		took            time.Duration
	}
	fast := func(windows int) part { return part{windows, 50, time.Millisecond} }
	gap := part{windows: 4} // windows that teach nothing
	slow := func(windows int) part { return part{windows, 50, 100 * time.Millisecond} }
	for name, c := range map[string]struct {
		parts    []part
		replaced bool
	}{
		"a second":              {[]part{slow(5), fast(4)}, true},
		"less than a second":    {[]part{slow(5), fast(3)}, false},
		"with one between":      {[]part{slow(5), fast(3), slow(1), fast(3)}, false},
		"less than twice":       {[]part{slow(5), {8, 50, 60 * time.Millisecond}}, false},
		"few writes":            {[]part{slow(5), {4, 7, time.Millisecond}}, false},
		"few writes, for long":  {[]part{slow(5), {5, 7, time.Millisecond}}, true},
		"grown up":              {[]part{slow(60), fast(4)}, false},
		"slow ones come second": {[]part{fast(20), slow(20)}, false},
		"with a gap":            {[]part{slow(5), fast(3), gap, fast(3)}, false},
	} {
		o := &own{tolerance: 1.6}
		now := second(0)
		replaced := false
		for _, p := range c.parts {
			for range p.windows {
				before := o.base.total
				o.acc, o.since = alike(p.writes, p.took), now
				now = now.Add(period)
				if p.writes == 0 {
					o.learn(now, held)
					continue
				}
				o.learn(now, quiet)
				if o.base.total < before {
					replaced = true
				}
			}
		}
		if replaced != c.replaced {
			t.Errorf("%s: replaced %t", name, replaced)
		}
		if last := c.parts[len(c.parts)-1]; replaced && o.base.p90() > 2*last.took {
			t.Errorf("%s: the baseline is %v", name, o.base.p90())
		}
	}
}
