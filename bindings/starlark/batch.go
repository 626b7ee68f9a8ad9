package starlark

import (
	"fmt"
	"slices"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/models/kv"
)

// batch is what a family's layer function gets as b: it knows which sequence each row belongs to, at
// which position, and what came before, so that the layer need not.
type batch struct {
	m         *Model
	cache     *kv.Cache    // nil: every sequence is whole, and its places are along seq
	positions *core.Tensor // [row], or [seq]
	all       bool         // the scores of all rows are wanted, not only the last one's
}

func (b *batch) String() string        { return "<batch>" }
func (b *batch) Type() string          { return "batch" }
func (b *batch) Freeze()               {}
func (b *batch) Truth() star.Bool      { return true }
func (b *batch) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: batch") }

// Holds visits the positions.
func (b *batch) Holds(visit func(star.Value)) { visit(Tensor{b.positions}) }

var batchMethods = map[string]*star.Builtin{
	"attend":        star.NewBuiltin("attend", batchAttend),
	"attend_latent": star.NewBuiltin("attend_latent", batchAttendLatent),
	"conv":          star.NewBuiltin("conv", batchConv),
	"delta_rule":    star.NewBuiltin("delta_rule", batchDeltaRule),
	"last":          star.NewBuiltin("last", batchLast),
	"rope":          star.NewBuiltin("rope", batchRope),
	"wkv":           star.NewBuiltin("wkv", batchWKV),
}

// Attr is a method by name, or positions, where each row stands in its sequence.
func (b *batch) Attr(name string) (star.Value, error) {
	if m, ok := batchMethods[name]; ok {
		return m.BindReceiver(b), nil
	}
	if name == "positions" {
		return Tensor{b.positions}, nil
	}
	return nil, nil
}

// AttrNames is every attribute.
func (b *batch) AttrNames() []string {
	return []string{"attend", "attend_latent", "conv", "delta_rule", "last", "positions", "rope", "wkv"}
}

// floatArg takes a float or an int.
type floatArg float64

// Unpack converts v.
func (n *floatArg) Unpack(v star.Value) error {
	f, ok := star.AsFloat(v)
	if !ok {
		return fmt.Errorf("got %s, want a number", v.Type())
	}
	*n = floatArg(f)
	return nil
}

// batchAttend is b.attend(i, q, k, v, window=0, scale=0, softcap=0): stores the rows' keys and values in layer i
// and attends to all that came before, or to the nearest window of them. q[row, head, head_dim],
// k and v[row, kv_head, head_dim] → y[row, head, head_dim]. scale and softcap are those of attention.
func batchAttend(_ *star.Thread, fn *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var i int
	var q, k, val Tensor
	var a core.Attention
	var scale, softcap floatArg
	if err := star.UnpackArgs(fn.Name(), args, kwargs, "i", &i, "q", &q, "k", &k, "v", &val,
		"window?", &a.Window, "scale?", &scale, "softcap?", &softcap); err != nil {
		return nil, err
	}
	a.Q, a.K, a.V = q.Tensor, k.Tensor, val.Tensor
	a.Scale, a.Softcap = float64(scale), float64(softcap)
	b := fn.Receiver().(*batch)
	if b.cache == nil { // in training
		a.Causal = true
		return Tensor{core.Attend(a)}, nil
	}
	return Tensor{b.cache.Attend(i, a)}, nil
}

// batchAttendLatent is b.attend_latent(i, q, k, width, scale=0): attend where the first width elements of each key are
// its value, so that only keys are stored. q[row, head, head_dim], k[row, kv_head, head_dim] → y[row, head,
// head_dim=width].
func batchAttendLatent(
	_ *star.Thread, fn *star.Builtin, args star.Tuple, kwargs []star.Tuple,
) (v star.Value, err error) {
	defer rescue(&err)
	var i, width int
	var q, k Tensor
	var scale floatArg
	if err := star.UnpackArgs(fn.Name(), args, kwargs, "i", &i, "q", &q, "k", &k, "width", &width,
		"scale?", &scale); err != nil {
		return nil, err
	}
	a := core.Attention{Q: q.Tensor, K: k.Tensor, Scale: float64(scale)}
	cache, err := fn.Receiver().(*batch).state(fn.Name())
	if err != nil {
		return nil, err
	}
	return Tensor{cache.AttendLatent(i, width, a)}, nil
}

