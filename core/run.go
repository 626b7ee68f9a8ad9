package core

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/qdot"
)

// call is the frame of one operation in progress. Frames are reused.
type call struct {
	env     *Env
	info    *Info
	op      Op
	plan    *Plan
	in      []*Tensor // tensor operands in field order; nil where one was left out
	outs    []*Tensor
	tmp     []*Tensor // scratch of Eval, freed at the end
	state   []*Tensor // what Eval saved for the gradient
	rounded []roundedRows
	stored  []blockProduct // to be computed
	rows    rounding       // in progress
	units   sharing        // in progress
	inA     [6]*Tensor
	outA    [4]*Tensor
	f32     lanes[float32]
	f64     lanes[float64]
	i64     lanes[int64]
	ctx     Ctx
	size    Sizes
}

// Call runs the operation on the arguments a and returns its only, or first, output.
func (d *Decl[T]) Call(a T) *Tensor {
	return d.In(nil, a)
}

// In is Call in a given Env, for operations that may have no operand to tell it.
func (d *Decl[T]) In(env *Env, a T) *Tensor {
	return d.Run1(env, d.op(&a))
}

// All is Call for an operation with several outputs.
func (d *Decl[T]) All(a T) []*Tensor {
	return d.Run(nil, d.op(&a), nil)
}

// Run is the room every operation passes: operands are checked, the plan is found, sizes are
// settled, outputs come from the pool, the operation is evaluated and, if an operand is tracked,
// recorded. The outputs are appended to out. env may be nil: the
// Env is then that of the first operand that has one. Misuse panics with an *Error, a stopped
// kernel with *Canceled; either way nothing made on the way is left behind.
func (i *Info) Run(env *Env, op Op, out []*Tensor) []*Tensor {
	c := i.exec(env, op)
	out = append(out, c.outs...)
	c.finish()
	return out
}

// Run1 is Run for an operation whose first output is all that matters.
func (i *Info) Run1(env *Env, op Op) *Tensor {
	c := i.exec(env, op)
	t := c.outs[0]
	c.finish()
	return t
}

// exec runs the operation and returns its frame, whose outs are to be taken before finish.
func (i *Info) exec(env *Env, op Op) *call {
	env = i.envOf(env, op)
	if env == nil {
		env = commons.take()
	}
	c := env.enter(i, op)
	env.ahead.look(unsafe.Pointer(i), infoLines)
	env.ahead.look(unsafe.Pointer(unsafe.SliceData(i.Fields)), i.fieldLines)
	done := false
	defer func() {
		if !done {
			c.abandon()
			if env.shared {
				commons.put(env)
			}
		}
	}()
	c.run()
	done = true
	return c
}

// finish gives the frame back.
func (c *call) finish() {
	env, op := c.env, c.op
	env.leave(c)
	if env.shared {
		commons.put(env)
	}
	runtime.KeepAlive(op)
}

func (c *call) run() {
	c.gather()
	c.plan = c.findPlan()
	if c.info.made {
		c.compose()
		return
	}
	viewed := c.makeOutputs()
	if c.info.inPlace {
		c.checkInPlace()
	}
	if !viewed && !c.env.shapeOnly {
		c.ctx.c = c
		c.env.evals++
		switch {
		case c.env.Timed != nil:
			began := time.Now()
			c.compute()
			c.env.Timed(c.info.Name, time.Since(began))
		case computing == nil:
			c.compute()
		default:
			computing(c.info.Name, true)
			c.compute()
			computing(c.info.Name, false)
		}
		if c.env.anomaly {
			c.checkNaN()
		}
	}
	for i, t := range c.tmp {
		t.buf.Release()
		c.env.reuse(t)
		c.tmp[i] = nil
	}
	clear(c.rounded)
	c.tmp, c.rounded = c.tmp[:0], c.rounded[:0]
	c.noteKept()
	c.record()
	for _, t := range c.outs {
		if c.env.shared {
			t.env = nil
		} else if t != c.in0() {
			c.env.Own(t)
		}
	}
}

