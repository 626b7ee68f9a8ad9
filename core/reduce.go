package core

import (
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Reduce is the argument struct of operations that turn each run of elements along the named axes
// into one; without names, all of x. An operation embeds it, gives its Names and has those of the
// methods
//
//	F32(x []float32) float32   also serves f16 and bf16
//	F64(x []float64) float64
//	I64(x []int64) int64       serves every integer dtype and bool
//
// that make sense. A run is read in the order in which the call names its axes, never in the order
// of memory, so that the bits do not hang on how the operand is stored.
type Reduce struct {
	X    *Tensor `arg:"x"`
	Axes Axes    `arg:"axes?"`
}

// blockwise is an operation that may reduce blocks of num.Block elements of a run and then their results: its kernels
// give the same bits so, and a long run is shared out among the workers. In the end the result of a run of n elements
// is divided by Divisor(n).
type blockwise interface{ Divisor(n int) int }

type (
	reduceF32 interface{ F32(x []float32) float32 }
	reduceF64 interface{ F64(x []float64) float64 }
	reduceI64 interface{ I64(x []int64) int64 }
)

// reduced is the axes that go.
func (a *Reduce) reduced() *axis.List {
	if a.Axes == nil {
		return a.X.axes
	}
	return a.Axes
}

// keeps declares the output: the other axes, with the given dtype.
func (a *Reduce) keeps(p *Plan, dt dtype.Type) {
	p.NeedAll(a.X, a.reduced())
	kept := a.X.axes.Without(a.reduced())
	p.Out(kept, dt)
	p.Keep(kept.Append(a.reduced()))
}

// Eval calls the operation's kernel on every run.
func (a *Reduce) Eval(c *Ctx) {
	out, order := c.Out(0), c.Data().(*axis.List)
	if out.Len() == 0 {
		return
	}
	switch classOf(a.X.dtype) {
	case dtype.F32:
		k := c.c.op.(reduceF32)
		reduceBy(c, out, c.Dense(a.X, order, dtype.F32), k.F32)
	case dtype.F64:
		k := c.c.op.(reduceF64)
		reduceBy(c, out, c.Dense(a.X, order, dtype.F64), k.F64)
	default:
		k := c.c.op.(reduceI64)
		reduceBy(c, out, c.Dense(a.X, order, dtype.I64), k.I64)
	}
}

// reduceBy is reduceBlocks or reduceRows, as the operation says.
func reduceBy[C number](c *Ctx, out, x *Tensor, f func([]C) C) {
	if b, ok := c.c.op.(blockwise); ok {
		reduceBlocks(c, out, x, f, C(b.Divisor(x.Len()/out.Len())))
	} else {
		reduceRows(c, out, x, f)
	}
}

// reduceBlocks is reduceRows for an operation that is blockwise; the results are divided by the divisor.
func reduceBlocks[C number](c *Ctx, out, x *Tensor, f func([]C) C, divisor C) {
	rows := out.Len()
	n := x.Len() / rows
	for n > num.Block {
		per := ceilDiv(n, num.Block)
		parts := c.Scratch(native[C](), axisList("run", "block"), []int{rows, per})
		xs, ys := elementsOf[C](x), elementsOf[C](parts)
		c.Alternate(len(ys), 4, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				run := xs[i/per*n:][:n]
				at := i % per * num.Block
				ys[i] = f(run[at:min(n, at+num.Block)])
			}
		})
		x, n = parts, per
	}
	reduceRows(c, out, x, func(run []C) C { return f(run) / divisor })
}

// reduceRows stores f of each run of x, which is dense with the runs innermost.
func reduceRows[C number](c *Ctx, out, x *Tensor, f func([]C) C) {
	rows := out.Len()
	n := x.Len() / rows
	c.Split(rows, max(1, pointGrain/max(1, n)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y := [1]C{f(unsafe.Slice((*C)(unsafe.Add(x.data, i*n*x.dtype.Size())), n))}
			store(out, i, y[:])
		}
	})
}
