package core

import "github.com/fucina-go/fucina/core/dtype"

// GRUStep is one step of a gated recurrent unit (Cho et al. 2014), as PyTorch's GRUCell: its next state.
//
//	ri, zi, ni = x · w_ih + b_ih and rh, zh, nh = h · w_hh + b_hh, each cut into three
//	z = sigmoid(zi + zh)
//	n = tanh(ni + sigmoid(ri + rh) · nh)
//	h' = (1 - z) · n + z · h
//
// Shape: x[batch, in], h[batch, hidden], w_ih[gate, in], w_hh[gate, hidden], b_ih[gate], b_hh[gate] → h'[batch,
// hidden]. gate is the axis of w_hh that h lacks, and has 3 · hidden places.
//
// Errors: axes or sizes that do not fit; integers.
//
// Example:
//
//	h = zeros(batch=2, hidden=4)
//	h = gru_step(ones(batch=2, in_=3), h, ones(gate=12, in_=3), ones(gate=12, hidden=4))
type GRUStep struct {
	X   *Tensor `arg:"x"`
	H   *Tensor `arg:"h"`
	WIH *Tensor `arg:"w_ih"`
	WHH *Tensor `arg:"w_hh"`
	BIH *Tensor `arg:"b_ih?"`
	BHH *Tensor `arg:"b_hh?"`
}

var gruStep = Declare[GRUStep]("gru_step")

// GRUStep is the state after x, given that before it; see the GRUStep operation. Biases may be nil.
func (x *Tensor) GRUStep(h, wIH, wHH, bIH, bHH *Tensor) *Tensor {
	return gruStep.Call(GRUStep{X: x, H: h, WIH: wIH, WHH: wHH, BIH: bIH, BHH: bHH})
}

func (a *GRUStep) gates() *gates {
	return &gates{x: a.X, h: a.H, wIH: a.WIH, wHH: a.WHH, bIH: a.BIH, bHH: a.BHH}
}

// Names checks the roles.
func (a *GRUStep) Names(p *Plan) { a.gates().check(p) }

// Sizes insists on three gates.
func (a *GRUStep) Sizes(s *Sizes) { a.gates().sizes(s, 3) }

// Compose is the formula.
func (a *GRUStep) Compose() *Tensor {
	x, h := a.gates().compute(3)
	z := x[1].Add(h[1]).Sigmoid()
	n := x[2].Add(x[0].Add(h[0]).Sigmoid().Mul(h[2])).Tanh()
	return z.Neg().plus(1).Mul(n).Add(z.Mul(a.H.wide())).narrow(a.H.dtype)
}

// Samples covers the lengths of the input, the state and the batch, biases, and the dtypes.
func (*GRUStep) Samples(m *Maker) (list []GRUStep) {
	add := func(dt dtype.Type, row, in, hidden int, biases bool) {
		a := GRUStep{X: m.Tensor(dt, "row=%d in=%d", row, in), H: m.Tensor(dt, "hidden=%d row=%d", hidden, row),
			WIH: m.Tensor(dt, "gate=%d in=%d", 3*hidden, in), WHH: m.Tensor(dt, "hidden=%d gate=%d", hidden, 3*hidden)}
		if biases {
			a.BIH, a.BHH = m.Tensor(dt, "gate=%d", 3*hidden), m.Tensor(dt, "gate=%d", 3*hidden)
		}
		list = append(list, a)
	}
	for _, n := range lengths {
		add(dtype.F32, 2, n, 3, true)
		add(dtype.F32, n, 2, 3, false)
		add(dtype.F32, 2, 3, min(n, 17), false)
	}
	for _, dt := range floats {
		add(dt, 3, 5, 4, true)
	}
	return list
}
