package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// GLU is the first half of x along the axis times the sigmoid of the second half: the gated linear unit
// (Dauphin et al. 2017).
//
// Shape: x[…, axis=2n, …] → y[…, axis=n, …].
//
// Errors: an axis that x lacks or whose size is odd; integers.
//
// Example:
//
//	tensor([1.0, 2.0, 0.0, 100.0], "ffn").glu("ffn")
type GLU struct {
	X    *Tensor `arg:"x"`
	Axis Axis    `arg:"axis"`
}

var glu = Declare[GLU]("glu")

// GLU gates one half of x by the other; see the GLU operation.
func (x *Tensor) GLU(axis string) *Tensor { return glu.Call(GLU{X: x, Axis: Axis(axis)}) }

// Names insists on the axis.
func (a *GLU) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	p.Float(a.X)
}

// Sizes insists on two halves.
func (a *GLU) Sizes(s *Sizes) {
	if n := a.X.Size(string(a.Axis)); n%2 != 0 {
		r := s.c.cut(a.X, string(a.Axis), n-1)
		r.words = "x is a value and its gate, side by side"
		s.Fail(fmt.Sprintf("axis %q of %s has the odd size %d", a.Axis, s.Describe(a.X), n), s.c.hint(r))
	}
}

// Compose gates.
func (a *GLU) Compose() *Tensor {
	axis, n := string(a.Axis), a.X.Size(string(a.Axis))
	x := a.X.wide()
	return x.Slice(axis, 0, n/2, 1).Mul(x.Slice(axis, n/2, n, 1).Sigmoid()).narrow(a.X.dtype)
}

// Samples covers the lengths of a half and the dtypes.
func (*GLU) Samples(m *Maker) (list []GLU) {
	for _, n := range lengths {
		list = append(list, GLU{X: m.Tensor(dtype.F32, "row=3 ffn=%d", 2*n), Axis: "ffn"})
	}
	for _, dt := range floats {
		list = append(list, GLU{X: m.Tensor(dt, "ffn=34 row=2"), Axis: "ffn"}, GLU{X: m.Tensor(dt, "a=2"), Axis: "a"})
	}
	return list
}
