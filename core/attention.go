package core

import (
	"fmt"
	"math"
	"strings"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/attn"
	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/num"
)

// Attention is softmax(q·k · scale + mask) · v for every query and head.
//
// Shape: q[…, seq, head, head_dim], k[…, key_seq, kv_head, head_dim], v[…, key_seq, kv_head, value] → y[…, seq,
// head, value], in the order of q's axes. The queries stand along q's axis "row" or "seq". The keys stand along k's
// axis "key_seq", "seq" or "row", whichever it has first of these. The heads of k are called "kv_head" or "head", and
// q has a multiple of them: query head h reads key head h·kv_head/head (grouped-query attention, Ainslie et al.
// 2023); q and k may also have no heads. value is the axis of v that k lacks, or head_dim. The other axes are batches
// and occur in all three.
//
// With causal, query i sees the keys up to start + i; start is where the first query stands among the keys, by
// default so that the last query sees the last key. With a window of w > 0 it sees only the nearest w of these. The
// mask has any of the axes batch, head, seq (of the queries) and key_seq, which is its name for the keys also where k
// calls them as q calls the queries; it is added, or, if it is of bools, says which keys a query sees. scale is
// 1/√head_dim unless given. A softcap of c > 0 makes every score c · tanh(score / c) before the mask.
//
// Numerics: scores and values are products as in dot; the keys of a row are weighed in blocks of 64 with a running
// maximum; f16 and bf16 compute in f32 and round once. A query that sees no key gives 0.
//
// Errors: axes that do not fit, a number of heads that is no multiple, a negative window.
//
// Example:
//
//	x = ones(seq=3, head=2, head_dim=4)
//	attention(x, x, x)
type Attention struct {
	Q       *Tensor `arg:"q"`
	K       *Tensor `arg:"k"`
	V       *Tensor `arg:"v"`
	Causal  bool    `arg:"causal=true"`
	Start   int     `arg:"start=-1"`
	Window  int     `arg:"window=0"`
	Scale   float64 `arg:"scale=0"`
	Mask    *Tensor `arg:"mask?"`
	Softcap float64 `arg:"softcap=0"`
}

var attention = Declare[Attention]("attention")

// Attention weighs v by the likeness of x and k, causally, with x's first query at place start among
// the keys; see the Attention operation.
func (x *Tensor) Attention(k, v *Tensor, start int) *Tensor {
	return attention.Call(Attention{Q: x, K: k, V: v, Causal: true, Start: start})
}

// Attend is the attention that a describes; a zero value of it is not causal and starts at the first key.
func Attend(a Attention) *Tensor { return attention.Call(a) }

// attentionRoles is the axes by role; without heads, qHead and kHead are empty.
type attentionRoles struct {
	query, key, qHead, kHead, value string
	maskKey                         string     // the mask's name for the keys
	batch                           *axis.List // of all three
	q, k, v, y                      *axis.List // batch, head, place, element
}

// roles finds the axes by role; they are "" where there are none.
func (a *Attention) roles() (r attentionRoles) {
	r.query, r.key = firstOf(a.Q, "row", "seq"), firstOf(a.K, "key_seq", "seq", "row")
	r.qHead, r.kHead = firstOf(a.Q, "head"), firstOf(a.K, "kv_head", "head")
	if r.maskKey = r.key; r.key == r.query {
		r.maskKey = "key_seq"
	}
	places := axisList(strings.Fields(r.kHead + " " + r.key)...)
	r.batch = a.K.axes.Without(places).Without(axisList("head_dim"))
	r.value = "head_dim"
	if own := a.V.axes.Without(a.K.axes); own.Len() == 1 && !a.V.axes.Has("head_dim") {
		r.value = own.At(0)
	}
	rows := r.batch.Append(axisList(strings.Fields(r.qHead + " " + r.query)...))
	r.q, r.y = rows.Append(axisList("head_dim")), rows.Append(axisList(r.value))
	keys := r.batch.Append(places)
	r.k, r.v = keys.Append(axisList("head_dim")), keys.Append(axisList(r.value))
	return r
}

