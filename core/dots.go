package core

import "github.com/fucina-go/fucina/core/axis"

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
	var cons []axis.Contraction
	for _, w := range a.Weights {
		con := p.contract(a.X, w, a.Axes)
		p.Out(con.Out, p.Same(a.X, w))
		cons = append(cons, con)
	}
	p.Keep(cons)
}

// Sizes compares x with each weight; two weights need not agree with one another.
func (a *Dots) Sizes(s *Sizes) {
	for i, w := range a.Weights {
		for _, name := range w.axes.Names() {
			if n := a.X.Size(name); n >= 0 && n != w.Size(name) {
				s.c.sizeConflict(a.X, w, name)
			}
		}
		for _, name := range s.c.outs[i].axes.Names() {
			n := a.X.Size(name)
			if n < 0 {
				n = w.Size(name)
			}
			s.Set(i, name, n)
		}
	}
}

// Eval multiplies with each weight.
func (a *Dots) Eval(c *Ctx) {
	for i, con := range c.Data().([]axis.Contraction) {
		c.contract(c.Out(i), a.X, a.Weights[i], con)
	}
}
