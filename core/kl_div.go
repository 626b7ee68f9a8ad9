package core

import (
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// KLDiv is target · (log target - x), element by element, and its sum, mean, batchmean or neither: the
// divergence of Kullback and Leibler from x, which holds logarithms of probabilities, to target. With log_target
// target holds logarithms too. Where a probability is 0 the element is 0.
//
// batchmean is the divergence itself: the sum divided by the number of distributions, which lie along axis.
// (PyTorch divides by the size of the first axis, which is that number for matrices only.)
//
// Shape: x[axes], target[a subset of them, or the other way round] → a scalar, or the wider operand's axes for
// reduction="none".
// Numerics: as mse_loss.
//
// Errors: integers; batchmean without an axis.
//
// Example:
//
//	x = tensor([[1.0, 2.0, 3.0]], "row vocab").log_softmax("vocab")
//	kl_div(x, tensor([[0.5, 0.5, 0.0]], "row vocab"), reduction="batchmean", axis="vocab")
type KLDiv struct {
	X         *Tensor `arg:"x"`
	Target    *Tensor `arg:"target"`
	Reduction string  `arg:"reduction=mean" enum:"mean sum none batchmean"`
	LogTarget bool    `arg:"log_target=false"`
	Axis      Axis    `arg:"axis?"`
}

var klDiv = Declare[KLDiv]("kl_div")

// Names broadcasts by name and drops the axes, if it reduces.
func (a *KLDiv) Names(p *Plan) {
	axes := p.Broadcast(false, a.X, a.Target)
	p.Float(a.X)
	if a.Reduction == "batchmean" {
		if a.Axis == "" {
			p.Fail("batchmean counts distributions, and nothing says along which axis of "+p.Describe(a.X)+" they lie",
				p.c.hint(p.c.along(a.X)...))
		}
		p.Need(a.X, a.Axis)
	}
	p.reduced(a.Reduction, axes, p.Same(a.X, a.Target))
}

// Eval computes the elements and reduces them.
func (a *KLDiv) Eval(c *Ctx) {
	if a.X.dtype == dtype.F64 {
		divergence[float64](c, a)
	} else {
		divergence[float32](c, a)
	}
}

func divergence[C float32 | float64](c *Ctx, a *KLDiv) {
	f := func(_ Op, z []C, xs *[maxOperands][]C) {
		x, t := xs[0][:len(z)], xs[1][:len(z)]
		num.Log(z, t)
		for i, l := range z {
			z[i] = weighed(t[i], l-x[i])
		}
	}
	if a.LogTarget {
		f = func(_ Op, z []C, xs *[maxOperands][]C) {
			x, t := xs[0][:len(z)], xs[1][:len(z)]
			num.Exp(z, t)
			for i, p := range z {
				z[i] = weighed(p, t[i]-x[i])
			}
		}
	}
	reduceLoss(c, a.Reduction, a.distributions, f, a.X, a.Target)
}

// weighed is p · v, and 0 for a p of 0 whatever v is.
func weighed[C float32 | float64](p, v C) C {
	if p == 0 {
		return 0
	}
	return C(p * v)
}

// distributions is by how much the sum of a loss with n elements is divided.
func (a *KLDiv) distributions(n int) int {
	switch a.Reduction {
	case "mean":
		return n
	case "batchmean":
		return n / max(1, a.X.Size(string(a.Axis)))
	}
	return 1
}

// Saves both operands.
func (*KLDiv) Saves(uint64) (in, out uint64) { return 3, 0 }

// VJP is gy times -p and log p + 1 - x, or p · (log p + 1 - x) for a target of logarithms.
func (a *KLDiv) VJP(_, gy []*Tensor, g *Grads) {
	x, t := a.X.wide(), a.Target.wide()
	n := t.Sub(x).Len()
	gz := gy[0].wide().times(1 / float64(a.distributions(n)))
	p, l := t, t
	if a.LogTarget {
		p = t.Exp()
	}
	g.Set(0, p.Mul(gz).Neg())
	if !g.Wants(1) {
		return
	}
	if a.LogTarget {
		g.Set(1, l.plus(1).Sub(x).Mul(p).where(p.above(0)).Mul(gz))
		return
	}
	positive := t.above(0)
	l = positive.Where(t, Number(t.env, 1, 0, false)).Log()
	g.Set(1, l.plus(1).Sub(x).where(positive).Mul(gz))
}

// Samples is that of losses, with the other reduction and targets of both kinds.
func (*KLDiv) Samples(m *Maker) []KLDiv {
	list := lossSamples(m, func(l Loss) KLDiv { return KLDiv{X: l.X, Target: l.Target, Reduction: l.Reduction} })
	for i := range list {
		if i%2 == 0 {
			list[i].LogTarget = true
		} else {
			list[i].Target = list[i].Target.Exp()
		}
	}
	for _, dt := range floats {
		list = append(list, KLDiv{X: m.Tensor(dt, "row=3 col=17"), Target: m.Tensor(dt, "row=3 col=17").Exp(),
			Reduction: "batchmean", Axis: "col"})
	}
	return list
}
