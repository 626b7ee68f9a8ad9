package core

import (
	"math"
	"sync"
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/half"
)

// Pointwise kernels see only contiguous slices of one of three number types: float32 (also for
// f16 and bf16), float64, int64 (for every integer dtype and bool). What lies otherwise is
// gathered block by block.

// number is the types kernels compute in.
type number interface{ float32 | float64 | int64 }

// maxRank is how many axes a tensor may have.
const maxRank = 16

// blockLen is how many elements are gathered at once.
const blockLen = 512

// pointGrain is the least number of elements worth a chunk of its own. Tests make it small.
var pointGrain = 8192

// Heavy is implemented by pointwise operations whose elements cost so many times what the usual ones do, some 20 ns:
// chunks are that much shorter, so that none takes long.
type Heavy interface{ Weight() int }

// heaviest is the largest weight.
const heaviest = 16

// maxOperands is how many operands a pointwise operation may have.
const maxOperands = 4

// walk is a joint traversal of an output and its operands: nested loops over dims, with
// neighbouring loops fused where every operand allows it.
type walk struct {
	ins     [maxOperands]*Tensor
	rank    int
	dims    [maxRank]int
	strides [maxOperands][maxRank]int
}

// walkOver aligns the operands' axes with the output's by name.
func walkOver(w *walk, out *Tensor, ins []*Tensor) {
	w.rank = 0
	for k, size := range out.sizes {
		if size == 1 {
			continue
		}
		r := w.rank
		w.dims[r] = size
		fuse := r > 0
		for i, t := range ins {
			s := 0
			if t.axes == out.axes {
				s = t.strides[k]
			} else if j := t.axes.Index(out.axes.At(k)); j >= 0 {
				s = t.strides[j]
			}
			w.strides[i][r] = s
			fuse = fuse && w.strides[i][r-1] == s*size
		}
		if fuse {
			w.dims[r-1] *= size
			for i := range ins {
				w.strides[i][r-1] = w.strides[i][r]
			}
			continue
		}
		w.rank++
	}
	if w.rank == 0 {
		w.rank, w.dims[0] = 1, 1
		for i := range ins {
			w.strides[i][0] = 1 // one element: any step will do, and 1 spares a gather
		}
	}
}

// pointwise computes y[i] = f(xs…[i]) for every element of out. R is C or bool, as f yields. f gets
// the operation, so that it need not be a closure.
func pointwise[C number, R number | bool](
	c *Ctx, out *Tensor, f func(op Op, y []R, xs *[maxOperands][]C), ins ...*Tensor,
) {
	n := out.Len()
	if n == 0 {
		return
	}
	grain := pointGrain
	if n > grain/heaviest {
		weight := 1
		if heavy, ok := c.c.op.(Heavy); ok {
			weight = heavy.Weight()
		}
		if weight > 1 {
			grain = max(1, grain/weight)
		} else {
			grain = min(max(grain, n/32), 4*grain) // handing out a chunk costs what some thousand elements do
		}
	}
	if n <= grain && native[R]() == out.dtype && inStep[C](out, ins) {
		l := lanesOf[C](c.c)
		for i, t := range ins {
			l.xs[i] = unsafe.Slice((*C)(t.data), n)
		}
		f(c.c.op, unsafe.Slice((*R)(out.data), n), &l.xs)
		return
	}
	var w walk // a copy of the operands, so that the caller's list need not go to the heap
	operands := w.ins[:copy(w.ins[:], ins)]
	walkOver(&w, out, operands)
	if n <= grain {
		runWalk(c, &w, lanesOf[C](c.c), out, f, len(ins), 0, n)
		return
	}
	splitWalk(c, w, out, f, len(ins), n, grain)
}

// inStep tells whether every operand lies element by element as the output does, so that nothing need be walked.
func inStep[C number](out *Tensor, ins []*Tensor) bool {
	for _, t := range ins {
		if t.axes != out.axes || t.dtype != native[C]() || !t.dense() {
			return false
		}
	}
	return true
}

// splitWalk is a function of its own so that the walk goes to the heap only here.
func splitWalk[C number, R number | bool](
	c *Ctx, w walk, out *Tensor, f func(Op, []R, *[maxOperands][]C), operands, n, grain int,
) {
	idle := idleLanes[C]()
	c.Alternate(n, grain, func(lo, hi int) {
		l, ok := idle.Get().(*lanes[C])
		if !ok {
			l = new(lanes[C])
		}
		runWalk(c, &w, l, out, f, operands, lo, hi)
		clear(l.xs[:]) // they may be all that still leads to a scalar
		idle.Put(l)
	})
}

// idleLanes is where chunks leave their lanes for the next: made anew for each chunk, they cost more than the rest of
// what surrounds its kernel.
func idleLanes[C number]() *sync.Pool {
	switch native[C]() {
	case dtype.F32:
		return &idleF32
	case dtype.F64:
		return &idleF64
	}
	return &idleI64
}

