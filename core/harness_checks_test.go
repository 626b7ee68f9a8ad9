package core

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/mem"
)

// checks are the generic tests by name. Each is run on every sample of every operation.
var checks = []struct {
	name string
	run  func(*subject) error
}{
	{"layouts", checkLayouts},
	{"broadcast", checkBroadcast},
	{"repeated", func(s *subject) error { _, err := checkRepeated(s); return err }},
	{"workers", checkWorkers},
	{"shapes", checkShapes},
	{"writes", checkWrites},
	{"failures", checkFailures},
	{"recording", checkRecording},
	{"rows", checkRows},
	{"halves", checkHalves},
	{"numbers", checkNumbers},
	{"reference", checkReference},
	{"plan", checkPlan},
}

// checkLayouts insists on the same bits however the operands are stored: all of them, and each alone.
func checkLayouts(s *subject) error {
	want, err := s.want()
	if err != nil {
		return err
	}
	for _, l := range layouts {
		for only := -1; only < len(s.args); only++ {
			ls, different := s.dense(), false
			for i, t := range s.args {
				if t == nil || only >= 0 && only != i || !l.applies(t) {
					continue
				}
				ls[i].Free()
				ls[i], different = l.lay(s.env, t), true
			}
			if !different {
				freeAll(ls)
				continue
			}
			got, err := s.runLaid(ls)
			if err == nil {
				err = got.differs(want)
			}
			if err != nil {
				return fmt.Errorf("%s storage of operand %d (-1: all): %w", l.name, only, err)
			}
		}
	}
	return nil
}

// checkBroadcast insists on the same bits for an operand that repeats along an axis as for a copy of it.
func checkBroadcast(s *subject) error {
	for i, t := range s.args {
		if t == nil || s.mutates(i) {
			continue
		}
		for k := range t.sizes {
			l := broadcastAlong(k)
			if t.sizes[k] < 2 || !l.applies(t) {
				continue
			}
			repeats := l.lay(s.env, t)
			copied := s.dense()
			copied[i].Free()
			copied[i] = dense.lay(s.env, repeats.Tensor)
			want, wantErr := s.runLaid(copied)
			ls := s.dense()
			ls[i].Free()
			ls[i] = repeats
			got, err := s.runLaid(ls)
			switch {
			case err == nil && wantErr == nil:
				err = got.differs(want)
			case wantErr != nil && err != nil: // the elements themselves are refused, as a divisor may be
				err = nil
			case err == nil:
				err = wantErr
			}
			if err != nil {
				return fmt.Errorf("operand %d repeated along %q: %w", i, t.axes.At(k), err)
			}
		}
	}
	return nil
}

// checkRepeated insists on the same bits for a tensor that is two operands as for a copy of it. It
// reports whether the operation takes one tensor twice.
func checkRepeated(s *subject) (applied bool, err error) {
	for i, x := range s.args {
		for j, y := range s.args {
			if i == j || x == nil || y == nil || x.dtype != y.dtype {
				continue
			}
			copied := s.dense()
			copied[j].Free()
			copied[j] = dense.lay(s.env, x)
			want, err := s.runLaid(copied)
			if errors.As(err, new(*Error)) {
				if x.Shape() == y.Shape() {
					return applied, fmt.Errorf("operand %d refused as operand %d: %w", i, j, err)
				}
				continue
			}
			ls := s.dense()
			args := tensors(ls)
			args[j] = args[i]
			got, err := s.run(args)
			freeAll(ls)
			if err == nil {
				err = got.differs(want)
			}
			if err != nil {
				return applied, fmt.Errorf("operand %d also as operand %d: %w", i, j, err)
			}
			applied = true
		}
	}
	return applied, nil
}

// checkWorkers insists on the same bits for any number of workers and any size of the chunks.
func checkWorkers(s *subject) error {
	want, err := s.want()
	if err != nil {
		return err
	}
	defer func() { s.env.Control.Workers = 1 }()
	smallGrain(func() {
		for _, n := range []int{1, 2, 3, 8} {
			s.env.Control.Workers = n
			var got *result
			if got, err = s.want(); err == nil {
				err = got.differs(want)
			}
			if err != nil {
				err = fmt.Errorf("with %d workers: %w", n, err)
				return
			}
		}
	})
	return err
}

