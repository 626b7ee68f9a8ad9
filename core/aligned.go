package core

import (
	"math"

	"github.com/fucina-go/fucina/core/dtype"
)

// The definition of attention by other operations, and its gradient.

// Axes of the products below that are in none of the operands.
const (
	keyAxis   = "attention_key"
	headAxis  = "attention_head"  // of the keys
	groupAxis = "attention_group" // of query heads that read one key head
)

// aligned is an attention as products of matrices: q[…, headAxis, groupAxis, query, head_dim], k[…, headAxis, keyAxis,
// head_dim], v[…, headAxis, keyAxis, value] and the weights p[…, headAxis, groupAxis, query, keyAxis].
type aligned struct {
	attentionRoles
	a          *Attention
	q, k, v, p *Tensor
	capped     *Tensor // the scores, if there is a cap
}

// align names the axes and computes the weights.
func (a *Attention) align() *aligned {
	l := &aligned{a: a, attentionRoles: a.roles()}
	l.q, l.k, l.v = l.fromQuery(a.Q.wide()), l.fromKey(a.K.wide()), l.fromKey(a.V.wide())
	scores := l.q.Dot(l.k, "head_dim").times(a.scale())
	if a.Softcap > 0 {
		scores = scores.Softcap(a.Softcap)
		l.capped = scores
	}
	seen := l.seen()
	if a.Mask != nil {
		mask := l.fromMask(a.Mask)
		if mask.dtype != dtype.Bool {
			finite := mask.Gt(Number(mask.env, math.Inf(-1), 0, false))
			scores = scores.Add(mask.where(finite))
			mask = finite
		}
		mask = mask.Cast(scores.dtype)
		if seen != nil {
			mask = mul.Call(Mul{Binary{X: mask, Y: seen, Outer: true}})
		}
		seen = mask
	}
	if seen != nil {
		scores = scores.Add(seen.plus(-1).times(1e30))
	}
	l.p = scores.Softmax(keyAxis)
	if seen != nil {
		l.p = l.p.Mul(seen) // a query that sees no key has equal weights otherwise
	}
	return l
}

// seen is 1 where a query sees a key and 0 elsewhere, as far as places say so; nil if all see all.
func (l *aligned) seen() *Tensor {
	if !l.a.Causal && l.a.Window <= 0 {
		return nil
	}
	env := l.q.env
	queries, keys := l.q.Size(l.query), l.k.Size(keyAxis)
	i := env.Arange(queries, l.query, dtype.I64).Add(Number(env, 0, int64(l.a.start(queries, keys)), true))
	j := env.Arange(keys, keyAxis, dtype.I64)
	var seen *Tensor
	if l.a.Causal {
		seen = ge.Call(Ge{Compare{X: i, Y: j, Outer: true}}).Cast(l.q.dtype)
	}
	if l.a.Window > 0 {
		first := i.Add(Number(env, 0, int64(1-l.a.Window), true))
		near := le.Call(Le{Compare{X: first, Y: j, Outer: true}}).Cast(l.q.dtype)
		if seen != nil {
			near = near.Mul(seen)
		}
		seen = near
	}
	return seen
}

// fromQuery cuts the heads of t, which has q's axes, into groups; fromKey names the axes of t, which has k's; fromMask
// does both. toQuery, toKey and toMask undo it.
func (l *aligned) fromQuery(t *Tensor) *Tensor {
	if l.qHead == "" {
		return insert.Call(Insert{X: t, Axes: axisList(headAxis, groupAxis)})
	}
	heads := l.a.K.Size(l.kHead)
	into := Map[int]{axisList(headAxis, groupAxis), []int{heads, l.a.Q.Size(l.qHead) / heads}}
	return split.Call(Split{X: t, Axis: Axis(l.qHead), Into: into})
}

func (l *aligned) toQuery(t *Tensor) *Tensor {
	if l.qHead == "" {
		return t.At(headAxis, 0).At(groupAxis, 0)
	}
	into := Map[Axes]{axisList(l.qHead), []Axes{axisList(headAxis, groupAxis)}}
	return merge.Call(Merge{X: t, Into: into})
}

func (l *aligned) fromKey(t *Tensor) *Tensor {
	t = t.Rename(l.key, keyAxis)
	if l.kHead == "" {
		return insert.Call(Insert{X: t, Axes: axisList(headAxis)})
	}
	return t.Rename(l.kHead, headAxis)
}

func (l *aligned) toKey(t *Tensor) *Tensor {
	t = t.Rename(keyAxis, l.key)
	if l.kHead == "" {
		return t.At(headAxis, 0)
	}
	return t.Rename(headAxis, l.kHead)
}

func (l *aligned) fromMask(t *Tensor) *Tensor {
	if t.dtype != dtype.Bool {
		t = t.wide()
	}
	if t.axes.Has(l.maskKey) {
		t = t.Rename(l.maskKey, keyAxis)
	}
	if l.qHead != "" && t.axes.Has(l.qHead) {
		t = l.fromQuery(t)
	}
	return t
}

func (l *aligned) toMask(t *Tensor) *Tensor { return l.toQuery(t).Rename(keyAxis, l.maskKey) }

// Ref is the formula.
func (a *Attention) Ref() *Tensor {
	l := a.align()
	y := l.toQuery(l.p.Dot(l.v, keyAxis))
	out, _ := a.Q.axes.Replace(a.Q.axes.Index("head_dim"), l.value)
	return order.Call(Order{X: y, Axes: out}).narrow(a.Q.dtype)
}

// Saves the operands; the output is not needed.
func (*Attention) Saves(uint64) (in, out uint64) { return 15, 0 }

// VJP computes the weights again, a few queries at a time: see attentionGrad. Only where the mask wants a gradient,
// which has as many elements as there are weights, are they there all at once.
func (a *Attention) VJP(_, gy []*Tensor, g *Grads) {
	if g.Wants(3) {
		a.gradientOfMask(gy[0], g)
		return
	}
	grads := attentionGrads.All(attentionGrad{Attention: *a, GY: gy[0]})
	for i, t := range grads {
		g.Set(i, t)
	}
}

// gradientOfMask computes the weights p at once. With gp = gy·v and gs = p · (gp - sum(p · gp)), which is the mask's,
// and times the slope of the cap, it is gs·k · scale for q, gs·q · scale for k and p·gy for v.
func (a *Attention) gradientOfMask(gy *Tensor, g *Grads) {
	l := a.align()
	gh := l.fromQuery(gy.wide())
	ofGroup := axisList(groupAxis, l.query)
	if g.Wants(2) {
		g.Set(2, l.toKey(dot.Call(Dot{X: l.p, W: gh, Axes: ofGroup})))
	}
	gp := gh.Dot(l.v, l.value)
	gs := l.p.Mul(gp.Sub(l.p.Mul(gp).Sum(keyAxis)))
	g.Set(3, l.toMask(gs))
	gs = gs.times(a.scale())
	if l.capped != nil {
		bent := l.capped.times(1 / a.Softcap)
		gs = gs.Mul(bent.Mul(bent).Neg().plus(1))
	}
	if g.Wants(0) {
		g.Set(0, l.toQuery(gs.Dot(l.k, keyAxis)))
	}
	if g.Wants(1) {
		g.Set(1, l.toKey(dot.Call(Dot{X: gs, W: l.q, Axes: ofGroup})))
	}
}
