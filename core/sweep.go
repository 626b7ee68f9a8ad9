package core

import (
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/mem"
	"github.com/fucina-go/fucina/core/par"
)

// SweepGrain is how many elements a Sweep hands out at once.
const SweepGrain = 1 << 14

// Sweep is one pass over the elements of several tensors at once, for objects of the runtime that change tensors in
// place: optimizers, averages of weights. It computes in f64 if the first tensor is f64, else in f32. Elements of
// another dtype are converted on the way in and, where they are written, on the way out.
type Sweep struct {
	// Writes is how many of the tensors, the first ones, are changed.
	Writes int

	// F32 and F64 get the elements from place at on of every tensor, SweepGrain of them or what is left. They run on
	// several goroutines. The slices are theirs until they return.
	F32 func(at int, xs [][]float32)
	F64 func(at int, xs [][]float64)
}

// Run goes over tensors that have one number of elements and are dense. It is not interrupted: cancelling takes
// effect afterwards.
func (s *Sweep) Run(e *Env, ts ...*Tensor) {
	for _, t := range ts {
		t.mustHaveData("sweep")
		if t.Len() != ts[0].Len() || !t.dense() {
			panic(&Error{Op: "sweep", Msg: t.Shape() + " does not lie as " + ts[0].Shape() + " does"})
		}
	}
	if ts[0].Len() == 0 {
		return
	}
	if ts[0].dtype == dtype.F64 {
		sweep(e, s.Writes, s.F64, ts)
	} else {
		sweep(e, s.Writes, s.F32, ts)
	}
	for _, t := range ts[:s.Writes] {
		t.buf.Touch()
		t.version = t.buf.Version()
	}
}

func sweep[C number](e *Env, writes int, f func(int, [][]C), ts []*Tensor) {
	ctl := &par.Control{Workers: e.Control.Workers}
	par.Split(ctl, ts[0].Len(), SweepGrain, func(lo, hi int) {
		xs, made := make([][]C, len(ts)), make([][]C, len(ts))
		for i, t := range ts {
			if t.dtype == native[C]() {
				xs[i] = unsafe.Slice((*C)(unsafe.Add(t.data, lo*t.dtype.Size())), hi-lo)
			} else {
				xs[i] = load(t, lo, 1, hi-lo, &made[i])
			}
		}
		f(lo, xs)
		for i, t := range ts[:writes] {
			if t.dtype != native[C]() {
				store(t, lo, xs[i])
			}
		}
	})
}

// Packed is the tensor itself if its elements lie one after another in the order of axes, else a copy that does. The
// copy belongs to the innermost open scope.
func (t *Tensor) Packed(axes Axes) *Tensor {
	switch {
	case t.axes != axes:
		return order.Call(Order{X: t, Axes: axes}).Packed(axes)
	case !t.meta && !t.dense():
		return t.Copy()
	}
	return t
}

// Reshape is a tensor of other axes over the bytes of t, which is dense, in the same order; as many elements. It
// belongs to the innermost open scope.
func (t *Tensor) Reshape(axes Axes, sizes ...int) *Tensor {
	v := newTensor(t.env, t.dtype, axes)
	v.shapeAs("reshape", sizes)
	if n := v.Len(); n != t.Len() || !t.dense() {
		panic(&Error{Op: "reshape", Msg: t.Shape() + " does not fit " + v.Shape()})
	}
	v.buf, v.data, v.version, v.view = t.buf, t.data, t.version, true
	t.buf.Retain()
	t.env.Own(v)
	return v
}

// Scratch is a new dense tensor with undefined contents that belongs to the innermost open scope.
func (e *Env) Scratch(dt dtype.Type, axes Axes, sizes ...int) *Tensor {
	t := newTensor(e, dt, axes)
	t.shapeAs("scratch", sizes)
	t.allocate(false)
	e.Own(t)
	return t
}

// Reserve panics with an *Error if the budget does not allow so many bytes more: for work that asks before it begins.
func (e *Env) Reserve(bytes int) { e.fill(new(mem.Buffer), bytes).Release() }
