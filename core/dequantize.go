package core

import (
	"fmt"
	"sync"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/quant"
	"github.com/fucina-go/fucina/kernels/gemm"
)

// Dequantize is the numbers that a quantized x stands for, as f32.
//
// Errors: x that is not quantized.
//
// Example:
//
//	ones(out=2, in_=32).quantize("q4_0").dequantize().sum("in")
type Dequantize struct {
	X *Tensor `arg:"x"`
}

var dequantize = Declare[Dequantize]("dequantize")

// Dequantize is the numbers that a quantized x stands for; see the Dequantize operation.
func (x *Tensor) Dequantize() *Tensor { return dequantize.Call(Dequantize{X: x}) }

// Quantized takes a quantized x.
func (*Dequantize) Quantized() (operands uint64, named bool) { return 1, false }

// Names keeps the axes.
func (a *Dequantize) Names(p *Plan) {
	if !a.X.dtype.Quantized() {
		p.Fail(fmt.Sprintf("%s is %s, which is not quantized", p.Describe(a.X), a.X.dtype),
			fmt.Sprintf("use %s as it is", p.c.param(a.X)))
	}
	p.Out(a.X.axes, dtype.F32)
}

// Eval decodes.
func (a *Dequantize) Eval(c *Ctx) { c.decode(c.Out(0), a.X) }

// Samples covers the number of rows, and formats of every size of a block.
func (*Dequantize) Samples(m *Maker) (list []Dequantize) {
	for _, n := range lengths {
		list = append(list, Dequantize{X: m.Quantized("q8_0", "row=%d in=32", n)})
	}
	for _, f := range quant.Formats() {
		if f.DType.Quantized() && !f.Importance {
			list = append(list, Dequantize{X: m.Quantized(f.Name, "row=3 in=256")})
		}
	}
	return list
}

// decode sets dst, f32 and dense, to the numbers of the quantized x.
func (c *Ctx) decode(dst, x *Tensor) {
	f, _ := quant.Of(x.dtype)
	y, bytes := elementsOf[float32](dst), x.bytes()
	blocks := len(y) / f.Block
	c.Split(blocks, max(1, quantizeGrain/f.Block), func(lo, hi int) {
		decodeInto(f, y[lo*f.Block:hi*f.Block], bytes[lo*f.Bytes:hi*f.Bytes])
	})
}

// decodeInto decodes blocks whose sizes are known to agree.
func decodeInto(f *quant.Format, y []float32, b []byte) {
	if err := f.Decode(y, b); err != nil {
		panic("core: " + err.Error())
	}
}

// decodeRows sets each row of out to the row of w, whose first axis is looked up, at the place given.
func (c *Ctx) decodeRows(out, w *Tensor, places []int64) {
	f, _ := quant.Of(w.dtype)
	n := out.Len() / len(places)
	if n%f.Block != 0 {
		c.Fail(fmt.Sprintf("a row of %s has %d elements, no multiple of the %d of a %s block", c.Describe(w), n,
			f.Block, f.Name), c.c.param(w)+".dequantize()")
	}
	y, bytes := elementsOf[float32](out), w.bytes()
	c.Split(len(places), max(1, quantizeGrain/n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			at := f.Size(int(places[i]) * n)
			decodeInto(f, y[i*n:(i+1)*n], bytes[at:at+f.Size(n)])
		}
	})
}

// alongBlocks insists that the axes are the last of a quantized operand, along which its blocks lie.
func (p *Plan) alongBlocks(t *Tensor, axes *axis.List) {
	names := t.axes.Names()
	last := axisList(names[len(names)-axes.Len():]...)
	if axes.Len() > 0 && last.Without(axes).Len() == 0 {
		return
	}
	end := names[len(names)-1]
	hint := p.c.param(t) + ".dequantize()"
	if axes.Len() == 1 && end != axes.At(0) {
		hint = fmt.Sprintf("quantize it along %q: %s.dequantize().quantize(%q, %q)", axes.At(0), p.c.param(t),
			t.dtype.String(), axes.At(0))
	}
	p.Fail(fmt.Sprintf("%s has its blocks of %s along %q, want them along %s", p.Describe(t), t.dtype, end,
		quoted(axes.Names())), hint)
}

