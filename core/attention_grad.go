package core

import (
	"math"
	"sync"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/par"
	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/num"
)

// attentionGrad is the gradients of attention with respect to q, k and v, given that with respect to its result. It
// is in no table.
//
// The weights p of a few queries are computed anew. With gp = gy·v and gs = p · (gp - sum(p · gp)) · scale · the slope
// of the cap, gq is gs·k, and gk and gv get gsᵀ·q and pᵀ·gy added. A head of the keys is one piece of work, in which
// queries go in order, so the sums are the same for any number of workers.
type attentionGrad struct {
	Attention
	GY *Tensor `arg:"gy"`
}

var attentionGrads = Define[attentionGrad]("attention")

// gradRows is for how many queries the weights are in memory at once, in each worker.
const gradRows = 32

// Names has a gradient for each.
func (a *attentionGrad) Names(p *Plan) {
	dt := native[float32]()
	if a.Q.dtype == dtype.F64 {
		dt = dtype.F64
	}
	for _, t := range []*Tensor{a.Q, a.K, a.V} {
		p.Out(t.axes, dt)
	}
	p.Keep(a.roles())
}

// Sizes are those of the operands, which attention has checked.
func (a *attentionGrad) Sizes(s *Sizes) {
	for i, t := range []*Tensor{a.Q, a.K, a.V} {
		for k, name := range t.axes.Names() {
			s.Set(i, name, t.sizes[k])
		}
	}
}

// Eval does every head of the keys.
func (a *attentionGrad) Eval(c *Ctx) {
	if a.Q.dtype == dtype.F64 {
		attendBack[float64](c, a)
	} else {
		attendBack[float32](c, a)
	}
}

// attendingBack is what the heads share.
type attendingBack[C float32 | float64] struct {
	*attending[C]
	gq, gk, gv, gy *Tensor

	mu   sync.Mutex
	idle []*attentionRoom[C]
}

// attentionRoom is what a worker computes in: weights, their gradients and one of these turned, gradRows × keys each.
type attentionRoom[C float32 | float64] struct{ p, g, turned, capped, mask []C }

func attendBack[C float32 | float64](c *Ctx, a *attentionGrad) {
	if a.Q.Len() == 0 || a.K.Len() == 0 || a.V.Len() == 0 {
		for i := range 3 {
			clear(c.Out(i).bytes())
		}
		return
	}
	r := c.Data().(attentionRoles)
	t := &attendingBack[C]{attending: attendingTo[C](c, &a.Attention, r), gy: c.rowsOf(a.GY, r.y, native[C]())}
	t.gq, t.gk = c.direct(c.Out(0), r.q, native[C]()), c.direct(c.Out(1), r.k, native[C]())
	t.gv = c.direct(c.Out(2), r.v, native[C]())
	heads := volume(a.K, r.batch)
	if r.kHead != "" {
		heads *= a.K.Size(r.kHead)
	}
	for range par.Most(&c.c.env.Control, heads) {
		t.put(t.room())
	}
	c.Split(heads, 1, func(lo, hi int) {
		room := t.take()
		defer t.put(room)
		for h := lo; h < hi && !c.c.env.Control.Stopped(); h++ {
			t.head(h, room)
		}
	})
	for i, g := range []*Tensor{t.gq, t.gk, t.gv} {
		if out := c.Out(i); g.data != out.data {
			c.copyInto(out, g.permuted(out.axes))
		}
	}
}

// room is a new one, whose memory ends with the operation. The workers cannot ask for it, so it is there before them.
func (t *attendingBack[C]) room() *attentionRoom[C] {
	of := func(n int) []C {
		return elementsOf[C](t.c.Scratch(native[C](), axisList("room"), []int{n}))
	}
	n := min(gradRows, max(1, t.queries)) * t.keys
	room := &attentionRoom[C]{p: of(n), g: of(n), turned: of(n)}
	if t.a.Softcap > 0 {
		room.capped = of(n)
	}
	if t.mask != nil {
		room.mask = of(t.keys)
	}
	return room
}

func (t *attendingBack[C]) take() *attentionRoom[C] {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.idle)
	room := t.idle[n-1]
	t.idle = t.idle[:n-1]
	return room
}

func (t *attendingBack[C]) put(room *attentionRoom[C]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = append(t.idle, room)
}