var idleF32, idleF64, idleI64 sync.Pool // of *lanes[float32] and so on

// lanes is what a walk hands to a kernel, and room to gather it in.
type lanes[C number] struct {
	xs       [maxOperands][]C
	gathered [maxOperands][]C
}

// lanesOf is the call's own lanes, for work that is not split.
func lanesOf[C number](c *call) *lanes[C] {
	if l, ok := any(&c.f32).(*lanes[C]); ok {
		return l
	}
	if l, ok := any(&c.f64).(*lanes[C]); ok {
		return l
	}
	return any(&c.i64).(*lanes[C])
}

// runWalk does the elements [lo, hi) of the output, counted in its own order.
func runWalk[C number, R number | bool](
	c *Ctx, w *walk, l *lanes[C], out *Tensor, f func(Op, []R, *[maxOperands][]C), operands, lo, hi int,
) {
	op, ins := c.c.op, w.ins[:operands]
	var index [maxRank]int
	var offs [maxOperands]int
	for k, rest := w.rank-1, lo; k >= 0; k-- {
		index[k] = rest % w.dims[k]
		rest /= w.dims[k]
		for i := range ins {
			offs[i] += index[k] * w.strides[i][k]
		}
	}
	var made []R
	direct := native[R]() == out.dtype
	last := w.rank - 1
	for at, pause := lo, lo+pauseLen; at < hi; {
		if at >= pause {
			c.Pause()
			pause = at + pauseLen
		}
		n := min(w.dims[last]-index[last], hi-at, pauseLen)
		whole := true
		for i, t := range ins {
			whole = whole && w.strides[i][last] == 1 && native[C]() == t.dtype
		}
		if !whole || !direct {
			n = min(n, blockLen)
		}
		for i, t := range ins {
			l.xs[i] = load(t, offs[i], w.strides[i][last], n, &l.gathered[i])
		}
		if direct {
			f(op, unsafe.Slice((*R)(unsafe.Add(out.data, at*out.dtype.Size())), n), &l.xs)
		} else {
			if made == nil {
				made = make([]R, blockLen)
			}
			f(op, made[:n], &l.xs)
			store(out, at, made[:n])
		}
		at += n
		index[last] += n
		for i := range ins {
			offs[i] += n * w.strides[i][last]
		}
		for k := last; k > 0 && index[k] == w.dims[k]; k-- {
			index[k] = 0
			index[k-1]++
			for i := range ins {
				offs[i] += w.strides[i][k-1] - w.dims[k]*w.strides[i][k]
			}
		}
	}
}

// native is the dtype stored as T.
func native[T any]() dtype.Type {
	var zero T
	switch any(zero).(type) {
	case float32:
		return dtype.F32
	case float64:
		return dtype.F64
	case int64:
		return dtype.I64
	case bool:
		return dtype.Bool
	}
	return dtype.Invalid
}

// load is n elements of t as numbers of C, from offset off in steps of stride: the bytes
// themselves where they already are that, else gathered into *buf.
func load[C number](t *Tensor, off, stride, n int, buf *[]C) []C {
	p := unsafe.Add(t.data, off*t.dtype.Size())
	if stride == 1 && native[C]() == t.dtype {
		return unsafe.Slice((*C)(p), n)
	}
	if len(*buf) < n {
		*buf = make([]C, max(n, min(blockLen, 2*n)))
	}
	y := (*buf)[:n]
	switch t.dtype {
	case dtype.F32:
		gather[float32](y, p, stride)
	case dtype.F64:
		gather[float64](y, p, stride)
	case dtype.F16, dtype.BF16:
		gatherHalf(y, p, stride, t.dtype)
	case dtype.I8:
		gather[int8](y, p, stride)
	case dtype.U8, dtype.Bool:
		gather[uint8](y, p, stride)
	case dtype.I16:
		gather[int16](y, p, stride)
	case dtype.I32:
		gather[int32](y, p, stride)
	case dtype.I64:
		gather[int64](y, p, stride)
	}
	return y
}

// gatherHalf is gather of f16 or bf16.
func gatherHalf[C number](y []C, p unsafe.Pointer, stride int, dt dtype.Type) {
	if y, ok := any(y).([]float32); ok && stride == 1 {
		if x := unsafe.Slice((*uint16)(p), len(y)); dt == dtype.F16 {
			half.FromF16(y, x)
		} else {
			half.FromBF16(y, x)
		}
		return
	}
	widen := dtype.F16ToF32
	if dt == dtype.BF16 {
		widen = dtype.BF16ToF32
	}
	for i := range y {
		y[i] = C(widen(*(*uint16)(unsafe.Add(p, 2*i*stride))))
	}
}

