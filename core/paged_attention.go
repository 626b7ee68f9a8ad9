package core

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/attn"
	"github.com/fucina-go/fucina/kernels/gemm"
)

// PagedAttention is causal attention of rows of several sequences, each to the keys and values of its own sequence,
// which lie in pages (Kwon et al. 2023). It stores those of the rows first. It is in no table: models/kv keeps the
// pages.
//
// Shape: q[row, head, head_dim], k and v[row, kv_head, head_dim] → y[row, head, head_dim], in the order of q's axes.
// v may have another head_dim, which is then that of y. Without v the first Value elements of a key are its value.
// The rows of a sequence follow one another, in the order of Parts.
//
// A row at position p sees the keys up to p, or the nearest Window of these. Scale and Softcap are those of Attention.
//
// Numerics: those of Attention, of keys and values rounded to the dtype of the pages. A row has the same bits in every
// batch.
//
// Errors: axes that do not fit; a negative window; pages of another shape; a number that cannot be stored.
type PagedAttention struct {
	Q       *Tensor `arg:"q"`
	K       *Tensor `arg:"k"`
	V       *Tensor `arg:"v?"`
	Window  int     `arg:"window=0"`
	Scale   float64 `arg:"scale=0"`
	Softcap float64 `arg:"softcap=0"`
	Value   int     `arg:"value=0"`
	Parts   []PagedRows
}

// PagedRows is the rows of one sequence.
type PagedRows struct {
	Rows  int    // of q that are of this sequence
	Start int    // position of the first of them
	Pages []Page // page j holds the positions from j·PageLen on; those that no row sees may be empty
}

var pagedAttention = Define[PagedAttention]("attend")

// AttendPaged is the attention that a describes.
func AttendPaged(a PagedAttention) *Tensor { return pagedAttention.Call(a) }

var (
	rowsOfHeads, rowsOfKeyHeads = axisList("row", "head", "head_dim"), axisList("row", "kv_head", "head_dim")
	elementsOfHeads             = axisList("head_dim")
)

// Names insists on rows, heads and their elements.
func (a *PagedAttention) Names(p *Plan) {
	p.NeedAll(a.Q, rowsOfHeads)
	p.NeedAll(a.K, rowsOfKeyHeads)
	if a.V != nil {
		p.NeedAll(a.V, rowsOfKeyHeads)
		p.Same(a.K, a.V)
	}
	for _, t := range []*Tensor{a.Q, a.K, a.V} {
		if t != nil && t.Rank() != rowsOfHeads.Len() {
			p.Fail(fmt.Sprintf("want three axes, row, heads and head_dim, got %s", p.Describe(t)), "")
		}
	}
	p.Float(a.Q)
	p.Same(a.Q, a.K)
	p.Out(a.Q.axes, a.Q.dtype)
}

// Sizes compares by role.
func (a *PagedAttention) Sizes(s *Sizes) {
	if a.Window < 0 {
		s.Fail(fmt.Sprintf("window=%d, want 0 or more", a.Window), "0 sees all that came before: b.attend(i, q, k, v)")
	}
	value := a.Value
	if a.V != nil {
		value = a.V.Size("head_dim")
		if n := a.K.Size("kv_head"); n != a.V.Size("kv_head") {
			s.c.sizeConflict(a.K, a.V, "kv_head")
		}
	}
	s.Match(elementsOfHeads)
	if a.Q.Size("head_dim") != a.K.Size("head_dim") {
		s.c.sizeConflict(a.Q, a.K, "head_dim")
	}
	s.Set(0, "head_dim", value)
	if h, kv := a.Q.Size("head"), a.K.Size("kv_head"); kv == 0 || h%kv != 0 {
		s.Fail(fmt.Sprintf("%s has %d heads, no multiple of the %d of %s", s.Describe(a.Q), h, kv, s.Describe(a.K)), "")
	}
	if value < 1 || a.V == nil && value > a.K.Size("head_dim") {
		s.Fail(fmt.Sprintf("a value of width %d in keys of width %d", value, a.K.Size("head_dim")), "")
	}
	rows := 0
	for i := range a.Parts {
		rows += a.Parts[i].Rows
		a.checkPages(s, &a.Parts[i], value)
	}
	if rows != a.Q.Size("row") {
		s.Fail(fmt.Sprintf("%s has %d rows, the batch has %d", s.Describe(a.Q), a.Q.Size("row"), rows),
			"layers keep the rows that embed was given")
	}
}

