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
