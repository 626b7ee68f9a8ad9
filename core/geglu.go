package core

import (
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// GeGLU is gelu(gate) · up, element by element: the gated unit of Gemma's feed-forward layers (Shazeer 2020).
// approximate is that of gelu.
//
// Shape: gate[axes], up[a subset of them, or the other way round] → y[the wider operand's axes].
// Numerics: as gelu, multiplied once; f16 and bf16 compute in f32 and round once.
//
// Errors: integers.
//
// Example:
//
//	geglu(ones(ffn=4), ones(ffn=4), approximate="tanh")
type GeGLU struct {
	Gate        *Tensor `arg:"gate"`
	Up          *Tensor `arg:"up"`
	Approximate string  `arg:"approximate=none" enum:"none tanh"`
}

var geglu = Declare[GeGLU]("geglu")

// GeGLU is gelu(x) · up, exact; see the GeGLU operation.
func (x *Tensor) GeGLU(up *Tensor) *Tensor {
	return geglu.Call(GeGLU{Gate: x, Up: up, Approximate: "none"})
}

// Names broadcasts by name.
func (a *GeGLU) Names(p *Plan) {
	axes := p.Broadcast(false, a.Gate, a.Up)
	p.Float(a.Gate)
	p.Out(axes, p.Same(a.Gate, a.Up))
}

// Eval computes in one pass.
func (a *GeGLU) Eval(c *Ctx) {
	if a.Gate.dtype == dtype.F64 {
		pointwise(c, c.Out(0), geluGated[float64], a.Gate, a.Up)
		return
	}
	pointwise(c, c.Out(0), geluGated[float32], a.Gate, a.Up)
}

func geluGated[T float32 | float64](op Op, y []T, xs *[maxOperands][]T) {
	if op.(*GeGLU).Approximate == "tanh" {
		num.GELUTanh(y, xs[0][:len(y)])
	} else {
		num.GELU(y, xs[0][:len(y)])
	}
	num.Mul(y, y, xs[1][:len(y)])
}

// Weight is what an element costs beside that of a usual operation: f64 is computed in Go.
func (a *GeGLU) Weight() int { return weightOfErf(a.Gate) }

// Saves both operands.
func (*GeGLU) Saves(uint64) (in, out uint64) { return 3, 0 }

// VJP is gy · up times the slope of gelu at gate, and gy · gelu(gate).
func (a *GeGLU) VJP(_, gy []*Tensor, g *Grads) {
	gate, gw := a.Gate.wide(), gy[0].wide()
	if g.Wants(0) {
		g.Set(0, g.timesGELUSlope(gw.Mul(a.Up.wide()), gate, a.Approximate))
	}
	if g.Wants(1) {
		g.Set(1, gw.Mul(gelu.Call(GELU{Unary{gate}, a.Approximate})))
	}
}

// Samples covers both forms, the lengths, broadcasting, and the dtypes.
func (*GeGLU) Samples(m *Maker) (list []GeGLU) {
	for i, s := range (*SwiGLU)(nil).Samples(m) {
		list = append(list, GeGLU{s.Gate, s.Up, []string{"none", "tanh"}[i%2]})
	}
	return list
}
