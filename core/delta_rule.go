package core

import (
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
	Parts []StateRows
}

var deltaRule = Define[DeltaRule]("delta_rule")

// ApplyDeltaRule is the delta rule that a describes.
func ApplyDeltaRule(a DeltaRule) *Tensor { return deltaRule.Call(a) }

// Names insists that the operands have rows and no other heads than v.
func (a *DeltaRule) Names(p *Plan) {
	p.NeedAll(a.V, rowList.Append(valueList))
	heads := rowList.Append(headsOf(a.V))
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
	statesFit(s, a.Parts, a.K, a.V)
}

// Eval does every head of every sequence.
func (a *DeltaRule) Eval(c *Ctx) {
	out := c.Out(0)
	if out.Len() == 0 {
		return
	}
	operand := func(t *Tensor, last *axis.List) headOf {
		return byHead(c.rowsOf(t, t.axes.Without(last).Append(last), dtype.F32), a.V)
	}
	q, k, v := operand(a.Q, keyList), operand(a.K, keyList), operand(a.V, valueList)
	decay, beta := operand(a.Decay, axis.Empty), operand(a.Beta, axis.Empty)
	dst := c.direct(out, out.axes.Without(valueList).Append(valueList), dtype.F32)
	y := byHead(dst, a.V)
	keys, values := a.K.Size("key"), a.V.Size("value")
	eachState(c, a.Parts, keys*values, out.Len()/out.Size("row")/values, func(lo, hi int, next func(i int) stateOf) {
		change := make([]float32, values)
		for i := lo; i < hi; i++ {
			at := next(i)
			state, head := at.state, at.head
			for row := at.from; row < at.to; row++ {
				c.Pause()
				key := k.at(row, head)[:keys]
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