// checkShapes insists that a run without data gives the axes, sizes and dtypes of one with data, asks for
// no memory and looks at no element.
func checkShapes(s *subject) error {
	want, err := s.want()
	if err != nil {
		return err
	}
	defer func() { s.env.shapeOnly, s.env.alloc = false, nil }()
	s.env.shapeOnly = true
	s.env.alloc = func(bytes int) *mem.Buffer { panic(fmt.Sprintf("asked for %d bytes", bytes)) }
	args := make([]*Tensor, len(s.args))
	for i, t := range s.args {
		if t != nil {
			args[i] = t.twin(false)
		}
	}
	outs, err := s.outputs(args)
	if err != nil && errors.As(err, new(*Error)) && strings.Contains(err.Error(), "shape-only run") {
		return nil // says that its sizes depend on data
	}
	if err != nil {
		return fmt.Errorf("without data: %w", err)
	}
	for i, t := range outs {
		if t.Shape() != want.shapes[i] {
			return fmt.Errorf("without data output %d is %s, with data %s", i, t.Shape(), want.shapes[i])
		}
		if !t.meta {
			return fmt.Errorf("without data output %d claims to have some", i)
		}
	}
	return nil
}

// checkWrites insists that the operation writes every element of its outputs, nothing outside of them and
// of its scratch, and lets go of all memory.
func checkWrites(s *subject) error {
	want, err := s.want()
	if err != nil {
		return err
	}
	for _, pattern := range []byte{0xa5, 0x5a} {
		ls := s.dense()
		g := &guards{pattern: pattern, fail: -1}
		s.env.alloc = g.alloc
		got, err := s.runLaid(ls)
		s.env.alloc = nil
		if err == nil {
			err = got.differs(want)
		}
		if err == nil {
			err = g.intact()
		}
		if err == nil {
			err = s.nothingLeft(g)
		}
		if err != nil {
			return fmt.Errorf("memory full of %#x: %w", pattern, err)
		}
	}
	return nil
}

func (s *subject) nothingLeft(g *guards) error {
	if n := len(s.env.busy); n > 0 {
		return fmt.Errorf("%d calls are still open", n)
	}
	return g.released()
}

// checkFailures lets each allocation fail in turn, and then stops the operation, and insists that either leaves
// nothing behind.
func checkFailures(s *subject) error {
	defer func() { s.env.alloc = nil }()
	for n := 0; ; n++ {
		ls := s.dense()
		g := &guards{fail: n}
		s.env.alloc = g.alloc
		_, err := s.runLaid(ls)
		s.env.alloc = nil
		if err != nil && !errors.Is(err, errMemory) {
			return fmt.Errorf("allocation %d failed: %w", n, err)
		}
		if err := s.nothingLeft(g); err != nil {
			return fmt.Errorf("after allocation %d failed: %w", n, err)
		}
		if err == nil {
			break
		}
	}
	ls := s.dense()
	defer freeAll(ls)
	g := &guards{fail: -1}
	s.env.alloc = g.alloc
	s.env.Control.Stop()
	outs, err := s.outputs(tensors(ls))
	s.env.Control.Reset()
	switch {
	case err == nil: // a view computes nothing that could be stopped
		s.release(outs)
	case !errors.As(err, new(*Canceled)):
		return fmt.Errorf("when stopped: %w", err)
	}
	if err := s.nothingLeft(g); err != nil {
		return fmt.Errorf("after a stop: %w", err)
	}
	return nil
}

// checkRecording insists that tracked operands change no bit and that the record lets go of all memory with
// the outputs.
func checkRecording(s *subject) error {
	want, err := s.want()
	if err != nil || !Is[Differentiable](s.info) {
		return err
	}
	ls := s.dense()
	defer freeAll(ls)
	args := tensors(ls)
	for i, t := range args {
		if t != nil && t.dtype.IsFloat() && !s.mutates(i) {
			args[i] = s.env.Watch(t)
		}
	}
	g := &guards{fail: -1}
	s.env.alloc = g.alloc
	got, err := s.run(args)
	s.env.alloc = nil
	if err == nil {
		err = got.differs(want)
	}
	for i, t := range args {
		if t != nil && t != ls[i].Tensor {
			t.Free()
		}
	}
	if s.mutates(0) && ls[0].node != nil { // the record hangs on the operand itself
		ls[0].node.release()
		ls[0].node = nil
	}
	for i, l := range ls {
		if l == nil {
			continue
		}
		if n := l.buf.Holders(); err == nil && n != 1 {
			err = fmt.Errorf("operand %d has %d holders, want 1", i, n)
		}
	}
	if err == nil {
		err = s.nothingLeft(g)
	}
	if err != nil {
		return fmt.Errorf("recorded: %w", err)
	}
	return nil
}

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
		v.data = unsafe.Add(t.data, lo*t.strides[k]*t.dtype.Size())
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
			} else if err != nil && wantErr != nil {
				err = nil
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

// checkPlan insists that the second call finds the plan of the first.
func checkPlan(s *subject) (err error) {
	if Is[Composer](s.info) {
		return nil
	}
	defer Recover(&err)
	find := func() *Plan {
		c := s.env.enter(s.info, s.op)
		defer s.env.leave(c)
		c.gather()
		return c.findPlan()
	}
	if first, second := find(), find(); first != second {
		return errors.New("the second call made a plan of its own")
	}
	return nil
}
