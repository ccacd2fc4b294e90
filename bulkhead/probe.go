package bulkhead

import "time"

// Probe raises the limit as [Bulkhead.SetLimit] does, but lets it be filled only once: as
// soon as the new limit has been used whole, it lets in no more than the old one did, until
// the limit is set again or bounds move it. So whoever wants to know what a higher limit does
// pays once for the reads above the old one, and not also for those that follow while the answer
// is awaited. A limit that is not higher is set as ever.
func (b *Bulkhead) Probe(limit int) {
	b.change(func(time.Duration) {
		from := b.limit
		if b.setLimit(limit); b.limit > from {
			b.probe.from = from
		}
	})
}

// probe is a limit that may be filled once. The zero probe is none.
type probe struct {
	from   int // what may run after that; 0: the limit
	filled bool
}

// room is how much cost may run now: the limit, and after a probe has been filled what it
// was before.
func (b *Bulkhead) room() int {
	if b.probe.filled {
		return b.probe.from
	}
	return b.limit
}
