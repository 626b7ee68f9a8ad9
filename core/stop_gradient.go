package core

import "github.com/fucina-go/fucina/core/dtype"

// StopGradient is x as a constant: no gradient flows through it, so that what is computed of it counts as given.
// It has x's memory, as x.detach() has.
//
// Shape: x[axes] → y[axes].
//
// Example:
//
//	x = variable(tensor([2.0], "a"))
//	grad((x * stop_gradient(x)).sum(), x)
type StopGradient struct {
	X *Tensor `arg:"x"`
}

var _ = Declare[StopGradient]("stop_gradient")

// Names has nothing to check.
func (*StopGradient) Names(*Plan) {}

// Compose detaches.
func (a *StopGradient) Compose() *Tensor { return a.X.Detach() }

// Samples covers the lengths and the dtypes.
func (*StopGradient) Samples(m *Maker) (list []StopGradient) {
	for _, n := range lengths {
		list = append(list, StopGradient{m.Tensor(dtype.F32, "row=3 col=%d", n)})
	}
	for _, dt := range allDTypes {
		list = append(list, StopGradient{m.Tensor(dt, "row=3 col=17")})
	}
	return list
}
