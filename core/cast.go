package core

import "github.com/fucina-go/fucina/core/dtype"

// Cast is x with another dtype.
//
// Numerics: to a narrower float rounds to nearest, ties to even; a float to an integer drops the
// fraction, stops at the integer's least and greatest value and makes NaN 0; between integers the
// low bits stay; to bool is x != 0.
//
// Example:
//
//	tensor([1.5, -2.5], "a").cast("i32")
type Cast struct {
	X     *Tensor    `arg:"x"`
	DType dtype.Type `arg:"dtype"`
}

var cast = Declare[Cast]("cast")

// Cast is x with another dtype; see the Cast operation.
func (x *Tensor) Cast(dt dtype.Type) *Tensor { return cast.Call(Cast{X: x, DType: dt}) }

// Cast is x with another dtype, in this Env; see the Cast operation.
func (e *Env) Cast(x *Tensor, dt dtype.Type) *Tensor { return cast.In(e, Cast{X: x, DType: dt}) }

// Names changes the dtype.
func (a *Cast) Names(p *Plan) { p.Out(a.X.axes, a.DType) }

// Quantized takes a quantized x, which is decoded on the way.
func (*Cast) Quantized() (operands uint64, named bool) { return 1, false }

// Eval converts.
func (a *Cast) Eval(c *Ctx) {
	x := a.X
	if x.stored() {
		x = c.Scratch(dtype.F32, a.X.axes, a.X.sizes)
		c.decode(x, a.X)
	}
	c.copyInto(c.Out(0), x)
}

// Samples covers the lengths and every pair of dtypes.
func (*Cast) Samples(m *Maker) (list []Cast) {
	for _, n := range lengths {
		list = append(list, Cast{X: m.Tensor(dtype.F32, "col=%d", n), DType: dtype.I32})
	}
	list = append(list, Cast{X: m.Quantized("q5_0", "row=3 col=32"), DType: dtype.F32},
		Cast{X: m.Quantized("q5_0", "row=3 col=32"), DType: dtype.BF16})
	for _, from := range allDTypes {
		for _, to := range allDTypes {
			list = append(list, Cast{X: m.Tensor(from, "row=3 col=17"), DType: to})
		}
	}
	return list
}

// Saves nothing.
func (*Cast) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP casts back. Through integers, no gradient flows.
func (a *Cast) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, gy[0]) }
