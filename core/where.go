package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// Where is x where cond is true and y elsewhere, element by element, aligned by axis name. x and y may be
// plain numbers.
//
// Shape: cond[a], x[b], y[c] → z[the widest one's axes], which the others' are a subset of. outer=True makes
// every combination instead. As a method it belongs to cond: cond.where(x, y).
//
// Errors: a cond that is not bool.
//
// Example:
//
//	tensor([True, False], "a").where(tensor([1, 2], "a"), 0)
type Where struct {
	Cond  *Tensor `arg:"cond"`
	X     *Tensor `arg:"x,number"`
	Y     *Tensor `arg:"y,number"`
	Outer bool    `arg:"outer?"`
}

var where = Declare[Where]("where")

// Where is x where the tensor is true and y elsewhere; see the Where operation.
func (cond *Tensor) Where(x, y *Tensor) *Tensor { return where.Call(Where{Cond: cond, X: x, Y: y}) }

// Chooses says that numbers take the dtype of the other operand.
func (*Where) Chooses() {}

// Names broadcasts by name; x and y have one dtype, which is the result's.
func (a *Where) Names(p *Plan) {
	axes := p.Broadcast(a.Outer, a.Cond, a.X, a.Y)
	if a.Cond.dtype != dtype.Bool {
		p.Fail(fmt.Sprintf("%s is %s, want bool", p.Describe(a.Cond), a.Cond.dtype), "compare: cond.ne(0)")
	}
	p.Out(axes, p.Same(a.X, a.Y))
}

// Eval chooses.
func (a *Where) Eval(c *Ctx) {
	switch classOf(a.X.dtype) {
	case dtype.F32:
		pointwise(c, c.Out(0), choose[float32], a.Cond, a.X, a.Y)
	case dtype.F64:
		pointwise(c, c.Out(0), choose[float64], a.Cond, a.X, a.Y)
	default:
		pointwise(c, c.Out(0), choose[int64], a.Cond, a.X, a.Y)
	}
}

func choose[C number](_ Op, z []C, xs *[maxOperands][]C) {
	cond, x, y := xs[0][:len(z)], xs[1][:len(z)], xs[2][:len(z)]
	for i, v := range cond {
		if v != 0 {
			z[i] = x[i]
		} else {
			z[i] = y[i]
		}
	}
}

// where is x where cond is true and 0 elsewhere.
func (x *Tensor) where(cond *Tensor) *Tensor { return cond.Where(x, Number(x.env, 0, 0, true)) }

// above is x > v.
func (x *Tensor) above(v float64) *Tensor { return x.Gt(Number(x.env, v, 0, false)) }

// Saves cond.
func (*Where) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP gives gy to the one chosen.
func (a *Where) VJP(_, gy []*Tensor, g *Grads) {
	if g.Wants(1) {
		g.Set(1, gy[0].where(a.Cond))
	}
	if g.Wants(2) {
		g.Set(2, a.Cond.Where(gy[0].times(0), gy[0]))
	}
}

// Samples covers the lengths, broadcasting, the dtypes, and numbers.
func (*Where) Samples(m *Maker) (list []Where) {
	for _, n := range lengths {
		list = append(list, Where{Cond: m.Tensor(dtype.Bool, "row=3 col=%d", n),
			X: m.Tensor(dtype.F32, "row=3 col=%d", n),
			Y: m.Tensor(dtype.F32, "col=%d row=3", n)})
	}
	for _, dt := range allDTypes {
		list = append(list, Where{Cond: m.Tensor(dtype.Bool, "row=3 col=17"), X: m.Tensor(dt, "row=3 col=17"),
			Y: m.Tensor(dt, "col=17")},
			Where{Cond: m.Tensor(dtype.Bool, "col=17"), X: m.Tensor(dt, ""), Y: m.Tensor(dt, "row=3 col=17")},
			Where{Cond: m.Tensor(dtype.Bool, "row=3"), X: m.Tensor(dt, "col=17"), Y: m.Tensor(dt, "row=3"),
				Outer: true})
	}
	return list
}
