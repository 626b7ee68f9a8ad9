package starlark

import (
	"errors"
	"slices"
	"strings"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
)

// ropeTables is what rope needs for the rows of a batch, computed once: all layers turn by the same angles.
type ropeTables struct {
	key      string // the keywords
	rope     core.Rope
	cos, sin *core.Tensor // [row, rope_pair]
}

// batchRope is b.rope(x, …): x[row, …, head_dim] turned by the rows' positions as the model's config says, but for
// what keywords of rope say otherwise.
func batchRope(t *star.Thread, fn *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer func() {
		if err != nil {
			explainRope(err)
		}
	}()
	defer rescue(&err)
	x, ok := firstTensor(args)
	if !ok || len(args) != 1 {
		return nil, star.UnpackPositionalArgs(fn.Name(), args, nil, 1, new(Tensor))
	}
	b := fn.Receiver().(*batch)
	key, plain := keyOf(kwargs)
	plain = plain && b.rows != nil && x.Tensor.DType() == dtype.F32
	if plain {
		for i := range b.ropes { // which are large
			if have := &b.ropes[i]; have.key == key {
				return Tensor{have.turn(b.rows[0].Cache.Env(), x.Tensor)}, nil
			}
		}
	}
	settings := b.m.ropes
	if len(kwargs) > 0 {
		settings = slices.Clone(kwargs)
		for _, set := range b.m.ropes {
			if !slices.ContainsFunc(kwargs, func(kw star.Tuple) bool { return kw[0] == set[0] }) {
				settings = append(settings, set)
			}
		}
	}
	if !plain {
		return (&opFunc{info: ropeInfo}).CallInternal(t, star.Tuple{x, Tensor{b.positions}}, settings)
	}
	c := call{info: ropeInfo, op: ropeInfo.New(), env: interpOf(t).env, args: star.Tuple{x, Tensor{b.positions}},
		kwargs: settings}
	if err := c.positional(c.args); err != nil {
		return nil, err
	}
	if err := c.keywords(settings); err != nil {
		return nil, err
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	y := ropeInfo.Run1(c.env, c.op) // which checks the settings
	if a := c.op.(*core.Rope); a.Cos == nil && a.Axis == "head_dim" {
		b.ropes = append(b.ropes, newRopeTables(c.env, key, *a))
	}
	return Tensor{y}, nil
}

// explainRope makes an error of rope one of b.rope: the batch has the positions.
func explainRope(err error) {
	if wrong := (*core.Error)(nil); errors.As(err, &wrong) {
		wrong.Hint = strings.Replace(wrong.Hint, "x.rope(positions=positions", "b.rope(x", 1)
	}
}

// keyOf tells keywords apart by their texts; ok is false if they are not plain numbers and words.
func keyOf(kwargs []star.Tuple) (key string, ok bool) {
	if len(kwargs) == 0 {
		return "", true
	}
	var s strings.Builder
	for _, kw := range kwargs {
		switch kw[1].(type) {
		case star.Int, star.Float, star.String:
		default:
			return "", false
		}
		s.WriteString(string(kw[0].(star.String)) + "=" + kw[1].String() + " ")
	}
	return s.String(), true
}

// newRopeTables computes the cosines and sines that a ropeTables by: what it makes of pairs (1, 0).
func newRopeTables(env *core.Env, key string, a core.Rope) ropeTables {
	if a.Dims == 0 {
		a.Dims = a.X.Size("head_dim")
	}
	pairs := make([]float64, a.Dims)
	for i := 0; i < a.Dims; i += 2 {
		pairs[i] = 1
	}
	s := env.Open()
	defer s.Close()
	unit := a
	unit.Style = "interleaved"
	unit.X = env.FromFloats(dtype.F32, pairs, headDimAxis, a.Dims).Expand("row", a.Positions.Size("row"))
	y := ropeInfo.Run1(env, &unit)
	t := ropeTables{key: key, rope: a, cos: y.Slice("head_dim", 0, a.Dims, 2).Rename("head_dim", "rope_pair").Copy(),
		sin: y.Slice("head_dim", 1, a.Dims, 2).Rename("head_dim", "rope_pair").Copy()}
	t.cos.Keep()
	t.sin.Keep()
	t.rope.Positions, t.rope.Factors, t.rope.Extrapolation, t.rope.Cos, t.rope.Sin = nil, nil, 0, t.cos, t.sin
	return t
}

var (
	headDimAxis = mustAxes("head_dim")
	ropeInfo    = core.Lookup("rope")
)

// turn is the rope of x.
func (t *ropeTables) turn(env *core.Env, x *core.Tensor) *core.Tensor {
	t.rope.X = x
	return ropeInfo.Run1(env, &t.rope)
}

// free ends the tables.
func (t *ropeTables) free() {
	t.cos.Free()
	t.sin.Free()
}
