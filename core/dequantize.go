package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/quant"
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
	if !a.X.stored() {
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
	f := formatOf(x.dtype)
	y := elementsOf[float32](dst)
	k := f.Block // without panels any block is as good as a row
	if x.panels > 0 {
		k = x.panels
	}
	c.Split(len(y)/k, max(1, quantizeGrain/k), func(lo, hi int) {
		buf := takeBytes(f.Size(x.panels))
		defer spareBytes.Put(buf)
		for r := lo; r < hi; r++ {
			decodeBlocks(f, y[r*k:(r+1)*k], x.rowBytes(*buf, f, r, k))
		}
	})
}

// decodeRows sets each row of out to the row of w, whose first axis is looked up, at the place given.
func (c *Ctx) decodeRows(out, w *Tensor, places []int64) {
	f := formatOf(w.dtype)
	n := out.Len() / len(places)
	if n%f.Block != 0 {
		c.Fail("a row of "+c.Describe(w)+" is "+noBlocks(n, f), c.c.param(w)+".dequantize()")
	}
	k := n
	if w.panels > 0 && n%w.panels == 0 {
		k = w.panels
	}
	y := elementsOf[float32](out)
	c.Split(len(places), max(1, quantizeGrain/n), func(lo, hi int) {
		buf := takeBytes(f.Size(w.panels))
		defer spareBytes.Put(buf)
		for i := lo; i < hi; i++ {
			for r := range n / k {
				decodeBlocks(f, y[i*n+r*k:][:k], w.rowBytes(*buf, f, int(places[i])*(n/k)+r, k))
			}
		}
	})
}

// noBlocks says that n elements are no whole number of blocks.
func noBlocks(n int, f *quant.Format) string {
	return fmt.Sprintf("%d elements together, no multiple of the %d of a %s block", n, f.Block, f.Name)
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
	if axes.Len() == 1 && end != axes.At(0) && t.dtype.Quantized() {
		hint = fmt.Sprintf("quantize it along %q: %s.dequantize().quantize(%q, %q)", axes.At(0), p.c.param(t),
			t.dtype.String(), axes.At(0))
	}
	p.Fail(fmt.Sprintf("%s has its blocks of %s along %q, want them along %s", p.Describe(t), t.dtype, end,
		quoted(axes.Names())), hint)
}

// product insists that x can be multiplied by w and returns the dtype of the result: a quantized w takes an x that
// computes in f32, other dtypes are the same.
func (p *Plan) product(x, w *Tensor) dtype.Type {
	if !w.stored() {
		return p.Same(x, w)
	}
	if classOf(x.dtype) != dtype.F32 {
		p.Fail(fmt.Sprintf("%s is %s and %s is %s, whose numbers are f32", p.Describe(x), x.dtype, p.Describe(w),
			w.dtype),
			fmt.Sprintf("use %s.cast(\"f32\")", p.c.param(x)))
	}
	return x.dtype
}

// rowPlaces tells where rows begin, in elements.
type rowPlaces struct {
	step   int
	places []int // nil if they are step apart
}

// at is where row i begins.
func (r *rowPlaces) at(i int) int {
	if r.places != nil {
		return r.places[i]
	}
	return i * r.step
}

// rowsOf is where the rows of w begin, if the axes are walked in this order.
func rowsOf(w *Tensor, axes *axis.List) rowPlaces {
	step, next := 1, 0 // of the last axis; of the axis at hand, where rows are step apart
	for k := axes.Len() - 1; k >= 0; k-- {
		i := w.axes.Index(axes.At(k))
		if k == axes.Len()-1 {
			step = w.strides[i]
		} else if w.strides[i] != next {
			head := w.permuted(axes)
			places := make([]int, 0, head.Len())
			for offset := range head.each {
				places = append(places, offset)
			}
			return rowPlaces{places: places}
		}
		next = w.strides[i] * w.sizes[i]
	}
	return rowPlaces{step: step}
}
