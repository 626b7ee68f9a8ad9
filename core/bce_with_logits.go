package core

import (
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// BCEWithLogits is the binary cross-entropy of sigmoid(x) and target, element by element, and its mean, sum or
// neither: weight · ((1 - target) · x + (1 + (pos_weight - 1) · target) · log(1 + exp(-x))).
//
// Shape: x[axes], target, weight and pos_weight[any of these axes] → a scalar, or x's axes for
// reduction="none". A mean divides by the number of elements, whatever the weights are.
// Numerics: no exponential of a positive number is taken; elements are added as in sum; f16 and bf16 compute in
// f32 and round once. The mean of nothing is NaN.
//
// Errors: integers; different dtypes.
//
// Example:
//
//	bce_with_logits(tensor([2.0, -1.0], "row"), tensor([1.0, 0.0], "row"))
type BCEWithLogits struct {
	Loss
	Weight    *Tensor `arg:"weight?"`
	PosWeight *Tensor `arg:"pos_weight?"`
}

var bceWithLogits = Declare[BCEWithLogits]("bce_with_logits")

// BCEWithLogits is the mean binary cross-entropy of sigmoid(x); see the BCEWithLogits operation.
func (x *Tensor) BCEWithLogits(target *Tensor) *Tensor {
	return bceWithLogits.Call(BCEWithLogits{Loss: Loss{X: x, Target: target, Reduction: "mean"}})
}

// Names insists that x is the widest and drops the axes, if it reduces.
func (a *BCEWithLogits) Names(p *Plan) {
	for _, t := range []*Tensor{a.Target, a.Weight, a.PosWeight} {
		p.Within(t, a.X.axes, "x")
	}
	p.Float(a.X)
	p.reduced(a.Reduction, a.X.axes, p.Same(a.X, a.Target, a.Weight, a.PosWeight))
}

// Eval computes the elements and reduces them.
func (a *BCEWithLogits) Eval(c *Ctx) {
	if a.X.dtype == dtype.F64 {
		binaryEntropy[float64](c, a)
	} else {
		binaryEntropy[float32](c, a)
	}
}

func binaryEntropy[C float32 | float64](c *Ctx, a *BCEWithLogits) {
	operands := []*Tensor{a.X, a.Target}
	weight, posWeight := 0, 0 // their places among the operands
	if a.Weight != nil {
		weight = len(operands)
		operands = append(operands, a.Weight)
	}
	if a.PosWeight != nil {
		posWeight = len(operands)
		operands = append(operands, a.PosWeight)
	}
	reduceLoss(c, a.Reduction, a.parts, func(_ Op, z []C, xs *[maxOperands][]C) {
		x, t := xs[0][:len(z)], xs[1][:len(z)]
		logOnePlusExp(z, x)
		for i, v := range x {
			l, m := z[i], max(-v, 0)
			if posWeight > 0 {
				w := 1 + C((xs[posWeight][i]-1)*t[i])
				l, m = C(l*w), C(m*w)
			}
			z[i] = C((1-t[i])*v) + m + l
		}
		if weight > 0 {
			num.Mul(z, z, xs[weight][:len(z)])
		}
	}, operands...)
}

// logOnePlusExp sets y[i] to log(1 + exp(-|x[i]|)): the logarithm of u = 1 + z rounded, and c/u for the c that u
// lacks, where z is the exponential.
func logOnePlusExp[C float32 | float64](y, x []C) {
	u := make([]C, min(len(x), blockLen))
	for ; len(x) > 0; x, y = x[len(u):], y[len(u):] {
		u = u[:min(len(u), len(x))]
		z := y[:len(u)]
		for i, v := range x[:len(u)] {
			z[i] = -absolute(v)
		}
		num.Exp(z, z)
		for i, v := range z {
			u[i] = 1 + v
			z[i] = (v - (u[i] - 1)) / u[i]
		}
		num.Log(u, u)
		num.Add(z, z, u)
	}
}

// Saves the operands.
func (*BCEWithLogits) Saves(uint64) (in, out uint64) { return 15, 0 }

// VJP is gy · weight times 1 - t - (1 + (pos_weight - 1) · t) · sigmoid(-x) for x, times (pos_weight - 1) ·
// softplus(-x) - x for the target t and times t · softplus(-x) for pos_weight; the element itself for weight.
func (a *BCEWithLogits) VJP(_, gy []*Tensor, g *Grads) {
	x, t := a.X.wide(), a.Target.wide()
	gz := gy[0].wide().times(1 / float64(a.parts(x.Len())))
	over := func(t *Tensor) *Tensor { return t.Mul(gz) }
	if g.Wants(2) {
		op := BCEWithLogits{Loss: Loss{X: x, Target: t, Reduction: "none"}}
		if a.PosWeight != nil {
			op.PosWeight = a.PosWeight.wide()
		}
		g.Set(2, over(bceWithLogits.Call(op)))
	}
	if a.Weight != nil {
		w := a.Weight.wide()
		over = func(t *Tensor) *Tensor { return t.Mul(w).Mul(gz) }
	}
	s, l := x.Neg().Sigmoid(), x.Neg().Softplus()
	dt := x.Neg()
	if a.PosWeight != nil {
		more := a.PosWeight.wide().plus(-1)
		s = s.Add(s.Mul(t).Mul(more))
		dt = l.Mul(more).Sub(x)
		g.Set(3, over(l.Mul(t)))
	}
	g.Set(0, over(s.Add(t).Neg().plus(1)))
	g.Set(1, over(dt))
}

// Samples covers the lengths, targets and weights with fewer axes, reductions, and the dtypes.
func (*BCEWithLogits) Samples(m *Maker) (list []BCEWithLogits) {
	for _, n := range lengths {
		for _, reduction := range []string{"mean", "sum", "none"} {
			list = append(list, BCEWithLogits{Loss: Loss{m.Tensor(dtype.F32, "row=3 col=%d", n),
				m.Tensor(dtype.F32, "row=3 col=%d", n), reduction}})
		}
	}
	for _, dt := range floats {
		list = append(list,
			BCEWithLogits{Loss: Loss{m.Tensor(dt, "row=3 col=17"), m.Tensor(dt, "col=17 row=3"), "none"},
				PosWeight: m.Tensor(dt, "col=17")},
			BCEWithLogits{Loss: Loss{m.Tensor(dt, "row=3 col=17"), m.Tensor(dt, "row=3"), "mean"},
				Weight: m.Tensor(dt, "row=3"), PosWeight: m.Tensor(dt, "")},
			BCEWithLogits{Loss: Loss{m.Tensor(dt, "row=3 col=17"), m.Tensor(dt, "row=3 col=17"), "sum"},
				Weight: m.Tensor(dt, "row=3 col=17")})
	}
	return list
}
