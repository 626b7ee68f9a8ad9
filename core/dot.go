package core

import (
	"fmt"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/num"
)

// Dot is the sum of products over the named axes, which both operands have. Other axes that both
// have are batch axes; the rest is free. What add holds, if given, is added: y = add + x·w.
//
// Shape: x[batch, m, in], w[batch, n, in] → y[batch, m, n] for dot(w, "in"): batch axes, x's own, w's
// own, each in its operand's order. Several axes may be contracted: "head head_dim". add may have any of y's axes, in
// any order, and repeats along the others.
//
// Numerics: products are added one after another in the order of the contracted axes, each with one
// rounding (fused multiply-add), and add to their sum; f16 and bf16 compute in f32 and round once, that is after
// add. A row of a batch has the bits of that row alone.
//
// The blocks of a quantized w lie along its last axes, and those must be the ones contracted. x is rounded to 8 bits,
// 32 elements sharing a scale, and the products are integers, which errs by some tenths of a per cent. Where elements
// of x are greater than 2¹²³, some 1e37, the sum of 32 may be none of f32's numbers, and y infinite or NaN where the
// product with w.dequantize() is not, if the format has offsets (q4_1, q5_1, q2_k, q4_k, q5_k); where they are greater
// than 2¹¹³, some 1e34, that of 128 times small integers, if so many weights share a scale (q2_k, q3_k, tq2_0).
//
// The weights of a model are packed for products as it is loaded. x is f32 then, and of such a w of f16 the product is
// that with w.dequantize(). With a packed w of bf16 x is rounded to bf16, to nearest, ties to even, which errs by up to
// 2⁻⁹ of each element; what is above 3.39e38 becomes infinite, and numbers below 2⁻¹²⁶, sums included, are 0. Of two
// neighbours along the contracted axes the product of the second is added first. Other tensors of bf16 compute in f32.
//
// Errors: an axis that one of them lacks; sizes or dtypes that differ; a quantized w with other blocks; an axis of add
// that y lacks.
//
// Example:
//
//	ones(batch=2, in_=3).dot(ones(out=4, in_=3), "in")
type Dot struct {
	X    *Tensor `arg:"x"`
	W    *Tensor `arg:"w"`
	Axes Axes    `arg:"axes"`
	Add  *Tensor `arg:"add?"`
}

var dot = Declare[Dot]("dot")

// Dot contracts the named axes; see the Dot operation.
func (x *Tensor) Dot(w *Tensor, axes string) *Tensor {
	return dot.Call(Dot{X: x, W: w, Axes: axisList(axes)})
}

// Names sorts the axes by role.
func (a *Dot) Names(p *Plan) {
	a.checkLeft(p)
	con := p.contract(a.X, a.W, a.Axes)
	p.Out(con.Out, p.sum(a.X, a.W, a.Add, con))
	p.Keep(con)
}

// Quantized takes a quantized w; of an x, Names says what to do with it.
func (*Dot) Quantized() (operands uint64, named bool) { return 3, false }

// checkLeft refuses a quantized x. By names the operands may change places.
func (a *Dot) checkLeft(p *Plan) {
	if !a.X.stored() {
		return
	}
	c := p.c
	more := ""
	if a.Add != nil {
		more = ", add=" + c.param(a.Add)
	}
	swap := remedy{"the quantized one comes second", fmt.Sprintf("%s.dot(%s, %q%s)", c.param(a.W), c.param(a.X),
		a.Axes.String(), more), func() Op { return &Dot{X: a.W, W: a.X, Axes: a.Axes, Add: a.Add} }}
	p.Fail(fmt.Sprintf("%s is %s, which is %s, want plain numbers", p.Describe(a.X), a.X.dtype, a.X.storage()),
		c.hint(swap, c.instead("decode it", a.X, "%s.dequantize()", func(t *Tensor) *Tensor {
			return dequantize.In(c.env, Dequantize{X: t})
		})))
}

// contract insists that both operands have the contracted axes and no free axis stands in both.
func (p *Plan) contract(x, w *Tensor, axes Axes) axis.Contraction {
	p.NeedAll(x, axes)
	p.NeedAll(w, axes)
	con := axis.Contract(x.axes, w.axes, axes)
	p.batches = append(p.batches, con.Batch)
	if w.stored() {
		p.alongBlocks(w, con.Sum)
		con.Sum = w.axes.Shared(con.Sum)
	}
	return con
}

// sum is the dtype of x·w, to which t is added, if given.
func (p *Plan) sum(x, w, t *Tensor, con axis.Contraction) dtype.Type {
	dt := p.product(x, w)
	p.Same(x, t)
	p.Within(t, con.Out, "the product")
	return dt
}