// batchRope is b.rope(x, …): x[row, …, head_dim] turned by the rows' positions as the model's config says, but for
// what keywords of rope say otherwise.
func batchRope(t *star.Thread, fn *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var x Tensor
	if err := star.UnpackPositionalArgs(fn.Name(), args, nil, 1, &x); err != nil {
		return nil, err
	}
	b := fn.Receiver().(*batch)
	settings := b.m.ropes
	if len(kwargs) > 0 {
		settings = slices.Clone(kwargs)
		for _, set := range b.m.ropes {
			if !slices.ContainsFunc(kwargs, func(kw star.Tuple) bool { return kw[0] == set[0] }) {
				settings = append(settings, set)
			}
		}
	}
	return (&opFunc{info: core.Lookup("rope")}).CallInternal(t, star.Tuple{x, Tensor{b.positions}}, settings)
}

// state is the cache of a verb that only stored sequences have.
func (b *batch) state(op string) (*kv.Cache, error) {
	if b.cache == nil {
		return nil, &core.Error{Op: op, Msg: "m.logits(tokens[batch, seq]) keeps no state, which this family needs",
			Hint: "its scores without gradients are those of a list of ids: m.logits([1, 2])"}
	}
	return b.cache, nil
}

// batchConv is b.conv(i, x, w): a causal convolution of every channel on its own in layer i. x[row, channel],
// w[channel, kernel] → y[row, channel].
func batchConv(_ *star.Thread, fn *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var i int
	var x, w Tensor
	if err := star.UnpackPositionalArgs(fn.Name(), args, kwargs, 3, &i, &x, &w); err != nil {
		return nil, err
	}
	cache, err := fn.Receiver().(*batch).state(fn.Name())
	if err != nil {
		return nil, err
	}
	return Tensor{cache.Convolve(i, x.Tensor, w.Tensor)}, nil
}

// batchDeltaRule is b.delta_rule(i, q, k, v, decay, beta): the gated delta rule in layer i, which has a state instead
// of keys and values. q and k[row, some heads, key], v[row, heads, value], decay and beta[row, heads] → y[row, heads,
// value].
func batchDeltaRule(_ *star.Thread, fn *star.Builtin, args star.Tuple, kwargs []star.Tuple) (y star.Value, err error) {
	defer rescue(&err)
	var i int
	var q, k, v, decay, beta Tensor
	if err := star.UnpackPositionalArgs(fn.Name(), args, kwargs, 6, &i, &q, &k, &v, &decay, &beta); err != nil {
		return nil, err
	}
	cache, err := fn.Receiver().(*batch).state(fn.Name())
	if err != nil {
		return nil, err
	}
	return Tensor{cache.DeltaRule(i, q.Tensor, k.Tensor, v.Tensor, decay.Tensor, beta.Tensor)}, nil
}

// batchWKV is b.wkv(i, r, k, v, decay, first): RWKV's time mixing in layer i, which has a state instead of keys and
// values. r and k[row, head, key], v[row, head, value], decay and first[head, key] → y[row, head, value].
func batchWKV(_ *star.Thread, fn *star.Builtin, args star.Tuple, kwargs []star.Tuple) (y star.Value, err error) {
	defer rescue(&err)
	var i int
	var r, k, v, decay, first Tensor
	if err := star.UnpackPositionalArgs(fn.Name(), args, kwargs, 6, &i, &r, &k, &v, &decay, &first); err != nil {
		return nil, err
	}
	cache, err := fn.Receiver().(*batch).state(fn.Name())
	if err != nil {
		return nil, err
	}
	return Tensor{cache.WKV(i, r.Tensor, k.Tensor, v.Tensor, decay.Tensor, first.Tensor)}, nil
}

// batchLast is b.last(x): the rows of x whose scores are wanted.
func batchLast(_ *star.Thread, fn *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var x Tensor
	if err := star.UnpackPositionalArgs(fn.Name(), args, kwargs, 1, &x); err != nil {
		return nil, err
	}
	if fn.Receiver().(*batch).all {
		return x, nil
	}
	n := x.Size("row")
	return Tensor{x.Slice("row", n-1, n, 1)}, nil
}
