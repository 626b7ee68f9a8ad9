package core

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/mem"
)

// The generic tests run every operation of the table on its samples. What they need of an operation
// is its Samples; a new operation is tested by being declared. The checks return errors, so that the
// tests of the tests can call them on operations that are wrong on purpose.

// subject is an operation on the arguments of one sample.
type subject struct {
	info *Info
	env  *Env
	op   Op
	args []*Tensor // its tensor operands, dense; nil where one was left out
	name string
}

// subjects are an operation's samples, in one Env.
func subjects(info *Info) []*subject {
	env := NewEnv(0, 1)
	var list []*subject
	for n, op := range info.Samples(&Maker{Env: env}) {
		s := &subject{info: info, env: env, op: op, args: operandsOf(info, op)}
		parts := []string{fmt.Sprintf("%02d", n)}
		for _, t := range s.args {
			if t != nil {
				parts = append(parts, strings.ReplaceAll(t.Shape(), ", ", ","))
			}
		}
		s.name = strings.Join(parts, ":")
		list = append(list, s)
	}
	return list
}

func operandsOf(info *Info, op Op) (ts []*Tensor) {
	for _, k := range info.tensors {
		f := &info.Fields[k]
		if f.Kind == KindTensors {
			ts = append(ts, *(*[]*Tensor)(f.At(op))...)
		} else {
			ts = append(ts, *(**Tensor)(f.At(op)))
		}
	}
	return ts
}

// mutates tells whether the operation changes operand i.
func (s *subject) mutates(i int) bool { return i == 0 && Is[InPlace](s.info) }

// result is what a run yields: each output's dtype, axes and sizes, and its elements' bits.
type result struct {
	shapes []string
	bits   [][]byte
}

// run runs the operation on other operands and lets go of the outputs. Any panic is an error.
func (s *subject) run(args []*Tensor) (r *result, err error) {
	outs, err := s.outputs(args)
	if err != nil {
		return nil, err
	}
	r = &result{}
	for _, t := range outs {
		r.shapes = append(r.shapes, t.Shape())
		r.bits = append(r.bits, bitsOf(t))
	}
	s.release(outs)
	return r, nil
}

