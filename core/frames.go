package core

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/par"
)

// Sizes is what an operation's Sizes works with. An operation that is no Sizer gets Match(nil).
type Sizes struct{ c *call }

// Match insists that axes of one name have one size in all operands, except those listed (nil:
// none).
func (s *Sizes) Match(except Axes) {
	if except == nil {
		except = axis.Empty
	}
	s.c.matchSizes(except)
}

// Of is the size of the named axis in operand t.
func (s *Sizes) Of(t *Tensor, name Axis) int { return t.Size(string(name)) }

// Set gives the named axis of output i its size. Sizes must not be negative.
func (s *Sizes) Set(i int, name string, n int) {
	t := s.c.outs[i]
	k := t.axes.Index(name)
	if k < 0 {
		s.Fail(fmt.Sprintf("got %q, want the name of one axis", name), s.c.info.AsIn())
	}
	t.sizes[k] = n
}

// Fail ends the call with a message and a hint, which may be empty.
func (s *Sizes) Fail(msg, hint string) { s.c.fail(msg, hint) }

// Describe names an operand with its shape, as messages show it.
func (s *Sizes) Describe(t *Tensor) string { return s.c.describe(t) }

// View is what a Viewer lays its output out with.
type View struct {
	c   *call
	out *Tensor
}

// Alias makes the output share operand x's bytes, beginning skip elements after x's first one.
func (v *View) Alias(x *Tensor, skip int) {
	t := v.out
	t.meta, t.panels = x.meta, x.panels
	if x.buf == nil {
		return
	}
	t.buf = x.buf
	t.buf.Retain()
	t.version = t.buf.Version()
	t.data = x.data
	if skip != 0 && t.Len() > 0 {
		t.data = unsafe.Add(x.data, skip*x.dtype.Size())
	}
}

// Stride sets the step, in elements, along output axis k.
func (v *View) Stride(k, stride int) { v.out.strides[k] = stride }

// Out is the output, whose sizes are settled.
func (v *View) Out() *Tensor { return v.out }

// Fail ends the call with a message and a hint, which may be empty.
func (v *View) Fail(msg, hint string) { v.c.fail(msg, hint) }

// Ctx is what an operation's Eval works with.
type Ctx struct{ c *call }

// Out is output i: dense, its contents undefined.
func (c *Ctx) Out(i int) *Tensor { return c.c.outs[i] }

// Data is what Names kept with the plan.
func (c *Ctx) Data() any { return c.c.plan.data }

// Fail ends the call with a message about the operands' contents, and a hint.
func (c *Ctx) Fail(msg, hint string) { c.c.fail(msg, hint) }

// Describe names an operand with its shape, as messages show it.
func (c *Ctx) Describe(t *Tensor) string { return c.c.describe(t) }

// Split runs f over [0, n) in chunks of at least grain on the workers. It panics with *Canceled
// when the Env is stopped.
func (c *Ctx) Split(n, grain int, f func(lo, hi int)) {
	if timed != nil {
		f = timed(c, f)
	}
	if !par.Split(&c.c.env.Control, n, grain, f) {
		panic(&Canceled{Op: c.c.info.Name})
	}
}

// Alternate is Split for loops that go through their operands once. Every other one takes its ranges, and thereby each
// worker its half, backwards: it begins with what the one before touched last and left in the caches, be that its own
// operands or its result.
func (c *Ctx) Alternate(n, grain int, f func(lo, hi int)) {
	e, chunks := c.c.env, ceilDiv(n, grain)
	if e.back = !e.back && chunks < mostMirrored; !e.back {
		c.Split(n, grain, f)
		return
	}
	half := 0
	if par.Most(&e.Control, chunks) > 1 {
		half = chunks / 2
	}
	c.Split(n, grain, func(lo, hi int) {
		i := lo / grain
		if i < half {
			i = half - 1 - i
		} else {
			i = chunks - 1 - (i - half)
		}
		f(i*grain, min((i+1)*grain, n))
	})
}

// mostMirrored is how many ranges Alternate hands out backwards: of very many, Split takes several at once.
const mostMirrored = 1 << 20

// pauseLen is how many elements a loop of Eval goes through between two Pauses, which takes it less than 200 µs.
const pauseLen = 1 << 13

