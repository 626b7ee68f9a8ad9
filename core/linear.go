package core

import "github.com/fucina-go/fucina/core/dtype"

// Linear is x · w over the named axis, plus the bias: dot's add.
//
// Shape: x[batch, in], w[out, in], bias[out] → y[batch, out]. The bias may have any of y's axes.
//
// Errors: as dot.
//
// Example:
//
//	linear(ones(batch=2, in_=3), ones(out=4, in_=3), zeros(out=4))
type Linear struct {
	X    *Tensor `arg:"x"`
	W    *Tensor `arg:"w"`
	Bias *Tensor `arg:"bias?"`
	Axis Axis    `arg:"axis=in"`
}

var linear = Declare[Linear]("linear")

// Linear contracts the axis "in" and adds the bias, which may be nil; see the Linear operation.
func (x *Tensor) Linear(w, bias *Tensor) *Tensor {
	return linear.Call(Linear{X: x, W: w, Bias: bias, Axis: "in"})
}

// Names insists that the bias has axes of the product.
func (a *Linear) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	p.sum(a.X, a.W, a.Bias, p.contract(a.X, a.W, axisList(string(a.Axis))))
}

// Quantized takes a quantized w.
func (*Linear) Quantized() (operands uint64, named bool) { return 2, false }

// Compose contracts and adds.
func (a *Linear) Compose() *Tensor {
	return dot.Call(Dot{X: a.X, W: a.W, Axes: axisList(string(a.Axis)), Add: a.Bias})
}

// Samples covers the lengths of what is contracted and of a row of the result, biases, and the dtypes.
func (*Linear) Samples(m *Maker) (list []Linear) {
	for _, n := range lengths {
		list = append(list, Linear{X: m.Tensor(dtype.F32, "row=3 in=%d", n), W: m.Tensor(dtype.F32, "out=4 in=%d", n),
			Bias: m.Tensor(dtype.F32, "out=4"), Axis: "in"},
			Linear{X: m.Tensor(dtype.F32, "row=3 in=4"), W: m.Tensor(dtype.F32, "in=4 out=%d", n), Axis: "in"})
	}
	list = append(list, Linear{X: m.Tensor(dtype.F32, "row=3 in=64"), W: m.Quantized("q5_1", "out=4 in=64"),
		Bias: m.Tensor(dtype.F32, "out=4"), Axis: "in"})
	for _, dt := range allDTypes {
		list = append(list, Linear{X: m.Tensor(dt, "row=3 embed=17"), W: m.Tensor(dt, "head=2 embed=17 head_dim=3"),
			Bias: m.Tensor(dt, "head_dim=3 head=2"), Axis: "embed"},
			Linear{X: m.Tensor(dt, "row=3 in=17"), W: m.Tensor(dt, "out=2 in=17"), Axis: "in"})
	}
	return list
}
