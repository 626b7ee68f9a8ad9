package core

import (
	"fmt"
	"sync/atomic"
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

// Edge is where an operand of a recorded operation came from: output Slot of Node; Node is nil for a
// constant.
type Edge struct {
	Node *Node
	Slot int
}

// Node is one recorded operation: a copy of it with detached operands, and where each operand came
// from. It is held by the tensors it made and by the nodes that consume them; when the last of
// these lets go, its saved buffers are unpinned and its producers let go in turn. A Node without an
// operation stands for a variable.
type Node struct {
	info  *Info
	op    Op
	edges []Edge
	outs  []*Tensor // detached outputs, if the gradient reads them or there are several
	state []*Tensor // what Eval saved
	refs  atomic.Int32
	spent bool // saved buffers were let go
	made  Site
	leaf  *Variable
}

// Variable is what a leaf of the graph keeps: the gradient that backward adds to.
type Variable struct {
	Grad *Tensor // nil until the first backward; lives outside of every scope
}

// Watch makes a tensor a variable: results that depend on it are recorded from now on. It returns
// a new handle on the same bytes that lives outside of every scope.
func (t *Tensor) Watch() *Tensor {
	if t.end != nil || !t.dtype.IsFloat() {
		panic(&Error{Op: "variable", Msg: "want a tensor of floating-point numbers, got " + t.Shape(), Hint: `x.cast("f32")`})
	}
	v := t.twin(true)
	v.env = t.env
	v.node = &Node{made: v.made, leaf: &Variable{}}
	v.node.refs.Store(1)
	return v
}

// Variable is the gradient's keeper of a variable, nil for any other tensor.
func (t *Tensor) Variable() *Variable {
	if t.node == nil {
		return nil
	}
	return t.node.leaf
}

// Tracked tells whether a gradient flows through the tensor.
func (t *Tensor) Tracked() bool { return t.node != nil }

// Origin is the recorded operation's output that the tensor is.
func (t *Tensor) Origin() Edge { return Edge{t.node, int(t.slot)} }

// twin is a detached handle on the same bytes, held if data is wanted, else a shape without data.
func (t *Tensor) twin(data bool) *Tensor {
	v := &Tensor{env: t.env, dtype: t.dtype, axes: t.axes, made: t.made, meta: true}
	rank := len(t.sizes)
	if 2*rank <= len(v.dims) {
		v.sizes, v.strides = v.dims[:rank:rank], v.dims[rank:2*rank:2*rank]
	} else {
		both := make([]int, 2*rank)
		v.sizes, v.strides = both[:rank:rank], both[rank:]
	}
	copy(v.sizes, t.sizes)
	copy(v.strides, t.strides)
	if data && t.buf != nil {
		v.meta, v.buf, v.data = false, t.buf, t.data
		v.version = t.buf.Version()
		t.buf.Retain()
	}
	return v
}

// Detach is the tensor as a constant: a new handle on the same bytes through which no gradient flows.
func (t *Tensor) Detach() *Tensor {
	if t.end != nil {
		panic(&Error{Op: "detach", Msg: t.String(), Hint: "return it from the scope, or keep(x) it there"})
	}
	v := t.twin(true)
	if t.env != nil {
		t.env.own(v)
	}
	return v
}

// recording tells whether the running operation has to be recorded: which operands are tracked.
func (c *call) tracked() (want uint64) {
	if c.env.noRecord > 0 || !Is[Differentiable](c.info) {
		return 0
	}
	for i, t := range c.in {
		if t != nil && t.node != nil {
			want |= 1 << min(i, 63)
		}
	}
	return want
}

// record notes how the outputs came about, if a gradient is wanted for an operand.
func (c *call) record() {
	want := c.tracked()
	if want == 0 {
		for _, t := range c.state {
			t.buf.Release()
		}
		c.state = nil
		return
	}
	n := &Node{info: c.info, op: c.info.clone(c.op), made: c.outs[0].made, state: c.state}
	c.state = nil
	in, out := ^uint64(0), ^uint64(0)
	if s, ok := c.op.(Saver); ok {
		in, out = s.Saves(want)
	}
	if Is[Once](c.info) {
		in = ^uint64(0)
	}
	n.edges = make([]Edge, len(c.in))
	twins := make([]*Tensor, len(c.in))
	for i, t := range c.in {
		if t == nil {
			continue
		}
		bit := uint64(1) << min(i, 63)
		twins[i] = t.twin(in&bit != 0)
		if t.node != nil {
			n.edges[i] = t.Origin()
			t.node.refs.Add(1)
		}
	}
	c.info.setOperands(n.op, twins)
	_, inPlace := c.op.(InPlace)
	if out != 0 || len(c.outs) > 1 {
		for i, t := range c.outs {
			n.outs = append(n.outs, t.twin(out&(1<<min(i, 63)) != 0))
		}
	}
	for i, t := range c.outs {
		if inPlace && t.node != nil {
			t.node.release()
		}
		if t.dtype.IsFloat() {
			t.node, t.slot = n, int32(i)
			t.version = t.buf.Version()
			n.refs.Add(1)
		}
	}
}

// release lets one holder go. Producers are let go in a loop, not by recursion: a graph may be a
// million operations deep.
func (n *Node) release() {
	todo := []*Node{n}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if n.refs.Add(-1) > 0 {
			continue
		}
		n.Spend()
		for i, e := range n.edges {
			if e.Node != nil {
				todo = append(todo, e.Node)
				n.edges[i].Node = nil
			}
		}
	}
}

