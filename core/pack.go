package core

import (
	"fmt"
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/par"
	"github.com/fucina-go/fucina/core/quant"
	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/half"
	"github.com/fucina-go/fucina/kernels/qdot"
)

// A weight in panels has the elements of 16 rows interleaved, as products read them: blocks as package qdot says,
// numbers of 16 bits as package gemm does. As few operations take it as take quantized tensors; its strides count
// elements as if it were not in panels.

// PanelRows is the number of rows in a panel.
const PanelRows = qdot.Rows

// Pack is the weight x in panels, so that dot, dots and linear read it at the speed of memory: x is quantized, f16 or
// bf16. row is the number of elements that are contracted, those along the last axes. The result is shared, like any
// weight; it has x's axes and dtype and takes as much memory, with the number of rows rounded up to 16. It is x itself
// if x has no elements or lies in panels already.
//
// A product of f32 numbers with a weight of f16 in panels is that with the weight as f32, and with one of bf16 the
// numbers are rounded to bf16, too; see Dot. Without panels the dtypes would have to agree.
//
// read is told of x's bytes once they are in panels, piece by piece in their order: what lies in a mapped file need not
// be in memory twice. It may be nil.
//
// Errors: x is of another dtype; row does not divide it into rows of whole blocks.
func (e *Env) Pack(x *Tensor, row int, read func(piece []byte)) *Tensor {
	x.mustBeThere("pack")
	f := formatOf(x.dtype)
	if f == nil {
		panic(&Error{Op: "pack", Msg: fmt.Sprintf("x is %s, want quantized numbers, f16 or bf16", x.Shape())})
	}
	if x.panels > 0 || x.Len() == 0 {
		return x
	}
	if row <= 0 || row%f.Block != 0 || x.Len()%row != 0 || !x.dense() {
		panic(&Error{Op: "pack", Msg: fmt.Sprintf("x is %s, which has no rows of %d elements in blocks of %d",
			x.Shape(), row, f.Block)})
	}
	t := newTensor(e, x.dtype, x.axes)
	copy(t.sizes, x.sizes)
	t.panels = row
	e.granted(e.pool.Keep(t.room, t.byteCount(x.Len())))
	t.buf, t.data = t.room, t.room.Data()
	t.pack()
	rows, stride := x.Len()/row, f.Size(row)
	from, to, size := x.bytes(), t.bytes(), panelSize(f, row)
	panels, step := ceilDiv(rows, qdot.Rows), max(1, packPiece/size)
	for first := 0; first < panels; first += step {
		done := par.Split(&e.Control, min(step, panels-first), max(1, packGrain/size), func(lo, hi int) {
			for p := first + lo; p < first+hi; p++ {
				n, panel, src := min(qdot.Rows, rows-p*qdot.Rows), to[p*size:(p+1)*size], from[p*qdot.Rows*stride:]
				switch f {
				case f16Format:
					gemm.PackHalf(words(panel), words(src), n, row, row)
				case bf16Format:
					gemm.PackBF16(words(panel), words(src), n, row, row)
				default:
					f.Integers.Pack(panel, src, n, row, stride)
				}
			}
		})
		if !done {
			t.Free()
			panic(&Canceled{Op: "pack"})
		}
		if read != nil {
			read(from[first*qdot.Rows*stride : min(rows, (first+step)*qdot.Rows)*stride])
		}
	}
	return t.Share()
}

const (
	packGrain = 1 << 17 // how many bytes a worker packs at once at least
	packPiece = 1 << 24 // how many are packed before the reader is told
)

// words is the bytes as numbers of 16 bits.
func words(b []byte) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/2)
}

// formatOf is the format of a dtype that weights can be stored in: blocks or 16 bits; nil for any other.
func formatOf(dt dtype.Type) *quant.Format {
	switch dt {
	case dtype.F16:
		return f16Format
	case dtype.BF16:
		return bf16Format
	}
	f, _ := quant.Of(dt)
	return f
}

var (
	f16Format, _  = quant.ByName("f16")
	bf16Format, _ = quant.ByName("bf16")
)

// panelSize is the bytes of a panel of rows of k elements.
func panelSize(f *quant.Format, k int) int { return f.Size(k) * qdot.Rows }

// stored tells whether t's elements do not lie one by one where its strides say, but in blocks or panels.
func (t *Tensor) stored() bool { return t.panels > 0 || t.dtype.Quantized() }

// storage is what a stored tensor is, in words.
func (t *Tensor) storage() string {
	if t.dtype.Quantized() {
		return "quantized"
	}
	return "packed for products"
}

// rowBytes is the bytes of row r of k elements of a stored tensor; those of one in panels come in buf.
func (t *Tensor) rowBytes(buf []byte, f *quant.Format, r, k int) []byte {
	if t.panels == 0 {
		return t.bytes()[f.Size(r*k):f.Size((r+1)*k)]
	}
	size, per := panelSize(f, t.panels), t.panels/k // a row in panels may be cut into several
	panel, lane := t.bytes()[r/per/qdot.Rows*size:][:size], r/per%qdot.Rows
	buf = buf[:f.Size(t.panels)]
	switch f {
	case f16Format:
		to, from := words(buf), words(panel)
		for i := range to {
			to[i] = from[i*qdot.Rows+lane]
		}
	case bf16Format:
		gemm.RowBF16(words(buf), words(panel), lane)
	default:
		f.Integers.Row(buf, panel, lane, t.panels)
	}
	return buf[f.Size(r%per*k):f.Size((r%per+1)*k)]
}

// take sets dst to the bytes of elements r·k to r·k + k-1 of a stored tensor. Of one in panels k is some rows, or a
// part of one.
func (t *Tensor) take(dst []byte, f *quant.Format, r, k int) {
	switch {
	case t.panels == 0:
		copy(dst, t.bytes()[f.Size(r*k):f.Size((r+1)*k)])
	case k%t.panels == 0:
		rows, size := k/t.panels, f.Size(t.panels)
		for i := range rows {
			t.rowBytes(dst[i*size:(i+1)*size], f, r*rows+i, t.panels)
		}
	default:
		buf := takeBytes(f.Size(t.panels))
		copy(dst, t.rowBytes(*buf, f, r, k))
		spareBytes.Put(buf)
	}
}

// decodeBlocks decodes the bytes of elements whose sizes are known to agree.
func decodeBlocks(f *quant.Format, y []float32, b []byte) {
	switch f.DType {
	case dtype.F16:
		half.FromF16(y, words(b))
		return
	case dtype.BF16:
		half.FromBF16(y, words(b))
		return
	}
	if err := f.Decode(y, b); err != nil {
		panic("core: " + err.Error())
	}
}