// product insists that x can be multiplied by w and returns the dtype of the result: a quantized w takes an x that
// computes in f32, other dtypes are the same.
func (p *Plan) product(x, w *Tensor) dtype.Type {
	if !w.dtype.Quantized() {
		return p.Same(x, w)
	}
	if classOf(x.dtype) != dtype.F32 {
		p.Fail(fmt.Sprintf("%s is %s and %s is %s, whose numbers are f32", p.Describe(x), x.dtype, p.Describe(w),
			w.dtype),
			fmt.Sprintf("use %s.cast(\"f32\")", p.c.param(x)))
	}
	return x.dtype
}

// quantizedRows is up to how many rows of a quantized operand a worker decodes at once.
const quantizedRows = 16

// contractQuantized computes out = x·w where the axes summed are the last of w, which is quantized: a few rows of w at
// a time are decoded and multiplied by all rows of x. The bits are those of the product with the decoded w.
func (c *Ctx) contractQuantized(out, x, w *Tensor, con axis.Contraction) {
	if out.Len() == 0 {
		return
	}
	f, _ := quant.Of(w.dtype)
	m, n, k := volume(x, con.A), volume(w, con.B), volume(w, con.Sum)
	if k%f.Block != 0 {
		c.Fail(fmt.Sprintf("%s of %s are %d elements together, no multiple of the %d of a %s block",
			quoted(con.Sum.Names()), c.Describe(w), k, f.Block, f.Name), c.c.param(w)+".dequantize()")
	}
	a := elementsOf[float32](c.Dense(x, con.Batch.Append(con.A).Append(con.Sum), dtype.F32))
	dst := out
	if out.dtype != dtype.F32 {
		dst = c.Scratch(dtype.F32, out.axes, out.sizes)
	}
	y, bytes := elementsOf[float32](dst), w.bytes()
	rowAt := rowsOf(w, con.Batch.Append(con.B))
	rows := max(1, min(quantizedRows, tileWork/max(1, m*k)))
	across := ceilDiv(n, rows)
	c.Split(out.Len()/(m*n)*across, max(1, tileWork/max(1, m*k*rows)), func(lo, hi int) {
		panel := takePanel(rows * k)
		defer panels.Put(panel)
		for i := lo; i < hi; i++ {
			batch, j := i/across, i%across*rows
			count := min(rows, n-j)
			for r := range count {
				at := f.Size(rowAt(batch*n + j + r))
				decodeInto(f, (*panel)[r*k:(r+1)*k], bytes[at:at+f.Size(k)])
			}
			gemm.NT(y[batch*m*n+j:], a[batch*m*k:], *panel, m, count, k, k, k, n)
		}
	})
	if dst != out {
		c.copyInto(out, dst)
	}
}

// panels is memory for decoded rows. A worker takes some for each chunk, and most are of one size.
var panels sync.Pool

func takePanel(n int) *[]float32 {
	if p, ok := panels.Get().(*[]float32); ok && cap(*p) >= n {
		*p = (*p)[:n]
		return p
	}
	p := make([]float32, n)
	return &p
}

// rowsOf tells where row i of w begins, in elements, if the axes are walked in this order.
func rowsOf(w *Tensor, axes *axis.List) func(i int) int {
	head := w.permuted(axes)
	step := 1
	if axes.Len() > 0 {
		step = head.strides[axes.Len()-1]
	}
	for k := axes.Len() - 2; k >= 0; k-- {
		if head.strides[k] != head.strides[k+1]*head.sizes[k+1] {
			places := make([]int, 0, head.Len())
			head.each(func(offset int) { places = append(places, offset) })
			return func(i int) int { return places[i] }
		}
	}
	return func(i int) int { return i * step }
}
