package core

import (
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// Dots is dot of one x with several weights, over the same axes: one result per weight.
//
// Shape: x[row, embed], weights q[head, head_dim, embed], k[…, embed] → y₀[row, head, head_dim], y₁[row, …].
//
// Errors: as dot.
//
// Example:
//
//	a, b = dots(ones(row=2, embed=3), "embed", ones(ffn=4, embed=3), ones(ffn=4, embed=3))
type Dots struct {
	X       *Tensor   `arg:"x"`
	Axes    Axes      `arg:"axes"`
	Weights []*Tensor `arg:"weights"`
}

var dots = Declare[Dots]("dots")

// Dots contracts the named axes of x with each weight's; see the Dots operation.
func (x *Tensor) Dots(axes string, weights ...*Tensor) []*Tensor {
	return dots.All(Dots{X: x, Axes: axisList(axes), Weights: weights})
}

// Names sorts the axes of each product by role.
func (a *Dots) Names(p *Plan) {
	var plans []weightPlan
	for _, w := range a.Weights {
		con := p.contract(a.X, w, a.Axes)
		p.Out(con.Out, p.product(a.X, w))
		plan := weightPlan{Contraction: con}
		for k, name := range w.axes.Names() {
			if in := a.X.axes.Index(name); in >= 0 {
				plan.shared = append(plan.shared, [2]int{in, k})
			}
		}
		for _, name := range con.Out.Names() {
			from := a.X.axes.Index(name)
			if from < 0 {
				from = ^w.axes.Index(name)
			}
			plan.from = append(plan.from, from)
		}
		plans = append(plans, plan)
	}
	p.Keep(plans)
}

// weightPlan is what is known of a product with one of the weights by its axes.
type weightPlan struct {
	axis.Contraction
	shared [][2]int // where an axis is in x and in the weight
	from   []int    // where each axis of the result is in x, or the complement of where it is in the weight
}

// Quantized takes quantized weights.
func (*Dots) Quantized() (operands uint64, named bool) { return ^uint64(1), false }

// Sizes compares x with each weight; two weights need not agree with one another.
func (a *Dots) Sizes(s *Sizes) {
	for i, w := range a.Weights {
		plan, sizes := &s.c.plan.data.([]weightPlan)[i], s.c.outs[i].sizes
		for _, at := range plan.shared {
			if a.X.sizes[at[0]] != w.sizes[at[1]] {
				s.c.sizeConflict(a.X, w, w.axes.At(at[1]))
			}
		}
		for k, from := range plan.from {
			if from >= 0 {
				sizes[k] = a.X.sizes[from]
			} else {
				sizes[k] = w.sizes[^from]
			}
		}
	}
}

// Eval multiplies with each weight.
func (a *Dots) Eval(c *Ctx) {
	plans := c.Data().([]weightPlan)
	for i := range plans {
		con := plans[i].Contraction
		if told := c.c.env.Multiplied; told != nil {
			told(Product{X: a.X, W: a.Weights[i], Axes: con.Sum})
		}
		if w := a.Weights[i]; w.stored() {
			c.queueStored(c.Out(i), a.X, w, con)
		} else {
			c.contract(c.Out(i), a.X, w, con)
		}
	}
	c.runStored()
}

// Samples covers the lengths of the contracted axis, several weights, and the dtypes.
func (*Dots) Samples(m *Maker) (list []Dots) {
	axes := axisList("embed")
	for _, n := range lengths {
		list = append(list, Dots{X: m.Tensor(dtype.F32, "row=3 embed=%d", n), Axes: axes, Weights: []*Tensor{
			m.Tensor(dtype.F32, "ffn=4 embed=%d", n), m.Tensor(dtype.F32, "head=2 embed=%d head_dim=3", n)}})
	}
	list = append(list, Dots{X: m.Tensor(dtype.F32, "row=3 embed=64"), Axes: axes, Weights: []*Tensor{
		m.Quantized("q8_0", "ffn=4 embed=64"), m.Tensor(dtype.F32, "embed=64 head=3")}})
	for _, dt := range allDTypes {
		list = append(list, Dots{X: m.Tensor(dt, "row=3 embed=17"), Axes: axes, Weights: []*Tensor{
			m.Tensor(dt, "embed=17 ffn=4"), m.Tensor(dt, "ffn=5 embed=17"), m.Tensor(dt, "embed=17")}})
	}
	return list
}

// Saves x if a weight wants a gradient, and the weights if x does.
func (*Dots) Saves(want uint64) (in, out uint64) {
	if want&1 != 0 {
		in = ^uint64(1)
	}
	if want>>1 != 0 {
		in |= 1
	}
	return in, 0
}

// VJP contracts each gy with x and the weight as that of dot does, and adds up what x gets.
func (a *Dots) VJP(_, gy []*Tensor, g *Grads) {
	var gx *Tensor
	for i, w := range a.Weights {
		if gy[i] == nil {
			continue
		}
		con := axis.Contract(a.X.axes, w.axes, a.Axes)
		if g.Wants(1 + i) {
			g.Set(1+i, dot.Call(Dot{X: gy[i], W: a.X, Axes: con.A}))
		}
		if !g.Wants(0) {
			continue
		}
		part := back(gy[i], w, con.B)
		if gx != nil {
			part = gx.Add(part)
		}
		gx = part
	}
	if gx != nil {
		g.Set(0, gx)
	}
}