// Pause panics with *Canceled when the Env is stopped. Loops whose length the operands decide call it in between, in
// whatever goroutine they run.
func (c *Ctx) Pause() {
	c.c.env.checkStop()
}

// pieces calls f on consecutive ranges of [0, n), with a Pause before each; all but the last begin at a multiple of
// the lanes that sums run in, so that these can be carried on.
func (c *Ctx) pieces(n int, f func(lo, hi int)) {
	for lo := 0; lo < n; lo += pauseLen {
		c.Pause()
		f(lo, min(n, lo+pauseLen))
	}
}

// Scratch is a dense temporary tensor with undefined contents that goes back to the pool when the
// operation ends.
func (c *Ctx) Scratch(dt dtype.Type, axes *axis.List, sizes []int) *Tensor {
	t := c.c.env.handle(dt, axes)
	copy(t.sizes, sizes)
	t.allocate(false)
	c.c.tmp = append(c.c.tmp, t)
	return t
}

// touch has the system give the memory of t, which is to be overwritten, before the loops that do so write in several
// places at once: a huge page that was never used is zeroed when it is first written, which can take milliseconds,
// and here an interrupt comes between any two. Of memory in use it writes one byte in 2 MiB.
func (c *Ctx) touch(t *Tensor) {
	const page = 2 << 20
	b := unsafe.Slice((*byte)(t.data), t.Len()*t.dtype.Size())
	if len(b) < 2*page {
		return
	}
	c.Split(ceilDiv(len(b), page), 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			c.Pause()
			b[i*page] = 0
		}
	})
}

// saves tells whether a gradient is wanted, for which Eval has to Save something.
func (c *Ctx) saves() bool { return c.c.tracked() != 0 }

// Save is a dense tensor for Eval to fill with what the gradient needs, for VJP to find as State of
// Grads; nil if no gradient is wanted.
func (c *Ctx) Save(dt dtype.Type, axes *axis.List, sizes []int) *Tensor {
	if !c.saves() {
		return nil
	}
	t := newTensor(c.c.env, dt, axes)
	copy(t.sizes, sizes)
	t.allocate(false)
	c.c.state = append(c.c.state, t)
	return t
}

// Dense is operand t with its axes in the given order (the same names), one element after another
// in memory: t itself where it already is so, else a copy. Its dtype is dt.
func (c *Ctx) Dense(t *Tensor, order *axis.List, dt dtype.Type) *Tensor {
	v := t.permuted(order)
	if v.dtype == dt && v.dense() {
		return v
	}
	d := c.Scratch(dt, order, v.sizes)
	c.copyInto(d, v)
	if copied != nil {
		copied(t)
	}
	return d
}

// timed, if set, is put around what Split calls; for tests.
var timed func(c *Ctx, f func(lo, hi int)) func(lo, hi int)

// paused, if set, is told of every look at whether to stop but those of Split; for tests.
var paused func()

// copied, if set, is told of every operand that Dense copies; for tests.
var copied func(t *Tensor)

// permuted is a header with t's axes in another order, sharing the bytes without holding them.
func (t *Tensor) permuted(order *axis.List) *Tensor {
	if t.axes == order {
		return t
	}
	v := &Tensor{env: t.env, dtype: t.dtype, panels: t.panels, axes: order, buf: t.buf, data: t.data}
	v.sizes, v.strides = v.dims[:0:4], v.dims[4:4:8]
	for _, name := range order.Names() {
		k := t.axes.Index(name)
		v.sizes = append(v.sizes, t.sizes[k])
		v.strides = append(v.strides, t.strides[k])
	}
	return v
}

// Item is the value of a tensor with one element: float64, int64 or bool.
func (t *Tensor) Item() any {
	t.mustHaveData("item")
	if t.Len() != 1 {
		hint := "reduce it: x.sum().item()"
		if t.Len() > 1 {
			hint = fmt.Sprintf("take one: x.at(%s).item()", strings.Join(places(t.axes), ", "))
		}
		panic(&Error{Op: "item", Msg: "want a tensor with one element, got " + t.Shape(), Hint: hint})
	}
	return t.element(0)
}

