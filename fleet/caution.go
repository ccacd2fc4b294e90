package fleet

import "time"

// caution bounds what a member takes while it may not see all the others. The first poll of
// processes that start together sees nobody, and so does the first after the server was
// gone: the names went with it, and not all are back at once. Each would take it all.
type caution struct {
	most     int       // 0: no bound
	expected int       // members that are to come back; 0: none
	until    time.Time // they are waited for
	missed   bool      // a poll has failed since the last observation
}

// observe is told of each observation before the member takes it in. The name of the first
// stands when the second looks, and so do those of all that started with it. Who was known
// before a silence has the lease to come back.
func (c *caution) observe(now time.Time, size int, m *Member) {
	silent := c.missed || now.Sub(m.observed) > m.patience()
	c.missed = false
	switch {
	case m.observed.IsZero():
		c.most = 1
		return
	case silent:
		c.expected, c.until = max(c.expected, m.size), now.Add(m.lease())
	}
	c.most = 0
	if size < c.expected && now.Before(c.until) {
		c.most = m.static(c.expected)
	} else {
		c.expected = 0
	}
}

func (c *caution) bound(ceiling int) int {
	if c.most == 0 {
		return ceiling
	}
	return min(ceiling, c.most)
}