// Spend lets the saved buffers go; a gradient through the node is not possible afterwards.
func (n *Node) Spend() {
	if n.spent || n.op == nil {
		return
	}
	n.spent = true
	for _, t := range n.operands() {
		t.unpin()
	}
	for _, t := range n.outs {
		t.unpin()
	}
	for _, t := range n.state {
		t.unpin()
	}
	n.outs, n.state = nil, nil
}

func (t *Tensor) unpin() {
	if t != nil && t.buf != nil {
		t.buf.Release()
		t.buf, t.data, t.meta = nil, nil, true
	}
}

// operands is the node's detached operands in field order.
func (n *Node) operands() []*Tensor {
	var ts []*Tensor
	for _, k := range n.info.tensors {
		f := &n.info.Fields[k]
		if f.Kind == KindTensors {
			ts = append(ts, *(*[]*Tensor)(f.At(n.op))...)
		} else {
			ts = append(ts, *(**Tensor)(f.At(n.op)))
		}
	}
	return ts
}

// setOperands puts tensors into the operand fields in order. Lists are replaced, not written into.
func (i *Info) setOperands(op Op, ts []*Tensor) {
	for _, k := range i.tensors {
		f := &i.Fields[k]
		if f.Kind == KindTensors {
			list := (*[]*Tensor)(f.At(op))
			n := len(*list)
			*list = append([]*Tensor(nil), ts[:n]...)
			ts = ts[n:]
			continue
		}
		*(**Tensor)(f.At(op)) = ts[0]
		ts = ts[1:]
	}
}

// Name is the operation's name, "variable" for a leaf.
func (n *Node) Name() string {
	if n.info == nil {
		return "variable"
	}
	return n.info.Name
}

// Edges is where the operands came from, in field order; it must not be changed.
func (n *Node) Edges() []Edge { return n.edges }

// Leaf is the variable the node stands for, or nil.
func (n *Node) Leaf() *Variable { return n.leaf }

// Made is the place in the script where the operation ran.
func (n *Node) Made() Site { return n.made }

// Outputs is how many outputs have a slot for a gradient.
func (n *Node) Outputs() int { return max(1, len(n.outs)) }

// Grads is where a VJP puts the gradients with respect to the operands.
type Grads struct {
	node  *Node
	wants uint64
	in    []*Tensor // the detached operands
	out   []*Tensor
}

// Wants tells whether the gradient of operand i is needed.
func (g *Grads) Wants(i int) bool { return g.wants&(1<<min(i, 63)) != 0 }

// Set gives the gradient of operand i. Axes the operand lacks are summed, axes it has and t lacks
// are repeated, and the order is made the operand's: broadcasting needs no care in a VJP.
func (g *Grads) Set(i int, t *Tensor) {
	if !g.Wants(i) || t == nil {
		return
	}
	x := g.in[i]
	if extra := t.axes.Without(x.axes); extra.Len() > 0 {
		t = sum.Call(Sum{Reduce{X: t, Axes: extra}})
	}
	if missing := x.axes.Without(t.axes); missing.Len() > 0 {
		m := Map[int]{Keys: missing}
		for _, name := range missing.Names() {
			m.Values = append(m.Values, x.Size(name))
		}
		t = expand.Call(Expand{X: t, Axes: m})
	}
	if t.axes != x.axes {
		t = order.Call(Order{X: t, Axes: x.axes})
	}
	if t.dtype != x.dtype {
		t = t.Cast(x.dtype)
	}
	g.out[i] = t
}

// Apply is the gradients with respect to the operands, in field order, nil where none is wanted or
// none flows. With again, they are recorded in turn, so that they can be differentiated; state is then
// what Once and its Ref are for, and differentiate is how the engine differentiates that: it
// returns the gradients of y with respect to operands, given gy.
func (n *Node) Apply(gy []*Tensor, again bool, differentiate func(y, gy *Tensor, operands []*Tensor) []*Tensor) []*Tensor {
	if n.spent {
		panic(&Error{Op: "backward", Msg: fmt.Sprintf("the graph through %s at %s was used by an earlier backward and let go",
			n.Name(), n.made), Hint: "backward(loss, retain_graph=True) the first time"})
	}
	in := n.operands()
	g := &Grads{node: n, in: in, out: make([]*Tensor, len(in))}
	for i, e := range n.edges {
		if e.Node != nil {
			g.wants |= 1 << min(i, 63)
		}
		n.checkVersion(in[i])
	}
	op, outs := n.op, n.outs
	if again {
		op, outs = n.attached(in)
		if once, ok := op.(Once); ok {
			return differentiate(once.Ref(), gy[0], op2operands(n.info, op))
		}
	}
	if len(outs) == 0 {
		outs = []*Tensor{gy[0].twin(false)}
	}
	op.(Differentiable).VJP(outs, gy, g)
	return g.out
}

func op2operands(i *Info, op Op) []*Tensor { return (&Node{info: i, op: op}).operands() }

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
		handles[i] = &h
		h.sizes, h.strides = t.sizes, t.strides
		if e := n.edges[i]; e.Node != nil {
			handles[i].node, handles[i].slot = e.Node, int32(e.Slot)
		}
	}
	n.info.setOperands(op, handles)
	outs := make([]*Tensor, len(n.outs))
	for i, t := range n.outs {
		h := *t
		h.node, h.slot = n, int32(i)
		outs[i] = &h
	}
	return op, outs
}

// checkVersion insists that a saved operand still holds what the operation read.
func (n *Node) checkVersion(t *Tensor) {
	if t != nil && t.buf != nil && t.buf.Version() != t.version {
		panic(&Error{Op: "backward", Msg: fmt.Sprintf("%s, which %s at %s saved for its gradient, was changed in place since",
			t.Shape(), n.Name(), n.made), Hint: "change a copy: x.copy().set(…)"})
	}
}
