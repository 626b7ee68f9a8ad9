package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// CrossEntropy is the cross-entropy of the targets and softmax(x) along the axis, row by row, and its mean, sum or
// neither. A target is the right class of the row, or the probabilities of all classes.
//
// With classes, a row's loss is -weight[target] · log_softmax(x)[target]; the mean divides by the sum of the
// weights used, and rows whose target is ignore_index do not count. With probabilities it is the sum of
// -weight · target · log_softmax(x), and the mean divides by the number of rows. Label smoothing takes the share s
// from the target and spreads it over all classes.
//
// Shape: x[row, class], target[row] of integers, or [row, class] of x's dtype, weight[class] → a scalar, or [row]
// for reduction="none". Rows may have any axes.
// Numerics: the greatest of a row is subtracted first; sums of a row are taken in blocks of 512, each in a tree of
// 16 lanes; f16 and bf16 compute in f32 and round once. A class of probability 0 adds 0. The mean of nothing is NaN.
//
// Errors: a target that is no class; integers for x. There is no gradient for weight.
//
// Example:
//
//	cross_entropy(tensor([[2.0, 1.0], [0.0, 3.0]], "row vocab"), tensor([0, 1], "row"), "vocab")
type CrossEntropy struct {
	ClassLoss
	LabelSmoothing float64 `arg:"label_smoothing=0"`
}

var crossEntropy = Declare[CrossEntropy]("cross_entropy")

// CrossEntropy is the mean cross-entropy of the right classes and softmax(x); see the CrossEntropy operation.
func (x *Tensor) CrossEntropy(target *Tensor, axis string) *Tensor {
	return crossEntropy.Call(CrossEntropy{
		ClassLoss: ClassLoss{X: x, Target: target, Axis: Axis(axis), IgnoreIndex: -100, Reduction: "mean"}})
}

// soft tells whether the target is probabilities.
func (a *CrossEntropy) soft() bool {
	return a.Target.dtype.IsFloat() && a.Target.axes.Has(string(a.Axis))
}

// Names insists on one class, or one probability per class, for each row.
func (a *CrossEntropy) Names(p *Plan) {
	rows := a.declare(p)
	if !a.soft() {
		a.classes(p, rows)
		return
	}
	p.NeedAll(a.Target, a.X.axes)
	p.Within(a.Target, a.X.axes, "x")
	p.Same(a.X, a.Target)
}

// Sizes insists on a share.
func (a *CrossEntropy) Sizes(s *Sizes) {
	s.Match(nil)
	if a.LabelSmoothing < 0 || a.LabelSmoothing > 1 {
		s.Fail(fmt.Sprintf("label_smoothing is %g", a.LabelSmoothing),
			refit(s.c, "it is a share, 0 … 1", "label_smoothing",
				max(0, min(1, a.LabelSmoothing))))
	}
}

// Eval does every row.
func (a *CrossEntropy) Eval(c *Ctx) {
	if a.X.dtype == dtype.F64 {
		entropies[float64](c, a)
	} else {
		entropies[float32](c, a)
	}
}

func entropies[C float32 | float64](c *Ctx, a *CrossEntropy) {
	rows := c.Data().(*axis.List)
	order, n := rows.Append(axisList(string(a.Axis))), a.X.Size(string(a.Axis))
	weights := classWeights[C](c, &a.ClassLoss)
	keep, spread := C(1-a.LabelSmoothing), C(a.LabelSmoothing/float64(max(1, n)))
	x := c.Dense(a.X, order, native[C]())
	if a.soft() {
		t := c.Dense(a.Target, order, native[C]())
		reduceRowLosses(c, &a.ClassLoss, rows, nil, func(lo int, y []C) {
			var r logits[C]
			for i := range y {
				ts := row[C](t, lo+i, n)
				r.read(c, row[C](x, lo+i, n))
				y[i] = r.total(c, func(j int, l C) C { return C(weighed(C(ts[j]*keep)+spread, -l) * weights[j]) })
			}
		})
		return
	}
	right := rightClassesOf(c, &a.ClassLoss, a.X, rows, weights)
	reduceRowLosses(c, &a.ClassLoss, rows, right.factor, func(lo int, y []C) {
		var r logits[C]
		for i := range y {
			y[i] = 0
			at := lo + i
			if right.counts[at] == 0 {
				continue
			}
			r.read(c, row[C](x, at, n))
			y[i] = C(-r.log(int(right.ids[at])) * right.factor[at])
			if a.LabelSmoothing > 0 {
				all := r.total(c, func(j int, l C) C { return C(-l * weights[j]) })
				y[i] = C(y[i]*keep) + C(all*spread)
			}
		}
	})
}

