package core

import (
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/attn"
)

// Attention is softmax(q·k · scale) · v for every query and head.
//
// Shape: q[…, seq, head, head_dim], k[…, key_seq, kv_head, head_dim], v[…, key_seq, kv_head,
// head_dim] → y of q's axes. The queries stand along q's axis "row" or "seq". The keys stand along
// k's axis "key_seq", "seq" or "row", whichever it has first of these. The heads of k are called
// "kv_head" or "head", and q has a multiple of them: query head h reads key head h·kv_head/head
// (grouped-query attention, Ainslie et al. 2023). The other axes are batches and occur in all three.
//
// With causal, query i sees the keys up to start + i; start is where the first query stands among the
// keys, by default so that the last query sees the last key. With a window of w > 0 it sees only the
// nearest w of these. scale is 1/√head_dim unless given.
//
// Numerics: the keys of a row are weighed in blocks of 64 with a running maximum; scores are
// summed in a tree of 16 lanes; f16 and bf16 compute in f32. A query that sees no key gives 0.
//
// Errors: axes that do not fit, a number of heads that is no multiple.
//
// Example:
//
//	x = ones(seq=3, head=2, head_dim=4)
//	attention(x, x, x)
type Attention struct {
	Q      *Tensor `arg:"q"`
	K      *Tensor `arg:"k"`
	V      *Tensor `arg:"v"`
	Causal bool    `arg:"causal=true"`
	Start  int     `arg:"start=-1"`
	Window int     `arg:"window=0"`
	Scale  float64 `arg:"scale=0"`
}

var attention = Declare[Attention]("attention")

// Attention weighs v by the likeness of x and k, causally, with x's first query at place start among
// the keys; see the Attention operation.
func (x *Tensor) Attention(k, v *Tensor, start int) *Tensor {
	return attention.Call(Attention{Q: x, K: k, V: v, Causal: true, Start: start})
}

// attentionPlan is the axes by role.
type attentionPlan struct {
	query, key, qHead, kHead string
	batch                    *axis.List
	qOrder, kOrder, out      *axis.List // batch, head, place, head_dim
}

// Names finds the roles.
func (a *Attention) Names(p *Plan) {
	var r attentionPlan
	r.query = p.firstOf(a.Q, "row", "seq")
	r.key = p.firstOf(a.K, "key_seq", "seq", "row")
	r.qHead, r.kHead = "head", p.firstOf(a.K, "kv_head", "head")
	p.Need(a.Q, "head")
	p.Need(a.Q, "head_dim")
	p.Need(a.K, "head_dim")
	r.kOrder = axisList(r.kHead, r.key, "head_dim")
	p.NeedAll(a.V, r.kOrder)
	r.batch = a.K.axes.Without(r.kOrder)
	p.NeedAll(a.V, r.batch)
	p.NeedAll(a.Q, r.batch)
	r.qOrder = r.batch.Append(axisList(r.qHead, r.query, "head_dim"))
	r.kOrder = r.batch.Append(r.kOrder)
	if more := a.Q.axes.Without(r.qOrder); more.Len() > 0 {
		p.Fail(fmt.Sprintf("%s has %s, which %s lacks", p.Describe(a.Q), quoted(more.Names()), p.Describe(a.K)),
			"batch axes occur in q, k and v")
	}
	if more := a.V.axes.Without(r.kOrder); more.Len() > 0 {
		p.Fail(fmt.Sprintf("%s has %s, which %s lacks", p.Describe(a.V), quoted(more.Names()), p.Describe(a.K)),
			"batch axes occur in q, k and v")
	}
	p.Float(a.Q)
	p.Out(a.Q.axes, p.Same(a.Q, a.K, a.V))
	p.Keep(r)
}

// firstOf is the first of the names that t has.
func (p *Plan) firstOf(t *Tensor, names ...string) string {
	if n := firstOf(t, names...); n != "" {
		return n
	}
	p.Fail(fmt.Sprintf("%s has none of the axes %s", p.Describe(t), quoted(names)),
		fmt.Sprintf("rename the one that is meant: %s.rename(…=%q)", p.c.param(t), names[0]))
	return ""
}

// firstOf is the first of the names that t has, or "".
func firstOf(t *Tensor, names ...string) string {
	for _, n := range names {
		if t.axes.Has(n) {
			return n
		}
	}
	return ""
}

