package starlark

import (
	"fmt"
	"strings"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/grad"
)

// This file has the builtins that take a script's function and differentiate through it.

// wantFunction is the error of a builtin that got nothing to call.
func wantFunction(name, example string) error {
	return &core.Error{Op: name, Msg: "got no function, want " + name + "(fn, *args)", Hint: "as in: " + example}
}

// must is what a script's function returned to Go code that cannot return an error: its error goes on as a panic, to
// the door of the builtin that is being called.
func must(v star.Value, err error) star.Value {
	if err != nil {
		panic(err)
	}
	return v
}

// tensorsOf is the tensors that a script's function returned, alone or in a list or tuple.
func tensorsOf(op string, v star.Value) (list []*core.Tensor, alone bool) {
	if t, ok := v.(Tensor); ok {
		return []*core.Tensor{t.Tensor}, true
	}
	list, err := tensorsOrNone(op, "the result of the function", v)
	if err != nil {
		panic(err)
	}
	for _, t := range list {
		if t == nil {
			list = nil
		}
	}
	if len(list) == 0 {
		panic(&core.Error{Op: op, Msg: "the function gave " + brief(v) + ", want a tensor or several",
			Hint: "its last line is: return y"})
	}
	return list, false
}

// tensorOrList is tensors for a script: one alone, or a list.
func tensorOrList(list []*core.Tensor, alone bool) star.Value {
	if alone {
		return Tensor{list[0]}
	}
	values := make([]star.Value, len(list))
	for i, t := range list {
		values[i] = star.None
		if t != nil {
			values[i] = Tensor{t}
		}
	}
	return star.NewList(values)
}

// jvp is jvp(fn, inputs, tangents, create_graph=False): the pair of y, what fn returns for the inputs, and its
// derivative along the tangents, which has y's shape: how y moves when the inputs move along the tangents. inputs is a
// tensor or a list of them, which become fn's arguments, and so are the tangents; None among them stands for 0. What
// fn made is ended but for the results. With create_graph they can be differentiated; else they are constants.
func jvp(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var fn star.Callable
	var inputs, tangents star.Value
	create := false
	if err := star.UnpackArgs(b.Name(), args, kwargs, "fn", &fn, "inputs", &inputs, "tangents", &tangents,
		"create_graph?", &create); err != nil {
		return nil, err
	}
	xs, vs, err := inputsAnd(b.Name(), inputs, "tangents", tangents)
	if err != nil {
		return nil, err
	}
	alone := false
	ys, dys := grad.JVP(func(xs []*core.Tensor) (list []*core.Tensor) {
		list, alone = tensorsOf(b.Name(), must(callOn(t, fn, xs)))
		return list
	}, xs, vs, create)
	return star.Tuple{tensorOrList(ys, alone), tensorOrList(dys, alone)}, nil
}

// hvp is hvp(fn, inputs, vectors, create_graph=False): the pair of the loss, a scalar that fn returns for the inputs,
// and the product of its Hessian, the matrix of its second derivatives, with the vectors: how the gradient moves when
// the inputs move along them. inputs and vectors are as for jvp; the product is a tensor or a list of them as inputs
// is. In place of fn it takes a loss computed already, of which inputs are variables or what depends on them; its graph
// can be used again.
func hvp(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var fn, inputs, vectors star.Value
	create := false
	if err := star.UnpackArgs(b.Name(), args, kwargs, "fn", &fn, "inputs", &inputs, "vectors", &vectors,
		"create_graph?", &create); err != nil {
		return nil, err
	}
	xs, vs, err := inputsAnd(b.Name(), inputs, "vectors", vectors)
	if err != nil {
		return nil, err
	}
	var loss *core.Tensor
	var products []*core.Tensor
	switch fn := fn.(type) {
	case Tensor:
		loss, products = fn.Tensor, grad.HessianTimes(fn.Tensor, xs, vs, create)
	case star.Callable:
		loss, products = grad.HVP(func(xs []*core.Tensor) *core.Tensor {
			list, _ := tensorsOf(b.Name(), must(callOn(t, fn, xs)))
			return list[0]
		}, xs, vs, create)
	default:
		return nil, &core.Error{Op: b.Name(), Msg: "fn: got " + fn.Type() + ", want a function or a loss",
			Hint: "as in: hvp(lambda x: (x * x).sum(), ones(a=2), ones(a=2))"}
	}
	return star.Tuple{Tensor{loss}, tensorOrList(products, isTensor(inputs))}, nil
}

// inputsAnd is two lists of tensors, of which the second may hold None.
func inputsAnd(op string, inputs star.Value, name string, others star.Value) (xs, vs []*core.Tensor, err error) {
	if xs, err = tensorsOrNone(op, "inputs", inputs); err != nil {
		return nil, nil, err
	}
	for i, x := range xs {
		if x == nil {
			return nil, nil, &core.Error{Op: op, Msg: fmt.Sprintf("inputs[%d] is None", i),
				Hint: "want a tensor: ones(a=2)"}
		}
	}
	vs, err = tensorsOrNone(op, name, others)
	return xs, vs, err
}

