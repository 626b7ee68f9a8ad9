package core

import (
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// SwiGLU is silu(gate) · up, element by element: the gated unit of Llama's feed-forward layers
// (Shazeer 2020).
//
// Shape: gate[axes], up[the same axes] → y[axes].
// Numerics: as silu, multiplied once; f16 and bf16 compute in f32 and round once.
//
// Errors: integers.
//
// Example:
//
//	swiglu(ones(ffn=4), ones(ffn=4))
type SwiGLU struct {
	Gate *Tensor `arg:"gate"`
	Up   *Tensor `arg:"up"`
}

var swiglu = Declare[SwiGLU]("swiglu")

// SwiGLU is silu(x) · up; see the SwiGLU operation.
func (x *Tensor) SwiGLU(up *Tensor) *Tensor { return swiglu.Call(SwiGLU{Gate: x, Up: up}) }

// Names broadcasts by name.
func (a *SwiGLU) Names(p *Plan) {
	axes := p.Broadcast(false, a.Gate, a.Up)
	p.Float(a.Gate)
	p.Out(axes, p.Same(a.Gate, a.Up))
}

// Eval computes in one pass.
func (a *SwiGLU) Eval(c *Ctx) {
	if a.Gate.dtype == dtype.F64 {
		pointwise(c, c.Out(0), gated[float64], a.Gate, a.Up)
		return
	}
	pointwise(c, c.Out(0), gated[float32], a.Gate, a.Up)
}

func gated[T float32 | float64](_ Op, y []T, xs *[maxOperands][]T) { num.SwiGLU(y, xs[0], xs[1]) }

// Samples covers the lengths, broadcasting, and the dtypes.
func (*SwiGLU) Samples(m *Maker) (list []SwiGLU) {
	for _, n := range lengths {
		list = append(list, SwiGLU{Gate: m.Tensor(dtype.F32, "row=3 ffn=%d", n),
			Up: m.Tensor(dtype.F32, "ffn=%d row=3", n)})
	}
	for _, dt := range floats {
		list = append(list, SwiGLU{Gate: m.Tensor(dt, "row=3 ffn=17"), Up: m.Tensor(dt, "row=3 ffn=17")},
			SwiGLU{Gate: m.Tensor(dt, "row=3"), Up: m.Tensor(dt, "ffn=5 row=3")})
	}
	return list
}

// Saves both operands.
func (*SwiGLU) Saves(uint64) (in, out uint64) { return 3, 0 }

// VJP is gy · up times the slope of silu at gate, and gy · silu(gate).
func (a *SwiGLU) VJP(_, gy []*Tensor, g *Grads) {
	if g.Wants(0) {
		g.Set(0, g.timesSiLUSlope(gy[0].Mul(a.Up), a.Gate))
	}
	if g.Wants(1) {
		g.Set(1, gy[0].Mul(a.Gate.SiLU()))
	}
}
