package grad

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
)

// JVP is f(xs) and its derivative along the tangents: Σ ∂f/∂xs[i] · tangents[i], for every result. A tangent has the
// axes, sizes and dtype of its x; a nil one is 0. It is computed by differentiating the gradient, which is linear
// in the gradients it is given, with respect to these (Townsend 2017): any operation with a gradient will do, those
// of one that is Once by way of its Ref. f is called once, with tensors of its own.
//
// With create, the results depend on what xs and f depend on; otherwise they are constants. They belong to the
// innermost open scope. Misuse panics with a *core.Error.
func JVP(f func(xs []*core.Tensor) []*core.Tensor, xs, tangents []*core.Tensor, create bool) (ys, dys []*core.Tensor) {
	p := products{op: "jvp", what: "tangents", create: create}
	p.run(xs, tangents, func(in []*core.Tensor) {
		ys = f(in)
		for i, y := range ys {
			if y == nil {
				panic(p.error(fmt.Sprintf("the function gave nil in place %d, want tensors", i), ""))
			}
		}
		var tracked, seeds []*core.Tensor
		for i, y := range ys {
			if !y.DType().IsFloat() {
				panic(p.error(fmt.Sprintf("the function gave %s, which has no derivative", y.Shape()),
					`it returns floating-point numbers: y.cast("f32")`))
			}
			if y.Tracked() {
				v := p.env.Watch(p.zeros(y))
				defer v.Free()
				tracked, seeds = append(tracked, ys[i]), append(seeds, v)
			}
		}
		gs, ts := p.gradients(tracked, in, seeds, tangents)
		along := p.derive(gs, seeds, ts)
		dys = make([]*core.Tensor, len(ys))
		for i, y := range ys {
			if y.Tracked() {
				dys[i], along = along[0], along[1:]
			}
			if dys[i] == nil {
				dys[i] = p.zeros(y)
			}
		}
		p.settle(ys)
		p.settle(dys)
		p.results = append(append(p.results, ys...), dys...)
	})
	return ys, dys
}

// HVP is f(xs), a scalar, and the product of its Hessian with the vectors: the derivative of the gradient with
// respect to xs along them, one for each x. The rest is as with JVP; f is called once.
func HVP(f func(xs []*core.Tensor) *core.Tensor, xs, vectors []*core.Tensor, create bool) (
	y *core.Tensor, hv []*core.Tensor) {
	p := products{op: "hvp", what: "vectors", create: create}
	p.run(xs, vectors, func(in []*core.Tensor) {
		y = f(in)
		hv = p.hessian(y, in, vectors)
		one := []*core.Tensor{y}
		p.settle(one)
		p.settle(hv)
		y = one[0]
		p.results = append(append(p.results, y), hv...)
	})
	return y, hv
}

// HessianTimes is the product of the Hessian of a loss that was computed already with the vectors, with respect to
// tensors that it depends on. Their graph can be used again. The rest is as with HVP.
func HessianTimes(loss *core.Tensor, xs, vectors []*core.Tensor, create bool) (results []*core.Tensor) {
	p := products{op: "hvp", what: "vectors", create: create, given: true}
	p.run(xs, vectors, func(in []*core.Tensor) {
		results = p.hessian(loss, in, vectors)
		p.settle(results)
		p.results = results
	})
	return results
}

// products is a call of one of these functions.
type products struct {
	op, what string
	create   bool
	given    bool // the graph is there already
	env      *core.Env
	own      []*core.Tensor // variables that stand for inputs and end with the call
	results  []*core.Tensor
}

func (p *products) error(msg, hint string) *core.Error {
	return &core.Error{Op: p.op, Msg: msg, Hint: hint}
}

// run calls f, with tensors of its own in place of xs, in a scope that the results survive.
func (p *products) run(xs, vectors []*core.Tensor, f func(in []*core.Tensor)) {
	if len(xs) == 0 {
		panic(p.error("got no inputs", ""))
	}
	for i, x := range xs {
		if x == nil {
			panic(p.error(fmt.Sprintf("inputs[%d] is nil, want a tensor", i), ""))
		}
		if p.env == nil {
			p.env = x.Env()
		}
	}
	if p.env == nil {
		panic(p.error("the inputs belong to no interpreter", "change a copy: x.copy()"))
	}
	p.check(xs, vectors)
	s := p.env.Open()
	defer func() { s.Close(p.results...) }()
	p.env.Record(true, func() {
		in := xs
		if !p.given {
			in = make([]*core.Tensor, len(xs))
			for i, x := range xs {
				if p.create && x.Tracked() {
					in[i] = x.Order(x.Axes().String()) // a history of its own
					continue
				}
				in[i] = p.env.Watch(x)
				defer in[i].Free()
				p.own = append(p.own, in[i])
			}
		}
		f(in)
	})
}

