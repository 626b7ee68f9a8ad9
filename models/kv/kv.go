// Package kv holds what a decoder remembers of a sequence: keys and values, layer by layer, in pages; the state of
// recurrent layers, with points to go back to. It runs the verbs that need them for the rows of one or several
// sequences, and keeps sequences in files. It knows tensors and positions, no model and no script.
package kv

import (
	"fmt"
	"slices"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// slack is how many positions more than its window a layer keeps at least, to go back to.
const slack = 256

// Cache is what is remembered of one sequence. Rows attended to are stored at once but count only after Commit, so a
// forward pass that fails leaves the cache as it was. Its tensors live outside of every scope.
type Cache struct {
	// DType is that of the keys and values, which are rounded to it: f32 unless it is set, f16 or q8_0. It is set
	// before the first rows.
	DType dtype.Type

	env    *core.Env
	layers []layer
	length int
	points []point // where recurrent layers can go back to, in order; the beginning is not among them
}

type layer struct {
	pages       []core.Page // page j holds the positions from j·PageLen on; empty: given up
	holders     []*int      // how many caches share each; what is shared is not written
	window      int         // how many positions a row sees; 0: all
	rows, state memory      // of recurrent layers
}

// maxLayers is more than any model has.
const maxLayers = 1 << 20

// New is an empty cache for a model of the given number of layers, 1,048,576 at most; another number panics with a
// *core.Error.
func New(env *core.Env, layers int) *Cache {
	if layers < 0 || layers > maxLayers {
		panic(&core.Error{Op: "cache", Msg: fmt.Sprintf("got %d layers, want 0 … %d", layers, maxLayers)})
	}
	return &Cache{env: env, layers: make([]layer, layers)}
}

// Len is the number of positions that count.
func (c *Cache) Len() int { return c.length }

// Env is where the tensors are.
func (c *Cache) Env() *core.Env { return c.env }

// Bytes is the memory of the keys, values and states, of those shared with others too.
func (c *Cache) Bytes() (n int64) {
	for i := range c.layers {
		for _, p := range c.layers[i].pages {
			if p.K != nil {
				n += int64(p.Bytes())
			}
		}
	}
	seen := map[*held]bool{}
	for _, h := range c.held() {
		if !seen[h] {
			seen[h] = true
			n += int64(h.t.Len() * h.t.DType().Size())
		}
	}
	return n
}

// Commit makes the next n stored positions count. Layers with a window give up pages that no later row sees and that
// are further back than slack.
func (c *Cache) Commit(n int) {
	c.length += n
	recurrent := false
	for i := range c.layers {
		l := &c.layers[i]
		l.rows.commit()
		l.state.commit()
		recurrent = recurrent || l.rows.now != nil || l.state.now != nil
		if l.window > 0 {
			last := (c.length-l.window-slack)/core.PageLen - 1
			for j := last; j >= 0 && j < len(l.pages) && l.pages[j].K != nil; j-- {
				l.release(j)
			}
		}
	}
	if recurrent && n > 0 {
		c.mark()
	}
}

// Reach is the last position, n at most, to which Truncate can go back: n itself where all layers keep every position;
// else the layers with a window must have what the rows from there on see, and the recurrent ones the state there.
func (c *Cache) Reach(n int) int {
	if n = max(0, n); n >= c.length {
		return c.length
	}
	for i := range c.layers {
		if l := &c.layers[i]; l.rows.now != nil || l.state.now != nil {
			at := 0
			for _, p := range c.points {
				if p.at <= n {
					at = p.at
				}
			}
			n = at
			break
		}
	}
	for i := range c.layers {
		l := &c.layers[i]
		if first := max(0, n+1-l.window) / core.PageLen; n > 0 && l.window > 0 && (first >= len(l.pages) ||
			l.pages[first].K == nil) {
			return 0
		}
	}
	return n
}

// Truncate forgets all positions from n on, or from Reach(n) where that is less: those up to n must be given again. It
// returns how many still count.
func (c *Cache) Truncate(n int) int {
	if n = c.Reach(n); n == c.length {
		return n
	}
	if n == 0 {
		c.Free()
		return 0
	}
	c.cut(n)
	c.restore(n)
	c.length = n
	return n
}

// cut gives up the pages behind the first n positions.
func (c *Cache) cut(n int) {
	for i := range c.layers {
		l := &c.layers[i]
		keep := min(len(l.pages), pagesFor(n))
		for j := keep; j < len(l.pages); j++ {
			l.release(j)
		}
		l.pages, l.holders = l.pages[:keep], l.holders[:keep]
	}
}

// Fork is another cache of the same positions. Pages and states are shared until one of the two changes them.
func (c *Cache) Fork() *Cache {
	f := &Cache{DType: c.DType, env: c.env, length: c.length, layers: make([]layer, len(c.layers)),
		points: make([]point, len(c.points))}
	for i := range c.layers {
		from, to := &c.layers[i], &f.layers[i]
		to.window = from.window
		to.pages, to.holders = slices.Clone(from.pages), slices.Clone(from.holders)
		for _, n := range to.holders {
			if n != nil {
				*n++
			}
		}
		to.rows.now, to.state.now = from.rows.now.hold(), from.state.now.hold()
	}
	for i, p := range c.points {
		f.points[i] = p.copy()
	}
	return f
}

// Swap exchanges all that two caches hold.
func (c *Cache) Swap(with *Cache) { *c, *with = *with, *c }

// Free gives the memory back and leaves the cache empty.
func (c *Cache) Free() {
	for i := range c.layers {
		for j := range c.layers[i].pages {
			c.layers[i].release(j)
		}
	}
	for _, h := range c.held() {
		h.release()
	}
	clear(c.layers)
	c.length, c.points = 0, nil
}

// set makes p, which nobody else holds, page j.
func (l *layer) set(j int, p core.Page) {
	n := 1
	l.pages[j], l.holders[j] = p, &n
}

// release lets go of page j, if there is one; its last holder frees it.
func (l *layer) release(j int) {
	p, n := l.pages[j], l.holders[j]
	l.pages[j], l.holders[j] = core.Page{}, nil
	if n == nil {
		return
	}
	if *n--; *n == 0 {
		p.Free()
	}
}

// room makes sure that the cache has pages of its own for n more positions of layer l, for keys and values of the
// given shape, and returns all pages, which are the cache's.
func (c *Cache) room(l *layer, n, kvHeads, width, value int) []core.Page {
	for j := c.length / core.PageLen; j*core.PageLen < c.length+n; j++ {
		for len(l.pages) <= j {
			l.pages, l.holders = append(l.pages, core.Page{}), append(l.holders, nil)
		}
		switch n := l.holders[j]; {
		case n == nil:
			l.set(j, core.NewPage(c.env, c.dtype(), kvHeads, width, value))
		case *n > 1:
			l.set(j, l.pages[j].Copy())
			*n--
		}
	}
	return l.pages
}

// dtype is that of the pages.
func (c *Cache) dtype() dtype.Type {
	if c.DType == dtype.Invalid {
		return dtype.F32
	}
	return c.DType
}

func (c *Cache) layer(op string, i int) *layer {
	if i < 0 || i >= len(c.layers) {
		panic(&core.Error{Op: op, Msg: fmt.Sprintf("no layer %d, the cache has %d", i, len(c.layers))})
	}
	return &c.layers[i]
}

func must(l *axis.List, err error) *axis.List {
	if err != nil {
		panic(err)
	}
	return l
}
