package core

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// The checks in this file compare what an operation computes with what it computes of other operands that stand
// for the same numbers.

// checkRows insists that the rows of a batch come out as they do alone, along axes called row and batch.
func checkRows(s *subject) error {
	for _, name := range []string{"row", "batch"} {
		if err := s.checkRowsAlong(name); err != nil {
			return err
		}
	}
	return nil
}

func (s *subject) checkRowsAlong(name string) error {
	n := -1
	for _, t := range s.args {
		if t != nil && t.axes.Has(name) {
			n = t.Size(name)
		}
	}
	if n < 1 || s.mentions(name) {
		return nil
	}
	ls := s.dense()
	defer freeAll(ls)
	outs, err := s.outputs(tensors(ls))
	if err != nil {
		return err
	}
	defer s.release(outs)
	if len(outs) == 0 || !outs[0].axes.Has(name) {
		return nil
	}
	for _, r := range [][2]int{{0, 1}, {n - 1, n}, {n / 2, min(n, n/2+2)}} {
		part := make([]*laid, len(s.args))
		for i, t := range s.args {
			if t != nil {
				part[i] = dense.lay(s.env, along(t, name, r[0], r[1]))
			}
		}
		got, err := s.runLaid(part)
		if err != nil {
			return fmt.Errorf("%s %d…%d alone: %w", name, r[0], r[1]-1, err)
		}
		want := &result{}
		for _, t := range outs {
			v := along(t, name, r[0], r[1])
			want.shapes, want.bits = append(want.shapes, v.Shape()), append(want.bits, bitsOf(v))
		}
		if err := got.differs(want); err != nil {
			return fmt.Errorf("%s %d…%d alone: %w", name, r[0], r[1]-1, err)
		}
	}
	return nil
}

// along is a header for places [lo, hi) of t along the named axis; t itself if it has no such axis.
func along(t *Tensor, name string, lo, hi int) *Tensor {
	k := t.axes.Index(name)
	if k < 0 {
		return t
	}
	v := &Tensor{dtype: t.dtype, axes: t.axes, strides: t.strides, data: t.data}
	v.sizes = append(v.sizes, t.sizes...)
	v.sizes[k] = hi - lo
	if t.Len() > 0 {
		v.data = unsafe.Add(t.data, byteCount(t.dtype, lo*t.strides[k]))
	}
	return v
}

// checkHalves insists that an operation on f16 and bf16 is the one on f32, rounded once at the end.
func checkHalves(s *subject) error {
	if len(s.args) == 0 || s.args[0] == nil {
		return nil
	}
	dt := dtype.Invalid
	for _, t := range s.args {
		if t != nil && (t.dtype == dtype.F16 || t.dtype == dtype.BF16) {
			dt = t.dtype
		}
	}
	if dt == dtype.Invalid {
		return nil
	}
	wide := make([]*laid, len(s.args))
	for i, t := range s.args {
		if t != nil && t.dtype == dt {
			t = converted(s.env, t, dtype.F32)
		}
		wide[i] = dense.lay(s.env, t)
	}
	defer freeAll(wide)
	outs, err := s.outputs(tensors(wide))
	if err != nil {
		return fmt.Errorf("in f32: %w", err)
	}
	want, err := s.want()
	if err != nil {
		return err
	}
	got := &result{}
	for i, t := range outs {
		if t.dtype == dtype.F32 && want.shapes[i] != t.Shape() {
			t = converted(s.env, t, dt)
		}
		got.shapes, got.bits = append(got.shapes, t.Shape()), append(got.bits, bitsOf(t))
	}
	s.release(outs)
	if err := want.differs(got); err != nil {
		return fmt.Errorf("%s against f32: %w", dt, err)
	}
	return nil
}

// converted is t in another float dtype, written apart from Cast.
func converted(e *Env, t *Tensor, dt dtype.Type) *Tensor {
	y := e.Tensor(dt, t.axes, t.sizes...)
	n := 0
	eachOffset(t, func(off int) {
		put(unsafe.Add(y.data, n*dt.Size()), dt, t.element(off).(float64), 0)
		n++
	})
	return y
}

// checkNumbers insists that a plain number does what a scalar tensor of the other operands' dtype does.
func checkNumbers(s *subject) error {
	for i, k := range s.info.tensors {
		if !s.info.Fields[k].Number || s.info.Fields[k].Kind != KindTensor {
			continue
		}
		other := (*Tensor)(nil)
		for j, t := range s.args {
			if j != i && t != nil {
				other = t
			}
		}
		if other == nil {
			continue
		}
		scalar := s.env.Tensor(other.dtype, axis.Empty)
		put(scalar.data, other.dtype, 3, 3)
		ls := s.dense()
		args := tensors(ls)
		args[i] = scalar
		want, wantErr := s.run(args)
		freeAll(ls)
		for _, number := range []*Tensor{Number(s.env, 3, 0, false), Number(s.env, 0, 3, true)} {
			if number.dtype == dtype.F64 && !other.dtype.IsFloat() {
				continue
			}
			ls := s.dense()
			args := tensors(ls)
			args[i] = number
			got, err := s.run(args)
			freeAll(ls)
			if err == nil && wantErr == nil {
				err = got.differs(want)
			} else if errors.As(err, new(*Error)) && errors.As(wantErr, new(*Error)) {
				err = nil // the number itself is refused
			}
			if err != nil {
				return fmt.Errorf("the number 3 as operand %d of %s: %w", i, other.Shape(), err)
			}
		}
	}
	return nil
}

// tolerance is how far a fused operation may lie from its definition, relative to the numbers about.
func tolerance(dt dtype.Type) float64 {
	switch dt {
	case dtype.F16:
		return 4e-3
	case dtype.BF16:
		return 3e-2
	case dtype.F64:
		return 1e-12
	}
	return 2e-5
}

// checkReference compares a fused operation with its definition in other operations.
func checkReference(s *subject) error {
	if !Is[Once](s.info) {
		return nil
	}
	ls := s.dense()
	defer freeAll(ls)
	outs, err := s.outputs(tensors(ls))
	if err != nil {
		return err
	}
	defer s.release(outs)
	op := s.info.clone(s.op)
	s.info.setOperands(op, tensors(ls))
	var ref *Tensor
	func() {
		defer Recover(&err)
		ref = op.(Once).Ref()
	}()
	if err != nil {
		return fmt.Errorf("Ref: %w", err)
	}
	if ref.axes != outs[0].axes {
		ref = ref.Order(outs[0].axes.String())
	}
	return near(outs[0], ref, tolerance(outs[0].dtype))
}

// near says where x differs from want by more than tol relative to max(1, |want|).
func near(x, want *Tensor, tol float64) error {
	if x.Shape() != want.Shape() {
		return fmt.Errorf("got %s, want %s", x.Shape(), want.Shape())
	}
	xs, ws := x.Values(), want.Values()
	for i := range xs {
		a, aok := xs[i].(float64)
		b, bok := ws[i].(float64)
		if !aok || !bok {
			if xs[i] != ws[i] {
				return fmt.Errorf("element %d is %v, want %v", i, xs[i], ws[i])
			}
			continue
		}
		same := a == b || math.IsNaN(a) && math.IsNaN(b)
		if !same && !(math.Abs(a-b) <= tol*max(1, math.Abs(b))) {
			return fmt.Errorf("element %d is %v, want %v", i, a, b)
		}
	}
	return nil
}
