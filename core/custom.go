package core

import "fmt"

// custom is a call of a function whose gradient its author has given: what is recorded of it. It is in no table.
type custom struct {
	Inputs []*Tensor `arg:"inputs"`

	name string
	vjp  func(xs, ys, gys []*Tensor) []*Tensor
}

var customOp = Define[custom]("custom")

// Custom is f(xs), whose gradient is what vjp says: the gradients with respect to xs, given xs, the results ys
// and the gradients gys with respect to these (nil for integers). What f does is not recorded; what vjp does is, where
// a gradient of the gradient is wanted. A gradient has the axes, sizes and dtype of its x, or is nil: 0. The name is
// for messages.
func (e *Env) Custom(name string, xs []*Tensor, f func(xs []*Tensor) []*Tensor,
	vjp func(xs, ys, gys []*Tensor) []*Tensor) []*Tensor {
	var ys []*Tensor
	e.Record(false, func() { ys = f(xs) })
	tracked, float := false, false
	for _, x := range xs {
		tracked = tracked || x.Tracked()
	}
	outs := make([]*Tensor, len(ys))
	for i, y := range ys {
		outs[i] = y.Detach()
		if outs[i].env == nil {
			outs[i].env = e
			e.Own(outs[i])
		}
		float = float || y.dtype.IsFloat()
	}
	if e.noRecord || e.trying || !tracked || !float {
		return outs
	}
	op := &custom{Inputs: xs, name: name, vjp: vjp}
	n := &Node{info: &customOp.Info, op: op}
	n.made = e.where()
	e.note(n, xs, outs, ^uint64(0), ^uint64(0)).attach(outs)
	return outs
}

// Names is never asked: a custom is recorded, not run.
func (a *custom) Names(*Plan) {}

// VJP asks the author's function. It gets handles of its own, which end with the scope around.
func (a *custom) VJP(ys, gys []*Tensor, g *Grads) {
	var env *Env
	for _, gy := range gys {
		if gy != nil {
			env = gy.env
		}
	}
	own := func(list []*Tensor) []*Tensor {
		handles := make([]*Tensor, len(list))
		for i, t := range list {
			if t != nil {
				handles[i] = t.Alias()
				handles[i].env = env
				env.Own(handles[i])
			}
		}
		return handles
	}
	in := own(a.Inputs)
	seeds := own(gys)
	for i, y := range ys {
		if seeds[i] == nil && y.dtype.IsFloat() {
			seeds[i] = y.zerosIn(env)
		}
	}
	results := a.vjp(in, own(ys), seeds)
	if len(results) != len(in) {
		panic(&Error{Op: "backward", Msg: fmt.Sprintf("the vjp of %s, called at %s, gave %d gradients for %d arguments",
			a.name, g.node.made, len(results), len(in))})
	}
	for i, t := range results {
		if t == nil || !g.Wants(i) {
			continue
		}
		x := in[i]
		if !t.LooksLike(x) {
			panic(&Error{Op: "backward", Msg: fmt.Sprintf("the vjp of %s, called at %s, gave %s for its tensor %d, %s",
				a.name, g.node.made, t.Shape(), i, x.Shape()),
				Hint: "a gradient has the axes, sizes and dtype of its argument"})
		}
		if t.buf != nil && t.buf == x.buf {
			t = t.Copy() // x may be changed in place before the gradient is used
		}
		g.Set(i, t)
	}
}

// LooksLike tells whether t has the axes, in any order, sizes and dtype of x.
func (t *Tensor) LooksLike(x *Tensor) bool {
	if t.dtype != x.dtype || len(t.sizes) != len(x.sizes) {
		return false
	}
	for k, name := range t.axes.Names() {
		if x.Size(name) != t.sizes[k] {
			return false
		}
	}
	return true
}
