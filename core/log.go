package core

import "github.com/fucina-go/fucina/kernels/num"

// Log is the natural logarithm of x, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: at most 2 ulp from the exact value, the same bits on every machine; -inf at 0, NaN below; f16 and
// bf16 compute in f32 and round once.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").log()
type Log struct{ Unary }

var log = Declare[Log]("log")

// Log is the natural logarithm of x; see the Log operation.
func (x *Tensor) Log() *Tensor { return log.Call(Log{Unary{x}}) }

// F32 is the f32 kernel.
func (*Log) F32(y, x []float32) { num.Log(y, x) }

// F64 is the f64 kernel.
func (*Log) F64(y, x []float64) { num.Log(y, x) }

// Saves x.
func (*Log) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy / x.
func (a *Log) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, gy[0].Div(a.X)) }
