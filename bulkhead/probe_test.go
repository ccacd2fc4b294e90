package bulkhead

import "testing"

// TestProbeIsFilledOnce: what a probe lets in above the old limit runs on, and is followed
// by nothing until the limit is set.
func TestProbeIsFilledOnce(t *testing.T) {
	bubble(t, Options{Limit: 1, Ceiling: 8}, func(t *testing.T, b *Bulkhead) {
		x, y, z := begin(t, b, "a", 1), begin(t, b, "b", 1), begin(t, b, "c", 1)
		b.Probe(2)
		y.mustRun()
		z.mustWait()
		if b.Limit() != 2 {
			t.Errorf("the limit is %d, want the probed 2", b.Limit())
		}
		x.end()
		z.mustWait() // one runs, and one could before the probe
		if _, err := b.TryAcquire("d", 1); err == nil {
			t.Error("a read that may not wait went in a probe that was filled")
		}
		y.end()
		z.mustRun()
		w := begin(t, b, "d", 1)
		w.mustWait()
		b.SetLimit(2) // the probe is over, and the level stays
		w.mustRun()
		z.end()
		v := begin(t, b, "e", 1)
		v.mustRun()
		w.end()
		v.end()
	})
}

// TestProbeNotFilled: until it is, a probe is a limit as any other.
func TestProbeNotFilled(t *testing.T) {
	bubble(t, Options{Limit: 1, Ceiling: 8}, func(t *testing.T, b *Bulkhead) {
		b.Probe(3)
		x, y := begin(t, b, "a", 1), begin(t, b, "a", 1)
		y.mustRun()
		x.end()
		x = begin(t, b, "a", 1)
		x.mustRun()
		z, w := begin(t, b, "a", 1), begin(t, b, "a", 9)
		z.mustRun()
		w.mustWait()
		x.end()
		y.end()
		w.mustWait()
		z.end()
		w.mustRun() // its cost is the whole of what may run
		if s := b.Stat(); s.Running != 1 {
			t.Errorf("a read of cost 9 runs with %d of 1", s.Running)
		}
		w.end()
		b.Probe(1)
		b.Probe(20) // above the ceiling
		if b.Limit() != 8 {
			t.Errorf("the limit is %d, want the ceiling", b.Limit())
		}
	})
}

// TestBoundsAndProbe: bounds that leave the limit where it is leave a probe, others end it.
func TestBoundsAndProbe(t *testing.T) {
	bubble(t, Options{Limit: 1, Ceiling: 8}, func(t *testing.T, b *Bulkhead) {
		bounds := func(floor, ceiling int) {
			t.Helper()
			if err := b.SetBounds(floor, floor, ceiling); err != nil {
				t.Fatal(err)
			}
		}
		x, y, z := begin(t, b, "a", 1), begin(t, b, "b", 1), begin(t, b, "c", 1)
		b.Probe(2)
		y.mustRun()
		x.end()
		bounds(1, 2)
		z.mustWait()
		bounds(3, 8)
		z.mustRun()
		w := begin(t, b, "d", 1)
		w.mustRun()
		y.end()
		z.end()
		w.end()
	})
}