// callOn calls a function with tensors.
func callOn(t *star.Thread, fn star.Callable, xs []*core.Tensor) (star.Value, error) {
	args := make(star.Tuple, len(xs))
	for i, x := range xs {
		args[i] = Tensor{x}
	}
	return interpOf(t).call(t, fn, args, nil)
}

// checkpoint is checkpoint(fn, *args, **kwargs): what fn returns, remembering only the arguments for backward instead
// of what lies between: when the gradient comes by, fn is called again. That saves memory and costs a second
// forward pass of fn. fn must do the same again: what it does may hang on its arguments and on constants, and random
// numbers come again. Tensors that it reads besides must live, unchanged, until backward. What it makes is ended but
// for its result, as with scope.
func checkpoint(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if len(args) == 0 {
		return nil, wantFunction(b.Name(), "checkpoint(lambda: zeros(row=2))")
	}
	var xs []*core.Tensor
	each := func(f func(v *star.Value)) {
		for i := range args[1:] {
			f(&args[1+i])
		}
		for _, pair := range kwargs {
			f(&pair[1])
		}
	}
	args = append(star.Tuple(nil), args...)
	for i, pair := range kwargs {
		kwargs[i] = append(star.Tuple(nil), pair...)
	}
	each(func(v *star.Value) {
		if x, ok := (*v).(Tensor); ok {
			xs = append(xs, x.Tensor)
		}
	})
	var result star.Value
	it := interpOf(t)
	it.env.Checkpoint(xs, func(xs []*core.Tensor) {
		each(func(v *star.Value) {
			if _, ok := (*v).(Tensor); ok {
				*v, xs = Tensor{xs[0]}, xs[1:]
			}
		})
		result = must(inScope(it.thread, args[0], args[1:], kwargs))
	})
	return result, nil
}

// anomaly is anomaly(fn, *args, **kwargs): calls fn, and looks for the first NaN: an operation that makes one of
// operands that have none is an error at its line, and a backward called in fn says which operation made one of
// gradients that had none. Every result is looked at, which takes time.
func anomaly(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	if len(args) == 0 {
		return nil, wantFunction(b.Name(), "anomaly(lambda: zeros(row=2))")
	}
	interpOf(t).env.Anomaly(true, func() { v, err = interpOf(t).call(t, args[0], args[1:], kwargs) })
	return v, err
}

// customGrad is custom_grad(fn, vjp): a function that does what fn does and whose gradient is what vjp says. fn takes
// its arguments by position and returns y, a tensor or several. vjp(y, gy, *args) gets that, the gradient with respect
// to it and the arguments, and returns the gradient with respect to each: one if there is one argument, else a list,
// with None for what is no tensor or gets none. What fn does is not remembered; vjp may be differentiated again.
func customGrad(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	f := &customFunc{}
	if err := star.UnpackArgs(b.Name(), args, kwargs, "fn", &f.fn, "vjp", &f.vjp); err != nil {
		return nil, err
	}
	return f, nil
}

// customFunc is what custom_grad returns.
type customFunc struct{ fn, vjp star.Callable }

func (f *customFunc) Name() string          { return f.fn.Name() }
func (f *customFunc) String() string        { return "<custom_grad " + f.fn.Name() + ">" }
func (f *customFunc) Type() string          { return "function" }
func (f *customFunc) Freeze()               { f.fn.Freeze(); f.vjp.Freeze() }
func (f *customFunc) Truth() star.Bool      { return true }
func (f *customFunc) Hash() (uint32, error) { return f.fn.Hash() }

// Holds visits the functions.
func (f *customFunc) Holds(visit func(star.Value)) { visit(f.fn); visit(f.vjp) }

// CallInternal calls fn, recorded as one operation.
func (f *customFunc) CallInternal(t *star.Thread, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	if len(kwargs) > 0 {
		return nil, &core.Error{Op: f.Name(),
			Msg:  fmt.Sprintf("got %s by keyword, and vjp takes the arguments by position", kwargs[0][0]),
			Hint: "give all by position: " + f.byPosition(args, kwargs)}
	}
	var xs []*core.Tensor
	for _, arg := range args {
		if x, ok := arg.(Tensor); ok {
			xs = append(xs, x.Tensor)
		}
	}
	if len(xs) == 0 {
		return interpOf(t).call(t, f.fn, args, nil)
	}
	it := interpOf(t)
	made := it.where()
	with := func(xs []*core.Tensor) star.Tuple {
		own := append(star.Tuple(nil), args...)
		for i, arg := range args {
			if _, ok := arg.(Tensor); ok {
				own[i], xs = Tensor{xs[0]}, xs[1:]
			}
		}
		return own
	}
	alone := false
	ys := it.env.Custom(f.Name(), xs, func(xs []*core.Tensor) (list []*core.Tensor) {
		list, alone = tensorsOf(f.Name(), must(interpOf(t).call(t, f.fn, with(xs), nil)))
		return list
	}, func(xs, ys, gys []*core.Tensor) []*core.Tensor {
		call := append(star.Tuple{tensorOrList(ys, alone), tensorOrList(gys, alone)}, with(xs)...)
		return f.gradients(args, made, must(it.call(it.thread, f.vjp, call, nil)))
	})
	return tensorOrList(ys, alone), nil
}