// Sizes compares by role: queries and keys may differ in number, heads by a factor.
func (a *Attention) Sizes(s *Sizes) {
	r := s.c.plan.data.(attentionPlan)
	for _, name := range r.kOrder.Names() {
		if a.K.Size(name) != a.V.Size(name) {
			s.c.sizeConflict(a.K, a.V, name)
		}
	}
	for _, name := range append(r.batch.Names(), "head_dim") {
		if a.Q.Size(name) != a.K.Size(name) {
			s.c.sizeConflict(a.Q, a.K, name)
		}
	}
	if h, kv := a.Q.Size(r.qHead), a.K.Size(r.kHead); kv == 0 || h%kv != 0 {
		s.Fail(fmt.Sprintf("%s has %d heads, no multiple of the %d of %s", s.Describe(a.Q), h, kv, s.Describe(a.K)), "")
	}
}

// Eval does every query of every head.
func (a *Attention) Eval(c *Ctx) {
	if c.Out(0).Len() == 0 {
		return
	}
	if a.Q.dtype == dtype.F64 {
		attend[float64](c, a)
	} else {
		attend[float32](c, a)
	}
}

func attend[C float32 | float64](c *Ctx, a *Attention) {
	r := c.Data().(attentionPlan)
	out := c.Out(0)
	q := c.rowsOf(a.Q, r.qOrder, native[C]())
	k := c.rowsOf(a.K, r.kOrder, native[C]())
	v := c.rowsOf(a.V, r.kOrder, native[C]())
	y := out.permuted(r.qOrder)
	if out.dtype != native[C]() || y.strides[len(y.strides)-1] != 1 {
		y = c.Scratch(native[C](), r.qOrder, q.sizes)
	}
	last := len(q.sizes) - 1
	queries, keys, width := q.sizes[last-1], k.sizes[last-1], q.sizes[last]
	start, scale := a.start(queries, keys), a.scale()
	group := q.sizes[last-2] / k.sizes[last-2]
	rows := q.Len() / width
	grain := max(1, pointGrain/max(1, keys*width))
	c.Split(rows, grain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			at := i % queries
			first, end := 0, keys
			if a.Causal {
				end = min(keys, max(0, start+at+1))
			}
			if a.Window > 0 {
				first = min(end, max(0, start+at+1-a.Window))
			}
			kRun := runAt[C](k, q.sizes[:last-1], i/queries, group)
			vRun := runAt[C](v, q.sizes[:last-1], i/queries, group)
			attn.Row(runAt[C](y, q.sizes[:last], i, 1)[:width], runAt[C](q, q.sizes[:last], i, 1)[:width], kRun, vRun,
				k.strides[last-1], v.strides[last-1], first, end, C(scale))
		}
	})
	if y.data != out.data {
		c.copyInto(out, y.permuted(out.axes))
	}
}

// start is where the first query stands among the keys.
func (a *Attention) start(queries, keys int) int {
	if a.Start < 0 {
		return keys - queries
	}
	return a.Start
}

func (a *Attention) scale() float64 {
	if a.Scale == 0 {
		return 1 / math.Sqrt(float64(a.Q.Size("head_dim")))
	}
	return a.Scale
}

// rowsOf is t with its axes in the given order and the last one contiguous: as it lies if it does
// so already.
func (c *Ctx) rowsOf(t *Tensor, order *axis.List, dt dtype.Type) *Tensor {
	v := t.permuted(order)
	if v.dtype == dt && v.strides[len(v.strides)-1] == 1 && v.lowest() == 0 {
		return v
	}
	return c.Dense(t, order, dt)
}

// runAt is the elements of t from the place that index i means when counted over the axes of sizes,
// which are t's first ones; the last of these is divided by group first.
func runAt[C any](t *Tensor, sizes []int, i, group int) []C {
	if t.Len() == 0 {
		return nil
	}
	offset := 0
	for k := len(sizes) - 1; k >= 0; k-- {
		at := i % sizes[k]
		i /= sizes[k]
		offset += at / group * t.strides[k]
		group = 1
	}
	return slice[C](t)[offset:]
}

// Samples covers the numbers of keys and queries, groups of heads, masks, and the dtypes.
func (*Attention) Samples(m *Maker) (list []Attention) {
	add := func(dt dtype.Type, q, k string, a Attention) {
		a.Q, a.K, a.V = m.Tensor(dt, q), m.Tensor(dt, k), m.Tensor(dt, k)
		list = append(list, a)
	}
	for _, n := range lengths {
		keys := fmt.Sprintf("key_seq=%d kv_head=2 head_dim=5", n)
		add(dtype.F32, "seq=3 head=4 head_dim=5", keys, Attention{Causal: true, Start: -1})
		add(dtype.F32, "batch=2 head=2 seq=2 head_dim=17", fmt.Sprintf("batch=2 seq=%d head=1 head_dim=17", n), Attention{Window: 7})
	}
	for _, dt := range floats {
		add(dt, "batch=2 seq=6 head=4 head_dim=8", "batch=2 kv_head=2 key_seq=9 head_dim=8", Attention{Causal: true, Start: 3})
		add(dt, "seq=6 head_dim=8 head=2", "seq=6 head_dim=8 head=2", Attention{Causal: true, Start: -1, Window: 2, Scale: 0.5})
	}
	return list
}

