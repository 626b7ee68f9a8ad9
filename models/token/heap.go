package token

// heap is a queue: the first has the least key, and element i none above those of 2i+1 and 2i+2. Keys and not a
// function say what comes first: with one, encoding by scores was a third slower.
type heap[V any] []keyed[V]

type keyed[V any] struct {
	key   uint64
	value V
}

// sort makes a heap of whatever h is.
func (h heap[V]) sort() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(h[i], i)
	}
}

// push adds x.
func (h *heap[V]) push(x keyed[V]) {
	i := len(*h)
	all := append(*h, x)
	for ; i > 0 && x.key < all[(i-1)/2].key; i = (i - 1) / 2 {
		all[i] = all[(i-1)/2]
	}
	all[i] = x
	*h = all
}

// pop takes the first of a heap that is not empty.
func (h *heap[V]) pop() keyed[V] {
	top, last := (*h)[0], len(*h)-1
	x := (*h)[last]
	if *h = (*h)[:last]; last > 0 {
		h.down(x, 0)
	}
	return top
}

// down puts x at place i or, so that nothing below has a lesser key, further down.
func (h heap[V]) down(x keyed[V], i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].key < h[child].key {
			child++
		}
		if h[child].key >= x.key {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = x
}
