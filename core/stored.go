package core

import (
	"fmt"
	"sync"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/par"
	"github.com/fucina-go/fucina/core/quant"
	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/qdot"
)

// contractStored computes out = x·w where the axes summed are the last of w, which is quantized or lies in panels.
func (c *Ctx) contractStored(out, x, w *Tensor, con axis.Contraction) {
	c.queueStored(out, x, w, con)
	c.runStored()
}

// queueStored readies the product of contractStored for runStored.
func (c *Ctx) queueStored(out, x, w *Tensor, con axis.Contraction) {
	if out.Len() == 0 {
		return
	}
	f := formatOf(w.dtype)
	p := blockProduct{c: c, f: f, w: w, out: out, dst: out,
		m: volume(x, con.A), n: volume(w, con.B), k: volume(w, con.Sum)}
	if p.k%f.Block != 0 {
		c.Fail(quoted(con.Sum.Names())+" of "+c.Describe(w)+" are "+noBlocks(p.k, f), c.c.param(w)+".dequantize()")
	}
	if w.panels > 0 && w.panels%p.k != 0 {
		c.Fail(fmt.Sprintf("%s lies in panels of rows of %d elements, want rows of %d along %s", c.Describe(w),
			w.panels, p.k, quoted(con.Sum.Names())), c.c.param(w)+".dequantize()")
	}
	p.rows = rowsOf(w, con.Batch.Append(con.B))
	order := con.Batch.Append(con.A).Append(con.Sum)
	if out.dtype != dtype.F32 {
		p.dst = c.Scratch(dtype.F32, out.axes, out.sizes)
	}
	p.y, p.bytes = elementsOf[float32](p.dst), w.bytes()
	p.direct = w.panels > 0 && w.panels == p.k && p.aligned()
	switch {
	case f.Integers != nil && p.k > 0:
		p.q, p.panel = f.Integers, f.Integers.PanelSize(p.k)
		p.x, p.words = c.rounded(x, order, p.k), qdot.ActivationWords(p.k)
	case f == bf16Format && p.k > 0:
		p.h, p.words = c.halved(x, order, p.k), strideBF16(p.k)
	default:
		p.a, p.words = c.spaced(x, order, p.k, p.m)
	}
	c.c.stored = append(c.c.stored, p)
}

// runStored computes the queued products. Those in integers of a few rows, which are short, go to the workers together.
func (c *Ctx) runStored() {
	list := c.c.stored
	for i := 0; i < len(list); {
		p, n := &list[i], 1
		switch {
		case p.few():
			for i+n < len(list) && list[i+n].few() {
				n++
			}
			c.vecs(list[i : i+n])
		case p.q != nil:
			p.pairs()
		case p.h != nil:
			p.bf16()
		case p.direct && p.f.Block == 1:
			p.halves()
		default:
			p.floats()
		}
		i += n
	}
	for i := range list {
		if p := &list[i]; p.dst != p.out {
			c.copyInto(p.out, p.dst)
		}
	}
	clear(list)
	c.c.stored = list[:0]
}

// blockProduct is a batch of products y[m×n] = x[m×k]·wᵀ with a stored w.
type blockProduct struct {
	c        *Ctx
	f        *quant.Format
	q        *qdot.Format // nil if the products are not computed in integers
	out, dst *Tensor      // the result, and where it is computed
	y        []float32    // of dst
	x        []uint32     // rows of activations in 8 bits; with q
	h        []uint16     // the same in bf16; with a w of bf16
	a        []float32    // the same; with another w
	words    int          // from a row of x, h or a to the next
	w        *Tensor
	m, n, k  int
	rows     rowPlaces // of w
	bytes    []byte    // of w, asked for once: that costs a tenth of reading a few panels
	panel    int       // bytes of one of w; with q
	direct   bool      // w lies in panels, of which none has rows of two batches
	first    int       // unit, of those of several products; see vecs
}

// vecWork is how many multiplications of one row a worker does at once at least.
const vecWork = 1 << 18

// mostVecWork is up to how many if there are more: memory rests when a worker begins with what it was handed out, but
// waiting for a stop must be short.
const mostVecWork = 1 << 20

// streams is how many panels from distant places are read at the same time.
const streams = 4

// few tells whether the products are in integers and of so few rows that weights are not expanded for all of them.
func (p *blockProduct) few() bool { return p.q != nil && p.m <= p.q.Few() }