// checkPages insists that the pages that rows see are there and fit.
func (a *PagedAttention) checkPages(s *Sizes, part *PagedRows, value int) {
	first, _ := a.sees(part.Start)
	end := part.Start + part.Rows
	var shape pageShape // of all of them
	for j := first / PageLen; j*PageLen < end; j++ {
		if j >= len(part.Pages) || part.Pages[j].K == nil {
			s.Fail(fmt.Sprintf("a row at position %d sees position %d, which is not kept", part.Start, j*PageLen),
				"a layer has one window: give the same to all rows")
		}
		p := &part.Pages[j]
		if (j+1)*PageLen >= end { // to which this row and the next ones add
			s.c.env.ahead.look(unsafe.Pointer(p), 1)
			s.c.env.ahead.look(unsafe.Pointer(p.K), handleLines)
			s.c.env.ahead.look(unsafe.Pointer(p.V), handleLines)
		}
		if shape.k == nil {
			own := value
			if a.V == nil {
				own = 0
			}
			shape = shapeOfPages(p.K.dtype, a.K.Size("kv_head"), a.K.Size("head_dim"), own)
		}
		if !shape.of(p) {
			s.Fail(fmt.Sprintf("%s does not fit what the cache holds, %s", s.Describe(a.K), p.K.Shape()), "")
		}
	}
}

// sees is the keys that a row at a position sees.
func (a *PagedAttention) sees(position int) (first, end int) {
	if a.Window > 0 {
		first = max(0, position+1-a.Window)
	}
	return first, position + 1
}

// paging is a running PagedAttention. Its memory, and the functions that workers run, are used again: a token of a
// model would otherwise leave those of each layer.
type paging struct {
	*PagedAttention
	c            *Ctx
	q, k, v, y   *Tensor // [row, heads, element], whose elements lie together
	first        []int   // the first row of each part
	runs         []pagedRun
	tiles        []pagedTile
	group        int // query heads that read one key head
	width, value int
	scale        float32
	failed       rowError

	puts, attends func(lo, hi int) // of runs and heads, and of tiles
}

// pagedRun is rows of a part whose keys lie in one panel.
type pagedRun struct{ part, from, to int }

var pagings = sync.Pool{New: func() any {
	t := new(paging)
	t.puts, t.attends = t.put, t.attend
	return t
}}

// done gives t back.
func (t *paging) done() {
	*t = paging{first: t.first[:0], runs: t.runs[:0], tiles: t.tiles[:0], puts: t.puts, attends: t.attends}
	pagings.Put(t)
}

// pagedTile is rows that read the same keys: those of one part and key head, counted over its rows and, faster, the
// query heads of a group.
type pagedTile struct{ part, head, from, to int }

// Eval stores the keys and values, then does tile by tile.
func (a *PagedAttention) Eval(c *Ctx) {
	out := c.Out(0)
	if out.Len() == 0 {
		return
	}
	t := pagings.Get().(*paging)
	defer t.done()
	t.PagedAttention, t.c = a, c
	t.q, t.k = c.rowsOf(a.Q, rowsOfHeads, dtype.F32), c.rowsOf(a.K, rowsOfKeyHeads, dtype.F32)
	t.y, t.group = c.direct(out, rowsOfHeads, dtype.F32), a.Q.Size("head")/a.K.Size("kv_head")
	t.width, t.value = a.K.Size("head_dim"), out.Size("head_dim")
	if a.V != nil {
		t.v = c.rowsOf(a.V, rowsOfKeyHeads, dtype.F32)
	}
	scale := a.Scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(t.width))
	}
	t.scale = float32(scale)
	t.store()
	grain := t.plan(c.workers())
	c.Split(len(t.tiles), grain, t.attends)
	if t.y.data != out.data {
		c.copyInto(out, t.y.permuted(out.axes))
	}
}

// store puts the rows' keys and values into the pages: at once those of one part whose keys lie in one panel.
func (t *paging) store() {
	rows := 0
	for i := range t.Parts {
		p := &t.Parts[i]
		t.first = append(t.first, rows)
		rows += p.Rows
		for from := 0; from < p.Rows; {
			to := min(p.Rows, from+gemm.Width-(p.Start+from)%gemm.Width)
			t.runs = append(t.runs, pagedRun{i, from, to})
			from = to
		}
	}
	each := (t.width + t.value) * ceilDiv(rows, len(t.runs))
	t.c.Split(len(t.runs)*t.k.sizes[1], max(1, pointGrain/each), t.puts)
	if t.failed.err != nil {
		t.c.Fail(fmt.Sprintf("the cache cannot hold row %d: %s", t.failed.row, t.failed.err), "keep it as f32")
	}
}

// put stores the keys and values [lo, hi), counted over the runs and, faster, the heads.
func (t *paging) put(lo, hi int) {
	heads := t.k.sizes[1]
	for i := lo; i < hi; i++ {
		r, head := t.runs[i/heads], i%heads
		p, row := &t.Parts[r.part], t.first[r.part]+r.from
		at := p.Start + r.from
		page := &p.Pages[at/PageLen]
		if r.to-r.from == gemm.Width && page.putPanel(head, at%PageLen, t.k, t.v, row) {
			continue
		}
		for j := range r.to - r.from {
			var value []float32
			if t.v != nil {
				value = rowAt(t.v, row+j, head)
			}
			t.failed.note(row+j, page.put(head, at%PageLen+j, rowAt(t.k, row+j, head), value))
		}
	}
}

