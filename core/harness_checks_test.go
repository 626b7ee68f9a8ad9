package core

import (
	"errors"
	"fmt"
	"strings"

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
	{"shared", checkShared},
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
			case errors.As(wantErr, new(*Error)) && errors.As(err, new(*Error)):
				err = nil // the elements themselves are refused, as a divisor may be
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
				continue // its axes or its numbers do not suit; that some tensor does is for TestSamples
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
	if e := (*Error)(nil); errors.As(err, &e) && e.Op == s.info.Name && strings.Contains(err.Error(),
		"shape-only run") {
		return nil // the operation itself says that its sizes depend on data
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

// checkShared insists on the same bits, in a shared result, from operands that belong to nobody.
func checkShared(s *subject) error {
	want, err := s.want()
	if err != nil || s.mutates(0) || len(s.args) == 0 {
		return err
	}
	ls := s.dense()
	defer freeAll(ls)
	args := tensors(ls)
	for _, t := range args {
		if t != nil {
			t.Share()
		}
	}
	alone := *s
	alone.env = nil
	outs, err := alone.outputs(args)
	if err != nil {
		return fmt.Errorf("on shared operands: %w", err)
	}
	got := &result{}
	for _, t := range outs {
		if t.env != nil {
			return errors.New("shared operands give a result that is not shared")
		}
		got.shapes, got.bits = append(got.shapes, t.Shape()), append(got.bits, bitsOf(t))
	}
	return got.differs(want)
}