func gather[T float32 | float64 | int8 | uint8 | int16 | int32 | int64, C number](y []C, p unsafe.Pointer, stride int) {
	var zero T
	step := stride * int(unsafe.Sizeof(zero))
	if stride == 0 {
		v := C(*(*T)(p))
		for i := range y {
			y[i] = v
		}
		return
	}
	for i := range y {
		y[i] = C(*(*T)(unsafe.Add(p, i*step)))
	}
}

// store writes numbers to dense out from element at on, in out's dtype. Integers wrap.
func store[R number | bool](out *Tensor, at int, y []R) {
	p := unsafe.Add(out.data, at*out.dtype.Size())
	switch y := any(y).(type) {
	case []bool:
		copy(unsafe.Slice((*bool)(p), len(y)), y)
	case []float32:
		scatter(p, out.dtype, y)
	case []float64:
		scatter(p, out.dtype, y)
	case []int64:
		scatter(p, out.dtype, y)
	}
}

func scatter[C number](p unsafe.Pointer, dt dtype.Type, y []C) {
	switch dt {
	case dtype.F32:
		spread[float32](p, y)
	case dtype.F64:
		spread[float64](p, y)
	case dtype.F16:
		d := unsafe.Slice((*uint16)(p), len(y))
		if y, ok := any(y).([]float32); ok {
			half.ToF16(d, y)
			return
		}
		for i, v := range y {
			d[i] = dtype.F32ToF16(roundToOdd(float64(v)))
		}
	case dtype.BF16:
		d := unsafe.Slice((*uint16)(p), len(y))
		if y, ok := any(y).([]float32); ok {
			half.ToBF16(d, y)
			return
		}
		for i, v := range y {
			d[i] = dtype.F32ToBF16(roundToOdd(float64(v)))
		}
	case dtype.I8:
		spread[int8](p, y)
	case dtype.U8:
		spread[uint8](p, y)
	case dtype.I16:
		spread[int16](p, y)
	case dtype.I32:
		spread[int32](p, y)
	case dtype.I64:
		spread[int64](p, y)
	case dtype.Bool:
		d := unsafe.Slice((*bool)(p), len(y))
		for i, v := range y {
			d[i] = v != 0
		}
	}
}

// roundToOdd is v as f32: where that is not exact, the one of the two neighbours whose last bit is 1. Rounding
// the result to a half then gives what rounding v once would (Boldo and Melquiond 2008).
func roundToOdd(v float64) float32 {
	f := float32(v)
	if float64(f) == v || f != f {
		return f
	}
	bits := math.Float32bits(f)
	if math.Abs(float64(f)) > math.Abs(v) {
		bits--
	}
	return math.Float32frombits(bits | 1)
}

func spread[T float32 | float64 | int8 | uint8 | int16 | int32 | int64, C number](p unsafe.Pointer, y []C) {
	d := unsafe.Slice((*T)(p), len(y))
	for i, v := range y {
		d[i] = T(v)
	}
}

// copyInto fills dense d with the values of v, which has the same axes, converting the dtype: to
// an integer by dropping the fraction, at most the largest the dtype holds, NaN to 0.
func (c *Ctx) copyInto(d, v *Tensor) {
	switch {
	case v.dtype.IsFloat() && d.dtype.IsInt():
		pointwise(c, d, func(_ Op, y []int64, xs *[maxOperands][]float64) {
			lo, hi := intRange(d.dtype)
			least, greatest := float64(lo), float64(hi)
			for i, x := range xs[0] {
				if least < x && x < greatest {
					y[i] = int64(x)
				} else {
					y[i] = truncate(x, lo, hi)
				}
			}
		}, v)
	case v.dtype == dtype.F64 || d.dtype == dtype.F64 && v.dtype.IsFloat():
		convert[float64](c, d, v)
	case v.dtype.IsFloat():
		convert[float32](c, d, v)
	default:
		convert[int64](c, d, v)
	}
}

func convert[C number](c *Ctx, d, v *Tensor) {
	if d.dtype == native[C]() && v.dtype == native[C]() && transpose[C](c, d, v) {
		return
	}
	pointwise(c, d, func(_ Op, y []C, xs *[maxOperands][]C) { copy(y, xs[0]) }, v)
}

// intRange is the least and greatest value of an integer dtype.
func intRange(dt dtype.Type) (lo, hi int64) {
	if dt == dtype.U8 {
		return 0, 255
	}
	bits := 8*dt.Size() - 1
	return -1 << bits, 1<<bits - 1
}

func truncate(x float64, lo, hi int64) int64 {
	switch {
	case x != x:
		return 0
	case x <= float64(lo):
		return lo
	case x >= float64(hi):
		return hi
	}
	return int64(x)
}