// computing is told of every operation when it begins to compute, and when it has, unless it fails; it must not run
// operations. It is for a benchmark of bindings/starlark, which takes a step apart, and nil otherwise.
var computing func(op string, begins bool)

// compute does what the operation is for, unless the Env has to stop. What changes its operand is not begun then, or
// done whole: half of it would be in a tensor that is still there. What it can do before it changes it ends at once.
func (c *call) compute() {
	if !c.info.inPlace {
		as(c.info.evals, c.op).Eval(&c.ctx)
		c.env.checkStop()
		return
	}
	c.env.checkStop()
	if op, ok := c.op.(Preparing); ok {
		op.Prepare(&c.ctx)
		c.env.checkStop()
	}
	defer c.env.Control.Hold()()
	as(c.info.evals, c.op).Eval(&c.ctx)
}

// compose checks the sizes, in the words of this operation, and runs those it is made of in a scope of their
// own, so that what they leave behind goes at once.
func (c *call) compose() {
	c.checkSizes()
	s := c.env.Open()
	s.strict = true
	var outs []*Tensor
	defer func() { s.Close(outs...) }()
	switch op := c.adopted().(type) {
	case Composer:
		outs = []*Tensor{op.Compose()}
	case Composers:
		outs = op.Compose()
	}
	for i, t := range outs {
		if slices.Contains(c.in, t) { // it has nothing to do
			outs[i] = t.Alias()
			c.env.Own(outs[i])
		}
	}
	c.outs = append(c.outs, outs...)
}

// adopted is the running operation with operands that know the Env, so that the operations it is made of run in it:
// shared ones get handles that do.
func (c *call) adopted() Op {
	if c.env.shared || !slices.ContainsFunc(c.in, func(t *Tensor) bool { return t != nil && t.env == nil }) {
		return c.op
	}
	op, in := c.info.clone(c.op), slices.Clone(c.in)
	for i, t := range in {
		if t != nil && t.env == nil {
			in[i] = t.Alias()
			in[i].env = c.env
			c.env.Own(in[i])
		}
	}
	c.info.setOperands(op, in)
	return op
}

// in0 is the first operand, which operations in place return.
func (c *call) in0() *Tensor {
	if len(c.in) > 0 {
		return c.in[0]
	}
	return nil
}

// envOf settles in which Env the operation runs; nil if the operands are shared by all.
func (i *Info) envOf(env *Env, op Op) *Env {
	for _, k := range i.tensors {
		f := &i.Fields[k]
		if f.Kind == KindTensors {
			for _, t := range *(*[]*Tensor)(f.At(op)) {
				if t != nil && t.env != env {
					env = i.common(env, op, t)
				}
			}
		} else if t := *(**Tensor)(f.At(op)); t != nil && t.env != env {
			env = i.common(env, op, t)
		}
	}
	return env
}

// common is env, which may be nil, if operand t may be used there, else t's own.
func (i *Info) common(env *Env, op Op, t *Tensor) *Env {
	switch {
	case t.env == nil:
		return env
	case env == nil:
		return t.env
	}
	panic(i.Misuse(op, i.describe(op, t)+" belongs to another interpreter",
		"in Go, share it first: "+i.param(op, t)+".Share()"))
}

// enter takes a frame for an operation.
func (e *Env) enter(i *Info, op Op) *call {
	var c *call
	if n := len(e.calls); n > 0 {
		c = e.calls[n-1]
		e.calls = e.calls[:n-1]
	} else {
		c = &call{env: e}
	}
	c.info, c.op = i, op
	c.in, c.outs = c.inA[:0], c.outA[:0]
	e.busy = append(e.busy, c)
	return c
}

// leave gives the frame back, holding nothing.
func (e *Env) leave(c *call) {
	e.busy = e.busy[:len(e.busy)-1]
	c.info, c.op, c.plan = nil, nil, nil
	clear(c.inA[:])
	clear(c.outA[:])
	c.in, c.outs = nil, nil
	e.calls = append(e.calls, c)
}

