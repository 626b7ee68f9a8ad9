package core

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/mem"
)

// The generic checks must be able to fail. Here are operations that are wrong on purpose, with the
// check that has to tell and what it has to say.

func floatsOf(t *Tensor) []float32 { return unsafe.Slice((*float32)(t.data), t.Len()) }

type skipsLastLane struct{ Unary }

func (*skipsLastLane) F32(y, x []float32) {
	for i := range len(y) / 16 * 16 {
		y[i] = -x[i]
	}
}

type writesPastTheEnd struct{ Unary }

func (*writesPastTheEnd) F32([]float32, []float32) {}

func (a *writesPastTheEnd) Eval(c *Ctx) {
	c.copyInto(c.Out(0), a.X)
	if n := c.Out(0).Len(); n > 1 {
		*(*float32)(unsafe.Add(c.Out(0).data, 4*n)) = 0
	}
}

type readsMemoryOrder struct{ Unary }

func (*readsMemoryOrder) F32([]float32, []float32) {}

func (a *readsMemoryOrder) Eval(c *Ctx) {
	if out := c.Out(0); out.Len() > 0 {
		copy(floatsOf(out), unsafe.Slice((*float32)(a.X.buf.Data()), out.Len()))
	}
}

type forgetsTheStep struct{ Unary }

func (*forgetsTheStep) F32([]float32, []float32) {}

func (a *forgetsTheStep) Eval(c *Ctx) {
	out := c.Out(0)
	if n := out.Len(); n > 0 && out.Rank() == 1 { // counts from the first element on, whatever the step
		if a.X.strides[0] <= 0 {
			n = 1 // the others are not in x's memory
		}
		y := floatsOf(out)
		clear(y[copy(y, unsafe.Slice((*float32)(a.X.data), n)):])
		return
	}
	c.copyInto(out, a.X)
}

type forgetsRepeats struct{ Unary }

func (*forgetsRepeats) F32([]float32, []float32) {}

func (a *forgetsRepeats) Eval(c *Ctx) {
	c.copyInto(c.Out(0), a.X)
	if x := a.X; x.Len() > 1 && x.strides[0] == 0 { // only the first place gets the element
		clear(floatsOf(c.Out(0))[x.Len()/x.sizes[0]:])
	}
}

type swapsTwoAxes struct{ Unary }

func (*swapsTwoAxes) F32([]float32, []float32) {}

func (a *swapsTwoAxes) Eval(c *Ctx) {
	out, x := c.Out(0), a.X
	if out.Rank() != 2 {
		c.copyInto(out, x)
		return
	}
	swapped := &Tensor{env: x.env, dtype: x.dtype, axes: x.axes, data: x.data, sizes: []int{x.sizes[1], x.sizes[0]},
		strides: []int{x.strides[1], x.strides[0]}}
	flat := &Tensor{env: x.env, dtype: x.dtype, axes: x.axes, data: out.data, sizes: swapped.sizes,
		strides: make([]int, 2)}
	flat.pack()
	c.copyInto(flat, swapped)
}

type leaksABuffer struct{ Unary }

func (*leaksABuffer) F32([]float32, []float32) {}

func (a *leaksABuffer) Eval(c *Ctx) {
	c.copyInto(c.Out(0), a.X)
	c.c.env.fill(new(mem.Buffer), 400)
}

type leaksWhenStopped struct{ Unary }

func (*leaksWhenStopped) F32([]float32, []float32) {}

func (a *leaksWhenStopped) Eval(c *Ctx) {
	b := c.c.env.fill(new(mem.Buffer), 400)
	c.Split(1, 1, func(int, int) { c.copyInto(c.Out(0), a.X) })
	b.Release()
}

type changesItsOperand struct{ Unary }

func (*changesItsOperand) F32([]float32, []float32) {}

func (a *changesItsOperand) Eval(c *Ctx) {
	c.copyInto(c.Out(0), a.X)
	if a.X.dense() && a.X.Len() > 0 {
		floatsOf(a.X)[0]++
	}
}

type addsChunks struct{ Reduce }

func (a *addsChunks) Names(p *Plan) { a.keeps(p, a.X.dtype) }

func (*addsChunks) F32(x []float32) (y float32) {
	for at := 0; at < len(x); at += pointGrain { // as a sum split over workers would
		part := float32(0)
		for _, v := range x[at:min(at+pointGrain, len(x))] {
			part += v
		}
		y += part
	}
	return y
}

type roundsTwice struct{ Unary }

func (*roundsTwice) F32([]float32, []float32) {}