// pairs computes the products in integers, two panels at a time.
func (p *blockProduct) pairs() {
	batches := len(p.y) / (p.m * p.n)
	pairs := ceilDiv(ceilDiv(p.n, qdot.Rows), 2)
	p.c.Split(batches*pairs, max(1, tileWork/max(1, p.m*p.k*2*qdot.Rows)), func(lo, hi int) {
		form := takeForm(min(p.k, formDepth(p.f)))
		defer forms.Put(form)
		for i := lo; i < hi; i++ {
			p.pair(form, i/pairs, i%pairs*2*qdot.Rows)
		}
	})
}

// streamed is how many of a batch's units are of several panels, which are read together, and how many units it has:
// panels j, j + quarter, and so on are a unit; what is left are units of one panel.
func (p *blockProduct) streamed() (quarter, units int) {
	panels := ceilDiv(p.n, qdot.Rows)
	quarter = panels / streams
	return quarter, quarter + panels - streams*quarter
}

// sharing is the part of vecs that workers share. What they run is made once for a call's frame, as that of rounding.
type sharing struct {
	list        []blockProduct
	half, total int              // units
	some        func(lo, hi int) // nil at first
}

// computes does the units that are handed out as [lo, hi).
func (s *sharing) computes(lo, hi int) {
	someVecs(s.list, lo, min(hi, s.half))
	if hi > s.half { // a worker that takes what is last reads on, too, and not back
		someVecs(s.list, s.total+s.half-hi, s.total+s.half-max(lo, s.half))
	}
}

// vecs computes products of a few rows, which have the same activations: one hand-out for all.
func (c *Ctx) vecs(list []blockProduct) {
	total := 0
	for i := range list {
		p := &list[i]
		_, units := p.streamed()
		p.first = total
		total += len(p.y) / (p.m * p.n) * units
	}
	half, work := total, streams*qdot.Rows*list[0].k // of a unit
	workers := par.Most(&c.c.env.Control, total)
	if workers > 1 {
		half = total / 2
	}
	// So few turns that all workers end at about the same time.
	turns := workers * ceilDiv(total*work, workers*mostVecWork)
	s := &c.c.units
	if s.some == nil {
		s.some = s.computes
	}
	s.list, s.half, s.total = list, half, total
	c.Split(total, max(1, vecWork/work, ceilDiv(total, turns)), s.some)
	s.list = nil
	c.c.env.ahead.read(list, half, half < total)
}

// unitOf is the product whose unit that is, of those of the list.
func unitOf(list []blockProduct, unit int) *blockProduct {
	j := len(list) - 1
	for list[j].first > unit {
		j--
	}
	return &list[j]
}

// someVecs does the units [lo, hi) of all those of the list.
func someVecs(list []blockProduct, lo, hi int) {
	for lo < hi {
		p := unitOf(list, lo)
		quarter, units := p.streamed()
		batch, i := (lo-p.first)/units, (lo-p.first)%units
		n := min(hi-lo, units-i)
		if i < quarter {
			n = min(n, quarter-i)
			p.vec(batch, i*qdot.Rows, quarter*qdot.Rows, streams, n)
		} else {
			p.vec(batch, (i-quarter+streams*quarter)*qdot.Rows, 0, 1, n)
		}
		lo += n
	}
}

// vec computes y for units panels each of those from the rows j, j + step, and so on of a batch's weights on.
func (p *blockProduct) vec(batch, j, step, count, units int) {
	turn := units
	if p.m > 1 || !p.direct { // what is read for a row, or gathered, is used at once by the others
		turn = 1
	}
	size := p.panel
	var panels []byte
	next := step / qdot.Rows * size
	if p.direct {
		panels = p.panels(batch, j)
	} else {
		b := takeBytes(count * size)
		defer spareBytes.Put(b)
		panels, next = *b, size
	}
	for u := 0; u < units; u += turn {
		at := panels
		if p.direct {
			at = panels[u*size:]
		} else {
			for s := range count {
				p.gather(panels[s*size:(s+1)*size], batch, j+u*qdot.Rows+s*step, 0, p.k)
			}
		}
		for i := range p.m {
			y := p.y[(batch*p.m+i)*p.n:][:p.n]
			p.q.Vec(y[j+u*qdot.Rows:], step, at, next, count, turn, p.x[(batch*p.m+i)*p.words:], p.k)
		}
	}
}

