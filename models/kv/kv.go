// Package kv holds the keys and values that a decoder has seen, layer by layer. It knows tensors
// and positions, no model and no script.
package kv

import (
	"fmt"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
)

// firstCapacity is how many positions a cache has room for at first.
const firstCapacity = 64

// Cache is the keys and values of one sequence. Rows attended to are stored at once but count only
// after Commit, so a forward pass that fails leaves the cache as it was.
type Cache struct {
	env    *core.Env
	layers []layer
	length int
}

type layer struct{ k, v *core.Tensor } // [key_seq, kv_head, head_dim], room for capacity positions

// New is an empty cache for a model of the given number of layers. Its tensors live outside of
// every scope.
func New(env *core.Env, layers int) *Cache {
	return &Cache{env: env, layers: make([]layer, layers)}
}

// Len is the number of positions that count.
func (c *Cache) Len() int { return c.length }

// Commit makes the next n stored positions count.
func (c *Cache) Commit(n int) { c.length += n }

// Truncate forgets all positions from n on.
func (c *Cache) Truncate(n int) { c.length = min(c.length, max(0, n)) }

// Free gives the memory back.
func (c *Cache) Free() {
	for _, l := range c.layers {
		if l.k != nil {
			l.k.Free()
			l.v.Free()
		}
	}
	clear(c.layers)
	c.length = 0
}

// Attend stores the keys and values of new rows in layer i behind those that count, and attends
// from q to all of them, causally.
//
// q[row, head, head_dim], k and v[row, kv_head, head_dim] → y[row, head, head_dim]. Misuse panics with
// a *core.Error.
func (c *Cache) Attend(i int, q, k, v *core.Tensor) *core.Tensor {
	if i < 0 || i >= len(c.layers) {
		panic(&core.Error{Op: "attend", Msg: fmt.Sprintf("no layer %d, the cache has %d", i, len(c.layers))})
	}
	l := &c.layers[i]
	end := c.length + k.Size("row")
	l.k = c.store(l.k, k, end)
	l.v = c.store(l.v, v, end)
	keys, values := l.k.Slice("key_seq", 0, end, 1), l.v.Slice("key_seq", 0, end, 1)
	y := q.Attention(keys, values, c.length)
	keys.Free()
	values.Free()
	return y
}

var cached = must(axis.Parse("key_seq kv_head head_dim"))

func must(l *axis.List, err error) *axis.List {
	if err != nil {
		panic(err)
	}
	return l
}

// store writes rows behind the positions that count, into a larger tensor if there is no room.
func (c *Cache) store(t, rows *core.Tensor, end int) *core.Tensor {
	if t == nil || t.Size("key_seq") < end {
		capacity := firstCapacity
		for capacity < end {
			capacity *= 2
		}
		grown := c.env.Tensor(rows.DType(), cached, capacity, rows.Size("kv_head"), rows.Size("head_dim"))
		if t != nil {
			old := t.Slice("key_seq", 0, c.length, 1)
			grown.SetSlice(old, "key_seq", 0, c.length)
			old.Free()
			t.Free()
		}
		t = grown
	}
	named := rows.Rename("row", "key_seq")
	t.SetSlice(named, "key_seq", c.length, end)
	named.Free()
	return t
}
