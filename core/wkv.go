package core

import (
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/num"
)

// WKV is the recurrence of RWKV's time mixing, version 5 (Peng et al. 2024), for rows of several sequences. Row by row,
// a state S[key, value] of each head of a sequence gives rᵀ(S + first · k vᵀ), in which first weighs the row itself,
// and becomes decay · S + k vᵀ. It is in no table: models/kv keeps the states.
//
// Shape: r and k[row, heads, key], v[row, heads, value], decay and first[heads, key] → y[row, heads, value], in the
// order of v's axes. Heads are one axis or several, of which the others may lack some.
//
// Numerics: products as in dot, in f32. A row has the same bits in every batch.
//
// Errors: axes that do not fit; no rows; a state of another shape.
type WKV struct {
	R     *Tensor `arg:"r"`
	K     *Tensor `arg:"k"`
	V     *Tensor `arg:"v"`
	Decay *Tensor `arg:"decay"`
	First *Tensor `arg:"first"`
	Parts []StateRows
}

var wkv = Define[WKV]("wkv")

// ApplyWKV is the recurrence that a describes.
func ApplyWKV(a WKV) *Tensor { return wkv.Call(a) }

// Names insists that the operands have rows, but for the weights, and no other heads than v.
func (a *WKV) Names(p *Plan) {
	p.NeedAll(a.R, rowList.Append(keyList))
	p.NeedAll(a.K, rowList.Append(keyList))
	p.NeedAll(a.V, rowList.Append(valueList))
	heads := headsOf(a.V)
	for _, t := range []*Tensor{a.R, a.K} {
		p.Within(t, rowList.Append(heads).Append(keyList), "a row, a head of v or a key")
	}
	for _, t := range []*Tensor{a.Decay, a.First} {
		p.NeedAll(t, keyList)
		p.Within(t, heads.Append(keyList), "a head of v or a key")
	}
	p.Float(a.V)
	p.Same(a.R, a.K, a.V, a.Decay, a.First)
	p.Out(a.V.axes, a.V.dtype)
}

// Sizes insists on states of the right shape.
func (a *WKV) Sizes(s *Sizes) {
	s.Match(nil)
	statesFit(s, a.Parts, a.K, a.V)
}

// Eval does every head of every sequence.
func (a *WKV) Eval(c *Ctx) {
	out := c.Out(0)
	if out.Len() == 0 {
		return
	}
	operand := func(t *Tensor, last *axis.List) headOf {
		return byHead(c.rowsOf(t, t.axes.Without(last).Append(last), dtype.F32), a.V)
	}
	r, k, v := operand(a.R, keyList), operand(a.K, keyList), operand(a.V, valueList)
	decay, first := operand(a.Decay, keyList), operand(a.First, keyList)
	dst := c.direct(out, out.axes.Without(valueList).Append(valueList), dtype.F32)
	y := byHead(dst, a.V)
	keys, values := a.K.Size("key"), a.V.Size("value")
	eachState(c, a.Parts, keys*values, out.Len()/out.Size("row")/values, func(lo, hi int, next func(i int) stateOf) {
		weighed, self := make([]float32, keys), make([]float32, 1)
		for i := lo; i < hi; i++ {
			at := next(i)
			keep := decay.at(0, at.head)[:keys]
			for row := at.from; row < at.to; row++ {
				c.Pause()
				asked, key := r.at(row, at.head)[:keys], k.at(row, at.head)[:keys]
				value, sum := v.at(row, at.head)[:values], y.at(row, at.head)[:values]
				num.Mul(weighed, first.at(0, at.head)[:keys], key)
				gemm.NN(self, asked, weighed, 1, 1, keys, keys, 1, 1)
				gemm.NN(sum, asked, at.state, 1, values, keys, keys, values, values)
				gemm.AddNN(sum, self, value, 1, values, 1, 1, values, values)
				for j, d := range keep {
					num.Scale(at.state[j*values:][:values], at.state[j*values:][:values], d)
				}
				gemm.AddNN(at.state, key, value, keys, values, 1, 1, values, values)
			}
		}
	})
	if dst.data != out.data {
		c.copyInto(out, dst.permuted(out.axes))
	}
}
