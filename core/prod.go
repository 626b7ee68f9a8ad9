package core

import "github.com/fucina-go/fucina/core/dtype"

// Prod multiplies the elements along the named axes; without names, all of them.
//
// Shape: x[a, b, c] → y[a, c] for prod("b").
// Numerics: floats are multiplied in 16 lanes, element i into lane i mod 16, and the lanes then as those of sum;
// f16 and bf16 multiply in f32. Integers and bool give i64, which wraps around. An empty product is 1.
//
// Example:
//
//	tensor([[1, 2], [3, 4]], "row col").prod("col")
type Prod struct{ Reduce }

var prod = Declare[Prod]("prod")

// Prod multiplies along the named axes, all of them if none is named.
func (x *Tensor) Prod(axes ...string) *Tensor {
	return prod.Call(Prod{Reduce{X: x, Axes: some(axes)}})
}

// Names drops the axes.
func (a *Prod) Names(p *Plan) {
	dt := a.X.dtype
	if !dt.IsFloat() {
		dt = dtype.I64
	}
	a.keeps(p, dt)
}

// F32 is the f32 kernel.
func (*Prod) F32(x []float32) float32 { return product16(x) }

// F64 is the f64 kernel.
func (*Prod) F64(x []float64) float64 { return product16(x) }

// I64 is the integer kernel.
func (*Prod) I64(x []int64) int64 { return product16(x) }

func product16[C number](x []C) C {
	var l [16]C
	for j := range l {
		l[j] = 1
	}
	for i, v := range x {
		l[i%16] *= v
	}
	for h := 8; h > 0; h /= 2 {
		for j := range h {
			l[j] *= l[j+h]
		}
	}
	return l[0]
}

// Saves x.
func (*Prod) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy times the product of the other elements: of those before times that of those behind, so that a 0 does
// no harm.
func (a *Prod) VJP(_, gy []*Tensor, g *Grads) {
	const run = "prod_run"
	axes := a.reduced()
	if axes.Len() == 0 || a.X.Len() == 0 {
		g.Set(0, gy[0])
		return
	}
	x := merge.Call(Merge{X: a.X.wide(), Into: Map[Axes]{axisList(run), []Axes{axes}}})
	n := x.Size(run)
	one := x.Slice(run, 0, 1, 1).onesIn(gy[0].env)
	before := ConcatAll(run, one, x.Cumprod(run).Slice(run, 0, n-1, 1))
	behind := ConcatAll(run, cumprod.Call(Cumprod{X: x, Axis: run, Reverse: true}).Slice(run, 1, n, 1), one)
	gx := before.Mul(behind).Mul(gy[0].wide())
	g.Set(0, split.Call(Split{X: gx, Axis: run, Into: a.X.sized(axes)}))
}
