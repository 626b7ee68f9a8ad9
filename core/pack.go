package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/par"
	"github.com/fucina-go/fucina/core/quant"
	"github.com/fucina-go/fucina/kernels/qdot"
)

// A weight in panels has the bytes of 16 rows interleaved, as products read them; see kernels/qdot. It is a tensor like
// any quantized one, and as few operations take it; its strides count elements as if it were not in panels.

// Pack is the weight x in panels, so that dot, dots and linear read it at the speed of memory, or x itself where that
// is not possible: it has a format whose products are not computed in integers. row is the number of elements that are
// contracted, those along the last axes. The result is shared, like any weight, and takes as much memory as x, with the
// number of rows rounded up to 16; it has x's axes, and no bit of any result depends on it.
//
// Errors: x is not quantized; row does not divide it into rows of whole blocks.
func (e *Env) Pack(x *Tensor, row int) *Tensor {
	x.mustBeThere("pack")
	f, ok := quant.Of(x.dtype)
	if !ok {
		panic(&Error{Op: "pack", Msg: fmt.Sprintf("x is %s, want quantized numbers", x.Shape())})
	}
	if x.panels > 0 || x.Len() == 0 {
		return x
	}
	if row <= 0 || row%f.Block != 0 || x.Len()%row != 0 || !x.dense() {
		panic(&Error{Op: "pack", Msg: fmt.Sprintf("x is %s, which has no rows of %d elements in blocks of %d",
			x.Shape(), row, f.Block)})
	}
	q := qdot.ByName(f.Name)
	if q == nil {
		return x
	}
	t := newTensor(e, x.dtype, x.axes)
	copy(t.sizes, x.sizes)
	t.panels = row
	t.allocate(false)
	rows, stride := x.Len()/row, f.Size(row)
	from, to, size := x.bytes(), t.bytes(), q.PanelSize(row)
	done := par.Split(&e.Control, ceilDiv(rows, qdot.Rows), max(1, packGrain/size), func(lo, hi int) {
		for p := lo; p < hi; p++ {
			q.Pack(to[p*size:], from[p*qdot.Rows*stride:], min(qdot.Rows, rows-p*qdot.Rows), row, stride)
		}
	})
	if !done {
		t.Free()
		panic(&Canceled{Op: "pack"})
	}
	return t.Share()
}

// packGrain is how many bytes a worker packs at once at least.
const packGrain = 1 << 17

// rowBytes is the bytes of row r of k elements of a quantized tensor; those of one in panels come in buf.
func (t *Tensor) rowBytes(buf []byte, f *quant.Format, r, k int) []byte {
	if t.panels == 0 {
		return t.bytes()[f.Size(r*k):f.Size((r+1)*k)]
	}
	q := qdot.ByName(f.Name)
	size, per := q.PanelSize(t.panels), t.panels/k // a row in panels may be cut into several
	panel := t.bytes()[r/per/qdot.Rows*size:][:size]
	buf = buf[:f.Size(t.panels)]
	q.Row(buf, panel, r/per%qdot.Rows, t.panels)
	return buf[f.Size(r%per*k):f.Size((r%per+1)*k)]
}