// Names finds the roles.
func (a *Attention) Names(p *Plan) {
	p.firstOf(a.Q, "row", "seq")
	p.firstOf(a.K, "key_seq", "seq", "row")
	p.Need(a.Q, "head_dim")
	p.Need(a.K, "head_dim")
	if firstOf(a.K, "kv_head", "head") != "" {
		p.Need(a.Q, "head")
	} else if a.Q.axes.Has("head") {
		p.firstOf(a.K, "kv_head", "head")
	}
	r := a.roles()
	p.NeedAll(a.V, r.v)
	p.NeedAll(a.Q, r.batch)
	if more := a.Q.axes.Without(r.q); more.Len() > 0 {
		p.Fail(fmt.Sprintf("%s has %s, which %s lacks", p.Describe(a.Q), quoted(more.Names()), p.Describe(a.K)),
			"batch axes occur in q, k and v: "+a.both(p.c, ".expand("+sizesScript(a.Q, more)+")"))
	}
	if more := a.V.axes.Without(r.v); more.Len() > 0 {
		p.Fail(fmt.Sprintf("%s has %s, which %s lacks", p.Describe(a.V), quoted(more.Names()), p.Describe(a.K)),
			p.c.hint(p.c.taken("batch axes occur in q, k and v", a.V, more)))
	}
	out, err := a.Q.axes.Replace(a.Q.axes.Index("head_dim"), r.value)
	if err != nil {
		p.Fail(fmt.Sprintf("%s has the axis %q of %s", p.Describe(a.Q), r.value, p.Describe(a.V)),
			p.c.hint(p.c.renamed("", a.V, []string{r.value}, []string{"head_dim"})))
	}
	p.Float(a.Q)
	p.Same(a.Q, a.K, a.V)
	p.Within(a.Mask, r.scores(), "a score")
	if a.Mask != nil && a.Mask.dtype != dtype.Bool {
		p.Same(a.Q, a.Mask)
	}
	p.Out(out, a.Q.dtype)
	p.Keep(r)
}

// scores is the axes of the scores, as the mask calls them.
func (r *attentionRoles) scores() *axis.List {
	return r.batch.Append(axisList(strings.Fields(r.qHead + " " + r.query + " " + r.maskKey)...))
}

// firstOf is the first of the names that t has.
func (p *Plan) firstOf(t *Tensor, names ...string) string {
	if n := firstOf(t, names...); n != "" {
		return n
	}
	var tries []remedy
	for _, have := range t.axes.Names() {
		tries = append(tries, p.c.renamed("rename the one that is meant", t, []string{have}, names[:1]))
	}
	p.Fail(fmt.Sprintf("%s has none of the axes %s", p.Describe(t), quoted(names)),
		p.c.hint(tries...))
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
	if a.Window < 0 {
		s.Fail(fmt.Sprintf("window=%d, want 0 or more", a.Window), refit(s.c, "0 sees all keys", "window", 0))
	}
	r := s.c.plan.data.(attentionRoles)
	for _, name := range r.k.Names() {
		if name != "head_dim" && a.K.Size(name) != a.V.Size(name) {
			s.c.sizeConflict(a.K, a.V, name)
		}
	}
	for _, name := range append(r.batch.Names(), "head_dim") {
		if a.Q.Size(name) != a.K.Size(name) {
			s.c.sizeConflict(a.Q, a.K, name)
		}
	}
	s.Set(0, r.value, a.V.Size(r.value))
	if a.Mask != nil {
		for k, name := range a.Mask.axes.Names() {
			like, as := a.Q, name
			if name == r.maskKey {
				like, as = a.K, r.key
			}
			if n := like.Size(as); n != a.Mask.sizes[k] {
				s.Fail(fmt.Sprintf("axis %q is %d in %s but %d in %s", name, a.Mask.sizes[k], s.Describe(a.Mask), n,
					s.Describe(like)),
					s.c.hint(s.c.cut(a.Mask, name, n), s.c.taken("take one place", a.Mask, axisList(name))))
			}
		}
	}
	if r.qHead == "" {
		return
	}
	if h, kv := a.Q.Size(r.qHead), a.K.Size(r.kHead); kv == 0 || h%kv != 0 {
		hint := ""
		switch {
		case kv > 0 && h > kv:
			hint = s.c.hint(s.c.cut(a.Q, r.qHead, h/kv*kv))
		case kv > 0 && h > 0:
			hint = "slice them: " + a.both(s.c, fmt.Sprintf(".slice(%s=(0, %d))", r.kHead, h))
		}
		s.Fail(fmt.Sprintf("%s has %d heads, no multiple of the %d of %s", s.Describe(a.Q), h, kv, s.Describe(a.K)),
			hint)
	}
}