// check insists on a vector for every input.
func (p *products) check(xs, vectors []*core.Tensor) {
	if len(vectors) != len(xs) {
		panic(p.error(fmt.Sprintf("got %d %s for %d inputs", len(vectors), p.what, len(xs)), "give one for each"))
	}
	some := false
	for i, x := range xs {
		switch v := vectors[i]; {
		case x.Closed():
			panic(p.error(fmt.Sprintf("inputs[%d], %s", i, x), x.Ended("x")))
		case !x.DType().IsFloat():
			panic(p.error(fmt.Sprintf("inputs[%d] is %s, and integers have no gradient", i, x.Shape()),
				`use x.cast("f32")`))
		case v == nil:
		case v.Closed():
			panic(p.error(fmt.Sprintf("%s[%d], %s", p.what, i, v), v.Ended("x")))
		case !v.LooksLike(x):
			panic(p.error(fmt.Sprintf("%s[%d] is %s for an input %s", p.what, i, v.Shape(), x.Shape()),
				"each has its input's axes, sizes and dtype: "+ones(x)))
		default:
			some = true
		}
	}
	if !some {
		panic(p.error("got None for all "+p.what, "give one for an input at least"))
	}
}

// ones is a script's call that makes ones like t.
func ones(t *core.Tensor) string {
	var args []string
	for i, name := range t.Axes().Names() {
		args = append(args, fmt.Sprintf("%s=%d", core.Keyword(name), t.Sizes()[i]))
	}
	if t.DType() != dtype.F32 {
		args = append(args, fmt.Sprintf("dtype=%q", t.DType()))
	}
	return "ones(" + strings.Join(args, ", ") + ")"
}

// hessian is the gradients, with respect to the inputs, of the gradient's products with the vectors.
func (p *products) hessian(y *core.Tensor, in, vectors []*core.Tensor) []*core.Tensor {
	if y == nil {
		panic(p.error("the loss is nil, want a floating-point scalar", ""))
	}
	if y.Rank() > 0 || !y.DType().IsFloat() {
		hint := fmt.Sprintf("use loss.mean(%q)", y.Axes())
		if y.Rank() == 0 {
			hint = `use loss.cast("f32")`
		}
		panic(p.error("the loss must be a floating-point scalar, got "+y.Shape(), hint))
	}
	var outputs []*core.Tensor
	if y.Tracked() {
		outputs = []*core.Tensor{y}
	}
	gs, vs := p.gradients(outputs, in, nil, vectors)
	results := p.derive(gs, in, vs)
	for i, x := range in {
		if results[i] == nil {
			results[i] = p.zeros(x)
		}
	}
	return results
}

// gradients is the differentiable gradients of the outputs with respect to the inputs that have a vector, and these
// vectors; those that depend on nothing are left out.
func (p *products) gradients(outputs, in, seeds, vectors []*core.Tensor) (gs, vs []*core.Tensor) {
	if len(outputs) == 0 {
		return nil, nil
	}
	mode := Mode{CreateGraph: true, AllowUnused: true}
	for i, g := range Gradients(outputs, in, seeds, mode) {
		if g != nil && g.Tracked() && vectors[i] != nil {
			gs, vs = append(gs, g), append(vs, vectors[i])
		}
	}
	return gs, vs
}

// derive is the gradients of gs, given vs, with respect to xs.
func (p *products) derive(gs, xs, vs []*core.Tensor) []*core.Tensor {
	if len(gs) == 0 {
		return make([]*core.Tensor, len(xs))
	}
	return Gradients(gs, xs, vs, Mode{RetainGraph: p.given, CreateGraph: p.create, AllowUnused: true})
}

// zeros is zeros like t.
func (p *products) zeros(t *core.Tensor) *core.Tensor {
	return p.env.Zeros(t.DType(), t.Axes(), t.Sizes()...)
}

// settle makes the results constants, unless they are to be differentiated. What f returned as it got it ends with the
// call, and is a constant too.
func (p *products) settle(list []*core.Tensor) {
	for i, t := range list {
		if !p.create || slices.Contains(p.own, t) {
			list[i] = t.Detach()
		}
	}
}
