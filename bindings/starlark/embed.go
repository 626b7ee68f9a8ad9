package starlark

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
)

// poolings are the ways to make one vector of a text, by the numbers of llama.cpp's pooling_type.
var poolings = []string{"none", "mean", "first", "last"}

// modelEmbed is m.embed(text, pooling=None, normalize=True): y[embed], what the model makes of a text or a list of
// token ids: what its last layer and norm give for each token, the scores' input, of which pooling takes the "mean",
// the "last" or the "first", or with "none" all: y[row, embed]. Without pooling it is what the file says, else the
// mean. Normalized vectors have the length 1. Of a list of texts it makes y[batch, embed], each as alone.
func modelEmbed(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var text, pooling star.Value = nil, star.None
	normalize := true
	err = star.UnpackArgs(b.Name(), args, kwargs, "text", &text, "pooling?", &pooling, "normalize?", &normalize)
	if err != nil {
		return nil, err
	}
	m, it := b.Receiver().(*Model), interpOf(t)
	how := m.pooling
	if pooling != star.None {
		name, _ := star.AsString(pooling)
		if how = slices.Index(poolings, name); how < 0 {
			return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("pooling: got %s, want one of %s", brief(pooling),
				strings.Join(poolings, ", ")), Hint: `as in: m.embed("once", pooling="mean")`}
		}
	}
	e := embedder{m: m, it: it, op: b.Name(), how: poolings[how], unit: normalize}
	list, several := promptList(text)
	if several && e.how == "none" {
		return nil, &core.Error{Op: e.op, Msg: fmt.Sprintf("got %d texts, whose vectors of every token make no tensor",
			len(list)), Hint: `one vector of each: m.embed(texts, pooling="mean"); or [m.embed(t) for t in texts]`}
	}
	if !several {
		pooled, width, err := e.vectors(text)
		if err != nil {
			return nil, err
		}
		if e.how == "none" {
			return Tensor{it.env.FromFloats(dtype.F32, pooled, rowEmbed, len(pooled)/width, width)}, nil
		}
		return Tensor{it.env.FromFloats(dtype.F32, pooled, embedAxis, width)}, nil
	}
	var all []float64
	for _, text := range list {
		pooled, _, err := e.vectors(text)
		if err != nil {
			return nil, err
		}
		all = append(all, pooled...)
	}
	return Tensor{it.env.FromFloats(dtype.F32, all, batchEmbed, len(list), len(all)/len(list))}, nil
}

// embedder makes vectors of texts.
type embedder struct {
	m    *Model
	it   *Interp
	op   string
	how  string // the pooling
	unit bool
}

// vectors is that of one text, or those of its tokens, one after another.
func (e *embedder) vectors(text star.Value) (pooled []float64, width int, err error) {
	ids, err := e.m.prompt(e.op, text)
	if err != nil {
		return nil, 0, err
	}
	if e.m.context > 0 && len(ids) > e.m.context {
		return nil, 0, e.m.tooLong(e.op, len(ids), 0)
	}
	rows, width, err := e.m.states(e.it, ids)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", e.op, err)
	}
	pooled = pool(rows, width, e.how)
	if e.unit {
		for row := range slices.Chunk(pooled, width) {
			unit(row)
		}
	}
	return pooled, width, nil
}

var rowEmbed, batchEmbed, embedAxis = mustAxes("row embed"), mustAxes("batch embed"), mustAxes("embed")

// states is what the family's logits multiplies with the output for each of ids, one row after another. The output is
// replaced by a single row of zeros, as nobody wants the scores.
func (m *Model) states(it *Interp, ids []int32) (rows []float32, width int, err error) {
	of, ok := m.m.(*starlarkstruct.Struct)
	if !ok {
		return nil, 0, errors.New("the family's model is no struct")
	}
	output, err := attr(of, "output")
	if err != nil {
		return nil, 0, err
	}
	x, ok := output.(Tensor)
	if !ok || x.Axes().Index("embed") < 0 {
		return nil, 0, errors.New("the family's output has no axis embed")
	}
	width = x.Size("embed")
	outer := it.env.Open()
	defer outer.Close()
	stub := it.env.FromFloats(dtype.F32, make([]float64, width), mustAxes("vocab embed"), 1, width)
	fields := star.StringDict{}
	of.ToStringDict(fields)
	fields["output"] = Tensor{stub}
	n := *m
	n.m = starlarkstruct.FromStringDict(of.Constructor(), fields)
	outside := it.env.Multiplied
	defer func() { it.env.Multiplied = outside }()
	it.env.Multiplied = func(p core.Product) {
		if p.W == stub {
			rows = append(rows, p.X.Float32s()...)
		}
	}
	cache := m.newCache(it)
	defer cache.Free()
	y, err := n.forward(it, cache, ids, true)
	if err != nil {
		return nil, 0, err
	}
	y.Free()
	if it.env.IsShapeOnly() {
		return make([]float32, len(ids)*width), width, nil
	}
	if len(rows) != len(ids)*width {
		return nil, 0, errors.New("the family's logits does not multiply by its output")
	}
	return rows, width, nil
}

// pool makes one row of all, or leaves them.
func pool(rows []float32, width int, how string) []float64 {
	switch how {
	case "first":
		rows = rows[:width]
	case "last":
		rows = rows[len(rows)-width:]
	}
	if how != "mean" {
		pooled := make([]float64, len(rows))
		for i, v := range rows {
			pooled[i] = float64(v)
		}
		return pooled
	}
	pooled := make([]float64, width)
	for i, v := range rows {
		pooled[i%width] += float64(v)
	}
	for i := range pooled {
		pooled[i] /= float64(len(rows) / width)
	}
	return pooled
}

// unit gives a vector the length 1, unless it has none.
func unit(x []float64) {
	sum := 0.0
	for _, v := range x {
		sum += float64(v * v)
	}
	if sum == 0 {
		return
	}
	for i := range x {
		x[i] /= math.Sqrt(sum)
	}
}
