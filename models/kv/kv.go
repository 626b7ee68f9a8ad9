// Package kv holds the keys and values that a decoder has seen, layer by layer, and the state of recurrent layers. It
// knows tensors and positions, no model and no script.
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

type layer struct {
	k, v        *core.Tensor // [key_seq, kv_head, head_dim], room for capacity positions
	rows, state memory       // of recurrent layers
}

// New is an empty cache for a model of the given number of layers. Its tensors live outside of
// every scope.
func New(env *core.Env, layers int) *Cache {
	return &Cache{env: env, layers: make([]layer, layers)}
}

// Len is the number of positions that count.
func (c *Cache) Len() int { return c.length }

// Commit makes the next n stored positions count.
func (c *Cache) Commit(n int) {
	c.length += n
	for i := range c.layers {
		c.layers[i].rows.commit()
		c.layers[i].state.commit()
	}
}

// Truncate forgets all positions from n on. A recurrent layer can only forget all: with one, positions that count and
// are to be kept are forgotten too, and must be given again. It returns how many still count.
func (c *Cache) Truncate(n int) int {
	if n = max(0, n); n >= c.length {
		return c.length
	}
	for i := range c.layers {
		if c.layers[i].rows.now != nil || c.layers[i].state.now != nil {
			c.Free()
			return 0
		}
	}
	c.length = n
	return n
}

// Free gives the memory back.
func (c *Cache) Free() {
	for _, l := range c.layers {
		for _, t := range []*core.Tensor{l.k, l.v, l.rows.now, l.rows.next, l.state.now, l.state.next} {
			free(t)
		}
	}
	clear(c.layers)
	c.length = 0
}

// Attend stores the keys and values of new rows in layer i behind those that count, and attends
// from the queries to all of them, causally. a has the new rows, and what else is to be said about attention;
// where they start is the cache's to say.
//
// q[row, head, head_dim], k and v[row, kv_head, head_dim] → y[row, head, head_dim]. Misuse panics with
// a *core.Error.
func (c *Cache) Attend(i int, a core.Attention) *core.Tensor {
	l := c.layer("attend", i)
	end := c.length + a.K.Size("row")
	l.k = c.store(l.k, a.K, end)
	l.v = c.store(l.v, a.V, end)
	a.K, a.V = l.k.Slice("key_seq", 0, end, 1), l.v.Slice("key_seq", 0, end, 1)
	defer a.K.Free()
	defer a.V.Free()
	a.Causal, a.Start = true, c.length
	return core.Attend(a)
}

// AttendLatent is Attend where the first width elements of each key are its value, so that only keys are
// stored: latent attention (DeepSeek-V2). a.V is not looked at.
func (c *Cache) AttendLatent(i, width int, a core.Attention) *core.Tensor {
	l := c.layer("attend_latent", i)
	end := c.length + a.K.Size("row")
	l.k = c.store(l.k, a.K, end)
	a.K = l.k.Slice("key_seq", 0, end, 1)
	defer a.K.Free()
	a.V = a.K.Slice("head_dim", 0, width, 1)
	defer a.V.Free()
	a.Causal, a.Start = true, c.length
	return core.Attend(a)
}

func (c *Cache) layer(op string, i int) *layer {
	if i < 0 || i >= len(c.layers) {
		panic(&core.Error{Op: op, Msg: fmt.Sprintf("no layer %d, the cache has %d", i, len(c.layers))})
	}
	return &c.layers[i]
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
