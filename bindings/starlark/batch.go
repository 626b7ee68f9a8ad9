package starlark

import (
	"fmt"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/models/kv"
)

// batch is what a family's layer function gets as b: it knows which sequence each row belongs to, at
// which position, and what came before, so that the layer need not.
type batch struct {
	m         *Model
	rows      kv.Batch         // nil: every sequence is whole, and its places are along seq
	positions *core.Tensor     // [row], or [seq]
	last      []int64          // the rows whose scores are wanted; nil: all
	ropes     []ropeTables     // what rope has computed
	methods   [7]*star.Builtin // those of batchMethods that were asked for
}

func (b *batch) String() string        { return "<batch>" }
func (b *batch) Type() string          { return "batch" }
func (b *batch) Freeze()               {}
func (b *batch) Truth() star.Bool      { return true }
func (b *batch) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: batch") }

// free ends what the batch has computed for all layers.
func (b *batch) free() {
	for i := range b.ropes {
		b.ropes[i].free()
	}
	b.ropes = nil
}

// Holds visits the positions.
func (b *batch) Holds(visit func(star.Value)) { visit(Tensor{b.positions}) }

var batchMethods = [...]*star.Builtin{
	star.NewBuiltin("attend", batchAttend),
	star.NewBuiltin("attend_latent", batchAttendLatent),
	star.NewBuiltin("conv", batchConv),
	star.NewBuiltin("delta_rule", batchDeltaRule),
	star.NewBuiltin("last", batchLast),
	star.NewBuiltin("rope", batchRope),
	star.NewBuiltin("wkv", batchWKV),
}

// Attr is a method by name, or positions, where each row stands in its sequence.
func (b *batch) Attr(name string) (star.Value, error) {
	for i, m := range batchMethods {
		if m.Name() == name {
			if b.methods[i] == nil {
				b.methods[i] = m.BindReceiver(b)
			}
			return b.methods[i], nil
		}
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
	i, a, err := attendArgs(fn.Name(), args, kwargs)
	if err != nil {
		return nil, err
	}
	b := fn.Receiver().(*batch)
	if b.rows == nil { // in training
		return Tensor{core.Attend(core.Attention{Q: a.Q, K: a.K, V: a.V, Window: a.Window, Scale: a.Scale,
			Softcap: a.Softcap, Causal: true})}, nil
	}
	return Tensor{b.rows.Attend(i, a)}, nil
}

// attendArgs is the arguments of b.attend. Most layers give four by position and no others: these are taken without the
// unpacker, which goes through far more memory.
func attendArgs(name string, args star.Tuple, kwargs []star.Tuple) (i int, a core.PagedAttention, err error) {
	if len(args) == 4 && len(kwargs) == 0 {
		n, whole := args[0].(star.Int)
		q, isQ := args[1].(Tensor)
		k, isK := args[2].(Tensor)
		v, isV := args[3].(Tensor)
		if whole && isQ && isK && isV {
			if at, ok := n.Int64(); ok && at == int64(int32(at)) {
				return int(at), core.PagedAttention{Q: q.Tensor, K: k.Tensor, V: v.Tensor}, nil
			}
		}
	}
	var u struct { // one piece of memory
		i, window      int
		q, k, v        Tensor
		scale, softcap floatArg
	}
	err = star.UnpackArgs(name, args, kwargs, "i", &u.i, "q", &u.q, "k", &u.k, "v", &u.v,
		"window?", &u.window, "scale?", &u.scale, "softcap?", &u.softcap)
	return u.i, core.PagedAttention{Q: u.q.Tensor, K: u.k.Tensor, V: u.v.Tensor, Window: u.window,
		Scale: float64(u.scale), Softcap: float64(u.softcap)}, err
}

// firstTensor is the first argument, if it is a tensor.
func firstTensor(args star.Tuple) (x Tensor, ok bool) {
	if len(args) > 0 {
		x, ok = args[0].(Tensor)
	}
	return x, ok
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
	rows, err := fn.Receiver().(*batch).state(fn.Name())
	if err != nil {
		return nil, err
	}
	return Tensor{rows.Attend(i, core.PagedAttention{Q: q.Tensor, K: k.Tensor, Value: width,
		Scale: float64(scale)})}, nil
}

// state is the rows of a verb that only stored sequences have.
func (b *batch) state(op string) (kv.Batch, error) {
	if b.rows == nil {
		return nil, &core.Error{Op: op, Msg: "m.logits(tokens[batch, seq]) keeps no state, which this family needs",
			Hint: "its scores without gradients are those of a list of ids: m.logits([1, 2])"}
	}
	return b.rows, nil
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
	rows, err := fn.Receiver().(*batch).state(fn.Name())
	if err != nil {
		return nil, err
	}
	return Tensor{rows.Convolve(i, x.Tensor, w.Tensor)}, nil
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
	rows, err := fn.Receiver().(*batch).state(fn.Name())
	if err != nil {
		return nil, err
	}
	return Tensor{rows.DeltaRule(i, q.Tensor, k.Tensor, v.Tensor, decay.Tensor, beta.Tensor)}, nil
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
	rows, err := fn.Receiver().(*batch).state(fn.Name())
	if err != nil {
		return nil, err
	}
	return Tensor{rows.WKV(i, r.Tensor, k.Tensor, v.Tensor, decay.Tensor, first.Tensor)}, nil
}

// batchLast is b.last(x): the rows of x whose scores are wanted.
func batchLast(_ *star.Thread, fn *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	x, ok := firstTensor(args)
	if !ok || len(args) != 1 || len(kwargs) > 0 {
		return nil, star.UnpackPositionalArgs(fn.Name(), args, kwargs, 1, new(Tensor))
	}
	b := fn.Receiver().(*batch)
	if b.rows != nil && !x.Axes().Has("row") {
		return nil, &core.Error{Op: fn.Name(), Msg: `no axis "row" in x, ` + x.Shape(),
			Hint: "layers keep the rows that embed was given"}
	}
	n := x.Size("row")
	switch {
	case b.last == nil:
		return x, nil
	case len(b.last) == 1:
		at := int(b.last[0])
		return Tensor{x.Slice("row", at, at+1, 1)}, nil
	case len(b.last) == n:
		return x, nil
	}
	at := b.rows[0].Cache.Env().FromInts(dtype.I64, b.last, rowAxis, len(b.last))
	return Tensor{x.IndexSelect(at, "row")}, nil
}