// logits is a row of which log_softmax is wanted.
type logits[C float32 | float64] struct {
	x          []C
	top, shift C
	block      [blockLen]C
}

// read takes the row x.
func (r *logits[C]) read(c *Ctx, x []C) {
	r.x, r.top = x, maxOf(c, x)
	s := [1]C{}
	for ; len(x) > 0; x = x[min(len(x), blockLen):] {
		c.Pause()
		part := x[:min(len(x), blockLen)]
		s[0] += num.ExpSum(r.block[:len(part)], part, r.top)
	}
	num.Log(s[:], s[:])
	r.shift = s[0]
}

// log is element j of log_softmax.
func (r *logits[C]) log(j int) C { return r.x[j] - r.top - r.shift }

// total is the sum of f(j, log(j)) over the row.
func (r *logits[C]) total(c *Ctx, f func(j int, l C) C) (s C) {
	for from := 0; from < len(r.x); from += blockLen {
		c.Pause()
		part := r.block[:min(len(r.x)-from, blockLen)]
		for i := range part {
			part[i] = f(from+i, r.log(from+i))
		}
		s += num.Sum(part)
	}
	return s
}

// Saves the operands; the right classes are state of Eval.
func (a *CrossEntropy) Saves(uint64) (in, out uint64) {
	if a.soft() {
		return 7, 0
	}
	return 5, 0
}

// VJP is gy · (softmax(x) · sum(q) - q), where q is the target with its weights, and smoothed. It is
// -gy · weight · (1 - label_smoothing) · log_softmax(x) for a target of probabilities.
func (a *CrossEntropy) VJP(_, gy []*Tensor, g *Grads) {
	g.None(2, "weight")
	x, class := a.X.wide(), string(a.Axis)
	keep, spread := 1-a.LabelSmoothing, a.LabelSmoothing/float64(max(1, a.X.Size(class)))
	if a.soft() {
		r := gy[0].wide()
		if a.Reduction == "mean" {
			r = r.times(float64(a.X.Size(class)) / float64(a.X.Len()))
		}
		q := a.Target.wide().times(keep).plus(spread)
		if a.Weight != nil {
			q = q.Mul(a.Weight.wide())
		}
		g.Set(0, x.Softmax(class).Mul(q.Sum(class)).Sub(q).Mul(r))
		if g.Wants(1) {
			l := x.LogSoftmax(class).times(-keep)
			if a.Weight != nil {
				l = l.Mul(a.Weight.wide())
			}
			g.Set(1, l.Mul(r))
		}
		return
	}
	r := a.perFactor(gy[0], g)
	picked := g.State(stateFactor).times(keep).Mul(r)
	total, rest := picked, (*Tensor)(nil)
	if a.LabelSmoothing > 0 {
		rest = g.State(stateCounts).times(spread).Mul(r)
		if a.Weight != nil {
			w := a.Weight.wide()
			total = total.Add(rest.Mul(w.Sum()))
			rest = mul.Call(Mul{Binary{X: rest, Y: w, Outer: true}})
		} else {
			total = total.Add(rest.times(float64(a.X.Size(class))))
		}
	}
	gx := x.Softmax(class).Mul(total).IndexAdd(g.State(stateIDs), picked.Neg(), class)
	if rest != nil {
		gx = gx.Sub(rest)
	}
	g.Set(0, gx)
}

// Samples covers classes and probabilities, label smoothing, and what the losses of classes are tested on.
func (*CrossEntropy) Samples(m *Maker) (list []CrossEntropy) {
	for i, l := range m.classLosses() {
		list = append(list, CrossEntropy{l, []float64{0, 0.25, 0}[i%3]})
	}
	for _, n := range []int{0, 1, 17, 1000} {
		for _, reduction := range []string{"mean", "sum", "none"} {
			l := ClassLoss{X: m.Tensor(dtype.F32, "row=3 class=%d", n),
				Target: m.Tensor(dtype.F32, "class=%d row=3", n).Exp(),
				Axis:   "class", Reduction: reduction}
			list = append(list, CrossEntropy{l, 0.125})
		}
	}
	for _, dt := range floats {
		l := ClassLoss{X: m.Tensor(dt, "a=2 class=17 row=3"), Target: m.Tensor(dt, "row=3 class=17 a=2").Exp(),
			Weight: m.Tensor(dt, "class=17").Exp(), Axis: "class", Reduction: "mean"}
		list = append(list, CrossEntropy{l, 0},
			CrossEntropy{ClassLoss{X: l.X, Target: l.Target, Axis: "class", Reduction: "none"}, 0})
	}
	return list
}
