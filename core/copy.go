package core

import (
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/gemm"
)

// Copy is x in memory of its own, one element after another in the order of its axes.
//
// Example:
//
//	zeros(row=2, col=3).order("col row").copy()
type Copy struct {
	X *Tensor `arg:"x"`
}

var copyOp = Declare[Copy]("copy")

// Copy is x in memory of its own; see the Copy operation.
func (x *Tensor) Copy() *Tensor { return copyOp.Call(Copy{X: x}) }

// Names keeps everything.
func (a *Copy) Names(p *Plan) { p.Out(a.X.axes, a.X.dtype) }

// Quantized takes a quantized x, which stays so; out of panels it gets its rows.
func (*Copy) Quantized() (operands uint64, named bool) { return 1, false }

// Eval copies.
func (a *Copy) Eval(c *Ctx) {
	if !a.X.stored() {
		c.copyInto(c.Out(0), a.X)
		return
	}
	f, k := formatOf(a.X.dtype), max(1, a.X.panels)
	if k == 1 {
		k = f.Block
	}
	to, size := c.Out(0).bytes(), f.Size(k)
	c.Split(len(to)/size, max(1, pointGrain/size), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			a.X.take(to[r*size:(r+1)*size], f, r, k)
		}
	})
}

// copyStrided writes v into d, which need not be dense and has v's axes and possibly more. Both
// have one dtype; the bits stay.
func (c *Ctx) copyStrided(d, v *Tensor) {
	if d.dense() && d.axes == v.axes {
		c.copyInto(d, v)
		return
	}
	switch d.dtype.Size() {
	case 1:
		copyWords[uint8](c, d, v)
	case 2:
		copyWords[uint16](c, d, v)
	case 4:
		copyWords[uint32](c, d, v)
	case 8:
		copyWords[uint64](c, d, v)
	}
}

func copyWords[T uint8 | uint16 | uint32 | uint64](c *Ctx, d, v *Tensor) {
	var w walk
	walkOver(&w, d, []*Tensor{d, v})
	last := w.rank - 1
	n, rows := w.dims[last], 1
	for k := range last {
		rows *= w.dims[k]
	}
	size := d.dtype.Size()
	ds, vs := w.strides[0][last]*size, w.strides[1][last]*size
	part := min(n, pointGrain) // of a row that is copied at once
	parts := ceilDiv(n, part)
	c.Split(rows*parts, max(1, pointGrain/part), func(lo, hi int) {
		for j := lo; j < hi; j++ {
			at := j % parts * part
			do, vo := at*w.strides[0][last], at*w.strides[1][last]
			for k, rest := last-1, j/parts; k >= 0; k-- {
				i := rest % w.dims[k]
				rest /= w.dims[k]
				do += i * w.strides[0][k]
				vo += i * w.strides[1][k]
			}
			n := min(part, n-at)
			dp, vp := unsafe.Add(d.data, do*size), unsafe.Add(v.data, vo*size)
			if ds == size && vs == size {
				copy(unsafe.Slice((*T)(dp), n), unsafe.Slice((*T)(vp), n))
				continue
			}
			for i := range n {
				*(*T)(unsafe.Add(dp, i*ds)) = *(*T)(unsafe.Add(vp, i*vs))
			}
		}
	})
}

// transpose is copyInto where the elements that lie together in v and in dense d are those along two different axes,
// and neither is short; otherwise it does nothing and returns false.
func transpose[C number](c *Ctx, d, v *Tensor) bool {
	const short = 8
	var w walk
	walkOver(&w, d, []*Tensor{v})
	last, along := w.rank-1, -1
	for k := range last {
		if w.strides[0][k] == 1 {
			along = k
		}
	}
	step := w.strides[0][last]
	if along < 0 || step <= 1 || w.dims[last] < short || w.dims[along] < short {
		return false
	}
	rows, cols, apart, others := w.dims[along], w.dims[last], 1, 1
	for k := range last {
		if k > along {
			apart *= w.dims[k]
		}
		if k != along {
			others *= w.dims[k]
		}
	}
	apart *= cols // from one row of d to the next
	strips, across := ceilDiv(rows, transposeRows), ceilDiv(cols, transposeCols)
	work := min(rows, transposeRows) * min(cols, transposeCols)
	c.Split(others*strips*across, max(1, pointGrain/work), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			col, row, other := i%across*transposeCols, i/across%strips*transposeRows, i/across/strips
			to, from, size := row*apart+col, row+col*step, cols
			for k := last - 1; k >= 0; k-- {
				if k != along {
					at := other % w.dims[k]
					other /= w.dims[k]
					to += at * size
					from += at * w.strides[0][k]
				}
				size *= w.dims[k]
			}
			dp, vp := unsafe.Add(d.data, to*d.dtype.Size()), unsafe.Add(v.data, from*v.dtype.Size())
			transposeBlock((*C)(dp), (*C)(vp), min(transposeRows, rows-row), min(transposeCols, cols-col), apart, step)
		}
	})
	return true
}

// A block of this many rows and columns is transposed at once.
const transposeRows, transposeCols = 64, 1024

// transposeBlock sets dp[i·apart + j] to vp[j·step + i].
func transposeBlock[C number](dp, vp *C, rows, cols, apart, step int) {
	ds, vs := unsafe.Slice(dp, (rows-1)*apart+cols), unsafe.Slice(vp, (cols-1)*step+rows)
	switch fs := any(ds).(type) {
	case []float32:
		gemm.Transpose(fs, any(vs).([]float32), rows, cols, apart, step)
	case []float64:
		gemm.Transpose(fs, any(vs).([]float64), rows, cols, apart, step)
	default:
		for i := range rows {
			for j := range cols {
				ds[i*apart+j] = vs[j*step+i]
			}
		}
	}
}

// Samples covers the lengths and the dtypes.
func (*Copy) Samples(m *Maker) (list []Copy) {
	for _, n := range lengths {
		list = append(list, Copy{X: m.Tensor(dtype.F32, "row=3 col=%d", n)})
	}
	list = append(list, Copy{X: m.Quantized("q6_k", "row=3 col=256")})
	for _, dt := range allDTypes {
		list = append(list, Copy{X: m.Tensor(dt, "row=3 col=17 a=2")}, Copy{X: m.Tensor(dt, "")},
			Copy{X: m.Tensor(dt, "row=70 a=2 col=9")})
	}
	return list
}

// Saves nothing.
func (*Copy) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP passes the gradient on.
func (a *Copy) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, gy[0]) }
