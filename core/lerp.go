package core

import "github.com/fucina-go/fucina/core/dtype"

// Lerp is x + weight · (end - x), element by element: x for a weight of 0, end for 1. The weight may be a plain
// number.
//
// Shape: x[a], end[b], weight[c] → y[the widest one's axes], which the others' are a subset of.
// Numerics: from a weight of 0.5 on, computed from the other side as end - (1 - weight) · (end - x), as in
// PyTorch; f16 and bf16 compute in f32 and round once.
//
// Errors: integers.
//
// Example:
//
//	tensor([0.0, 10.0], "a").lerp(tensor([1.0, 20.0], "a"), 0.5)
type Lerp struct {
	X      *Tensor `arg:"x"`
	End    *Tensor `arg:"end"`
	Weight *Tensor `arg:"weight,number"`
}

var lerp = Declare[Lerp]("lerp")

// Lerp is the way from x to end by weight; see the Lerp operation.
func (x *Tensor) Lerp(end, weight *Tensor) *Tensor {
	return lerp.Call(Lerp{X: x, End: end, Weight: weight})
}

// Names broadcasts by name; all have one dtype.
func (a *Lerp) Names(p *Plan) {
	axes := p.Broadcast(false, a.X, a.End, a.Weight)
	p.Float(a.X)
	p.Out(axes, p.Same(a.X, a.End, a.Weight))
}

// Eval computes in one pass.
func (a *Lerp) Eval(c *Ctx) {
	if a.X.dtype == dtype.F64 {
		pointwise(c, c.Out(0), lerpOf[float64], a.X, a.End, a.Weight)
		return
	}
	pointwise(c, c.Out(0), lerpOf[float32], a.X, a.End, a.Weight)
}

func lerpOf[T float32 | float64](_ Op, z []T, xs *[maxOperands][]T) {
	x, y, weight := xs[0][:len(z)], xs[1][:len(z)], xs[2][:len(z)]
	for i, w := range weight {
		if d := y[i] - x[i]; w < 0.5 {
			z[i] = x[i] + T(w*d)
		} else {
			z[i] = y[i] - T((1-w)*d)
		}
	}
}

// VJP is gy · (1 - weight), gy · weight and gy · (end - x).
func (a *Lerp) VJP(_, gy []*Tensor, g *Grads) {
	if g.Wants(0) {
		g.Set(0, gy[0].Mul(a.Weight.Neg().plus(1)))
	}
	if g.Wants(1) {
		g.Set(1, gy[0].Mul(a.Weight))
	}
	if g.Wants(2) {
		g.Set(2, gy[0].Mul(a.End).Sub(gy[0].Mul(a.X)))
	}
}

// Samples covers the lengths, broadcasting, and the dtypes.
func (*Lerp) Samples(m *Maker) (list []Lerp) {
	for _, n := range lengths {
		list = append(list, Lerp{X: m.Tensor(dtype.F32, "row=3 col=%d", n), End: m.Tensor(dtype.F32, "row=3 col=%d", n),
			Weight: m.Tensor(dtype.F32, "")})
	}
	for _, dt := range floats {
		list = append(list, Lerp{X: m.Tensor(dt, "row=3 col=17"), End: m.Tensor(dt, "col=17"),
			Weight: m.Tensor(dt, "row=3")},
			Lerp{X: m.Tensor(dt, "col=17"), End: m.Tensor(dt, ""), Weight: m.Tensor(dt, "col=17 row=3")})
	}
	return list
}
