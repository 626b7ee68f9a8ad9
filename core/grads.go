package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// Differentiable is an operation with a gradient: VJP computes the vector-Jacobian product, given
// the outputs y and the gradients gy with respect to them (nil where nothing depends on one), in terms
// of other operations. a's tensor operands are detached; only those that Saves names have data.
type Differentiable interface {
	VJP(y, gy []*Tensor, g *Grads)
}

// Saver says which operands (by bits of in, in field order) and outputs (bits of out) VJP reads the
// data of, when gradients are wanted for the operands in the bits of want. An operation without it
// saves them all.
type Saver interface {
	Saves(want uint64) (in, out uint64)
}

// Once is an operation whose VJP reads plain state that Eval saved and is therefore itself not
// differentiable. When a gradient of the gradient is wanted, the engine differentiates Ref instead:
// the same function of the same operands, written with other operations. All operands are saved.
type Once interface {
	Ref() *Tensor
}

// Grads is where a VJP puts the gradients with respect to the operands.
type Grads struct {
	node *Node
	want uint64
	// again tells that the gradients will be differentiated: a VJP computes them with operations that have gradients,
	// not with one that fuses several and has none.
	again bool
	in    []*Tensor // the detached operands
	out   []*Tensor
}

// Wants tells whether the gradient of operand i is needed.
func (g *Grads) Wants(i int) bool { return g.want&bit(i) != 0 }

// State is what Eval saved as number i.
func (g *Grads) State(i int) *Tensor { return g.node.state[i] }

// Set gives the gradient of operand i. Axes the operand lacks are summed, axes it has and t lacks
// are repeated, and the order and dtype are made the operand's: broadcasting needs no care in a VJP.
func (g *Grads) Set(i int, t *Tensor) {
	if !g.Wants(i) {
		return
	}
	x := g.in[i]
	if extra := t.axes.Without(x.axes); extra.Len() > 0 {
		t = sum.Call(Sum{Reduce{X: t, Axes: extra}})
	}
	if missing := x.axes.Without(t.axes); missing.Len() > 0 {
		t = expand.Call(Expand{X: t, Axes: x.sized(missing)})
	}
	if t.axes != x.axes {
		t = order.Call(Order{X: t, Axes: x.axes})
	}
	if t.dtype != x.dtype {
		t = t.Cast(x.dtype)
	}
	g.out[i] = t
}

// zero gives operand i a gradient of zeros: the operation is constant but for steps.
func (g *Grads) zero(i int, gy *Tensor) { g.Set(i, gy.env.Zeros(g.in[i].dtype, axisList())) }

// None says that there is no gradient for operand i, which the operation calls name: to want one is an error.
func (g *Grads) None(i int, name string) {
	if g.Wants(i) {
		panic(&Error{Op: "backward",
			Msg:  fmt.Sprintf("%s at %s has no gradient for %s", g.node.Name(), g.node.made, name),
			Hint: fmt.Sprintf("detach it: %s=%s.detach()", name, name)})
	}
}

// Apply is the gradients with respect to the operands, in field order, given those with respect to
// the outputs. It computes the ones in the bits of want, bit 63 standing for all operands from there
// on; those of the others are nil, as is one through which nothing flows.
//
// With again, what is computed is recorded as a function of the operands and of gy, so that it can be
// differentiated; differentiate is how the engine differentiates the Ref of a Once operation: it
// returns the gradients of y with respect to xs, given gy.
func (n *Node) Apply(gy []*Tensor, want uint64, again bool,
	differentiate func(y *Tensor, xs []*Tensor, gy *Tensor) []*Tensor) []*Tensor {
	in := n.operands()
	g := &Grads{node: n, want: want, again: again, in: in, out: make([]*Tensor, len(in))}
	op, outs := n.op, n.outs
	if again {
		op, outs = n.attached(in)
		if once, ok := op.(Once); ok {
			g.setRef(once, gy[0], differentiate)
			return g.out
		}
	}
	if len(outs) == 0 {
		outs = []*Tensor{gy[0].twin(false)}
	}
	op.(Differentiable).VJP(outs, gy, g)
	return g.out
}

// setRef gives the gradients by way of an operation's Ref. Each operand gets a history of its own first: it
// may occur twice, or one may depend on another.
func (g *Grads) setRef(op Once, gy *Tensor, differentiate func(*Tensor, []*Tensor, *Tensor) []*Tensor) {
	operands := g.node.info.operands(op.(Op))
	var xs []*Tensor
	var places []int
	for i, t := range operands {
		if t != nil && t.node != nil && g.Wants(i) {
			operands[i] = order.Call(Order{X: t, Axes: t.axes})
			xs, places = append(xs, operands[i]), append(places, i)
		}
	}
	g.node.info.setOperands(op.(Op), operands)
	for k, t := range differentiate(op.Ref(), xs, gy) {
		g.out[places[k]] = t
	}
}

// attached is the operation with operands and outputs that know where they came from, so that what a
// VJP computes of them is recorded.
func (n *Node) attached(in []*Tensor) (Op, []*Tensor) {
	op := n.info.clone(n.op)
	handles := make([]*Tensor, len(in))
	for i, t := range in {
		if t == nil {
			continue
		}
		h := *t
		h.node, h.slot = n.edges[i].Node, int32(n.edges[i].Slot)
		handles[i] = &h
	}
	n.info.setOperands(op, handles)
	outs := make([]*Tensor, len(n.outs))
	for i, t := range n.outs {
		h := *t
		if t.dtype.IsFloat() {
			h.node, h.slot = n, int32(i)
		}
		outs[i] = &h
	}
	return op, outs
}

// What follows makes VJPs short.

// sized is the named axes with their sizes in t.
func (t *Tensor) sized(names Axes) Map[int] {
	m := Map[int]{Keys: names}
	for _, name := range names.Names() {
		m.Values = append(m.Values, t.Size(name))
	}
	return m
}

// zerosIn is zeros of t's dtype, axes and sizes.
func (t *Tensor) zerosIn(env *Env) *Tensor { return env.Zeros(t.dtype, t.axes, t.sizes...) }

// onesIn is ones of t's dtype, axes and sizes.
func (t *Tensor) onesIn(env *Env) *Tensor {
	return ones.In(env, Ones{Axes: Map[int]{t.axes, t.sizes}, DType: t.dtype})
}

// plus is t + v; v is whole if t holds integers.
func (t *Tensor) plus(v float64) *Tensor { return t.Add(t.constant(v)) }

// times is t · v; v is whole if t holds integers.
func (t *Tensor) times(v float64) *Tensor { return t.Mul(t.constant(v)) }

// constant is v as an operand beside t.
func (t *Tensor) constant(v float64) *Tensor { return Number(t.env, v, int64(v), t.dtype.IsInt()) }

// over is the sum over the named axes, which may be none.
func (t *Tensor) over(names Axes) *Tensor { return sum.Call(Sum{Reduce{X: t, Axes: names}}) }

// wide is t in the dtype that operations compute in: f16 and bf16 become f32.
func (t *Tensor) wide() *Tensor {
	if dt := classOf(t.dtype); dt != t.dtype && dt == dtype.F32 {
		return t.Cast(dt)
	}
	return t
}

// narrow is t in dtype dt, t itself if it has that.
func (t *Tensor) narrow(dt dtype.Type) *Tensor {
	if t.dtype == dt {
		return t
	}
	return t.Cast(dt)
}
