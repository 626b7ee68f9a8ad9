package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/num"
)

// DeltaRule is the gated delta rule (Yang, Kautz and Hatamizadeh 2024) for rows of several sequences. Row by row, a
// state S[key, value] of each head of a sequence is multiplied by decay, then changed so that k leads it to v, by the
// part beta of the way: S += k · beta · (v - kᵀS). The result is qᵀS. It is in no table: models/kv keeps the states.
//
// Shape: q and k[row, some heads, key], v[row, heads, value], decay and beta[row, heads] → y[row, heads, value], in the
// order of v's axes. Heads are one axis or several, of which q and k have some.
//
// Numerics: products as in dot, in f32. A row has the same bits in every batch.
//
// Errors: axes that do not fit; no rows; a state of another shape.
type DeltaRule struct {
	Q     *Tensor `arg:"q"`
	K     *Tensor `arg:"k"`
	V     *Tensor `arg:"v"`
	Decay *Tensor `arg:"decay"`
	Beta  *Tensor `arg:"beta"`
	Parts []DeltaRows
}

// DeltaRows is the rows of one sequence, its state before them, nil for zeros, and where the one after them is written.
// A state is f32[heads, key, value].
type DeltaRows struct {
	Rows     int
	From, To *Tensor
}

var deltaRule = Define[DeltaRule]("delta_rule")

// ApplyDeltaRule is the delta rule that a describes.
func ApplyDeltaRule(a DeltaRule) *Tensor { return deltaRule.Call(a) }

var rowList, keyList, valueList = axisList("row"), axisList("key"), axisList("value")

// heads is the axes of the heads, in v's order.
func (a *DeltaRule) heads() *axis.List { return a.V.axes.Without(rowList).Without(valueList) }

// DeltaState is room for a state for k and v, with undefined contents, outside of every scope.
func DeltaState(env *Env, k, v *Tensor) *Tensor {
	a := DeltaRule{V: v}
	axes, sizes := a.heads().Append(keyList).Append(valueList), []int{}
	for _, name := range axes.Names() {
		if name == "key" {
			sizes = append(sizes, k.Size(name))
		} else {
			sizes = append(sizes, v.Size(name))
		}
	}
	t := newTensor(env, dtype.F32, axes)
	copy(t.sizes, sizes)
	t.allocate(false)
	return t
}

// Names insists that the operands have rows and no other heads than v.
func (a *DeltaRule) Names(p *Plan) {
	p.NeedAll(a.V, rowList.Append(valueList))
	heads := rowList.Append(a.heads())
	for _, t := range []*Tensor{a.Q, a.K} {
		p.NeedAll(t, rowList.Append(keyList))
		p.Within(t, heads.Append(keyList), "a row, a head of v or a key")
	}
	for _, t := range []*Tensor{a.Decay, a.Beta} {
		p.NeedAll(t, rowList)
		p.Within(t, heads, "a row or a head of v")
	}
	p.Float(a.V)
	p.Same(a.Q, a.K, a.V, a.Decay, a.Beta)
	p.Out(a.V.axes, a.V.dtype)
}

// Sizes insists on states of the right shape.
func (a *DeltaRule) Sizes(s *Sizes) {
	s.Match(nil)
	rows := 0
	for _, part := range a.Parts {
		rows += part.Rows
		want := a.heads().Append(keyList).Append(valueList)
		for _, t := range []*Tensor{part.From, part.To} {
			if t == nil {
				continue
			}
			fits := t.axes == want && t.dtype == dtype.F32 && t.dense()
			for _, name := range want.Names() {
				like := a.V
				if name == "key" {
					like = a.K
				}
				fits = fits && t.Size(name) == like.Size(name)
			}
			if !fits {
				s.Fail(fmt.Sprintf("%s does not fit the state, %s", s.Describe(a.V), t.Shape()), "")
			}
		}
	}
	if n := a.V.Size("row"); rows != n || n == 0 {
		s.Fail(fmt.Sprintf("%s has %d rows, the batch has %d", s.Describe(a.V), n, rows),
			"layers keep the rows that embed was given")
	}
}

// headOf is an operand by rows and heads.
type headOf struct {
	data    []float32
	row     int   // from one row to the next
	strides []int // of the heads; 0 where the operand lacks one
	sizes   []int // of all heads
}

// at is the elements from the given row and head on.
func (h *headOf) at(row, head int) []float32 {
	offset := row * h.row
	for k := len(h.sizes) - 1; k >= 0; k-- {
		offset += head % h.sizes[k] * h.strides[k]
		head /= h.sizes[k]
	}
	return h.data[offset:]
}

// byHead is t by rows and heads.
func (a *DeltaRule) byHead(t *Tensor) headOf {
	h := headOf{data: slice[float32](t), row: t.strides[t.axes.Index("row")]}
	for _, name := range a.heads().Names() {
		stride := 0
		if i := t.axes.Index(name); i >= 0 {
			stride = t.strides[i]
		}
		h.strides, h.sizes = append(h.strides, stride), append(h.sizes, a.V.Size(name))
	}
	return h
}

// Eval does every head of every sequence.
func (a *DeltaRule) Eval(c *Ctx) {
	out := c.Out(0)
	if out.Len() == 0 {
		return
	}
	operand := func(t *Tensor, last *axis.List) headOf {
		return a.byHead(c.rowsOf(t, t.axes.Without(last).Append(last), dtype.F32))
	}
	q, k, v := operand(a.Q, keyList), operand(a.K, keyList), operand(a.V, valueList)
	decay, beta := operand(a.Decay, axis.Empty), operand(a.Beta, axis.Empty)
	dst := c.direct(out, out.axes.Without(valueList).Append(valueList), dtype.F32)
	y := a.byHead(dst)
	keys, values := a.K.Size("key"), a.V.Size("value")
	heads := out.Len() / out.Size("row") / values
	most := 0
	for _, part := range a.Parts {
		most = max(most, part.Rows)
	}
	c.Split(len(a.Parts)*heads, max(1, 4*pointGrain/max(1, most*keys*values)), func(lo, hi int) {
		room := make([]float32, 2*values)
		for i := lo; i < hi; i++ {
			part, head, first := &a.Parts[i/heads], i%heads, 0
			for _, before := range a.Parts[:i/heads] {
				first += before.Rows
			}
			state := elementsOf[float32](part.To)[head*keys*values:][:keys*values]
			if part.From != nil {
				copy(state, elementsOf[float32](part.From)[head*keys*values:])
			} else {
				clear(state)
			}
			for row := first; row < first+part.Rows; row++ {
				c.Pause()
				key, change := k.at(row, head)[:keys], room[:values]
				num.Scale(state, state, decay.at(row, head)[0])
				gemm.NN(change, key, state, 1, values, keys, keys, values, values)
				num.Sub(change, v.at(row, head)[:values], change)
				num.Scale(change, change, beta.at(row, head)[0])
				gemm.AddNN(state, key, change, keys, values, 1, 1, values, values)
				gemm.NN(y.at(row, head)[:values], q.at(row, head)[:keys], state, 1, values, keys, keys, values, values)
			}
		}
	})
	if dst.data != out.data {
		c.copyInto(out, dst.permuted(out.axes))
	}
}
