package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// ClassLoss is the argument struct of losses of rows along an axis of classes, given the right class of each row.
// Weight has one factor per class; a mean divides by the sum of the right classes' factors. Rows whose target is
// IgnoreIndex do not count.
type ClassLoss struct {
	X           *Tensor `arg:"x"`
	Target      *Tensor `arg:"target"`
	Axis        Axis    `arg:"axis"`
	Weight      *Tensor `arg:"weight?"`
	IgnoreIndex int     `arg:"ignore_index=-100"`
	Reduction   string  `arg:"reduction=mean" enum:"mean sum none"`
}

// declare drops the axis of classes, and the others if it reduces.
func (a *ClassLoss) declare(p *Plan) (rows *axis.List) {
	p.Need(a.X, a.Axis)
	p.Float(a.X)
	p.Within(a.Weight, axisList(string(a.Axis)), "a class")
	rows = a.X.axes.Without(axisList(string(a.Axis)))
	p.reduced(a.Reduction, rows, p.Same(a.X, a.Weight))
	return rows
}

// classes insists that the target has one class for each row.
func (a *ClassLoss) classes(p *Plan, rows *axis.List) {
	p.Integer(a.Target)
	p.NeedAll(a.Target, rows)
	p.Within(a.Target, rows, "a row")
}

// rightClasses is the target of a loss, by row.
type rightClasses[C float32 | float64] struct {
	ids    []int64 // 0 where the row does not count
	factor []C     // the weight of the class; 0 where the row does not count
	counts []C     // 1, or 0 where the row does not count
}

// Places of rightClasses among what Eval saves.
const (
	stateIDs = iota
	stateFactor
	stateCounts
)

// rightClassesOf reads the target, row by row; of has the classes.
func rightClassesOf[C float32 | float64](
	c *Ctx, a *ClassLoss, of *Tensor, rows *axis.List, weights []C,
) rightClasses[C] {
	sizes := a.X.permuted(rows).sizes
	room := func(dt dtype.Type) *Tensor {
		if t := c.Save(dt, rows, sizes); t != nil {
			return t
		}
		return c.Scratch(dt, rows, sizes)
	}
	r := rightClasses[C]{ids: elementsOf[int64](room(dtype.I64))}
	r.factor, r.counts = elementsOf[C](room(native[C]())), elementsOf[C](room(native[C]()))
	ids := elementsOf[int64](c.Dense(a.Target, rows, dtype.I64))
	for lo, hi := range c.c.env.scan(len(ids)) {
		for i := lo; i < hi; i++ {
			id := ids[i]
			if id == int64(a.IgnoreIndex) {
				r.ids[i], r.factor[i], r.counts[i] = 0, 0, 0
				continue
			}
			if id < 0 || id >= int64(len(weights)) {
				c.Fail(fmt.Sprintf("the class %d is outside of axis %q of %s", id, a.Axis, c.Describe(of)),
					fmt.Sprintf("classes are 0 … %d, or %d to be ignored: target.clamp(0, %d)", len(weights)-1,
						a.IgnoreIndex,
						len(weights)-1))
			}
			r.ids[i], r.factor[i], r.counts[i] = id, weights[id], 1
		}
	}
	return r
}

// classWeights is one factor per class.
func classWeights[C float32 | float64](c *Ctx, a *ClassLoss) []C {
	axes := axisList(string(a.Axis))
	w := c.Scratch(native[C](), axes, []int{a.X.Size(string(a.Axis))})
	if a.Weight != nil {
		c.copyInto(w, a.Weight)
		return elementsOf[C](w)
	}
	ones := elementsOf[C](w)
	for lo, hi := range c.c.env.scan(len(ones)) {
		for i := range ones[lo:hi] {
			ones[lo+i] = 1
		}
	}
	return ones
}

// reduceRowLosses computes output 0 from the losses of the rows, which f puts into y for rows lo and on. A mean
// divides by the sum of factors, or by the number of rows if there are none.
func reduceRowLosses[C float32 | float64](c *Ctx, a *ClassLoss, rows *axis.List, factors []C, f func(lo int, y []C)) {
	out := c.Out(0)
	y := out
	if a.Reduction != "none" || out.dtype != native[C]() {
		y = c.Scratch(native[C](), rows, a.X.permuted(rows).sizes)
	}
	losses := elementsOf[C](y)
	c.Split(len(losses), max(1, pointGrain/max(1, a.X.Size(string(a.Axis)))), func(lo, hi int) { f(lo, losses[lo:hi]) })
	if a.Reduction == "none" {
		if y != out {
			c.copyInto(out, y)
		}
		return
	}
	total := num.Sum(losses)
	if a.Reduction == "mean" {
		n := C(len(losses))
		if factors != nil {
			n = num.Sum(factors)
		}
		total /= n
	}
	store(out, 0, []C{total})
}

// perFactor is the gradient with respect to a row's loss before its factor.
func (a *ClassLoss) perFactor(gy *Tensor, g *Grads) *Tensor {
	if a.Reduction == "mean" {
		return gy.wide().Div(g.State(stateFactor).Sum())
	}
	return gy.wide()
}