func (a *roundsTwice) Eval(c *Ctx) {
	half := a.X.dtype != dtype.F32
	pointwise(c, c.Out(0), func(_ Op, y []float32, xs *[maxOperands][]float32) {
		for i, x := range xs[0] {
			x += 1.0 / 512
			if half {
				x = dtype.BF16ToF32(dtype.F32ToBF16(x))
			}
			y[i] = x * x
		}
	}, a.X)
}

type looksAtElements struct{ Unary }

func (a *looksAtElements) Sizes(s *Sizes) {
	if a.X.Rank() == 0 && a.X.Item().(float64) == 12345 {
		s.Fail("no such luck", "")
	}
	s.Match(nil)
}
func (*looksAtElements) F32(y, x []float32) { copy(y, x) }

type mixesRows struct{ Unary }

func (*mixesRows) F32([]float32, []float32) {}

func (a *mixesRows) Eval(c *Ctx) {
	c.copyInto(c.Out(0), a.X)
	for i, y := range floatsOf(c.Out(0)) {
		floatsOf(c.Out(0))[i] = y + floatsOf(c.Out(0))[0]
	}
}

type holdsItsOperand struct{ Unary }

func (*holdsItsOperand) F32([]float32, []float32) {}

func (a *holdsItsOperand) Eval(c *Ctx) {
	a.X.buf.Retain()
	c.copyInto(c.Out(0), a.X)
}

type isNotItsReference struct{ Unary }

func (*isNotItsReference) F32(y, x []float32) {
	for i := range y {
		y[i] = 0.999 * x[i]
	}
}

func (a *isNotItsReference) Ref() *Tensor { return a.X.Copy() }

var mutations = []struct {
	info  *Info
	check func(*subject) error
	says  string
}{
	{&Define[skipsLastLane]("skips").Info, checkWrites, "memory full of"},
	{&Define[writesPastTheEnd]("past").Info, checkWrites, "wrote byte"},
	{&Define[readsMemoryOrder]("memory").Info, checkLayouts, "permuted storage"},
	{&Define[forgetsTheStep]("step").Info, checkLayouts, "strided storage"},
	{&Define[forgetsRepeats]("repeats").Info, checkBroadcast, "repeated along"},
	{&Define[swapsTwoAxes]("swaps").Info, checkRows, "alone"},
	{&Define[leaksABuffer]("leaks").Info, checkWrites, "has 1 holders"},
	{&Define[leaksWhenStopped]("stops").Info, checkFailures, "after a stop"},
	{&Define[changesItsOperand]("changes").Info, checkLayouts, "changed an element"},
	{&Define[addsChunks]("chunks").Info, checkWorkers, "with 1 workers"},
	{&Define[roundsTwice]("rounds").Info, checkHalves, "against f32"},
	{&Define[looksAtElements]("looks").Info, checkShapes, "without data"},
	{&Define[mixesRows]("mixes").Info, checkRows, "alone"},
	{&Define[holdsItsOperand]("holds").Info, checkLayouts, "has 2 holders"},
	{&Define[isNotItsReference]("reference").Info, checkReference, "want"},
}

// TestChecksFail runs each check on an operation that is wrong in the way the check is for.
func TestChecksFail(t *testing.T) {
	for _, m := range mutations {
		found := error(nil)
		for _, s := range subjects(m.info) {
			if s.args[0].dtype != dtype.F32 && m.says != "against f32" {
				continue // most of these know only f32
			}
			if err := m.check(s); err != nil && strings.Contains(err.Error(), m.says) {
				found = err
				break
			} else if err != nil {
				found = fmt.Errorf("but %w", err)
			}
		}
		if found == nil || !strings.Contains(found.Error(), m.says) {
			t.Errorf("%T: got %v, want an error with %q", m.info.blank, found, m.says)
		}
	}
}

// TestUncovered runs the test of the samples on samples that leave much out.
func TestUncovered(t *testing.T) {
	info := &Define[skipsLastLane]("thin").Info
	if got := uncovered(info, nil); len(got) != 1 {
		t.Errorf("no samples: %v", got)
	}
	all := subjects(info)
	if got := uncovered(info, all); len(got) != 0 {
		t.Errorf("a family's samples lack %v", got)
	}
	got := strings.Join(uncovered(info, all[2:3]), ", ")
	want := "axis of size 0, axis of size 1, axis of size 16, axis of size 17, axis of size 1000, permuted storage, " +
		"bf16 as operand 0, f16 as operand 0"
	if got != want {
		t.Errorf("one sample: got\n%s, want\n%s", got, want)
	}
}
