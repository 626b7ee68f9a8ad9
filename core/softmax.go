package core

import (
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Softmax is exp(x - max x) along the axis, divided by its sum.
//
// Shape: x[…, axis, …] → y of the same axes.
// Numerics: the sum runs in a fixed tree of 16 lanes; f16 and bf16 compute in f32 and round once.
// A row that is -inf throughout gives NaN.
//
// Errors: an axis that x lacks; integers.
//
// Example:
//
//	tensor([1.0, 2.0, 3.0], "vocab").softmax("vocab")
type Softmax struct {
	X    *Tensor `arg:"x"`
	Axis Axis    `arg:"axis"`
}

var softmax = Declare[Softmax]("softmax")

// Softmax normalizes exp(x) along the axis; see the Softmax operation.
func (x *Tensor) Softmax(axis string) *Tensor { return softmax.Call(Softmax{X: x, Axis: Axis(axis)}) }

// Names keeps the axes.
func (a *Softmax) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	p.Out(a.X.axes, p.Float(a.X))
	p.Keep(inner(a.X.axes, a.Axis))
}

// Eval does every row.
func (a *Softmax) Eval(c *Ctx) {
	if a.X.dtype == dtype.F64 {
		eachRow(c, a.X, num.SoftmaxRow[float64])
	} else {
		eachRow(c, a.X, num.SoftmaxRow[float32])
	}
}

// inner is the axes with the named one last.
func inner(axes *axis.List, name Axis) *axis.List {
	one := axisList(string(name))
	return axes.Without(one).Append(one)
}

// eachRow computes output 0, which has x's axes, row by row along the last axis of the list that
// Names kept.
func eachRow[C float32 | float64](c *Ctx, x *Tensor, f func(y, x []C)) {
	eachRowAt(c, x, func(_ int, y, x []C) { f(y, x) })
}

// eachRowAt is eachRow for a function that wants to know which row it does, counted in the order
// of the list that Names kept.
func eachRowAt[C float32 | float64](c *Ctx, x *Tensor, f func(i int, y, x []C)) {
	out, order := c.Out(0), c.Data().(*axis.List)
	total := out.Len()
	if total == 0 {
		return
	}
	src := c.Dense(x, order, native[C]())
	dst := out
	if out.axes != order || out.dtype != native[C]() {
		dst = c.Scratch(native[C](), order, src.sizes)
	}
	n := src.sizes[len(src.sizes)-1]
	c.Split(total/n, max(1, pointGrain/n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f(i, row[C](dst, i, n), row[C](src, i, n))
		}
	})
	if dst != out {
		c.copyInto(out, dst.permuted(out.axes))
	}
}

// row is run i of n elements of a dense tensor.
func row[C any](t *Tensor, i, n int) []C {
	var zero C
	return unsafe.Slice((*C)(unsafe.Add(t.data, i*n*int(unsafe.Sizeof(zero)))), n)
}

// Samples covers the lengths of a row and the dtypes.
func (*Softmax) Samples(m *Maker) (list []Softmax) {
	for _, n := range lengths {
		list = append(list, Softmax{X: m.Tensor(dtype.F32, "row=3 vocab=%d", n), Axis: "vocab"})
	}
	for _, dt := range floats {
		list = append(list, Softmax{X: m.Tensor(dt, "row=3 vocab=17 batch=2"), Axis: "vocab"},
			Softmax{X: m.Tensor(dt, "row=5"), Axis: "row"})
	}
	return list
}

// Saves y.
func (*Softmax) Saves(uint64) (in, out uint64) { return 0, 1 }

// VJP is y · (gy - sum(y · gy)).
func (a *Softmax) VJP(y, gy []*Tensor, g *Grads) {
	p, gp := y[0].wide(), gy[0].wide()
	g.Set(0, p.Mul(gp.Sub(p.Mul(gp).Sum(string(a.Axis)))))
}
