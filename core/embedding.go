package core

import (
	"fmt"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// Embedding looks rows up in a table: for every index the weight's row at that place of the axis.
//
// Shape: indices[row] of integers, weight[vocab, embed] → y[row, embed]; the indices may have any
// axes, the weight's other axes follow them. Of a quantized weight the rows are decoded to f32; its blocks must
// lie along the other axes.
//
// Errors: indices that are no integers or lie outside of 0 … vocab-1; an axis that both have.
//
// Example:
//
//	embedding(tensor([2, 0], "row"), tensor([[1, 2], [3, 4], [5, 6]], "vocab embed", dtype="f32"), "vocab")
type Embedding struct {
	Indices *Tensor `arg:"indices"`
	Weight  *Tensor `arg:"weight"`
	Axis    Axis    `arg:"axis=vocab"`
}

var embedding = Declare[Embedding]("embedding")

// Embedding looks x's elements up along the weight's axis; see the Embedding operation.
func (x *Tensor) Embedding(weight *Tensor, axis string) *Tensor {
	return embedding.Call(Embedding{Indices: x, Weight: weight, Axis: Axis(axis)})
}

// Names puts the weight's other axes behind those of the indices.
func (a *Embedding) Names(p *Plan) {
	p.Integer(a.Indices)
	p.Need(a.Weight, a.Axis)
	rest := a.Weight.axes.Without(axisList(string(a.Axis)))
	if both := a.Indices.axes.Shared(a.Weight.axes); both.Len() > 0 {
		p.Fail(fmt.Sprintf("%s and %s share %s", p.Describe(a.Indices), p.Describe(a.Weight), quoted(both.Names())),
			p.c.hint(p.c.renamed("rename it", a.Indices, both.Names(),
				freshNames(both, a.Indices.axes, a.Weight.axes))))
	}
	dt := a.Weight.dtype
	if a.Weight.stored() {
		p.alongBlocks(a.Weight, rest)
		dt = dtype.F32
	}
	p.Out(a.Indices.axes.Append(rest), dt)
	p.Keep(axisList(string(a.Axis)).Append(rest))
}

// Quantized takes a quantized weight.
func (*Embedding) Quantized() (operands uint64, named bool) { return 2, false }

// Eval copies rows.
func (a *Embedding) Eval(c *Ctx) {
	out := c.Out(0)
	if out.Len() == 0 {
		return
	}
	w := a.Weight // if it is quantized, in the right order
	if !w.stored() {
		w = c.Dense(w, c.Data().(*axis.List), w.dtype)
	}
	ids := c.Dense(a.Indices, a.Indices.axes, dtype.I64)
	n := w.sizes[0]
	places := unsafe.Slice((*int64)(ids.data), ids.Len())
	for _, id := range places {
		if id < 0 || id >= int64(n) {
			c.Fail(fmt.Sprintf("the index %d is outside of axis %q of %s", id, a.Axis, c.Describe(a.Weight)),
				c.c.indexRange(a.Indices, n))
		}
	}
	if w.stored() {
		c.decodeRows(out, w, places)
		return
	}
	width := w.Len() / n * w.dtype.Size()
	c.Split(len(places), max(1, pointGrain/max(1, width)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(row[byte](out, i, width), row[byte](w, int(places[i]), width))
		}
	})
}

// Samples covers the lengths of the table and of its rows, the dtypes of both operands, and tables
// with more axes or none besides the one looked up.
func (*Embedding) Samples(m *Maker) (list []Embedding) {
	for _, n := range lengths {
		list = append(list, Embedding{Indices: m.Indices(dtype.I64, 5, "row=3"),
			Weight: m.Tensor(dtype.F32, "vocab=5 embed=%d", n), Axis: "vocab"},
			Embedding{Indices: m.Indices(dtype.I64, max(1, n), "row=%d", n),
				Weight: m.Tensor(dtype.F32, "vocab=%d embed=4", n), Axis: "vocab"})
	}
	for _, dt := range integers {
		list = append(list, Embedding{Indices: m.Indices(dt, 5, "row=3 a=2"),
			Weight: m.Tensor(dtype.F32, "embed=17 vocab=5"), Axis: "vocab"})
	}
	list = append(list, Embedding{Indices: m.Indices(dtype.I64, 5, "row=3"),
		Weight: m.Quantized("q4_1", "vocab=5 embed=64"), Axis: "vocab"})
	for _, dt := range allDTypes {
		list = append(list, Embedding{Indices: m.Indices(dtype.I32, 5, "batch=2 row=3"),
			Weight: m.Tensor(dt, "b=2 vocab=5 c=3"), Axis: "vocab"},
			Embedding{Indices: m.Indices(dtype.I32, 5, "row=3"), Weight: m.Tensor(dt, "vocab=5"), Axis: "vocab"})
	}
	return list
}

// Saves the indices.
func (*Embedding) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP adds every row of gy to the row of the weight that it came from.
func (a *Embedding) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(1, a.Weight.zerosIn(gy[0].env).IndexAdd(a.Indices, gy[0], string(a.Axis)))
}
