package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// NLLLoss is the negative log-likelihood of the right class: -weight[target] · x[target] of every row of
// log-probabilities along the axis, and its mean, sum or neither.
//
// Shape: x[row, class], target[row] of integers, weight[class] → a scalar, or [row] for reduction="none". Rows may
// have any axes. A mean is weighted: it divides by the sum of the weights used. Rows whose target is ignore_index
// do not count.
// Numerics: rows are added as in sum; f16 and bf16 compute in f32 and round once. The mean of nothing is NaN.
//
// Errors: a target that is no class; integers for x. There is no gradient for weight.
//
// Example:
//
//	nll_loss(ones(row=2, vocab=3).log_softmax("vocab"), tensor([0, 2], "row"), "vocab")
type NLLLoss struct{ ClassLoss }

var nllLoss = Declare[NLLLoss]("nll_loss")

// NLLLoss is the mean negative log-likelihood of the right classes; see the NLLLoss operation.
func (x *Tensor) NLLLoss(target *Tensor, axis string) *Tensor {
	return nllLoss.Call(NLLLoss{ClassLoss{X: x, Target: target, Axis: Axis(axis), IgnoreIndex: -100,
		Reduction: "mean"}})
}

// Names insists on one class per row.
func (a *NLLLoss) Names(p *Plan) { a.classes(p, a.declare(p)) }

// Eval picks.
func (a *NLLLoss) Eval(c *Ctx) {
	if a.X.dtype == dtype.F64 {
		pickLosses[float64](c, &a.ClassLoss)
	} else {
		pickLosses[float32](c, &a.ClassLoss)
	}
}

func pickLosses[C float32 | float64](c *Ctx, a *ClassLoss) {
	rows := c.Data().(*axis.List)
	right := rightClassesOf(c, a, a.X, rows, classWeights[C](c, a))
	x := elementsOf[C](c.Dense(a.X, rows.Append(axisList(string(a.Axis))), native[C]()))
	n := a.X.Size(string(a.Axis))
	reduceRowLosses(c, a, rows, right.factor, func(lo int, y []C) {
		for i := range y {
			y[i] = 0
			if row := lo + i; right.counts[row] != 0 {
				y[i] = C(-right.factor[row] * x[row*n+int(right.ids[row])])
			}
		}
	})
}

// Saves nothing but the state of Eval: the right classes and their weights.
func (*NLLLoss) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP is -gy · weight at the right classes.
func (a *NLLLoss) VJP(_, gy []*Tensor, g *Grads) {
	g.None(2, "weight")
	v := g.State(stateFactor).Mul(a.perFactor(gy[0], g)).Neg()
	g.Set(0, v.env.Zeros(v.dtype, a.X.axes, a.X.sizes...).IndexAdd(g.State(stateIDs), v, string(a.Axis)))
}

// Samples covers the numbers of classes and rows, weights, ignored rows, reductions, and the dtypes.
func (*NLLLoss) Samples(m *Maker) (list []NLLLoss) {
	for _, l := range m.classLosses() {
		list = append(list, NLLLoss{l})
	}
	return list
}

// classLosses is samples of losses with classes as targets.
func (m *Maker) classLosses() (list []ClassLoss) {
	add := func(dt, ids dtype.Type, classes int, row, reduction string, weighted bool) {
		l := ClassLoss{X: m.Tensor(dt, row+" class=%d", classes), Target: m.Indices(ids, max(1, classes), row),
			Axis: "class", IgnoreIndex: 1, Reduction: reduction}
		if weighted {
			l.Weight = m.Tensor(dt, "class=%d", classes).Exp()
		}
		list = append(list, l)
	}
	for _, n := range lengths {
		if n > 0 {
			add(dtype.F32, dtype.I64, n, "row=3", "none", n%2 == 0)
		}
		add(dtype.F32, dtype.I64, 5, fmt.Sprintf("row=%d", n), "mean", n%2 == 1)
	}
	add(dtype.F32, dtype.I64, 0, "row=0", "sum", false)
	for _, dt := range floats {
		add(dt, dtype.I32, 17, "batch=2 row=3", "none", true)
		add(dt, dtype.I64, 17, "a=3", "mean", true)
		add(dt, dtype.I64, 5, "", "sum", false)
	}
	for _, ids := range integers {
		add(dtype.F32, ids, 7, "row=4", "mean", false)
	}
	return list
}
