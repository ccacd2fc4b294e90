package bulkhead

// node is a member's place in one list; the member embeds one per list it can be in,
// so that joining and leaving a list allocates nothing.
type node[T any] struct {
	prev, next *node[T]
	owner      *T
	in         *list[T]
}

// list is a doubly linked list of members.
type list[T any] struct {
	front, back *node[T]
	n           int
}

func (l *list[T]) pushBack(n *node[T]) {
	n.in, n.prev, n.next = l, l.back, nil
	if l.back != nil {
		l.back.next = n
	} else {
		l.front = n
	}
	l.back = n
	l.n++
}

// leave takes n out of the list that it is in, if any.
func (n *node[T]) leave() {
	l := n.in
	if l == nil {
		return
	}
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		l.front = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		l.back = n.prev
	}
	n.in, n.prev, n.next = nil, nil, nil
	l.n--
}
