package kv

import "github.com/fucina-go/fucina/core"

// Batch is rows of one or several sequences that go through a model together. The rows of a sequence follow one
// another, and come after the positions of its cache that count.
type Batch []Part

// Part is the rows of one sequence, at least one. No two parts have the same cache.
type Part struct {
	Cache *Cache
	Rows  int
}

// Attend stores the keys and values of the rows in layer i of their caches, and attends from the queries to all of the
// same sequence before and at them, or to a window of these, which the layer then keeps: it is the same for all rows
// of the layer. a has the queries, keys and values of the rows, and what else is to be said about attention; its Parts
// are the batch's to say.
//
// q[row, head, head_dim], k and v[row, kv_head, head_dim] → y[row, head, head_dim]; without v, the first a.Value
// elements of each key are its value, so that only keys are stored: latent attention (DeepSeek-V2). Misuse panics with
// a *core.Error.
func (b Batch) Attend(i int, a core.PagedAttention) *core.Tensor {
	if !a.K.Axes().Has("kv_head") || !a.K.Axes().Has("head_dim") || a.Window < 0 {
		return core.AttendPaged(a) // which says what is wrong, before there are pages of no size, or a wrong window
	}
	value := 0
	if a.V != nil {
		value = a.V.Size("head_dim")
	}
	a.Parts = make([]core.PagedRows, len(b))
	for k, part := range b {
		c := part.Cache
		l := c.layer("attend", i)
		l.window = a.Window
		a.Parts[k] = core.PagedRows{Rows: part.Rows, Start: c.length,
			Pages: c.room(l, part.Rows, a.K.Size("kv_head"), a.K.Size("head_dim"), value)}
	}
	return core.AttendPaged(a)
}

// rows is how many there are.
func (b Batch) rows() (n int) {
	for _, part := range b {
		n += part.Rows
	}
	return n
}

// Commit makes the rows count.
func (b Batch) Commit() {
	for _, part := range b {
		part.Cache.Commit(part.Rows)
	}
}

// Discard gives up what was stored for the rows and has not been made to count.
func (b Batch) Discard() {
	for _, part := range b {
		c := part.Cache
		c.cut(c.length)
		for i := range c.layers {
			c.layers[i].rows.discard()
			c.layers[i].state.discard()
		}
	}
}