// element is the value offset elements after the first.
func (t *Tensor) element(offset int) any {
	p := unsafe.Add(t.data, offset*t.dtype.Size())
	switch t.dtype {
	case dtype.F32:
		return float64(*(*float32)(p))
	case dtype.F64:
		return *(*float64)(p)
	case dtype.F16:
		return float64(dtype.F16ToF32(*(*uint16)(p)))
	case dtype.BF16:
		return float64(dtype.BF16ToF32(*(*uint16)(p)))
	case dtype.I8:
		return int64(*(*int8)(p))
	case dtype.U8:
		return int64(*(*uint8)(p))
	case dtype.I16:
		return int64(*(*int16)(p))
	case dtype.I32:
		return int64(*(*int32)(p))
	case dtype.I64:
		return *(*int64)(p)
	case dtype.Bool:
		return *(*bool)(p)
	}
	panic("core: element of " + t.dtype.String())
}

// Number is a plain number as an operand: it takes the dtype of the tensors it meets, and alone
// is f32 (or i64 for an integer).
func Number(e *Env, v float64, i int64, integer bool) *Tensor {
	t := newTensor(e, dtype.F64, axis.Empty)
	t.allocate(false)
	t.weak, t.number = true, true
	if integer {
		t.dtype = dtype.I64
		*(*int64)(t.data) = i
	} else {
		*(*float64)(t.data) = v
	}
	return t
}

// settle turns a plain number into a scalar of dtype dt (Invalid: its own choice).
func (t *Tensor) settle(c *call, dt dtype.Type) {
	if dt == dtype.Invalid {
		dt = dtype.F32
		if t.dtype == dtype.I64 {
			dt = dtype.I64
		}
	}
	if t.dtype == dtype.F64 && !dt.IsFloat() {
		met, v := c.meets(dt), *(*float64)(t.data)
		hint := c.hint(
			c.instead("nothing is promoted silently", met, "%s.cast(\"f32\")", func(x *Tensor) *Tensor {
				return cast.In(c.env, Cast{X: x, DType: dtype.F32})
			}),
			c.instead("as an integer", t, "int(%s)", func(*Tensor) *Tensor {
				return Number(c.env, 0, int64(v), true)
			}))
		c.fail(fmt.Sprintf("%s is %v but %s is %s", c.param(t), v, c.describe(met), dt), hint)
	}
	t.weak = false
	if t.dtype == dt {
		return
	}
	f, i := 0.0, int64(0)
	if t.dtype == dtype.F64 {
		f = *(*float64)(t.data)
	} else {
		i = *(*int64)(t.data)
		f = float64(i)
	}
	if dt.IsInt() && !fits(i, dt) {
		met := c.meets(dt)
		c.fail(fmt.Sprintf("%s is %d, which does not fit %s of %s", c.param(t), i, c.describe(met), dt),
			fmt.Sprintf("a wider dtype holds it: %s.cast(\"i64\")", c.param(met)))
	}
	t.dtype = dt
	put(t.data, dt, f, i)
}

// meets is the tensor of dtype dt that a plain number among the operands takes it from.
func (c *call) meets(dt dtype.Type) *Tensor {
	for _, x := range c.in {
		if x != nil && !x.number && x.dtype == dt {
			return x
		}
	}
	return c.in[0]
}

// fits tells whether the integer dtype holds i.
func fits(i int64, dt dtype.Type) bool {
	lo, hi := intRange(dt)
	return lo <= i && i <= hi
}

// holds tells whether the dtype holds v without rounding off a fraction; float dtypes hold any number.
func holds(v float64, dt dtype.Type) bool {
	if !dt.IsInt() {
		return true
	}
	lo, hi := intRange(dt)
	return v == math.Trunc(v) && float64(lo) <= v && v < float64(hi)+1
}

// put stores a number, given both as float and as integer, at p.
func put(p unsafe.Pointer, dt dtype.Type, f float64, i int64) {
	switch dt {
	case dtype.F32:
		*(*float32)(p) = float32(f)
	case dtype.F64:
		*(*float64)(p) = f
	case dtype.F16:
		*(*uint16)(p) = dtype.F32ToF16(roundToOdd(f))
	case dtype.BF16:
		*(*uint16)(p) = dtype.F32ToBF16(roundToOdd(f))
	case dtype.I8, dtype.U8:
		*(*int8)(p) = int8(i)
	case dtype.I16:
		*(*int16)(p) = int16(i)
	case dtype.I32:
		*(*int32)(p) = int32(i)
	case dtype.I64:
		*(*int64)(p) = i
	case dtype.Bool:
		*(*bool)(p) = i != 0
	}
}
