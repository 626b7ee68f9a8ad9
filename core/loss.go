package core

import (
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Loss is the argument struct of losses that compare x with target element by element, aligned by axis name
// under the subset rule. Reduction says what becomes of the elements: their mean, their sum, or none, which
// leaves them as they are. An operation embeds it and has the methods
//
//	F32(z, x, target []float32)   also serves f16 and bf16, which compute in f32
//	F64(z, x, target []float64)
//	slopes(x, target *Tensor) (dx, dt *Tensor)
//
// of which the last gives the derivatives of an element, of x's and target's axes together.
type Loss struct {
	X         *Tensor `arg:"x"`
	Target    *Tensor `arg:"target"`
	Reduction string  `arg:"reduction=mean" enum:"mean sum none"`
}

// Names broadcasts by name and drops the axes, if it reduces.
func (a *Loss) Names(p *Plan) {
	p.reduced(a.Reduction, p.Broadcast(false, a.X, a.Target), p.Same(a.X, a.Target))
	p.computes(a.X)
}

// reduced declares the output of a loss whose elements have the axes given.
func (p *Plan) reduced(reduction string, axes *axis.List, dt dtype.Type) {
	p.Keep(axes)
	if reduction != "none" {
		axes = axis.Empty
	}
	p.Out(axes, dt)
}

// Eval computes the elements and reduces them.
func (a *Loss) Eval(c *Ctx) {
	if a.X.dtype == dtype.F64 {
		reduceLoss(c, a.Reduction, a.parts, func(op Op, z []float64, xs *[maxOperands][]float64) {
			op.(binaryF64).F64(z, xs[0], xs[1])
		}, a.X, a.Target)
		return
	}
	reduceLoss(c, a.Reduction, a.parts, func(op Op, z []float32, xs *[maxOperands][]float32) {
		op.(binaryF32).F32(z, xs[0], xs[1])
	}, a.X, a.Target)
}

// parts is by how much the sum of a loss with n elements is divided.
func (a *Loss) parts(n int) int {
	if a.Reduction == "mean" {
		return n
	}
	return 1
}

// reduceLoss computes output 0 of a loss whose elements are f of those of the operands: their sum divided by
// what parts says, if it reduces. Names has kept the elements' axes.
func reduceLoss[C float32 | float64](
	c *Ctx, reduction string, parts func(n int) int, f func(op Op, z []C, xs *[maxOperands][]C), operands ...*Tensor,
) {
	out := c.Out(0)
	if reduction == "none" {
		pointwise(c, out, f, operands...)
		return
	}
	axes := c.Data().(*axis.List)
	sizes := make([]int, axes.Len())
	for k, name := range axes.Names() {
		for _, t := range operands {
			sizes[k] = max(sizes[k], t.Size(name))
		}
	}
	z := c.Scratch(native[C](), axes, sizes)
	pointwise(c, z, f, operands...)
	store(out, 0, []C{num.Sum(elementsOf[C](z)) / C(parts(z.Len()))})
}

// VJP is gy times the slopes.
func (a *Loss) VJP(_, gy []*Tensor, g *Grads) {
	dx, dt := g.node.op.(interface {
		slopes(x, target *Tensor) (dx, dt *Tensor)
	}).slopes(a.X.wide(), a.Target.wide())
	gz := gy[0].wide()
	if n := a.parts(dx.Len()); n != 1 {
		gz = gz.times(1 / float64(n))
	}
	g.Set(0, dx.Mul(gz))
	if g.Wants(1) {
		g.Set(1, dt.Mul(gz))
	}
}

// Saves both operands.
func (*Loss) Saves(uint64) (in, out uint64) { return 3, 0 }

// lossSamples covers the lengths, broadcasting, reductions, and the dtypes.
func lossSamples[T any](m *Maker, make func(Loss) T) (list []T) {
	for _, n := range lengths {
		for _, reduction := range []string{"mean", "sum", "none"} {
			list = append(list,
				make(Loss{m.Tensor(dtype.F32, "row=3 col=%d", n), m.Tensor(dtype.F32, "row=3 col=%d", n), reduction}))
		}
	}
	for _, dt := range floats {
		list = append(list, make(Loss{m.Tensor(dt, "row=3 col=17"), m.Tensor(dt, "col=17 row=3"), "none"}),
			make(Loss{m.Tensor(dt, "row=3 col=17"), m.Tensor(dt, "row=3"), "mean"}),
			make(Loss{m.Tensor(dt, ""), m.Tensor(dt, "row=3"), "sum"}))
	}
	return list
}
