package starlark

import (
	"fmt"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/grad"
)

// variable is variable(x): a tensor of x's values that operations remember, so that backward can say how a loss
// depends on it. No scope ends it. It has x's memory; a copy, if x is shared or not dense.
func variable(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var x Tensor
	if err := star.UnpackArgs(b.Name(), args, kwargs, "x", &x); err != nil {
		return nil, err
	}
	return Tensor{interpOf(t).env.Watch(x.Tensor)}, nil
}

// backward is backward(loss, seed=None, retain_graph=False, create_graph=False): adds the gradient of the loss to
// x.grad of every variable x that it was computed from. The loss is a scalar, unless seed says what the
// gradient with respect to it is. What the operations had remembered is let go, unless retain_graph asks for a
// second backward; create_graph makes the gradients themselves differentiable.
func backward(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var loss Tensor
	var seed star.Value
	var mode grad.Mode
	if err := star.UnpackArgs(b.Name(), args, kwargs, "loss", &loss, "seed?", &seed, "retain_graph?", &mode.RetainGraph,
		"create_graph?", &mode.CreateGraph); err != nil {
		return nil, err
	}
	seeds, err := tensorsOrNone(b.Name(), "seed", seed)
	if err != nil {
		return nil, err
	}
	grad.Backward([]*core.Tensor{loss.Tensor}, seeds, mode)
	return star.None, nil
}

// gradients is grad(outputs, inputs, seeds=None, create_graph=False, retain_graph=create_graph,
// allow_unused=False): the gradients of the outputs with respect to the inputs, which may be any tensors that
// depend on a variable; each is a tensor or a list of them, and so is the result. seeds are the gradients with
// respect to the outputs, by default 1 for scalars. The gradients of variables, x.grad, stay as they are.
func gradients(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var outputs, inputs, seeds, retain star.Value
	var mode grad.Mode
	if err := star.UnpackArgs(b.Name(), args, kwargs, "outputs", &outputs, "inputs", &inputs, "seeds?", &seeds,
		"create_graph?", &mode.CreateGraph, "retain_graph?", &retain, "allow_unused?", &mode.AllowUnused); err != nil {
		return nil, err
	}
	mode.RetainGraph = retain == star.True || retain == nil && mode.CreateGraph
	var lists [3][]*core.Tensor
	for i, v := range []star.Value{outputs, inputs, seeds} {
		var err error
		if lists[i], err = tensorsOrNone(b.Name(), []string{"outputs", "inputs", "seeds"}[i], v); err != nil {
			return nil, err
		}
	}
	results := grad.Gradients(lists[0], lists[1], lists[2], mode)
	values := make([]star.Value, len(results))
	for i, t := range results {
		values[i] = star.None
		if t != nil {
			values[i] = Tensor{t}
		}
	}
	if isTensor(inputs) {
		return values[0], nil
	}
	return star.NewList(values), nil
}

// tensorsOrNone is a tensor, or a list of tensors in which None stands for nil, as a slice; None gives none.
func tensorsOrNone(op, name string, v star.Value) ([]*core.Tensor, error) {
	var list []*core.Tensor
	switch v := v.(type) {
	case nil, star.NoneType:
		return nil, nil
	case Tensor:
		return []*core.Tensor{v.Tensor}, nil
	case star.Iterable:
		for item := range star.Elements(v) {
			switch item := item.(type) {
			case Tensor:
				list = append(list, item.Tensor)
			case star.NoneType:
				list = append(list, nil)
			default:
				return nil, &core.Error{Op: op,
					Msg:  fmt.Sprintf("%s: got %s in the list, want tensors", name, item.Type()),
					Hint: "as in: grad(loss, [x, w])"}
			}
		}
		return list, nil
	}
	return nil, &core.Error{Op: op, Msg: fmt.Sprintf("%s: got %s, want a tensor or a list of tensors", name, v.Type()),
		Hint: "as in: grad(loss, [x, w])"}
}

// noGrad is no_grad(fn, *args, **kwargs): calls fn without remembering operations for backward, and allows
// variables to be changed in place.
func noGrad(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	if len(args) == 0 {
		return nil, &core.Error{Op: b.Name(), Msg: "got no function, want no_grad(fn, *args)",
			Hint: "as in: no_grad(lambda: zeros(row=2))"}
	}
	it := interpOf(t)
	it.env.Record(false, func() { v, err = it.call(t, args[0], args[1:], kwargs) })
	return v, err
}

// tensorGrad is x.grad: the gradient that backward left in a variable, or None.
func tensorGrad(x Tensor) (star.Value, error) {
	v := x.Variable()
	if v == nil || v.Grad == nil {
		return star.None, nil
	}
	g := v.Grad.Alias() // a later backward replaces v.Grad
	x.Env().Own(g)
	return Tensor{g}, nil
}

// tensorDetach is x.detach(): x as a constant, through which no gradient flows. It has x's memory.
func tensorDetach(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	return Tensor{b.Receiver().(Tensor).Detach()}, nil
}

// tensorZeroGrad is x.zero_grad(): forgets the gradient of a variable, so that x.grad is None until the next
// backward.
func tensorZeroGrad(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	x := b.Receiver().(Tensor)
	v := x.Variable()
	if v == nil {
		return nil, &core.Error{Op: b.Name(), Msg: x.Shape() + " is no variable",
			Hint: "only a variable has a gradient: x = variable(x)"}
	}
	x.Env().SetGrad(v, nil)
	return star.None, nil
}
