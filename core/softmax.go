package core

import (
	"math"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Softmax is exp(z - max z) along the axis, divided by its sum; z is x · scale + mask.
//
// The mask is added, or, if it is of bools, makes z -inf where it is false: as in PyTorch's attention, true
// means that the element takes part.
//
// Shape: x[…, axis, …], mask[any of these axes] → y of x's axes.
// Numerics: the sum runs in a fixed tree of 16 lanes; f16 and bf16 compute in f32 and round once.
// A row that is -inf throughout gives NaN.
//
// Errors: an axis that x lacks; integers; a mask with other axes or another dtype.
//
// Example:
//
//	tensor([1.0, 2.0, 3.0], "vocab").softmax("vocab")
type Softmax struct {
	X     *Tensor `arg:"x"`
	Axis  Axis    `arg:"axis"`
	Scale float64 `arg:"scale=1"`
	Mask  *Tensor `arg:"mask?"`
}

var softmax = Declare[Softmax]("softmax")

// Softmax normalizes exp(x) along the axis; see the Softmax operation.
func (x *Tensor) Softmax(axis string) *Tensor {
	return softmax.Call(Softmax{X: x, Axis: Axis(axis), Scale: 1})
}

// Names keeps the axes.
func (a *Softmax) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	p.Masks(a.X, a.Mask)
	p.Out(a.X.axes, p.Float(a.X))
	p.Keep(inner(a.X.axes, a.Axis))
}

// Masks insists that the mask, if given, can be added to x or is of bools.
func (p *Plan) Masks(x, mask *Tensor) {
	p.Within(mask, x.axes, p.c.param(x))
	if mask != nil && mask.dtype != dtype.Bool {
		p.Same(x, mask)
	}
}

// Eval does every row.
func (a *Softmax) Eval(c *Ctx) {
	if a.X.dtype == dtype.F64 {
		softmaxRows[float64](c, a)
	} else {
		softmaxRows[float32](c, a)
	}
}

func softmaxRows[C float32 | float64](c *Ctx, a *Softmax) {
	if a.Mask == nil && a.Scale == 1 {
		eachRow(c, a.X, func(y, x []C) { softmaxRow(c, y, x) })
		return
	}
	m := masking[C]{scale: C(a.Scale), mask: beside[C](a.Mask, a.X, c.Data().(*axis.List))}
	eachRowAt(c, a.X, func(i int, y, x []C) {
		m.apply(c, i, y, x)
		softmaxRow(c, y, y)
	})
}

// softmaxRow is num.SoftmaxRow, with the same bits, in pieces if the row is long.
func softmaxRow[C float32 | float64](c *Ctx, y, x []C) {
	if len(x) <= pauseLen {
		num.SoftmaxRow(y, x)
		return
	}
	total := expSum(c, y, x, maxOf(c, x))
	c.pieces(len(x), func(lo, hi int) { num.Quotient(y[lo:hi], y[lo:hi], total) })
}

// maxOf is num.Max in pieces.
func maxOf[C float32 | float64](c *Ctx, x []C) C {
	if len(x) <= pauseLen {
		return num.Max(x)
	}
	top := C(math.Inf(-1))
	c.pieces(len(x), func(lo, hi int) { top = max(top, num.Max(x[lo:hi])) })
	return top
}

// expSum is num.ExpSum, with the same bits, in pieces.
func expSum[C float32 | float64](c *Ctx, y, x []C, top C) C {
	if len(x) <= pauseLen {
		return num.ExpSum(y, x, top)
	}
	var sum num.Lanes[C]
	c.pieces(len(x), func(lo, hi int) { sum.AddExp(y[lo:hi], x[lo:hi], top) })
	return sum.Fold()
}

// masking is how scores come from x.
type masking[C float32 | float64] struct {
	scale C
	mask  *besides[C] // nil: none
}

// apply sets y to row i of the scores; x is the row of x.
func (m *masking[C]) apply(c *Ctx, i int, y, x []C) {
	c.pieces(len(x), func(lo, hi int) { m.part(i, lo, y[lo:hi], x[lo:hi]) })
}

// part is apply for a piece of the row, from place at on.
func (m *masking[C]) part(i, at int, y, x []C) {
	y = y[:len(x)]
	if m.mask == nil {
		num.Scale(y, x, m.scale)
		return
	}
	gathered := y
	mask := m.mask.part(i, at, len(x), &gathered) // may be y itself
	if m.mask.t.dtype == dtype.Bool {
		for j, keep := range mask {
			v := C(math.Inf(-1))
			if keep != 0 {
				v = C(x[j] * m.scale)
			}
			y[j] = v
		}
		return
	}
	for j, v := range mask {
		y[j] = C(x[j]*m.scale) + v
	}
}

// besides is an operand that is read along with the rows of x: its axes are among those of order, of which
// the last one runs along a row.
type besides[C number] struct {
	t            *Tensor
	sizes, steps []int // of order
}

// beside is t along with the rows of x; nil if t is.
func beside[C number](t, x *Tensor, order *axis.List) *besides[C] {
	if t == nil {
		return nil
	}
	b := &besides[C]{t: t}
	for _, name := range order.Names() {
		step := 0
		if k := t.axes.Index(name); k >= 0 {
			step = t.strides[k]
		}
		b.sizes, b.steps = append(b.sizes, x.Size(name)), append(b.steps, step)
	}
	return b
}

