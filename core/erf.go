package core

import (
	"math"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Erf is the error function 2/√π · ∫₀ˣ exp(-t²) dt, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: at most 2 ulp from the exact value, 9 for f64, the same bits on every machine; f16 and bf16 compute in
// f32 and round once.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").erf()
type Erf struct{ Unary }

var erf = Declare[Erf]("erf")

// Erf is the error function of x; see the Erf operation.
func (x *Tensor) Erf() *Tensor { return erf.Call(Erf{Unary{x}}) }

// F32 is the f32 kernel.
func (*Erf) F32(y, x []float32) { num.Erf(y, x) }

// F64 is the f64 kernel.
func (*Erf) F64(y, x []float64) { num.Erf(y, x) }

// Weight is what an element costs beside that of a usual operation: f64 is computed in Go.
func (a *Erf) Weight() int { return weightOfErf(a.X) }

// weightOfErf is the weight of operations that compute Erf of each element of x.
func weightOfErf(x *Tensor) int {
	if x.dtype == dtype.F64 {
		return 4
	}
	return 1
}

// Saves x.
func (*Erf) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy · 2/√π · exp(-x²).
func (a *Erf) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0].Mul(a.X.Mul(a.X).Neg().Exp()).times(2/math.SqrtPi))
}