// both writes the call with the same done to k and v.
func (a *Attention) both(c *call, what string) string {
	return strings.Replace(c.info.script(a), "(k, v", "(k"+what+", v"+what, 1)
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

// attending is an attention of tensors whose elements along the last axis lie together. Rows are counted over the
// axes of q but the last.
type attending[C float32 | float64] struct {
	c                *Ctx
	a                *Attention
	q, k, v, y       *Tensor
	queries, keys    int
	start            int
	group            int // query heads that read one key head
	scale            C
	width, valueSize int
	mask             *besides[C]
}

func attend[C float32 | float64](c *Ctx, a *Attention) {
	r, out := c.Data().(attentionRoles), c.Out(0)
	t := attendingTo[C](c, a, r)
	t.y = c.direct(out, r.y, native[C]())
	rows, each := out.Len()/t.valueSize, t.rows
	if a.Mask != nil || a.Softcap > 0 {
		each = t.masked
	}
	work := t.keys * (t.width + t.valueSize)
	if t.queries == 1 && t.group > 1 && t.mask == nil { // the heads of a group share the keys
		c.Split(rows/t.group, max(1, 64*pointGrain/max(1, work*t.group)),
			func(lo, hi int) { each(lo*t.group, hi*t.group) })
	} else {
		grain := max(1, 64*pointGrain/max(1, work))
		if t.mask == nil { // rows that come together are faster, if there are enough for all workers
			grain = max(grain, min(attn.Tile, rows/16, attendWork()/max(1, work)))
		}
		c.Split(rows, grain, each)
	}
	if t.y.data != out.data {
		c.copyInto(out, t.y.permuted(out.axes))
	}
}

// attendWork is how many multiplications a chunk may take: a few milliseconds of them. A stop waits for a block of
// keys.
func attendWork() int {
	if cpu.Current() == cpu.Generic {
		return 1 << 21
	}
	return 1 << 26
}

// direct is output t with its axes in the given order, where rows along the last of them can be written as they lie;
// else a temporary tensor to be copied into t.
func (c *Ctx) direct(t *Tensor, order *axis.List, dt dtype.Type) *Tensor {
	v := t.permuted(order)
	if t.dtype != dt || v.strides[len(v.strides)-1] != 1 {
		return c.Scratch(dt, order, v.sizes)
	}
	return v
}

// attendingTo readies the operands.
func attendingTo[C float32 | float64](c *Ctx, a *Attention, r attentionRoles) *attending[C] {
	t := &attending[C]{c: c, a: a, q: c.rowsOf(a.Q, r.q, native[C]()), k: c.rowsOf(a.K, r.k, native[C]()),
		v: c.rowsOf(a.V, r.v, native[C]()), scale: C(a.scale()), group: 1}
	last := len(t.q.sizes) - 1
	t.queries, t.keys = t.q.sizes[last-1], a.K.Size(r.key)
	t.start, t.width, t.valueSize = a.start(t.queries, t.keys), t.q.sizes[last], a.V.Size(r.value)
	if r.qHead != "" {
		t.group = a.Q.Size(r.qHead) / a.K.Size(r.kHead)
	}
	if a.Mask != nil {
		m := *a.Mask
		m.axes, _ = m.axes.Rename(axisList(r.maskKey), []string{keyAxis})
		rows := r.q.Without(axisList("head_dim"))
		t.mask = beside[C](&m, a.Q, rows.Append(axisList(keyAxis)))
	}
	return t
}

// sees is the keys that a query sees.
func (t *attending[C]) sees(query int) (first, end int) {
	first, end = 0, t.keys
	if t.a.Causal {
		end = min(t.keys, max(0, t.start+query+1))
	}
	if t.a.Window > 0 {
		first = min(end, max(0, t.start+query+1-t.a.Window))
	}
	return first, end
}

// of is row i of q and y, and the keys and values it reads.
func (t *attending[C]) of(i int) (q, y, k, v []C) {
	last := len(t.q.sizes) - 1
	heads := t.q.sizes[:last-1]
	return runAt[C](t.q, t.q.sizes[:last], i, 1), runAt[C](t.y, t.q.sizes[:last], i, 1),
		runAt[C](t.k, heads, i/t.queries, t.group), runAt[C](t.v, heads, i/t.queries, t.group)
}

// rows does the rows [lo, hi), as many at once as read the same keys.
func (t *attending[C]) rows(lo, hi int) {
	last := len(t.q.sizes) - 1
	each, along := t.queries, last-1 // rows that share keys, and the axis along which they lie
	if t.queries == 1 && t.group > 1 {
		each, along = t.group, last-2
	}
	step := attn.Strides{Out: t.y.strides[along], Q: t.q.strides[along], K: t.k.strides[last-1], V: t.v.strides[last-1]}
	var from, to [attn.Tile]int
	pause := t.c.Pause
	for i := lo; i < hi; {
		n := min(hi-i, each-i%each, len(from))
		for j := range n {
			from[j], to[j] = t.sees((i + j) % t.queries)
		}
		q, y, k, v := t.of(i)
		attn.Rows(y, q, k, v, t.width, t.valueSize, step, from[:n], to[:n], t.scale, pause)
		i += n
	}
}

// masked does the rows [lo, hi) one by one, as attn.Rows does, with the mask and the cap.
func (t *attending[C]) masked(lo, hi int) {
	last := len(t.q.sizes) - 1
	kStep, vStep := t.k.strides[last-1], t.v.strides[last-1]
	room := make([]C, 2*attn.Block)
	for i := lo; i < hi; i++ {
		q, y, k, v := t.of(i)
		y = y[:t.valueSize]
		clear(y)
		top, total := C(math.Inf(-1)), C(0)
		first, end := t.sees(i % t.queries)
		for at := first; at < end; at = at - at%attn.Block + attn.Block {
			t.c.Pause()
			n := min(end, at-at%attn.Block+attn.Block) - at
			scores := room[:n]
			gemm.NT(scores, q, k[at*kStep:], 1, n, t.width, t.width, kStep, n)
			t.bend(scores)
			t.hide(scores, i, at, room[attn.Block:])
			peak := max(top, num.Max(scores))
			if math.IsInf(float64(peak), -1) {
				continue
			}
			if peak > top && total > 0 {
				shrink := [1]C{top - peak}
				num.Exp(shrink[:], shrink[:])
				total = C(total * shrink[0])
				num.Scale(y, y, shrink[0])
			}
			top = peak
			total += num.ExpSum(scores, scores, peak)
			gemm.AddNN(y, scores, v[at*vStep:], 1, t.valueSize, n, n, vStep, t.valueSize)
		}
		if total > 0 {
			num.Quotient(y, y, total)
		}
	}
}

// bend makes scores of products.
func (t *attending[C]) bend(scores []C) {
	num.Scale(scores, scores, t.scale)
	if t.a.Softcap > 0 {
		num.Softcap(scores, scores, C(t.a.Softcap))
	}
}

// hide applies the mask to the scores of row i with the keys from place at on.
func (t *attending[C]) hide(scores []C, i, at int, room []C) {
	if t.mask == nil {
		return
	}
	values := t.mask.part(i, at, len(scores), &room)
	if t.a.Mask.dtype != dtype.Bool {
		num.Add(scores, scores, values)
		return
	}
	for j, see := range values {
		if see == 0 {
			scores[j] = C(math.Inf(-1))
		}
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

// Samples covers the numbers of keys and queries, groups of heads and none, masks, values of another size, and the
// dtypes.
func (*Attention) Samples(m *Maker) (list []Attention) {
	add := func(dt dtype.Type, q, k, v string, a Attention) {
		a.Q, a.K, a.V = m.Tensor(dt, q), m.Tensor(dt, k), m.Tensor(dt, v)
		list = append(list, a)
	}
	for _, n := range lengths {
		keys := fmt.Sprintf("key_seq=%d kv_head=2 head_dim=5", n)
		add(dtype.F32, "seq=3 head=4 head_dim=5", keys, keys, Attention{Causal: true, Start: -1})
		add(dtype.F32, "seq=1 head=4 head_dim=5", keys, keys, Attention{Causal: true, Start: -1})
		add(dtype.F32, "seq=3 head=4 head_dim=5", keys, keys,
			Attention{Mask: m.Tensor(dtype.F32, "key_seq=%d head=4", n)})
		add(dtype.F32, "seq=3 head=4 head_dim=5", keys, keys,
			Attention{Mask: m.Tensor(dtype.Bool, "seq=3 key_seq=%d", n)})
		keys = fmt.Sprintf("batch=2 seq=%d head=1 head_dim=17", n)
		add(dtype.F32, "batch=2 head=2 seq=2 head_dim=17", keys, keys, Attention{Window: 7})
	}
	for _, dt := range floats {
		keys := "batch=2 kv_head=2 key_seq=9 head_dim=8"
		add(dt, "batch=2 seq=6 head=4 head_dim=8", keys, keys, Attention{Causal: true, Start: 3})
		add(dt, "batch=2 seq=6 head=4 head_dim=8", keys, "value=3 batch=2 kv_head=2 key_seq=9",
			Attention{Softcap: 2, Start: -1, Mask: m.Tensor(dt, "key_seq=9 seq=6 batch=2 head=4")})
		add(dt, "seq=6 head_dim=8 head=2", "seq=6 head_dim=8 head=2", "seq=6 head=2 head_dim=5",
			Attention{Causal: true, Start: -1, Window: 2, Scale: 0.5, Mask: m.Tensor(dtype.Bool, "key_seq=6 seq=6")})
		add(dt, "seq=3 head_dim=8", "key_seq=70 head_dim=8", "key_seq=70 head_dim=8",
			Attention{Causal: true, Start: 66, Softcap: 3})
	}
	return list
}