// Eval multiplies matrix by matrix, and adds where the product lies.
func (a *Dot) Eval(c *Ctx) {
	con := c.Data().(axis.Contraction)
	if told := c.c.env.Multiplied; told != nil {
		told(Product{X: a.X, W: a.W, Axes: con.Sum})
	}
	out := c.Out(0)
	y := out
	if dt := classOf(out.dtype); a.Add != nil && dt != out.dtype {
		y = c.Scratch(dt, out.axes, out.sizes)
	}
	c.contract(y, a.X, a.W, con)
	if a.Add != nil {
		c.plus(out, a.Add, y)
	}
}

// contract computes out = x·w, whose axes con has sorted.
func (c *Ctx) contract(out, x, w *Tensor, con axis.Contraction) {
	if w.stored() {
		c.contractStored(out, x, w, con)
		return
	}
	if con.B.Len() == 0 && con.A.Len() > 0 { // a vector: it becomes the one row, and the matrix stays as it lies
		x, w, con.A, con.B = w, x, con.B, con.A
	}
	switch classOf(out.dtype) {
	case dtype.F32:
		multiply[float32](c, out, x, w, con)
	case dtype.F64:
		multiply[float64](c, out, x, w, con)
	default:
		multiply[int64](c, out, x, w, con)
	}
}

func multiply[C number](c *Ctx, out, x, w *Tensor, con axis.Contraction) {
	if out.Len() == 0 {
		return
	}
	dt := native[C]()
	a := c.Dense(x, con.Batch.Append(con.A).Append(con.Sum), dt)
	// w is taken as it lies: rows of the contracted axes ("NN"), or rows of its free axes ("NT").
	nn := w.permuted(con.Batch.Append(con.Sum).Append(con.B))
	plain := dt == w.dtype && nn.dense() && con.B.Len() > 0
	b := nn
	if !plain {
		b = c.Dense(w, con.Batch.Append(con.B).Append(con.Sum), dt)
	}
	m, n, k := volume(x, con.A), volume(w, con.B), volume(x, con.Sum)
	dst := out
	if out.dtype != dt {
		dst = c.Scratch(dt, out.axes, out.sizes)
	}
	g := product[C]{c: elementsOf[C](dst), a: elementsOf[C](a), b: elementsOf[C](b), m: m, n: n, k: k, all: k,
		plain: plain}
	batch := out.Len() / (m * n)
	if dt.IsFloat() && k > 0 && (m > fewRows && n >= gemm.Width || k > packDepth) {
		g.space(c)
		g.room(c, batch, packDepth)
		g.runPacked(c, batch, packDepth)
	} else {
		g.run(c, batch)
	}
	if dst != out {
		c.copyInto(out, dst)
	}
}

// volume is the number of places of t along the axes.
func volume(t *Tensor, axes *axis.List) int {
	n := 1
	for _, name := range axes.Names() {
		n *= t.Size(name)
	}
	return n
}

// elementsOf is all elements of a dense tensor.
func elementsOf[C any](t *Tensor) []C { return unsafe.Slice((*C)(t.data), t.Len()) }

// product is a batch of matrix products c[m×n] = a[m×k]·b, b being k×n if plain, else n×k, or in panels if
// packed is set. The panels hold k elements of the contracted index from place from on, of all that there are.
type product[C number] struct {
	c, a, b    []C
	packed     []C
	m, n, k    int
	from, all  int
	gap        int // between rows of a
	plain      bool
	rows, cols int // of a tile
}

// fewRows is up to how many rows of a the matrix b is read as it lies; for more it is packed first, which
// pays when every element is used that often.
const fewRows = 8

// packDepth is how much of the contracted index is packed and multiplied at once, so that no piece of work is long.
// Tests make it small.
var packDepth = 1 << 15

// tileWork is how many multiplications a tile is worth at least; it keeps a tile well below the
// time within which a stop must be seen. Tests make it small.
var tileWork = 1 << 20

// each is how many multiplications in panels an element of the result is worth.
func (g *product[C]) each() int {
	if native[C]() == dtype.I64 {
		return 8 * (g.k + 1)
	}
	return g.k + 16
}

// run computes the products, tile by tile.
func (g *product[C]) run(c *Ctx, batch int) {
	tiles := g.tiles(batch)
	work := max(1, g.rows*max(g.cols, gemm.Width)*g.each()) // of a tile: many small ones make a chunk
	c.Split(tiles, max(1, tileWork/work), g.tile)
}

// runPacked is run with b in panels, depth elements of the contracted index after depth elements.
func (g *product[C]) runPacked(c *Ctx, batch, depth int) {
	for g.from = 0; g.from < g.all; g.from += depth {
		g.k = min(depth, g.all-g.from)
		g.pack(c, batch)
		g.run(c, batch)
	}
}

