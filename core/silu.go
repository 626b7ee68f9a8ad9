package core

import "github.com/fucina-go/fucina/kernels/num"

// SiLU is x · sigmoid(x) (Elfwing et al. 2018), element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: as sigmoid, multiplied once; f16 and bf16 compute in f32 and round once.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").silu()
type SiLU struct{ Unary }

var silu = Declare[SiLU]("silu")

// SiLU is x · sigmoid(x) (Elfwing et al. 2018); see the SiLU operation.
func (x *Tensor) SiLU() *Tensor { return silu.Call(SiLU{Unary{x}}) }

// F32 is the f32 kernel.
func (*SiLU) F32(y, x []float32) { num.SiLU(y, x) }

// F64 is the f64 kernel.
func (*SiLU) F64(y, x []float64) { num.SiLU(y, x) }

// Saves x.
func (*SiLU) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy times the slope of silu at x.
func (a *SiLU) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, g.timesSiLUSlope(gy[0], a.X)) }

// timesSiLUSlope is gy times the derivative of silu at x.
func (g *Grads) timesSiLUSlope(gy, x *Tensor) *Tensor {
	if g.again {
		return gy.Mul(x.siluSlope())
	}
	return siluGrads.Call(siluGrad{Binary{X: gy, Y: x}})
}

// siluGrad is gy times the derivative of silu at x, in one pass. It is in no table.
type siluGrad struct{ Binary }

var siluGrads = Define[siluGrad]("silu_slope")

// F32 is the f32 kernel.
func (*siluGrad) F32(z, gy, x []float32) { num.SiLUSlope(z, gy, x) }

// F64 is the f64 kernel.
func (*siluGrad) F64(z, gy, x []float64) { num.SiLUSlope(z, gy, x) }

// siluSlope is the derivative of silu: s + x · s · (1 - s), s being sigmoid(x).
func (x *Tensor) siluSlope() *Tensor {
	s := x.Sigmoid()
	return s.Add(x.Mul(s).Mul(s.Neg().plus(1)))
}
