package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Softcap is cap · tanh(x / cap): x, bent so that it stays between -cap and cap (Gemma 2), element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: as tanh, after one division and before one product; f16 and bf16 compute in f32 and round once.
//
// Errors: integers (cast them first). A cap that is not above 0.
//
// Example:
//
//	tensor([-100.0, 0.5, 100.0], "a").softcap(30)
type Softcap struct {
	Unary
	Cap float64 `arg:"cap"`
}

var softcap = Declare[Softcap]("softcap")

// Softcap is cap · tanh(x / cap); see the Softcap operation.
func (x *Tensor) Softcap(limit float64) *Tensor {
	return softcap.Call(Softcap{Unary: Unary{x}, Cap: limit})
}

// Sizes insists on a cap above 0.
func (a *Softcap) Sizes(s *Sizes) {
	if !(a.Cap > 0) {
		s.Fail(fmt.Sprintf("cap=%v, want a number above 0", a.Cap),
			refit(s.c, "as Gemma 2 does for logits", "cap", 30.0))
	}
}

// F32 is the f32 kernel.
func (a *Softcap) F32(y, x []float32) { num.Softcap(y, x, float32(a.Cap)) }

// F64 is the f64 kernel.
func (a *Softcap) F64(y, x []float64) { num.Softcap(y, x, a.Cap) }

// Saves y.
func (*Softcap) Saves(uint64) (in, out uint64) { return 0, 1 }

// VJP is gy · (1 - (y / cap)²).
func (a *Softcap) VJP(y, gy []*Tensor, g *Grads) {
	p := y[0].wide().times(1 / a.Cap)
	g.Set(0, gy[0].wide().Mul(p.Mul(p).Neg().plus(1)))
}

// Samples covers the lengths and the dtypes.
func (*Softcap) Samples(m *Maker) (list []Softcap) {
	for _, n := range lengths {
		list = append(list, Softcap{Unary{m.Tensor(dtype.F32, "col=%d", n)}, 1.5})
	}
	for _, dt := range floats {
		list = append(list, Softcap{Unary{m.Tensor(dt, "")}, 30}, Softcap{Unary{m.Tensor(dt, "row=3 col=17")}, 0.75})
	}
	return list
}