// spaceCols is for how many columns it pays to copy a.
const spaceCols = 256

// space copies rows of a that lie so that few of them stay in the cache together.
func (g *product[C]) space(c *Ctx) {
	stride := gemm.Stride(g.k, native[C]().Size())
	if stride != g.k && g.m > fewRows && g.n >= spaceCols {
		g.a, g.gap = apart(c, g.a, g.k, stride, native[C]()), stride-g.k
	}
}

// room is what pack needs for so much of the contracted index.
func (g *product[C]) room(c *Ctx, batch, depth int) {
	size := batch * gemm.PackedLen(g.n, min(g.all, depth))
	g.packed = elementsOf[C](c.Scratch(native[C](), axisList("packed"), []int{size}))
}

// pack puts b into panels, which the workers share out.
func (g *product[C]) pack(c *Ctx, batch int) {
	const wide, deep = 4 * gemm.Width, 512 // what is packed at once
	size := gemm.PackedLen(g.n, g.k)
	strips, blocks := ceilDiv(g.n, wide), ceilDiv(g.k, deep)
	c.Split(batch*strips*blocks, max(1, pointGrain/(wide*min(g.k, deep))), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			p, j := i%blocks*deep, i/blocks%strips*wide
			batch, k, cols := i/blocks/strips, min(deep, g.k-p), min(wide, g.n-j)
			dst, src := g.packed[batch*size+j*g.k+p*gemm.Width:], g.b[batch*g.n*g.all:]
			if g.plain {
				src = src[(g.from+p)*g.n+j:]
			} else {
				src = src[j*g.all+g.from+p:]
			}
			switch dst := any(dst).(type) {
			case []float32:
				packPanels(dst, any(src).([]float32), cols, g.n, k, g.k, g.all, g.plain)
			case []float64:
				packPanels(dst, any(src).([]float64), cols, g.n, k, g.k, g.all, g.plain)
			}
		}
	})
}

// packPanels packs the first columns of b, the first k of their elements, into panels of deep ones.
func packPanels[T num.Float](dst, b []T, cols, n, k, deep, all int, plain bool) {
	if plain {
		gemm.PackNN(dst, b, cols, k, n, deep*gemm.Width)
	} else {
		gemm.PackNT(dst, b, cols, k, all, deep*gemm.Width)
	}
}

