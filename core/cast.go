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

// Names changes the dtype.
func (a *Cast) Names(p *Plan) { p.Out(a.X.axes, a.DType) }

// Eval converts.
func (a *Cast) Eval(c *Ctx) { c.copyInto(c.Out(0), a.X) }
