package bulkhead

// order is how a heap sorts accounts and where an account notes its place in it.
// Implementations are empty structs.
type order interface {
	before(a, b *account) bool
	place(a *account) *int32 // 1 + index in the heap; 0: not in it
}

// accountHeap is a binary heap of accounts that know their places, so that any of
// them can be moved or removed in O(log n).
type accountHeap[O order] struct {
	items []*account
	order O
}

func (h *accountHeap[O]) len() int { return len(h.items) }

// first returns the account that is before all others; the heap must not be empty.
func (h *accountHeap[O]) first() *account { return h.items[0] }

// put inserts a, or moves it to where it belongs now.
func (h *accountHeap[O]) put(a *account) {
	place := h.order.place(a)
	if *place == 0 {
		h.items = append(h.items, a)
		*place = int32(len(h.items))
	}
	i := int(*place) - 1
	if !h.down(i) {
		h.up(i)
	}
}

// remove takes a out, if it is in.
func (h *accountHeap[O]) remove(a *account) {
	place := h.order.place(a)
	if *place == 0 {
		return
	}
	i, last := int(*place)-1, len(h.items)-1
	h.set(i, h.items[last])
	h.items[last] = nil
	h.items = h.items[:last]
	*place = 0
	if i < last && !h.down(i) {
		h.up(i)
	}
}

func (h *accountHeap[O]) set(i int, a *account) {
	h.items[i] = a
	*h.order.place(a) = int32(i + 1)
}

func (h *accountHeap[O]) up(i int) {
	a := h.items[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !h.order.before(a, h.items[parent]) {
			break
		}
		h.set(i, h.items[parent])
		i = parent
	}
	h.set(i, a)
}

// down reports whether the item at i moved.
func (h *accountHeap[O]) down(i int) bool {
	a, from := h.items[i], i
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if right := child + 1; right < len(h.items) && h.order.before(h.items[right], h.items[child]) {
			child = right
		}
		if !h.order.before(h.items[child], a) {
			break
		}
		h.set(i, h.items[child])
		i = child
	}
	h.set(i, a)
	return i > from
}