// formDepth is how many weights of a row are expanded at once, so that a form stays in the cache.
func formDepth(f *quant.Format) int { return 8192 / f.Block * f.Block }

// pair computes y for two panels, the rows of weights from j on.
func (p *blockProduct) pair(form *qdot.Form, batch, j int) {
	cols := min(2*qdot.Rows, p.n-j)
	y, x := p.y[batch*p.m*p.n+j:], p.x[batch*p.m*p.words:]
	whole := p.panel
	var panels []byte
	if p.direct {
		panels = p.panels(batch, j)
	}
	for from := 0; from < p.k; from += formDepth(p.f) {
		k := min(formDepth(p.f), p.k-from)
		for s := range ceilDiv(cols, qdot.Rows) {
			if p.direct {
				at := s*whole + from/p.f.Block*p.f.Bytes*qdot.Rows
				p.q.Unpack(form, s, panels[at:min(at+whole, len(panels))], k)
				continue
			}
			b := takeBytes(p.q.PanelSize(k))
			p.gather(*b, batch, j+s*qdot.Rows, from, k)
			p.q.Unpack(form, s, *b, k)
			spareBytes.Put(b)
		}
		for i := 0; i < p.m; i += dotRows {
			p.c.Pause()
			a := x[i*p.words+from/qdot.Group*qdot.Record:]
			p.q.Tile(y[i*p.n:], p.n, form, a, p.words, min(dotRows, p.m-i), cols, k, from > 0)
		}
	}
}

// dotRows is tileRows of the products in integers, whose tiles have 4, 5 or 6 rows.
const dotRows = 120

// tileRows is how many rows of activations are multiplied between two looks at whether to stop.
const tileRows = 96

// panels is the panels of w as they lie, from that with row j of a batch's weights on.
func (p *blockProduct) panels(batch, j int) []byte {
	return p.bytes[(p.rows.at(batch*p.n)/p.k+j)/qdot.Rows*p.panel:]
}

// aligned tells whether the rows of every batch begin with a panel and follow one another.
func (p *blockProduct) aligned() bool {
	for b := range len(p.y) / (p.m * p.n) {
		at := p.rows.at(b*p.n) / p.k
		if at%qdot.Rows != 0 || p.rows.at(b*p.n+p.n-1)/p.k != at+p.n-1 {
			return false
		}
	}
	return true
}

// gather makes a panel of the rows from j on of a batch's weights, k of their elements from place from on.
func (p *blockProduct) gather(panel []byte, batch, j, from, k int) {
	n := min(qdot.Rows, p.n-j)
	size := p.f.Size(k)
	rows := takeBytes(qdot.Rows*size + p.f.Size(p.w.panels))
	defer spareBytes.Put(rows)
	buf := (*rows)[qdot.Rows*size:]
	for r := range n {
		row := p.w.rowBytes(buf, p.f, p.rows.at(batch*p.n+j+r)/p.k, p.k)
		copy((*rows)[r*size:], row[p.f.Size(from):p.f.Size(from+k)])
	}
	p.q.Pack(panel, (*rows)[:n*size], n, k, size)
}

// halfWork is how many multiplications of a few rows a worker does at once at least.
const halfWork = 1 << 18

// halves computes the products with a w of f16 that lies in panels.
func (p *blockProduct) halves() {
	m, n, k := p.m, p.n, p.k
	if m >= widenRows && k > 0 {
		p.widened()
		return
	}
	batches := len(p.y) / (m * n)
	packed := words(p.bytes)
	work := tileWork
	if m <= fewRows {
		work = halfWork
	}
	const wide = 4 * gemm.Width
	cols := min(ceilDiv(n, wide), max(1, work/(m*k*wide))) * wide
	across := ceilDiv(n, cols)
	p.c.Split(batches*across, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			batch, j := i/across, i%across*cols
			first := p.rows.at(batch*n+j) / k
			for r := 0; r < m; r += tileRows {
				p.c.Pause()
				gemm.PackedHalf(p.y[batch*m*n+r*n+j:], p.a[(batch*m+r)*p.words:], packed[first*k:], min(tileRows, m-r),
					min(cols, n-j), k, p.words, n, false)
			}
		}
	})
}

