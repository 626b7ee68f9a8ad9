package core

import (
	"math"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// GELU is x · Φ(x), Φ being the distribution function of the normal distribution (Hendrycks and Gimpel 2016),
// element by element. approximate="tanh" takes the usual approximation
// x/2 · (1 + tanh(√(2/π) · (x + 0.044715x³))).
//
// Shape: x[axes] → y[axes].
// Numerics: Φ is (1 + erf(x/√2)) / 2, so that its absolute, not its relative error is that of erf;
// f16 and bf16 compute in f32 and round once.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").gelu(approximate="tanh")
type GELU struct {
	Unary
	Approximate string `arg:"approximate=none" enum:"none tanh"`
}

var gelu = Declare[GELU]("gelu")

// GELU is x · Φ(x), exact; see the GELU operation.
func (x *Tensor) GELU() *Tensor { return gelu.Call(GELU{Unary: Unary{x}, Approximate: "none"}) }

// F32 is the f32 kernel.
func (a *GELU) F32(y, x []float32) { geluOf(y, x, a) }

// F64 is the f64 kernel.
func (a *GELU) F64(y, x []float64) { geluOf(y, x, a) }

func geluOf[T float32 | float64](y, x []T, a *GELU) {
	if a.Approximate == "tanh" {
		num.GELUTanh(y, x)
	} else {
		num.GELU(y, x)
	}
}

// Weight is what an element costs beside that of a usual operation: f64 is computed in Go.
func (a *GELU) Weight() int { return weightOfErf(a.X) }

// Saves x.
func (*GELU) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy times the slope at x.
func (a *GELU) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, g.timesGELUSlope(gy[0], a.X, a.Approximate)) }

// timesGELUSlope is gy times the derivative of gelu at x.
func (g *Grads) timesGELUSlope(gy, x *Tensor, approximate string) *Tensor {
	if g.again {
		return gy.wide().Mul(x.wide().geluSlope(approximate))
	}
	return geluGrads.Call(geluGrad{Binary{X: gy, Y: x}, approximate})
}

// geluSlope is the derivative of gelu: Φ(x) + x · exp(-x²/2) / √(2π), or that of the approximation.
func (x *Tensor) geluSlope(approximate string) *Tensor {
	squared := x.Mul(x)
	if approximate == "tanh" {
		const c, d = 0.7978845608028654, 0.044715 // √(2/π)
		t := x.Mul(squared.times(c * d).plus(c)).Tanh()
		u := squared.times(3 * c * d).plus(c) // the slope of what tanh is taken of
		return t.plus(1).Add(x.Mul(t.Mul(t).Neg().plus(1)).Mul(u)).times(0.5)
	}
	phi := squared.times(-0.5).Exp().times(1 / math.Sqrt(2*math.Pi))
	return x.times(math.Sqrt2 / 2).Erf().plus(1).times(0.5).Add(x.Mul(phi))
}

// geluGrad is gy times the derivative of gelu at x, in one pass. It is in no table.
type geluGrad struct {
	Binary
	Approximate string `arg:"approximate=none" enum:"none tanh"`
}

var geluGrads = Define[geluGrad]("gelu_slope")

// F32 is the f32 kernel.
func (a *geluGrad) F32(z, gy, x []float32) { slopesOfGELU(z, gy, x, a) }

// F64 is the f64 kernel.
func (a *geluGrad) F64(z, gy, x []float64) { slopesOfGELU(z, gy, x, a) }

func slopesOfGELU[T num.Float](z, gy, x []T, a *geluGrad) {
	if a.Approximate == "tanh" {
		num.GELUTanhSlope(z, gy, x)
	} else {
		num.GELUSlope(z, gy, x)
	}
}

// Samples covers both forms, the lengths and the dtypes.
func (*GELU) Samples(m *Maker) (list []GELU) {
	for _, form := range []string{"none", "tanh"} {
		for _, n := range lengths {
			list = append(list, GELU{Unary{m.Tensor(dtype.F32, "col=%d", n)}, form})
		}
		for _, dt := range floats {
			list = append(list, GELU{Unary{m.Tensor(dt, "")}, form}, GELU{Unary{m.Tensor(dt, "row=3 col=17")}, form})
		}
	}
	return list
}
