package core

import (
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/half"
	"github.com/fucina-go/fucina/kernels/qdot"
)

// roundedRows is an operand of the call in progress whose rows are rounded to 8 bits, in words, or to bf16, in halves,
// or stand apart as they are, in singles, for all weights that it meets.
type roundedRows struct {
	x       *Tensor
	order   *axis.List
	k       int
	words   []uint32
	halves  []uint16
	singles []float32
}

// rounding is the part of rounded that workers share. What they run is made once for a call's frame: made anew for each
// product, it would be garbage after it.
type rounding struct {
	to           []uint32
	from         []float32
	k            int
	some, groups func(lo, hi int) // nil at first
}

// rounds rounds the rows [lo, hi).
func (r *rounding) rounds(lo, hi int) {
	words := qdot.ActivationWords(r.k)
	for i := lo; i < hi; i++ {
		qdot.Quantize(r.to[i*words:(i+1)*words], r.from[i*r.k:(i+1)*r.k])
	}
}

// roundsGroups rounds the groups [lo, hi), counted over all rows.
func (r *rounding) roundsGroups(lo, hi int) {
	qdot.Quantize(r.to[lo*qdot.Record:hi*qdot.Record], r.from[lo*qdot.Group:hi*qdot.Group])
}

var wordList = axisList("word")

// rounded is x as rows of k activations, in the order of the axes.
func (c *Ctx) rounded(x *Tensor, order *axis.List, k int) []uint32 {
	for _, r := range c.c.rounded {
		if r.x == x && r.order == order && r.k == k && r.words != nil {
			return r.words
		}
	}
	a := elementsOf[float32](c.Dense(x, order, dtype.F32))
	words := qdot.ActivationWords(k)
	rows := len(a) / k
	t := elementsOf[uint32](c.Scratch(dtype.I32, wordList, []int{rows * words}))
	r := &c.c.rows
	if r.some == nil {
		r.some, r.groups = r.rounds, r.roundsGroups
	}
	r.to, r.from, r.k = t, a, k
	if grain := pointGrain / k; grain > 0 {
		c.Split(rows, grain, r.some)
	} else { // few long rows: their groups are shared
		c.Split(len(a)/qdot.Group, max(1, pointGrain/qdot.Group), r.groups)
	}
	r.to, r.from = nil, nil
	c.c.rounded = append(c.c.rounded, roundedRows{x: x, order: order, k: k, words: t})
	return t
}

// spaced is x as rows of k activations in the order of the axes, and how far apart they begin: far enough for many of
// them to stay in the cache, if there are more than are multiplied by several streams of weights.
func (c *Ctx) spaced(x *Tensor, order *axis.List, k, rows int) (singles []float32, stride int) {
	if stride = gemm.Stride(k, 4); stride == k || rows <= streams {
		return elementsOf[float32](c.Dense(x, order, dtype.F32)), k
	}
	for _, r := range c.c.rounded {
		if r.x == x && r.order == order && r.k == k && r.singles != nil {
			return r.singles, stride
		}
	}
	a := elementsOf[float32](c.Dense(x, order, dtype.F32))
	singles = apart(c, a, k, stride, dtype.F32)
	c.c.rounded = append(c.c.rounded, roundedRows{x: x, order: order, k: k, singles: singles})
	return singles, stride
}

// apart is a copy of rows of k elements, in which they begin stride apart.
func apart[C any](c *Ctx, a []C, k, stride int, dt dtype.Type) []C {
	rows := len(a) / k
	t := elementsOf[C](c.Scratch(dt, wordList, []int{rows * stride}))
	part := min(k, pointGrain) // of a row that is copied at once
	parts := ceilDiv(k, part)
	c.Split(rows*parts, max(1, pointGrain/part), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			r, from := i/parts, i%parts*part
			copy(t[r*stride+from:], a[r*k+from:r*k+min(k, from+part)])
		}
	})
	return t
}

// strideBF16 is how far apart rows of k activations in bf16 begin: each with a line.
func strideBF16(k int) int { return gemm.Stride((k+31)&^31, 2) }

// halved is x as rows of k activations in bf16, strideBF16(k) from one to the next, in the order of the axes.
func (c *Ctx) halved(x *Tensor, order *axis.List, k int) []uint16 {
	for _, r := range c.c.rounded {
		if r.x == x && r.order == order && r.k == k && r.halves != nil {
			return r.halves
		}
	}
	a := elementsOf[float32](c.Dense(x, order, dtype.F32))
	rows, stride := len(a)/k, strideBF16(k)
	t := elementsOf[uint16](c.Scratch(dtype.BF16, wordList, []int{rows * stride}))
	part := min(k, pointGrain) // of a row that is rounded at once
	parts := ceilDiv(k, part)
	c.Split(rows*parts, max(1, pointGrain/part), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			r, from := i/parts, i%parts*part
			half.ToBF16(t[r*stride+from:], a[r*k+from:r*k+min(k, from+part)])
		}
	})
	c.c.rounded = append(c.c.rounded, roundedRows{x: x, order: order, k: k, halves: t})
	return t
}
