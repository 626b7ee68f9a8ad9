package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// LSTMStep is one step of a long short-term memory (Hochreiter and Schmidhuber 1997), as PyTorch's LSTMCell: the
// next output and the next state of a cell.
//
//	i, f, g, o = x · w_ih + b_ih + h · w_hh + b_hh, cut into four
//	c' = sigmoid(f) · c + sigmoid(i) · tanh(g)
//	h' = sigmoid(o) · tanh(c')
//
// Shape: x[batch, in], h[batch, hidden], c[batch, hidden], w_ih[gate, in], w_hh[gate, hidden], b_ih[gate],
// b_hh[gate] → h'[batch, hidden], c'[batch, hidden]. gate is the axis of w_hh that h lacks, and has 4 · hidden places.
//
// Errors: axes or sizes that do not fit; integers.
//
// Example:
//
//	x, h = ones(batch=2, in_=3), zeros(batch=2, hidden=4)
//	h, c = lstm_step(x, h, h, ones(gate=16, in_=3), ones(gate=16, hidden=4))
type LSTMStep struct {
	X   *Tensor `arg:"x"`
	H   *Tensor `arg:"h"`
	C   *Tensor `arg:"c"`
	WIH *Tensor `arg:"w_ih"`
	WHH *Tensor `arg:"w_hh"`
	BIH *Tensor `arg:"b_ih?"`
	BHH *Tensor `arg:"b_hh?"`
}

var lstmStep = Declare[LSTMStep]("lstm_step")

// LSTMStep is the output and the state after x, given those before it; see the LSTMStep operation. Biases may be
// nil.
func (x *Tensor) LSTMStep(h, c, wIH, wHH, bIH, bHH *Tensor) (nextH, nextC *Tensor) {
	both := lstmStep.All(LSTMStep{X: x, H: h, C: c, WIH: wIH, WHH: wHH, BIH: bIH, BHH: bHH})
	return both[0], both[1]
}

// gates is the operands that steps of recurrent networks have in common, and their axes by role.
type gates struct {
	x, h, wIH, wHH, bIH, bHH *Tensor
	in                       Axes
	gate, hidden             string
}

// roles finds the axes: the one that h and w_hh share, and the one that h lacks.
func (s *gates) roles() bool {
	hidden := s.wHH.axes.Shared(s.h.axes)
	gate := s.wHH.axes.Without(hidden)
	if hidden.Len() != 1 || gate.Len() != 1 {
		return false
	}
	s.gate, s.hidden, s.in = gate.At(0), hidden.At(0), s.wIH.axes.Without(gate)
	return true
}

// check is the rule of names.
func (s *gates) check(p *Plan) {
	p.Float(s.x)
	p.Same(s.x, s.h, s.wIH, s.wHH, s.bIH, s.bHH)
	if !s.roles() {
		p.Fail(fmt.Sprintf("want one axis that %s shares with %s and one that it does not", p.Describe(s.wHH),
			p.Describe(s.h)),
			p.c.info.AsIn())
	}
	p.Need(s.wIH, Axis(s.gate))
	p.NeedAll(s.x, s.in)
	batch := s.h.axes.Without(axisList(s.hidden))
	p.NeedAll(s.x, batch)
	p.Within(s.x, batch.Append(s.in), "neither the batch of h nor w_ih")
	p.Within(s.bIH, axisList(s.gate), "a gate")
	p.Within(s.bHH, axisList(s.gate), "a gate")
}

// sizes insists on n gates.
func (s *gates) sizes(z *Sizes, n int) {
	s.roles()
	if s.in.Has(s.hidden) {
		z.Match(axisList(s.hidden)) // x has its own axis of that name
		for _, pair := range [][2]*Tensor{{s.x, s.wIH}, {s.h, s.wHH}} {
			if pair[0].Size(s.hidden) != pair[1].Size(s.hidden) {
				z.c.sizeConflict(pair[0], pair[1], s.hidden)
			}
		}
	} else {
		z.Match(nil)
	}
	if gate, hidden := s.wHH.Size(s.gate), s.h.Size(s.hidden); gate != n*hidden {
		z.Fail(fmt.Sprintf("axis %q is %d in %s, want %d times the %d of %q in %s", s.gate, gate, z.Describe(s.wHH), n,
			hidden,
			s.hidden, z.Describe(s.h)), z.c.hint(z.c.cut(s.wHH, s.gate, n*hidden)))
	}
}

// compute is what x and what h add to the n gates, gate by gate, in the order batch, hidden.
func (s *gates) compute(n int) (fromX, fromH []*Tensor) {
	const which = "step_gate"
	s.roles()
	parts := func(t, w, bias *Tensor, axes Axes) (list []*Tensor) {
		y := dot.Call(Dot{X: t.wide(), W: w.wide(), Axes: axes})
		if bias != nil {
			y = y.Add(bias.wide())
		}
		into := Map[int]{axisList(which, s.hidden), []int{n, -1}}
		y = split.Call(Split{X: y, Axis: Axis(s.gate), Into: into})
		for k := range n {
			list = append(list, order.Call(Order{X: y.At(which, k), Axes: s.h.axes}))
		}
		return list
	}
	return parts(s.x, s.wIH, s.bIH, s.in), parts(s.h, s.wHH, s.bHH, axisList(s.hidden))
}

func (a *LSTMStep) gates() *gates {
	return &gates{x: a.X, h: a.H, wIH: a.WIH, wHH: a.WHH, bIH: a.BIH, bHH: a.BHH}
}

// Names checks the roles.
func (a *LSTMStep) Names(p *Plan) {
	a.gates().check(p)
	p.NeedAll(a.C, a.H.axes)
	p.Within(a.C, a.H.axes, "h")
	p.Same(a.H, a.C)
}

// Sizes insists on four gates.
func (a *LSTMStep) Sizes(s *Sizes) { a.gates().sizes(s, 4) }

// Compose is the formula.
func (a *LSTMStep) Compose() []*Tensor {
	x, h := a.gates().compute(4)
	gate := func(k int) *Tensor { return x[k].Add(h[k]) }
	c := gate(1).Sigmoid().Mul(a.C.wide()).Add(gate(0).Sigmoid().Mul(gate(2).Tanh()))
	y := gate(3).Sigmoid().Mul(c.Tanh())
	return []*Tensor{y.narrow(a.H.dtype), c.narrow(a.H.dtype)}
}

// Samples covers the lengths of the input, the state and the batch, biases, and the dtypes.
func (*LSTMStep) Samples(m *Maker) (list []LSTMStep) {
	add := func(dt dtype.Type, row, in, hidden int, biases bool) {
		a := LSTMStep{X: m.Tensor(dt, "row=%d in=%d", row, in), H: m.Tensor(dt, "row=%d hidden=%d", row, hidden),
			C: m.Tensor(dt, "hidden=%d row=%d", hidden, row), WIH: m.Tensor(dt, "gate=%d in=%d", 4*hidden, in),
			WHH: m.Tensor(dt, "hidden=%d gate=%d", hidden, 4*hidden)}
		if biases {
			a.BIH, a.BHH = m.Tensor(dt, "gate=%d", 4*hidden), m.Tensor(dt, "gate=%d", 4*hidden)
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
		list = append(list,
			LSTMStep{X: m.Tensor(dt, "hidden=4"), H: m.Tensor(dt, "hidden=3"), C: m.Tensor(dt, "hidden=3"),
				WIH: m.Tensor(dt, "gate=12 hidden=4"), WHH: m.Tensor(dt, "gate=12 hidden=3")})
	}
	return list
}
