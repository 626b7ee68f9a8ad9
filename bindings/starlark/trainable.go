package starlark

import (
	"fmt"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
)

// modelTrainable is m.trainable(): a model like m whose weights are variables: those in its weights, which has the same
// names but no config, so that it can be given to an optimizer. Its logits of a tensor of ids depend on them, and
// generate uses them as they are then. Weights of 16 bits become f32.
func modelTrainable(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	if err := star.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	m := b.Receiver().(*Model)
	it := interpOf(t)
	w := &weightCopy{env: it.env, done: map[*core.Tensor]Tensor{}}
	of, ok := m.m.(*starlarkstruct.Struct)
	if !ok {
		return nil, fmt.Errorf("%s: the family's model is a %s, want a struct", b.Name(), m.m.Type())
	}
	weights, all := star.StringDict{}, star.StringDict{}
	of.ToStringDict(all)
	for _, name := range of.AttrNames() {
		if name == "config" {
			continue
		}
		if weights[name], err = w.value(all[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name(), err)
		}
		all[name] = weights[name]
	}
	n := *m
	n.print = nil
	n.m = starlarkstruct.FromStringDict(of.Constructor(), all)
	n.variables = starlarkstruct.FromStringDict(of.Constructor(), weights)
	n.names = map[*core.Tensor]string{}
	for x, v := range w.done {
		n.names[v.Tensor] = m.nameOf(x)
	}
	return &n, nil
}

// weightCopy makes variables of weights. One that is used in two places is one variable.
type weightCopy struct {
	env  *core.Env
	done map[*core.Tensor]Tensor
}

// value is v with variables for its tensors.
func (w *weightCopy) value(v star.Value) (star.Value, error) {
	switch v := v.(type) {
	case Tensor:
		return w.tensor(v)
	case *starlarkstruct.Struct:
		fields := star.StringDict{}
		for _, name := range v.AttrNames() {
			field, err := v.Attr(name)
			if err != nil {
				return nil, err
			}
			if fields[name], err = w.value(field); err != nil {
				return nil, err
			}
		}
		return starlarkstruct.FromStringDict(v.Constructor(), fields), nil
	case *star.List:
		items := make([]star.Value, v.Len())
		for i := range items {
			var err error
			if items[i], err = w.value(v.Index(i)); err != nil {
				return nil, err
			}
		}
		return star.NewList(items), nil
	}
	return v, nil
}

func (w *weightCopy) tensor(x Tensor) (star.Value, error) {
	if v, ok := w.done[x.Tensor]; ok {
		return v, nil
	}
	of := x.Tensor
	switch of.DType() {
	case dtype.F32, dtype.F64:
		of = of.Copy()
	case dtype.F16, dtype.BF16:
		of = w.env.Cast(of, dtype.F32)
	default:
		return nil, fmt.Errorf("no gradient flows into a weight that is %s; load the file it was quantized from",
			of.Shape())
	}
	v := Tensor{w.env.Watch(of)}
	w.done[x.Tensor] = v
	return v, nil
}

// score is the scores of every token of the vocabulary after each of tokens[batch, seq], or of the axes it has besides
// seq: the family's functions in one pass without a cache, through which gradients flow.
func (m *Model) score(it *Interp, op string, tokens *core.Tensor) (star.Value, error) {
	const hint = `as in: m.logits(tensor([[1, 2]], "batch seq"))`
	if !tokens.DType().IsInt() || !tokens.Axes().Has("seq") || tokens.Axes().Has("row") || tokens.Len() == 0 {
		return nil, &core.Error{Op: op, Msg: "got " + tokens.Shape() + ", want token ids with an axis seq", Hint: hint}
	}
	for _, id := range tokens.Int64s() {
		if id < 0 || id >= int64(m.tokens.Len()) {
			return nil, &core.Error{Op: op, Msg: fmt.Sprintf("got %d among the token ids", id),
				Hint: fmt.Sprintf("ids are 0 … %d", m.tokens.Len()-1)}
		}
	}
	b := &batch{m: m, positions: it.env.Arange(tokens.Size("seq"), "seq", dtype.I32)}
	x, err := star.Call(it.thread, m.fns["embed"], star.Tuple{m.m, Tensor{tokens}, b}, nil)
	for i := 0; i < m.layers && err == nil; i++ {
		x, err = star.Call(it.thread, m.fns["layer"], star.Tuple{m.m, star.MakeInt(i), x, b}, nil)
	}
	if err != nil {
		return nil, err
	}
	return star.Call(it.thread, m.fns["logits"], star.Tuple{m.m, x, b}, nil)
}
