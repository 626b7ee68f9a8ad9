package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/rng"
)

// Dropout sets each element to 0 with probability p and multiplies the others by 1 / (1 - p) (Srivastava et al.
// 2014). Outside of training it is x itself, a view.
//
// Shape: x[axes] → y[axes]. Which elements go is drawn in the order of x's axes; see seed.
//
// Errors: integers; a p outside of [0, 1].
//
// Example:
//
//	ones(row=2, col=4).dropout(0.5, training=True, seed=1)
type Dropout struct {
	X        *Tensor `arg:"x"`
	P        float64 `arg:"p=0.5"`
	Training bool    `arg:"training"`
	Random
}

var dropout = Declare[Dropout]("dropout")

// Dropout sets elements to 0 with probability p while training; see the Dropout operation.
func (x *Tensor) Dropout(p float64, training bool) *Tensor {
	return dropout.Call(Dropout{X: x, P: p, Training: training, Random: Random{Seed: -1}})
}

// Names keeps the axes.
func (a *Dropout) Names(p *Plan) { p.Out(a.X.axes, p.Float(a.X)) }

// Sizes insists on a probability.
func (a *Dropout) Sizes(s *Sizes) {
	if !(a.P >= 0 && a.P <= 1) {
		s.Fail(fmt.Sprintf("p=%v, want a probability", a.P), refit(s.c, "p is the part to drop, 0 … 1", "p", 0.5))
	}
}

// View is x itself where nothing is dropped.
func (a *Dropout) View(v *View) bool {
	if a.Training && a.P > 0 {
		return false
	}
	for k, stride := range a.X.strides {
		v.Stride(k, stride)
	}
	v.Alias(a.X, 0)
	return true
}

// Eval drops and scales.
func (a *Dropout) Eval(c *Ctx) {
	from := a.draws(c)
	if a.X.dtype == dtype.F64 {
		drop[float64](c, a, from)
	} else {
		drop[float32](c, a, from)
	}
}

func drop[T float32 | float64](c *Ctx, a *Dropout, from source) {
	scale := T(1 / (1 - a.P))
	x := elementsOf[T](c.Dense(a.X, a.X.axes, native[T]()))
	fillBlocks(c, func(y []T, i int) {
		var u [blockLen]float32
		rng.FillFloat32(u[:len(y)], from.seed, from.stream, uint64(i))
		for k := range y {
			y[k] = 0
			if float64(u[k]) >= a.P {
				y[k] = T(x[i+k] * scale)
			}
		}
	})
}

// Saves nothing: what was dropped is drawn again.
func (*Dropout) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP drops the same from gy.
func (a *Dropout) VJP(_, gy []*Tensor, g *Grads) {
	again := *a
	again.X = gy[0]
	g.Set(0, dropout.Call(again))
}

// Samples covers both modes, the lengths and the dtypes.
func (*Dropout) Samples(m *Maker) (list []Dropout) {
	for _, n := range lengths {
		list = append(list, Dropout{m.Tensor(dtype.F32, "a=3 b=%d", n), 0.3, true, Random{Seed: 1}})
	}
	for _, dt := range floats {
		list = append(list, Dropout{m.Tensor(dt, "a=3 b=17"), 0.5, true, Random{Seed: 1}},
			Dropout{m.Tensor(dt, "a=3 b=17"), 0.5, false, Random{Seed: 1}},
			Dropout{m.Tensor(dt, ""), 1, true, Random{Seed: 1}})
	}
	return list
}