// row is the n elements beside row i: the bytes themselves where they lie so, else gathered into *buf.
func (b *besides[C]) row(i, n int, buf *[]C) []C { return b.part(i, 0, n, buf) }

// part is n elements beside row i from place at on.
func (b *besides[C]) part(i, at, n int, buf *[]C) []C {
	last := len(b.sizes) - 1
	off := at * b.steps[last]
	for k := last - 1; k >= 0; k-- {
		off += i % b.sizes[k] * b.steps[k]
		i /= b.sizes[k]
	}
	return load(b.t, off, b.steps[last], n, buf)
}

// inner is the axes with the named one last.
func inner(axes *axis.List, name Axis) *axis.List {
	one := axisList(string(name))
	return axes.Without(one).Append(one)
}

// eachRow computes output 0, which has x's axes, row by row along the last axis of the list that
// Names kept.
func eachRow[C number](c *Ctx, x *Tensor, f func(y, x []C)) {
	eachRowAt(c, x, func(_ int, y, x []C) { f(y, x) })
}

// eachRowAt is eachRow for a function that wants to know which row it does, counted in the order
// of the list that Names kept.
func eachRowAt[C number](c *Ctx, x *Tensor, f func(i int, y, x []C)) {
	order := c.Data().(*axis.List)
	eachRun(c, x, order, x.Size(order.At(order.Len()-1)), f)
}

// eachRun computes output 0, which has x's axes, in runs of n elements along the last axes of order.
func eachRun[C number](c *Ctx, x *Tensor, order *axis.List, n int, f func(i int, y, x []C)) {
	out := c.Out(0)
	total := out.Len()
	if total == 0 {
		return
	}
	src := c.Dense(x, order, native[C]())
	dst := out
	if out.axes != order || out.dtype != native[C]() {
		dst = c.Scratch(native[C](), order, src.sizes)
	}
	c.Split(total/n, max(1, pointGrain/n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f(i, row[C](dst, i, n), row[C](src, i, n))
		}
	})
	if dst != out {
		c.copyInto(out, dst.permuted(out.axes))
	}
}

// atOnce is the elements of output 0 and of x, which has its axes, if they lie in the given order and are so few that
// they are not handed out. Only what is handed out needs a closure, on the heap.
func atOnce[C number](c *Ctx, x *Tensor, order *axis.List) (y, xs []C, ok bool) {
	out := c.Out(0)
	if out.axes != order || x.axes != order || out.dtype != native[C]() || x.dtype != native[C]() || !x.dense() {
		return nil, nil, false
	}
	y = slice[C](out)
	if len(y) > pointGrain {
		return nil, nil, false
	}
	return y, slice[C](x), true
}

// row is run i of n elements of a dense tensor.
func row[C any](t *Tensor, i, n int) []C {
	var zero C
	return unsafe.Slice((*C)(unsafe.Add(t.data, i*n*int(unsafe.Sizeof(zero)))), n)
}

// Samples covers the lengths of a row, masks of both kinds, and the dtypes.
func (*Softmax) Samples(m *Maker) (list []Softmax) {
	for _, n := range lengths {
		list = append(list, Softmax{X: m.Tensor(dtype.F32, "row=3 vocab=%d", n), Axis: "vocab", Scale: 1},
			Softmax{X: m.Tensor(dtype.F32, "row=3 vocab=%d", n), Axis: "vocab", Scale: 0.5,
				Mask: m.Tensor(dtype.F32, "vocab=%d row=3", n)},
			Softmax{X: m.Tensor(dtype.F32, "row=3 vocab=%d", n), Axis: "vocab", Scale: 1,
				Mask: m.Tensor(dtype.Bool, "vocab=%d", n)})
	}
	for _, dt := range floats {
		list = append(list, Softmax{X: m.Tensor(dt, "row=3 vocab=17 batch=2"), Axis: "vocab", Scale: 1},
			Softmax{X: m.Tensor(dt, "row=5"), Axis: "row", Scale: 0.25},
			Softmax{X: m.Tensor(dt, "row=3 vocab=17"), Axis: "vocab", Scale: 2, Mask: m.Tensor(dt, "row=3")},
			Softmax{X: m.Tensor(dt, "row=3 vocab=17"), Axis: "vocab", Scale: 2,
				Mask: m.Tensor(dtype.Bool, "row=3 vocab=17")})
	}
	return list
}

// Saves y.
func (*Softmax) Saves(uint64) (in, out uint64) { return 0, 1 }

// VJP is y · (gy - sum(y · gy)) for the mask, and that times scale for x.
func (a *Softmax) VJP(y, gy []*Tensor, g *Grads) {
	p, gp := y[0].wide(), gy[0].wide()
	gz := p.Mul(gp.Sub(p.Mul(gp).Sum(string(a.Axis))))
	g.setScores(gz, a.Scale)
}

// setScores gives x and the mask, operands 0 and 1, their gradients, given that of x · scale + mask.
func (g *Grads) setScores(gz *Tensor, scale float64) {
	g.Set(1, gz)
	if scale != 1 && g.Wants(0) {
		gz = gz.times(scale)
	}
	g.Set(0, gz)
}
