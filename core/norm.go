package core

import (
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Norm is the length of x along the named axes; without names, of all elements: the root of the sum of squares for
// p=2, the sum of magnitudes for p=1, the greatest magnitude for p=inf.
//
// Shape: x[a, b, c] → y[a, c] for norm("b").
// Numerics: sums as in sum, of squares by multiply-add; squares that would leave the range are scaled. NaN if any
// element is NaN. The gradient of the 2-norm at 0 is 0; that of the inf-norm is shared by all the greatest.
//
// Errors: integers (cast them first); another p; p=inf of nothing.
//
// Example:
//
//	tensor([[3.0, 4.0], [6.0, 8.0]], "row col").norm("col")
type Norm struct {
	Reduce
	P float64 `arg:"p=2"`
}

var norm = Declare[Norm]("norm")

// Norm is the 2-norm along the named axes, of all elements if none is named.
func (x *Tensor) Norm(axes ...string) *Tensor {
	return norm.Call(Norm{Reduce: Reduce{X: x, Axes: some(axes)}, P: 2})
}

// Names drops the axes.
func (a *Norm) Names(p *Plan) { a.keeps(p, p.Float(a.X)) }

// Sizes insists on a norm that exists.
func (a *Norm) Sizes(s *Sizes) {
	switch {
	case math.IsInf(a.P, 1):
		s.notEmpty(a.X, a.reduced())
	case a.P != 1 && a.P != 2:
		s.Fail(fmt.Sprintf("p=%v, want 1, 2 or inf", a.P), refit(s.c, "2 is the usual", "p", 2.0))
	}
}

// F32 is the f32 kernel.
func (a *Norm) F32(x []float32) float32 { return normOf(x, a.P) }

// F64 is the f64 kernel.
func (a *Norm) F64(x []float64) float64 { return normOf(x, a.P) }

func normOf[T float32 | float64](x []T, p float64) T {
	switch p {
	case 1:
		return sumBlocks(x, func(y, x []T) { num.Abs(y, x) })
	case 2:
		s := num.Dot(x, x)
		if s > 0x1p-60 && s < 0x1p120 {
			return T(math.Sqrt(float64(s)))
		}
		m := max(num.Max(x), -num.Min(x), 0)
		if m == 0 || m != m || math.IsInf(float64(m), 0) {
			return m
		}
		s = sumBlocks(x, func(y, x []T) {
			for i, v := range x {
				v /= m
				y[i] = T(v * v)
			}
		})
		return T(m * T(math.Sqrt(float64(s))))
	}
	return max(num.Max(x), -num.Min(x), 0)
}

// sumBlocks adds up f of x, block by block.
func sumBlocks[T float32 | float64](x []T, f func(y, x []T)) (s T) {
	var y [blockLen]T
	for len(x) > 0 {
		n := min(len(x), blockLen)
		f(y[:n], x[:n])
		s += num.Sum(y[:n])
		x = x[n:]
	}
	return s
}

// Saves x and y.
func (*Norm) Saves(uint64) (in, out uint64) { return 1, 1 }

// VJP is gy · sign(x) for p=1, gy · x / y for p=2.
func (a *Norm) VJP(y, gy []*Tensor, g *Grads) {
	x, p, gp := a.X.wide(), y[0].wide(), gy[0].wide()
	switch a.P {
	case 1:
		g.Set(0, x.Sign().Mul(gp))
	case 2:
		g.Set(0, x.Mul(gp.Div(p).where(p.Ne(Number(p.env, 0, 0, true)))))
	default:
		at := x.Abs().Eq(p).Cast(x.dtype)
		g.Set(0, x.Sign().Mul(at).Mul(gp.Div(at.over(a.reduced()))))
	}
}

// Samples covers the norms, the lengths, the dtypes, and runs over several axes.
func (*Norm) Samples(m *Maker) (list []Norm) {
	for _, p := range []float64{1, 2, math.Inf(1)} {
		for _, n := range lengths {
			if n > 0 || p < 3 {
				list = append(list, Norm{Reduce{m.Tensor(dtype.F32, "row=3 col=%d", n), axisList("col")}, p})
			}
		}
		for _, dt := range floats {
			list = append(list, Norm{Reduce{m.Tensor(dt, "a=3 row=4 col=5"), axisList("col", "a")}, p},
				Norm{Reduce{m.Tensor(dt, "row=3 col=17"), nil}, p})
		}
	}
	return list
}
