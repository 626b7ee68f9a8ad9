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
	for _, n := range names {
		if t.axes.Has(n) {
			return n
		}
	}
	p.Fail(fmt.Sprintf("%s has none of the axes %s", p.Describe(t), quoted(names)),
		fmt.Sprintf("rename the one that is meant: %s.rename(…=%q)", p.c.param(t), names[0]))
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
	start := a.Start
	if start < 0 {
		start = keys - queries
	}
	scale := a.Scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(width))
	}
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

// rowsOf is t with its axes in the given order and the last one contiguous: as it lies if it does
// so already.
func (c *Ctx) rowsOf(t *Tensor, order *axis.List, dt dtype.Type) *Tensor {
	v := t.permuted(order)
	if v.dtype == dt && v.strides[len(v.strides)-1] == 1 {
		return v
	}
	return c.Dense(t, order, dt)
}

// runAt is the elements of t from the place that index i means when counted over the axes of sizes,
// which are t's first ones; the last of these is divided by group first.
func runAt[C any](t *Tensor, sizes []int, i, group int) []C {
	offset := 0
	for k := len(sizes) - 1; k >= 0; k-- {
		at := i % sizes[k]
		i /= sizes[k]
		offset += at / group * t.strides[k]
		group = 1
	}
	return slice[C](t)[offset:]
}