// tiles chooses the tile and returns how many there are in a batch of products. Columns come in whole panels.
func (g *product[C]) tiles(batch int) int {
	g.rows, g.cols = g.m, g.n
	each := g.each()
	if work := g.m * g.n * each; work > tileWork {
		const wide = 8 * gemm.Width
		cols := max(wide, tileWork/(each*min(g.m, 48)))
		g.cols = min(g.n, ceilDiv(cols, wide)*wide)
		rows := max(1, tileWork/(each*g.cols))
		if native[C]() != dtype.I64 {
			rows = ceilDiv(rows, 12) * 12 // what a kernel does at once
		}
		g.rows = min(g.m, rows)
	}
	return batch * ceilDiv(g.m, g.rows) * ceilDiv(g.n, g.cols)
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func (g *product[C]) tile(lo, hi int) {
	across, down := ceilDiv(g.n, g.cols), ceilDiv(g.m, g.rows)
	for t := lo; t < hi; t++ {
		i, j, batch := t%down*g.rows, t/down%across*g.cols, t/across/down
		rows, cols := min(g.rows, g.m-i), min(g.cols, g.n-j)
		cs := g.c[batch*g.m*g.n+i*g.n+j:]
		lda := g.all + g.gap
		as := g.a[(batch*g.m+i)*lda+g.from:]
		if g.packed != nil {
			bs := g.packed[batch*gemm.PackedLen(g.n, g.k)+j*g.k:]
			switch cs := any(cs).(type) {
			case []float32:
				gemm.Packed(cs, any(as).([]float32), any(bs).([]float32), rows, cols, g.k, lda, g.n, g.from > 0)
			case []float64:
				gemm.Packed(cs, any(as).([]float64), any(bs).([]float64), rows, cols, g.k, lda, g.n, g.from > 0)
			}
			continue
		}
		bs := g.b[batch*g.n*g.k:]
		if g.plain {
			bs = bs[min(j, len(bs)):]
		} else {
			bs = bs[j*g.k:]
		}
		matmul(cs, as, bs, rows, cols, g.k, g.n, g.plain)
	}
}

// matmul is one tile: rows of a are k long, rows of c ldc apart, rows of b ldc apart if plain.
func matmul[C number](c, a, b []C, m, n, k, ldc int, plain bool) {
	switch c := any(c).(type) {
	case []float32:
		floatTile(c, any(a).([]float32), any(b).([]float32), m, n, k, ldc, plain)
	case []float64:
		floatTile(c, any(a).([]float64), any(b).([]float64), m, n, k, ldc, plain)
	case []int64:
		a, b := any(a).([]int64), any(b).([]int64)
		for i := range m {
			for j := range n {
				sum := int64(0)
				for l := range k {
					if plain {
						sum += a[i*k+l] * b[l*ldc+j]
					} else {
						sum += a[i*k+l] * b[j*k+l]
					}
				}
				c[i*ldc+j] = sum
			}
		}
	}
}

func floatTile[T num.Float](c, a, b []T, m, n, k, ldc int, plain bool) {
	if plain {
		gemm.NN(c, a, b, m, n, k, k, ldc, ldc)
	} else {
		gemm.NT(c, a, b, m, n, k, k, k, ldc)
	}
}

// Samples covers the lengths of the contracted axis and of a row of the result, batches, the dtypes, and what is added.
func (*Dot) Samples(m *Maker) (list []Dot) {
	in := axisList("in")
	for _, n := range lengths {
		list = append(list, Dot{X: m.Tensor(dtype.F32, "row=3 in=%d", n), W: m.Tensor(dtype.F32, "out=7 in=%d", n),
			Axes: in},
			Dot{X: m.Tensor(dtype.F32, "row=3 in=5"), W: m.Tensor(dtype.F32, "in=5 out=%d", n), Axes: in})
	}
	list = append(list,
		Dot{X: m.Tensor(dtype.F32, "row=70 in=65"), W: m.Tensor(dtype.F32, "in=65 out=90"), Axes: in},
		Dot{X: m.Tensor(dtype.F32, "row=3 head=2 head_dim=4 batch=2"),
			W: m.Tensor(dtype.F32, "head_dim=4 out=5 head=2 batch=2"), Axes: axisList("head_dim", "head")},
		Dot{X: m.Tensor(dtype.F32, "in=17"), W: m.Tensor(dtype.F32, "in=17"), Axes: in})
	for _, dt := range []dtype.Type{dtype.F32, dtype.F16, dtype.BF16} {
		list = append(list, Dot{X: m.Tensor(dt, "row=3 in=64"), W: m.Quantized("q4_0", "out=37 in=64"), Axes: in},
			Dot{X: m.Tensor(dt, "in=256 row=3 expert=2"), W: m.Quantized("q6_k", "out=5 expert=2 in=256"), Axes: in})
	}
	for _, n := range lengths {
		list = append(list, Dot{X: m.Tensor(dtype.F32, "row=3 in=5"), W: m.Tensor(dtype.F32, "in=5 out=%d", n),
			Axes: in, Add: m.Tensor(dtype.F32, "row=3 out=%d", n)})
	}
	for _, dt := range []dtype.Type{dtype.F32, dtype.F16, dtype.BF16} {
		list = append(list, Dot{X: m.Tensor(dt, "row=3 in=64"), W: m.Quantized("q8_0", "out=37 in=64"), Axes: in,
			Add: m.Tensor(dt, "out=37 row=3")})
	}
	for _, dt := range allDTypes {
		list = append(list, Dot{X: m.Tensor(dt, "row=3 in=5"), W: m.Tensor(dt, "in=5 out=17"), Axes: in},
			Dot{X: m.Tensor(dt, "row=3 in=5"), W: m.Tensor(dt, "in=5 out=17"), Axes: in,
				Add: m.Tensor(dt, "out=17 row=3")},
			Dot{X: m.Tensor(dt, "row=3 in=5"), W: m.Tensor(dt, "row=3 in=5"), Axes: in, Add: m.Tensor(dt, "row=3")},
			Dot{X: m.Tensor(dt, "row=3 in=5"), W: m.Tensor(dt, "row=3 out=4 in=5"), Axes: in})
	}
	return list
}

// Saves the other operand of each that wants a gradient.
func (*Dot) Saves(want uint64) (in, out uint64) { return want&1<<1 | want>>1&1, 0 }

// back contracts gy with w over w's own axes. A quantized w is decoded, and the product rounded to gy's dtype.
func back(gy, w *Tensor, axes *axis.List) *Tensor {
	if w.stored() {
		return dot.Call(Dot{X: gy.wide(), W: w.Dequantize(), Axes: axes}).narrow(gy.dtype)
	}
	return dot.Call(Dot{X: gy, W: w, Axes: axes})
}

// VJP contracts gy with each operand over that one's own axes, and passes it on to what was added.
func (a *Dot) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(2, gy[0])
	con := axis.Contract(a.X.axes, a.W.axes, a.Axes)
	if g.Wants(0) {
		g.Set(0, back(gy[0], a.W, con.B))
	}
	if g.Wants(1) {
		g.Set(1, dot.Call(Dot{X: gy[0], W: a.X, Axes: con.A}))
	}
}