// abandon throws away what a failed operation made and pops its frame and those above it.
func (c *call) abandon() {
	for _, t := range c.outs {
		if t != nil && t.buf != nil && !c.info.inPlace {
			t.buf.Release()
			t.buf, t.data = nil, nil
		}
	}
	for _, t := range append(c.tmp, c.state...) {
		t.buf.Release()
	}
	c.tmp, c.state, c.rounded, c.stored, c.units.list = nil, nil, nil, nil, nil
	c.rows.to, c.rows.from = nil, nil
	e := c.env
	for n := len(e.busy); n > 0; n = len(e.busy) {
		top := e.busy[n-1]
		e.leave(top)
		if top == c {
			return
		}
	}
}

// gather collects and checks the tensor operands.
func (c *call) gather() {
	weak, stored := false, false
	for _, k := range c.info.tensors {
		f := &c.info.Fields[k]
		if f.Kind == KindTensors {
			list := *(*[]*Tensor)(f.At(c.op))
			if len(list) == 0 {
				c.fail("got no tensors in "+f.Name+", want at least one", c.info.AsIn())
			}
			c.in = append(c.in, list...)
			continue
		}
		t := *(**Tensor)(f.At(c.op))
		if t == nil && !f.Optional {
			c.fail("got no tensor for "+f.Name, c.info.AsIn())
		}
		c.in = append(c.in, t)
	}
	for _, k := range c.info.maps {
		f, keys := &c.info.Fields[k], axis.Empty
		m := (*Map[struct{}])(f.At(c.op))
		if m.Keys != nil {
			keys = m.Keys
		}
		if keys.Len() != len(m.Values) { // a script's never are
			c.fail(fmt.Sprintf("%s: got %d values for the axes %q", f.Name, len(m.Values), keys), c.info.AsIn())
		}
	}
	for _, t := range c.in {
		if t == nil {
			continue
		}
		c.env.ahead.look(unsafe.Pointer(t), handleLines)
		if end := t.ending(); end != nil {
			c.fail(c.describe(t)+" "+end.text(t), end.hint(c.param(t)))
		}
		if t.meta && !c.env.shapeOnly {
			c.fail(c.describe(t)+" has no data",
				"check(fn) made it, where nothing is computed, so call fn itself: fn()")
		}
		if t.stale() {
			c.fail(fmt.Sprintf("%s, made at %s, was changed in place since, through another tensor on the same memory",
				c.describe(t), t.made), fmt.Sprintf("copy it where it was made: %s.copy()", c.param(t)))
		}
		weak, stored = weak || t.weak, stored || t.stored()
	}
	if weak {
		c.adapt()
	}
	if stored || c.info.typed {
		c.checkQuantized()
	}
}

// How many cache lines a Tensor with the buffer behind it takes, a Plan, and what every call looks at of an Info.
const (
	handleLines = int(unsafe.Sizeof(roomy{})+qdot.Line-1) / qdot.Line
	planLines   = int(unsafe.Sizeof(planRoom{})+qdot.Line-1) / qdot.Line
	infoLines   = int(unsafe.Offsetof(Info{}.plans)+qdot.Line-1) / qdot.Line
)

// checkQuantized refuses quantized operands and dtypes that the operation does not take.
func (c *call) checkQuantized() {
	operands, named := uint64(0), false
	if c.info.blocks != nil {
		operands, named = as(c.info.blocks, c.op).Quantized()
	}
	for i, t := range c.in {
		if t != nil && t.stored() && operands>>min(i, 63)&1 == 0 {
			c.fail(fmt.Sprintf("%s is %s, which is %s, want plain numbers", c.describe(t), t.dtype, t.storage()),
				c.param(t)+".dequantize()")
		}
	}
	if named {
		return
	}
	for _, k := range c.info.keyed {
		if f := &c.info.Fields[k]; f.Kind == KindDType {
			if dt := *(*dtype.Type)(f.At(c.op)); dt.Quantized() {
				c.fail(fmt.Sprintf("%s is %q, which is quantized, want one of %s", f.Name, dt,
					strings.Join(dtype.Names(), " ")), fmt.Sprintf("quantize the result: x.quantize(%q)", dt))
			}
		}
	}
}

