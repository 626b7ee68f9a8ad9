package core

import "github.com/fucina-go/fucina/core/dtype"

// Roll moves the elements along axes by a number of places; those that leave at one end come in at the
// other.
//
// Shape: x[axes] → y[axes]; the element at place i of an axis moves to place i + shift, modulo its size.
//
// Errors: an axis that x lacks.
//
// Example:
//
//	arange(5, "seq").roll(seq=2)
type Roll struct {
	X      *Tensor  `arg:"x"`
	Shifts Map[int] `arg:"shifts,rest"`
}

var roll = Declare[Roll]("roll")

// Roll moves the elements along one axis; see the Roll operation.
func (x *Tensor) Roll(axis string, shift int) *Tensor {
	return roll.Call(Roll{X: x, Shifts: Map[int]{axisList(axis), []int{shift}}})
}

// Names keeps the axes.
func (a *Roll) Names(p *Plan) {
	p.NeedAll(a.X, a.Shifts.Keys)
	p.Out(a.X.axes, a.X.dtype)
}

// Eval takes each element from where it was.
func (a *Roll) Eval(c *Ctx) {
	places := make([][]int, a.X.Rank())
	for i, name := range a.Shifts.Keys.Names() {
		k := a.X.axes.Index(name)
		n := a.X.sizes[k]
		places[k] = c.placesOf(n)
		for lo, hi := range c.c.env.scan(n) {
			for j := lo; j < hi; j++ {
				places[k][j] = modulo(j-a.Shifts.Values[i]%n, n)
			}
		}
	}
	c.pick(a.X, places, nil)
}

// modulo is i modulo n, never negative.
func modulo(i, n int) int { return (i%n + n) % n }

// Samples covers the lengths, both directions, several axes, and the dtypes.
func (*Roll) Samples(m *Maker) (list []Roll) {
	for _, n := range lengths {
		list = append(list,
			Roll{X: m.Tensor(dtype.F32, "row=3 col=%d", n), Shifts: Map[int]{axisList("col"), []int{20}}})
	}
	for _, dt := range allDTypes {
		list = append(list,
			Roll{X: m.Tensor(dt, "row=3 a=5 col=17"), Shifts: Map[int]{axisList("col", "a"), []int{-3, 2}}})
	}
	return list
}

// Saves nothing.
func (*Roll) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP rolls back.
func (a *Roll) VJP(_, gy []*Tensor, g *Grads) {
	back := Map[int]{Keys: a.Shifts.Keys}
	for _, shift := range a.Shifts.Values {
		back.Values = append(back.Values, -shift)
	}
	g.Set(0, roll.Call(Roll{X: gy[0], Shifts: back}))
}