// head does one head of the keys, counted over the batches, with every query that reads it.
func (t *attendingBack[C]) head(h int, room *attentionRoom[C]) {
	last := len(t.k.sizes) - 1
	gk := runAt[C](t.gk, t.k.sizes[:last-1], h, 1)
	gv := runAt[C](t.gv, t.k.sizes[:last-1], h, 1)
	for i := range t.keys {
		clear(gk[i*t.gk.strides[last-1]:][:t.width])
		clear(gv[i*t.gv.strides[last-1]:][:t.valueSize])
	}
	for g := range t.group {
		for i := 0; i < t.queries && !t.c.c.env.Control.Stopped(); i += gradRows {
			t.few(gk, gv, (h*t.group+g)*t.queries+i, i, min(gradRows, t.queries-i), room)
		}
	}
}

// few does n queries from the given row on, the first of which is the given query.
func (t *attendingBack[C]) few(gk, gv []C, row, query, n int, room *attentionRoom[C]) {
	last := len(t.q.sizes) - 1
	places := t.q.sizes[:last]
	gq, ldq := runAt[C](t.gq, places, row, 1), t.gq.strides[last-1]
	first, end := t.keys, 0
	for i := range n {
		if from, to := t.sees(query + i); from < to {
			first, end = min(first, from), max(end, to)
		}
	}
	m := end - first
	if m <= 0 {
		for i := range n {
			clear(gq[i*ldq:][:t.width])
		}
		return
	}
	q, gy := runAt[C](t.q, places, row, 1), runAt[C](t.gy, places, row, 1)
	heads := t.q.sizes[:last-1]
	at := row / t.queries
	k, v := runAt[C](t.k, heads, at, t.group), runAt[C](t.v, heads, at, t.group)
	ks, vs, qs, ys := t.k.strides[last-1], t.v.strides[last-1], t.q.strides[last-1], t.gy.strides[last-1]
	k, v = k[first*ks:], v[first*vs:]
	gemm.NT(room.p, q, k, n, m, t.width, qs, ks, m)
	gemm.NT(room.g, gy, v, n, m, t.valueSize, ys, vs, m)
	for i := range n {
		t.slopes(row+i, query+i, first, m, i, room)
	}
	gemm.NN(gq, room.g, k, n, t.width, m, m, ks, ldq)
	turn(room.turned, room.p, n, m)
	gemm.AddNN(gv[first*t.gv.strides[last-1]:], room.turned, gy, m, t.valueSize, n, n, ys, t.gv.strides[last-1])
	turn(room.turned, room.g, n, m)
	gemm.AddNN(gk[first*t.gk.strides[last-1]:], room.turned, q, m, t.width, n, n, qs, t.gk.strides[last-1])
}

// slopes turns the products of row i of the room into weights, and their gradients into those of the products.
func (t *attendingBack[C]) slopes(row, query, first, m, i int, room *attentionRoom[C]) {
	p, g := room.p[i*m:][:m], room.g[i*m:][:m]
	t.bend(p)
	var capped []C
	if t.a.Softcap > 0 {
		capped = room.capped[:m]
		copy(capped, p)
	}
	t.hide(p, row, first, room.mask)
	from, to := t.sees(query)
	from, to = max(0, min(m, from-first)), max(0, min(m, to-first))
	seen := p[from:to]
	top := C(math.Inf(-1))
	if len(seen) > 0 {
		top = num.Max(seen)
	}
	if math.IsInf(float64(top), -1) {
		clear(p)
		clear(g)
		return
	}
	num.Quotient(seen, seen, num.ExpSum(seen, seen, top))
	clear(p[:from])
	clear(p[to:])
	clear(g[:from])
	clear(g[to:])
	inner := g[from:to]
	mean := num.Dot(seen, inner)
	for j := range inner {
		inner[j] = C(C(inner[j]-mean)*seen[j]) * t.scale
	}
	if capped != nil {
		limit := C(t.a.Softcap)
		for j, c := range capped[from:to] {
			bent := c / limit
			inner[j] *= 1 - C(bent*bent)
		}
	}
}

// turn sets y[m×n] to the transpose of x[n×m].
func turn[C float32 | float64](y, x []C, n, m int) {
	const tile = 16
	for j := 0; j < m; j += tile {
		end := min(m, j+tile)
		for i := range n {
			for l, v := range x[i*m+j : i*m+end] {
				y[(j+l)*n+i] = v
			}
		}
	}
}