// adapt gives plain numbers the dtype of the tensors they meet.
func (c *call) adapt() {
	dt := dtype.Invalid
	for i, t := range c.in {
		if i == 0 && Is[Chooser](c.info) {
			continue
		}
		if t != nil && !t.weak {
			dt = t.dtype
			break
		}
		if t != nil && t.dtype == dtype.F64 {
			dt = dtype.F32 // numbers alone, one of them with a fraction
		}
	}
	for _, t := range c.in {
		if t != nil && t.weak {
			t.settle(c, dt)
		}
	}
}

// makeOutputs settles sizes and gives each output its bytes. It reports whether the output is a
// view and needs no evaluation.
func (c *call) makeOutputs() (viewed bool) {
	if c.info.inPlace {
		c.checkSizes()
		c.outs = append(c.outs, c.in[0])
		return false
	}
	made := c.env.origin()
	for i := range c.plan.outs {
		o := &c.plan.outs[i]
		t := c.env.handle(o.dtype, o.axes)
		t.made = made
		for k, ref := range o.from {
			t.sizes[k] = -1
			if ref.operand >= 0 {
				t.sizes[k] = c.in[ref.operand].sizes[ref.axis]
			}
		}
		c.outs = append(c.outs, t)
	}
	c.checkSizes()
	for _, t := range c.outs {
		c.checkCount(t)
		if c.info.views != nil && as(c.info.views, c.op).View(&View{c: c, out: t}) {
			t.view = true
			return true
		}
		if c.env.shapeOnly {
			t.pack()
			t.meta = true
		} else {
			t.allocate(false)
		}
	}
	return false
}

func (c *call) checkSizes() {
	if c.info.sizes != nil {
		c.size.c = c
		as(c.info.sizes, c.op).Sizes(&c.size)
		return
	}
	c.matchSizes(axis.Empty)
}

// checkCount refuses sizes beyond all reason, for views too: their products would overflow, and an axis of
// an empty tensor would still be walked.
func (c *call) checkCount(t *Tensor) {
	n, ok := elements(t.sizes)
	for k, size := range t.sizes {
		ok = ok && size >= 0 && (n > 0 || size <= longestEmpty)
		if size == -1 {
			panic(fmt.Sprintf("core: %s: nothing says the size of %q", c.info.Name, t.axes.At(k)))
		}
	}
	if !ok {
		c.fail(fmt.Sprintf("a result of %s%s has more elements than memory can hold",
			t.dtype, shapeText(t.axes, t.sizes)), "")
	}
}

// longestEmpty is how long an axis of a tensor without elements may be.
const longestEmpty = 1 << 24

// matchSizes insists that axes of one name have one size in all operands, except those listed.
func (c *call) matchSizes(except *axis.List) {
	for _, pair := range c.plan.same {
		a, b := c.in[pair.a.operand], c.in[pair.b.operand]
		x, y := a.sizes[pair.a.axis], b.sizes[pair.b.axis]
		if x != y && !except.Has(a.axes.At(int(pair.a.axis))) {
			c.sizeConflict(a, b, a.axes.At(int(pair.a.axis)))
		}
	}
}

// checkInPlace refuses a change in place that a gradient would not see.
func (c *call) checkInPlace() {
	x := c.in[0]
	switch {
	case c.tracked() == 0:
	case x.Variable() != nil:
		c.fail(c.describe(x)+" is a variable and may not be changed while gradients are recorded",
			fmt.Sprintf("no_grad(fn) records none; or change a copy: %s.copy()", c.param(x)))
	case x.view:
		c.fail(c.describe(x)+" is a view, whose owner would not know that a gradient flows through it",
			fmt.Sprintf("change the owner, or a copy: %s.copy()", c.param(x)))
	}
}