// widenRows is from how many rows on it pays to make a block of f16 weights f32 for all of them.
const widenRows = 16

// A block of weights is widenCols by up to widenDepth: it stays in the second level cache while the rows pass, of which
// so many are multiplied between two looks at whether to stop.
const (
	widenCols  = 128
	widenDepth = 512
	widenTurn  = 48
)

// widened is halves for many rows: the first of them leave a block of w behind as f32 for the others.
func (p *blockProduct) widened() {
	m, n, k := p.m, p.n, p.k
	deep := ceilDiv(k, ceilDiv(k, widenDepth)) // blocks of equal depth: a shallow one is slow
	cols := widenCols
	for cols > 4*gemm.Width && n < 8*cols { // some chunks for each worker
		cols /= 2
	}
	across := ceilDiv(n, cols)
	packed := words(p.bytes)
	p.c.Split(len(p.y)/(m*n)*across, 1, func(lo, hi int) {
		room := takePanel(cols * deep)
		defer decoded.Put(room)
		for i := lo; i < hi; i++ {
			batch, j := i/across, i%across*cols
			first, w := p.rows.at(batch*n+j)/k*k, min(cols, n-j)
			for at := 0; at < k; at += deep {
				d := min(deep, k-at)
				b := gemm.Panels[float32]{Half: packed[first+at*gemm.Width:], Next: k * gemm.Width}
				next := at + d // where the block lies that comes next
				if next == k {
					next = k * cols / gemm.Width
				}
				b.Ahead = p.f.Size((next - at) * gemm.Width)
				for r := 0; r < m; r += widenTurn {
					p.c.Pause()
					y, a, rows := p.y[(batch*m+r)*n+j:], p.a[(batch*m+r)*p.words+at:], min(widenTurn, m-r)
					if r == 0 {
						b = b.MultiplyWiden(*room, y, a, rows, w, d, p.words, n, at > 0)
					} else {
						b.Multiply(y, a, rows, w, d, p.words, n, at > 0)
					}
				}
			}
		}
	})
}

// quantizedRows is up to how many rows of a quantized operand a worker decodes at once.
const quantizedRows = 16

// quantizedWork is up to how many of its elements, if more than a row.
const quantizedWork = 1 << 18

// floats computes the products with the decoded w: a few of its rows at a time are multiplied by all rows of a.
func (p *blockProduct) floats() {
	m, n, k := p.m, p.n, p.k
	rows := max(1, min(quantizedRows, quantizedWork/max(1, k)))
	across := ceilDiv(n, rows)
	p.c.Split(len(p.y)/(m*n)*across, max(1, tileWork/max(1, m*k*rows)), func(lo, hi int) {
		panel, buf := takePanel(rows*k), takeBytes(p.f.Size(p.w.panels))
		defer decoded.Put(panel)
		defer spareBytes.Put(buf)
		for i := lo; i < hi; i++ {
			batch, j := i/across, i%across*rows
			count := min(rows, n-j)
			for r := range count {
				at := p.rows.at(batch*n + j + r)
				decodeBlocks(p.f, (*panel)[r*k:(r+1)*k], p.w.rowBytes(*buf, p.f, at/max(1, k), k))
			}
			for r := 0; r < m; r += tileRows {
				p.c.Pause()
				gemm.NT(p.y[batch*m*n+r*n+j:], p.a[(batch*m+r)*p.words:], *panel, min(tileRows, m-r), count, k, p.words,
					k, n)
			}
		}
	})
}

// Memory for decoded rows, for bytes and for forms. A worker takes some for each chunk, and most are of one size.
var decoded, spareBytes, forms sync.Pool

func takePanel(n int) *[]float32 {
	if p, ok := decoded.Get().(*[]float32); ok && cap(*p) >= n {
		*p = (*p)[:n]
		return p
	}
	p := make([]float32, n)
	return &p
}

func takeBytes(n int) *[]byte {
	if p, ok := spareBytes.Get().(*[]byte); ok && cap(*p) >= n {
		*p = (*p)[:n]
		return p
	}
	p := make([]byte, n)
	return &p
}

func takeForm(k int) *qdot.Form {
	if p, ok := forms.Get().(*qdot.Form); ok && len(p.Bytes) >= 2*k*qdot.Rows {
		return p
	}
	return qdot.NewForm(k)
}