// attend does the tiles [lo, hi).
func (t *paging) attend(lo, hi int) {
	room := pagedRooms.Get().(*pagedRoom)
	room.c = t.c
	defer func() {
		room.c, room.pages, room.next = nil, nil, pagePlace{}
		pagedRooms.Put(room)
	}()
	for i := lo; i < hi; i++ {
		room.next = pagePlace{}
		if i+1 < hi {
			next := &t.tiles[i+1]
			room.next = pagePlace{t.Parts[next.part].Pages[t.firstPage(next)], next.head}
		}
		t.tile(&t.tiles[i], room)
	}
}

// rowAt is the elements of a head of a row.
func rowAt(t *Tensor, row, head int) []float32 {
	return slice[float32](t)[row*t.strides[0]+head*t.strides[1]:][:t.sizes[2]]
}

// plan cuts the rows into tiles and returns how many are worth a chunk. Where there are too few tiles for the workers,
// those of a group's heads are cut up.
func (t *paging) plan(workers int) (grain int) {
	heads, most := t.k.sizes[1], attn.Tile
	if few := len(t.Parts) * heads; few < 2*workers {
		most = max(1, ceilDiv(t.group, ceilDiv(2*workers, few)))
		if t.q.sizes[0] > len(t.Parts) { // there are tiles enough
			most = attn.Tile
		}
	}
	total := 0
	for i := range t.Parts {
		p := &t.Parts[i]
		keys := p.Start + p.Rows
		if t.Window > 0 {
			keys = min(keys, t.Window+p.Rows)
		}
		total += p.Rows * t.group * heads * keys * (t.width + t.value)
		for head := range heads {
			for from := 0; from < p.Rows*t.group; from += most {
				t.tiles = append(t.tiles, pagedTile{i, head, from, min(p.Rows*t.group, from+most)})
			}
		}
	}
	return max(1, 64*pointGrain/max(1, total/len(t.tiles)))
}

// pagedRoom is what a worker computes in, and its source of keys and values: those of a head in pages.
type pagedRoom struct {
	attn.Room[float32]
	q, y  []float32
	k, v  []float32 // decoded rows
	c     *Ctx
	pages []Page
	head  int
	next  pagePlace // which the next tile reads first
}

var pagedRooms = sync.Pool{New: func() any { return new(pagedRoom) }}

// Block is a page. Between two of them the operation can be stopped.
func (r *pagedRoom) Block(start, from, to int) (k, v attn.Matrix[float32]) {
	r.c.Pause()
	then := r.next
	if j := start/PageLen + 1; j < len(r.pages) {
		then = pagePlace{r.pages[j], r.head}
	}
	return r.pages[start/PageLen].block(r.head, from-start, to-start, then, r)
}

// sized is s with at least n elements.
func sized(s []float32, n int) []float32 {
	if len(s) < n {
		return make([]float32, n)
	}
	return s
}

// firstPage is the first page that rows of the tile see.
func (t *paging) firstPage(tile *pagedTile) int {
	first, _ := t.sees(t.Parts[tile.part].Start + tile.from/t.group)
	return first / PageLen
}

// tile does the rows of a tile.
func (t *paging) tile(tile *pagedTile, room *pagedRoom) {
	p, n := &t.Parts[tile.part], tile.to-tile.from
	step := attn.Strides{Out: t.value, Q: t.width}
	if page := &p.Pages[t.firstPage(tile)]; page.K.axes == keyRows {
		step.K, step.V = page.K.sizes[2], page.K.sizes[2]
		if page.V != nil {
			step.V = page.V.sizes[2]
		}
	}
	room.q, room.y = sized(room.q, n*t.width), sized(room.y, n*t.value)
	room.pages, room.head = p.Pages, tile.head
	var lo, hi [attn.Tile]int
	for i := range n {
		row := (tile.from + i) / t.group
		head := tile.head*t.group + (tile.from+i)%t.group
		lo[i], hi[i] = t.sees(p.Start + row)
		copy(room.q[i*t.width:], rowAt(t.q, t.first[tile.part]+row, head))
	}
	attn.Blocks(&room.Room, room.y, room.q, room, t.width, t.value, step, lo[:n], hi[:n], t.scale, float32(t.Softcap))
	for i := range n {
		row := (tile.from + i) / t.group
		head := tile.head*t.group + (tile.from+i)%t.group
		copy(rowAt(t.y, t.first[tile.part]+row, head), room.y[i*t.value:][:t.value])
	}
}

// workers is how many goroutines may share the work.
func (c *Ctx) workers() int {
	if n := c.c.env.Control.Workers; n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}