// byPosition writes the call without keywords.
func (f *customFunc) byPosition(args star.Tuple, kwargs []star.Tuple) string {
	var words []string
	for i, arg := range args {
		word := brief(arg)
		if fn, ok := f.fn.(*star.Function); ok && i < fn.NumParams() && isTensor(arg) {
			word, _ = fn.Param(i)
		}
		words = append(words, word)
	}
	for _, pair := range kwargs {
		words = append(words, brief(pair[1]))
	}
	return f.Name() + "(" + strings.Join(words, ", ") + ")"
}

// gradients is what vjp returned, for each tensor among the arguments of the call at a place.
func (f *customFunc) gradients(args star.Tuple, made core.Site, v star.Value) (grads []*core.Tensor) {
	list := []*core.Tensor{nil}
	switch v := v.(type) {
	case star.NoneType:
	case Tensor:
		list[0] = v.Tensor
	default:
		var err error
		if list, err = tensorsOrNone(f.Name(), "the result of its vjp", v); err != nil {
			panic(err)
		}
	}
	if len(list) != len(args) {
		panic(&core.Error{Op: "backward",
			Msg: fmt.Sprintf("the vjp of %s, called at %s, gave %d gradients for %d arguments", f.Name(), made,
				len(list), len(args)),
			Hint: "it returns one for each, None for what is no tensor: return [gx, None]"})
	}
	for i, arg := range args {
		if _, ok := arg.(Tensor); ok {
			grads = append(grads, list[i])
		}
	}
	return grads
}

// tensorOnGrad is x.on_grad(fn): from now on backward, and grad where x is asked for, call fn(g) with the gradient
// with respect to the variable x, whole, before it is added to x.grad. A gradient that fn returns takes its place, None
// leaves it. It returns a function that takes fn off again.
func tensorOnGrad(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	h, err := newHook(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	it := interpOf(t)
	h.hook.Before = func(g *core.Tensor) *core.Tensor {
		own := g.Alias()
		result := must(holding(it.thread, []star.Value{h.fn}, func() (star.Value, error) {
			it.env.Own(own)
			return it.call(it.thread, h.fn, star.Tuple{Tensor{own}}, nil)
		}))
		switch result := result.(type) {
		case star.NoneType:
			return nil
		case Tensor:
			return result.Tensor
		}
		panic(&core.Error{Op: "backward",
			Msg:  "the function given to on_grad returned " + result.Type() + ", want a gradient or None",
			Hint: "its last line is: return g"})
	}
	return h.attach(), nil
}

// tensorAfterGrad is x.after_grad(fn): from now on backward calls fn(x) as soon as the gradient with respect to the
// variable x has been added to x.grad, while it goes on with others. fn may change x in place and forget the gradient,
// x.zero_grad(), so that an optimizer's step needs no memory for all gradients at once. It returns a function that
// takes fn off again.
func tensorAfterGrad(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	h, err := newHook(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	it := interpOf(t)
	h.hook.After = func() {
		it.env.Record(false, func() { must(inScope(it.thread, h.fn, star.Tuple{h.x}, nil)) })
	}
	return h.attach(), nil
}

// hookValue is a function that backward calls for a variable.
type hookValue struct {
	x    Tensor
	fn   star.Callable
	hook core.Hook
}

func (h *hookValue) String() string        { return "<hook " + h.fn.Name() + ">" }
func (h *hookValue) Type() string          { return "hook" }
func (h *hookValue) Freeze()               {}
func (h *hookValue) Truth() star.Bool      { return true }
func (h *hookValue) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: hook") }

// Holds visits the function and the variable.
func (h *hookValue) Holds(visit func(star.Value)) { visit(h.fn); visit(h.x) }

func newHook(b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (*hookValue, error) {
	h := &hookValue{x: b.Receiver().(Tensor)}
	if err := star.UnpackArgs(b.Name(), args, kwargs, "fn", &h.fn); err != nil {
		return nil, err
	}
	if h.x.Variable() == nil {
		return nil, &core.Error{Op: b.Name(), Msg: h.x.Shape() + " is no variable",
			Hint: "backward leaves gradients in variables only: x = variable(x)"}
	}
	h.hook.Owner = h
	return h, nil
}

// attach hangs the hook up and returns what takes it off.
func (h *hookValue) attach() star.Value {
	v := h.x.Variable()
	v.Hooks = append(v.Hooks, &h.hook)
	return star.NewBuiltin("remove", removeHook).BindReceiver(h)
}

// removeHook takes a hook off; a second time it does nothing.
func removeHook(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	h := b.Receiver().(*hookValue)
	if v := h.x.Variable(); v != nil {
		v.RemoveHook(&h.hook)
	}
	return star.None, nil
}