func (s *subject) outputs(args []*Tensor) (outs []*Tensor, err error) {
	defer func() {
		if p := recover(); p != nil {
			if e, ok := p.(error); ok && (errors.As(e, new(*Error)) || errors.As(e, new(*Canceled))) {
				err = e
				return
			}
			stack := debug.Stack()
			err = fmt.Errorf("panic: %v\n%s", p, stack[:min(len(stack), 2000)])
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	op := s.info.clone(s.op)
	s.info.setOperands(op, args)
	return s.info.Run(s.env, op, nil), nil
}

func (s *subject) release(outs []*Tensor) {
	for i, t := range outs {
		if !s.mutates(i) {
			t.Free()
		}
	}
}

// differs says how r differs from want, nil if it does not.
func (r *result) differs(want *result) error {
	if !slices.Equal(r.shapes, want.shapes) {
		return fmt.Errorf("got %v, want %v", r.shapes, want.shapes)
	}
	for i := range r.bits {
		if !bytes.Equal(r.bits[i], want.bits[i]) {
			return fmt.Errorf("output %d %s: got\n% x, want\n% x", i, r.shapes[i], clipped(r.bits[i]),
				clipped(want.bits[i]))
		}
	}
	return nil
}

func clipped(b []byte) []byte { return b[:min(len(b), 64)] }

// bitsOf is the elements of t in the order of its axes. NaNs are made one: their payload is nobody's
// promise.
func bitsOf(t *Tensor) []byte {
	if t.dtype.Quantized() {
		return bytes.Clone(t.bytes())
	}
	size := t.dtype.Size()
	bits := make([]byte, 0, t.Len()*size)
	eachOffset(t, func(off int) {
		p := unsafe.Add(t.data, off*size)
		if isNaN(p, t.dtype) {
			bits = append(bits, bytes.Repeat([]byte{0xff}, size)...)
			return
		}
		bits = append(bits, unsafe.Slice((*byte)(p), size)...)
	})
	return bits
}

// eachOffset visits the elements in the order of the axes. It is written apart from Tensor.each, which
// it tests.
func eachOffset(t *Tensor, f func(off int)) {
	var visit func(k, off int)
	visit = func(k, off int) {
		if k == len(t.sizes) {
			f(off)
			return
		}
		for i := range t.sizes[k] {
			visit(k+1, off+i*t.strides[k])
		}
	}
	visit(0, 0)
}

func isNaN(p unsafe.Pointer, dt dtype.Type) bool {
	switch dt {
	case dtype.F32:
		return math.IsNaN(float64(*(*float32)(p)))
	case dtype.F64:
		return math.IsNaN(*(*float64)(p))
	case dtype.F16:
		return math.IsNaN(float64(dtype.F16ToF32(*(*uint16)(p))))
	case dtype.BF16:
		return math.IsNaN(float64(dtype.BF16ToF32(*(*uint16)(p))))
	}
	return false
}

// layout is a way to store a tensor: the axes from slowest to fastest, and how many places apart the
// elements along each axis lie; 0 for an axis whose elements are all the first one.
type layout struct {
	name string
	plan func(sizes []int) (order, steps []int) // nil: does not apply
}

// laid is a tensor in some layout and the memory around it.
type laid struct {
	*Tensor
	memory []byte
	before []byte
	used   []bool // by byte: part of an element
}

const gap = 0xa5 // fills memory between elements

// lay stores the elements of t in a buffer of their own. Elements of an axis with step 0 are those at
// its first place. Quantized elements always lie one after another.
func lay(e *Env, t *Tensor, order, steps []int) *laid {
	if t.dtype.Quantized() {
		return layBlocks(e, t)
	}
	size := t.dtype.Size()
	x := newTensor(e, t.dtype, t.axes)
	copy(x.sizes, t.sizes)
	span, first := 1, 0
	for _, k := range slices.Backward(order) {
		step := steps[k]
		x.strides[k] = step * span
		if step < 0 {
			first -= (t.sizes[k] - 1) * step * span
		}
		if step != 0 {
			span *= max(1, t.sizes[k]*max(step, -step))
		}
	}
	x.buf = e.fill(x.room, span*size)
	l := &laid{Tensor: x, memory: unsafe.Slice((*byte)(x.buf.Data()), span*size), used: make([]bool, span*size)}
	for i := range l.memory {
		l.memory[i] = gap
	}
	x.data = x.buf.Data()
	if t.Len() > 0 {
		x.data = unsafe.Add(x.data, first*size)
	}
	var fill func(k, from, to int)
	fill = func(k, from, to int) {
		if k < len(t.sizes) {
			for i := range t.sizes[k] {
				if steps[k] != 0 || i == 0 {
					fill(k+1, from+i*t.strides[k], to+i*x.strides[k])
				}
			}
			return
		}
		at := (to + first) * size
		copy(l.memory[at:][:size], unsafe.Slice((*byte)(unsafe.Add(t.data, from*size)), size))
		for i := range size {
			l.used[at+i] = true
		}
	}
	fill(0, 0, 0)
	l.before = bytes.Clone(l.memory)
	return l
}

// layBlocks is lay for quantized elements.
func layBlocks(e *Env, t *Tensor) *laid {
	x := newTensor(e, t.dtype, t.axes)
	copy(x.sizes, t.sizes)
	x.allocate(false)
	l := &laid{Tensor: x, memory: x.bytes(), used: make([]bool, len(x.bytes()))}
	copy(l.memory, t.bytes())
	for i := range l.used {
		l.used[i] = true
	}
	l.before = bytes.Clone(l.memory)
	return l
}

// changed says whether bytes of the operand changed; if its elements may, only those between them count.
func (l *laid) changed(mayChange bool) error {
	for i, b := range l.memory {
		if b != l.before[i] && !(mayChange && l.used[i]) {
			what := "an element"
			if !l.used[i] {
				what = "memory between elements"
			}
			return fmt.Errorf("changed %s of %s, byte %d", what, l.Shape(), i)
		}
	}
	return nil
}

func forward(n int) (order []int) {
	for k := range n {
		order = append(order, k)
	}
	return order
}

var dense = layout{"dense", func(sizes []int) (order, steps []int) {
	return forward(len(sizes)), slices.Repeat([]int{1}, len(sizes))
}}

// layouts are the ways of storage that keep the elements. Broadcast storage, which does not, is made
// by broadcastAlong.
var layouts = []layout{
	{"permuted", func(sizes []int) (order, steps []int) {
		order, steps = dense.plan(sizes)
		slices.Reverse(order)
		return order, steps
	}},
	{"strided", func(sizes []int) (order, steps []int) {
		return forward(len(sizes)), slices.Repeat([]int{2}, len(sizes))
	}},
	{"backward", func(sizes []int) (order, steps []int) {
		return forward(len(sizes)), slices.Repeat([]int{-1}, len(sizes))
	}},
	{"rows backward", func(sizes []int) (order, steps []int) {
		order, steps = dense.plan(sizes)
		for k := range len(steps) - 1 {
			steps[k] = -1
		}
		return order, steps
	}},
	{"permuted and strided", func(sizes []int) (order, steps []int) {
		for k := range sizes {
			order, steps = append(order, (k+1)%len(sizes)), append(steps, []int{-2, 3, 1}[k%3])
		}
		return order, steps
	}},
}

func broadcastAlong(axis int) layout {
	return layout{"broadcast", func(sizes []int) (order, steps []int) {
		order, steps = dense.plan(sizes)
		steps[axis] = 0
		return order, steps
	}}
}

// applies tells whether a tensor of these sizes is stored differently for the layout.
func (l *layout) applies(t *Tensor) bool {
	long := 0
	for _, n := range t.sizes {
		if n > 1 {
			long++
		}
	}
	return t.Len() > 0 && !t.dtype.Quantized() && (long > 1 || long == 1 && l.name != "permuted")
}

func (l *layout) lay(e *Env, t *Tensor) *laid {
	if t == nil {
		return nil
	}
	order, steps := l.plan(t.sizes)
	return lay(e, t, order, steps)
}

// tensors are the handles of laid operands.
func tensors(ls []*laid) (ts []*Tensor) {
	for _, l := range ls {
		if l == nil {
			ts = append(ts, nil)
		} else {
			ts = append(ts, l.Tensor)
		}
	}
	return ts
}

// dense lays every operand out anew in the order of its axes.
func (s *subject) dense() (ls []*laid) {
	for _, t := range s.args {
		ls = append(ls, dense.lay(s.env, t))
	}
	return ls
}

func freeAll(ls []*laid) {
	for _, l := range ls {
		if l != nil {
			l.Free()
		}
	}
}

// want is the operation's result for its sample.
func (s *subject) want() (*result, error) { return s.runLaid(s.dense()) }

// runLaid runs the operation and insists that the operands stay as they were.
func (s *subject) runLaid(ls []*laid) (*result, error) {
	defer freeAll(ls)
	r, err := s.run(tensors(ls))
	if err != nil {
		return nil, err
	}
	for i, l := range ls {
		if l == nil {
			continue
		}
		if err := l.changed(s.mutates(i)); err != nil {
			return nil, err
		}
		if n := l.buf.Holders(); n != 1 {
			return nil, fmt.Errorf("operand %d has %d holders after the outputs were freed, want 1", i, n)
		}
	}
	return r, nil
}

// guards are buffers with guard bytes on both sides, filled with a pattern.
type guards struct {
	pattern byte
	blocks  []*guarded
	fail    int // the allocation that fails, counted from 0; -1: none
}

type guarded struct {
	whole []byte
	buf   *mem.Buffer
	size  int
}

const guardBytes = 64

var errMemory = &Error{Op: "test", Msg: "no memory"}

func (g *guards) alloc(size int) *mem.Buffer {
	if len(g.blocks) == g.fail {
		panic(errMemory)
	}
	whole := make([]byte, size+4*guardBytes)
	skip := guardBytes - int(uintptr(unsafe.Pointer(&whole[0]))%guardBytes)
	whole = whole[skip:][: guardBytes+size+guardBytes : guardBytes+size+guardBytes]
	for i := range whole {
		whole[i] = g.pattern
	}
	b := &guarded{whole: whole, size: size, buf: mem.Borrow(whole[guardBytes:][:size:size], g)}
	g.blocks = append(g.blocks, b)
	return b.buf
}

// intact says which guard bytes were written.
func (g *guards) intact() error {
	for n, b := range g.blocks {
		for i, v := range b.whole {
			if at := i - guardBytes; v != g.pattern && (at < 0 || at >= b.size) {
				return fmt.Errorf("wrote byte %d of buffer %d, which has %d", at, n, b.size)
			}
		}
	}
	return nil
}

// released says which buffers are still held.
func (g *guards) released() error {
	for n, b := range g.blocks {
		if h := b.buf.Holders(); h != 0 {
			return fmt.Errorf("buffer %d of %d bytes has %d holders, want none", n, b.size, h)
		}
	}
	return nil
}

// smallGrain splits work of any size while f runs.
func smallGrain(f func()) {
	grain, work, depth := pointGrain, tileWork, packDepth
	defer func() { pointGrain, tileWork, packDepth = grain, work, depth }()
	pointGrain, tileWork, packDepth = 32, 128, 48
	f()
}

// mentions tells whether an argument of the operation other than its operands names the axis.
func (s *subject) mentions(name string) bool {
	c := &call{env: s.env, info: s.info, op: s.op, in: s.args}
	key := c.key()
	for _, l := range key.lists[len(s.args):] {
		if l != nil && l.Has(name) {
			return true
		}
	}
	return slices.Contains(key.words, name)
}

// eachSubject runs f as a subtest for every sample of every operation; for a third of them in short mode.
func eachSubject(t *testing.T, f func(s *subject) error) {
	for _, info := range All() {
		t.Run(info.Name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panic: %v\n%s", p, debug.Stack())
				}
			}()
			for n, s := range subjects(info) {
				if testing.Short() && n%3 > 0 {
					continue
				}
				if err := f(s); err != nil {
					t.Errorf("%s: %v", s.name, err)
				}
			}
		})
	}
}