// Axes of the products below that are in none of the operands.
const (
	keyAxis   = "attention_key"
	headAxis  = "attention_head"  // of the keys
	groupAxis = "attention_group" // of query heads that read one key head
)

// aligned is an attention as products of matrices: q[…, headAxis, groupAxis, query, head_dim], k and v[…,
// headAxis, keyAxis, head_dim] and the weights p[…, headAxis, groupAxis, query, keyAxis].
type aligned struct {
	a          *Attention
	q, k, v, p *Tensor
	ofGroup    Axes // groupAxis and the axis of the queries
}

// align names the axes and computes the weights.
func (a *Attention) align() *aligned {
	l := &aligned{a: a, ofGroup: axisList(groupAxis, firstOf(a.Q, "row", "seq"))}
	l.q, l.k, l.v = l.fromQuery(a.Q), l.fromKey(a.K), l.fromKey(a.V)
	scores := l.q.Dot(l.k, "head_dim").times(a.scale())
	seen := l.seen()
	if seen != nil {
		scores = scores.Add(seen.plus(-1).times(1e30))
	}
	l.p = scores.Softmax(keyAxis)
	if seen != nil {
		l.p = l.p.Mul(seen) // a query that sees no key has equal weights otherwise
	}
	return l
}

// seen is 1 where a query sees a key and 0 elsewhere; nil if all see all.
func (l *aligned) seen() *Tensor {
	if !l.a.Causal && l.a.Window <= 0 {
		return nil
	}
	env, query := l.q.env, l.ofGroup.At(1)
	queries, keys := l.q.Size(query), l.k.Size(keyAxis)
	i := env.Arange(queries, query, dtype.I64).Add(Number(env, 0, int64(l.a.start(queries, keys)), true))
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

// fromQuery cuts the heads of t, which has q's axes, into groups; fromKey names the axes of t, which has
// k's. toQuery and toKey undo it.
func (l *aligned) fromQuery(t *Tensor) *Tensor {
	heads := l.a.K.Size(l.kvHead())
	into := Map[int]{axisList(headAxis, groupAxis), []int{heads, l.a.Q.Size("head") / heads}}
	return split.Call(Split{X: t.wide(), Axis: "head", Into: into})
}

func (l *aligned) toQuery(t *Tensor) *Tensor {
	into := Map[Axes]{axisList("head"), []Axes{axisList(headAxis, groupAxis)}}
	return merge.Call(Merge{X: t, Into: into})
}

func (l *aligned) fromKey(t *Tensor) *Tensor {
	return t.wide().Rename(l.key(), keyAxis).Rename(l.kvHead(), headAxis)
}

func (l *aligned) toKey(t *Tensor) *Tensor {
	return t.Rename(keyAxis, l.key()).Rename(headAxis, l.kvHead())
}

func (l *aligned) key() string    { return firstOf(l.a.K, "key_seq", "seq", "row") }
func (l *aligned) kvHead() string { return firstOf(l.a.K, "kv_head", "head") }

// Ref is the formula.
func (a *Attention) Ref() *Tensor {
	l := a.align()
	y := l.toQuery(l.p.Dot(l.v, keyAxis))
	return order.Call(Order{X: y, Axes: a.Q.axes}).Cast(a.Q.dtype)
}

// VJP computes the weights p again. With gp = gy·v and gs = p · (gp - sum(p · gp)) · scale it is gs·k for q,
// gs·q for k and p·gy for v.
func (a *Attention) VJP(_, gy []*Tensor, g *Grads) {
	l := a.align()
	gh := l.fromQuery(gy[0])
	if g.Wants(2) {
		g.Set(2, l.toKey(dot.Call(Dot{X: l.p, W: gh, Axes: l.ofGroup})))
	}
	if !g.Wants(0) && !g.Wants(1) {
		return
	}
	gp := gh.Dot(l.v, "head_dim")
	gs := l.p.Mul(gp.Sub(l.p.Mul(gp).Sum(keyAxis))).times(a.scale())
	if g.Wants(0) {
		g.Set(0, l.toQuery(gs.Dot(l.k, keyAxis)))
	}
	if g.Wants(1) {
		g.Set(1, l.toKey(dot.Call(Dot{X: gs, W: l.q, Axes: l.ofGroup})))
	}
}
