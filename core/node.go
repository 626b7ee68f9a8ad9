package core

import (
	"fmt"
	"sync/atomic"
)

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
	outs  []*Tensor // detached outputs, if the gradient reads one or there are several
	state []*Tensor // what Eval saved
	refs  atomic.Int32
	spent bool // saved buffers were let go
	full  bool // of a segment: what it saved is there
	made  Site
	leaf  *Variable

	segment *segment // that computes again what the node saved; see segment.go
}

// Variable is what a leaf of the graph keeps: the gradient that backward adds to.
type Variable struct {
	Grad  *Tensor // nil until the first backward; belongs to no scope and goes with the variable
	Hooks []*Hook // what a backward calls, in this order; a call may change the list for the next backward
}

// Hook is what a backward calls at a variable. Either function may be nil.
type Hook struct {
	// Before gets the gradient before it is added to Grad. What it returns is added instead, unless that is nil.
	Before func(g *Tensor) *Tensor

	// After is called when the gradient has been added.
	After func()

	Owner any // for whoever made the hook
}

// RemoveHook takes h off, if it is there.
func (v *Variable) RemoveHook(h *Hook) {
	left := make([]*Hook, 0, len(v.Hooks)) // a backward may be going through the list
	for _, have := range v.Hooks {
		if have != h {
			left = append(left, have)
		}
	}
	v.Hooks = left
}

// Watch makes a variable of the values of t: results that depend on it are recorded from now on. The
// variable belongs to no scope. It has t's bytes, so that a change of one in place changes the other;
// a copy, if t is shared, or not dense.
func (e *Env) Watch(t *Tensor) *Tensor {
	if t == nil {
		panic(&Error{Op: "variable", Msg: "got nil, want a tensor of floating-point numbers"})
	}
	if t.Closed() || !t.dtype.IsFloat() {
		panic(&Error{Op: "variable", Msg: "want a tensor of floating-point numbers, got " + t.Shape(),
			Hint: `use x.cast("f32")`})
	}
	if t.meta && !e.shapeOnly {
		panic(&Error{Op: "variable", Msg: t.Shape() + " has no data",
			Hint: "check(fn) made it, where nothing is computed, so call fn itself: fn()"})
	}
	if t.env != e || t.buf != nil && t.buf.Borrowed() || !t.dense() {
		t = copyOp.In(e, Copy{X: t})
	}
	v := t.twin(true)
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
	v := &Tensor{env: t.env, dtype: t.dtype, panels: t.panels, axes: t.axes, made: t.made, meta: true}
	rank := len(t.sizes)
	if 2*rank <= len(v.dims) {
		v.sizes, v.strides = v.dims[:rank:rank], v.dims[rank:2*rank:2*rank]
	} else {
		both := make([]int, 2*rank)
		v.sizes, v.strides = both[:rank:rank], both[rank:]
	}
	copy(v.sizes, t.sizes)
	copy(v.strides, t.strides)
	if t.meta {
		return v
	}
	v.version = t.buf.Version()
	if data {
		v.meta, v.buf, v.data = false, t.buf, t.data
		t.buf.Retain()
	}
	return v
}

// Alias is another handle on the same bytes with the same history: closing one leaves the other. It
// belongs to no scope.
func (t *Tensor) Alias() *Tensor {
	v := t.twin(true)
	v.node, v.slot, v.version, v.view = t.node, t.slot, t.version, t.view
	if v.node != nil {
		v.node.refs.Add(1)
	}
	return v
}

// Detach is the tensor as a constant: a new handle on the same bytes through which no gradient flows.
func (t *Tensor) Detach() *Tensor {
	if end := t.ending(); end != nil {
		panic(&Error{Op: "detach", Msg: t.String(), Hint: end.hint("x")})
	}
	v := t.twin(true)
	if t.env != nil {
		t.env.Own(v)
	}
	return v
}

// Sole tells whether the tensor is dense and no other handle or recorded operation holds its bytes.
func (t *Tensor) Sole() bool { return t.meta || t.dense() && t.buf.Holders() == 1 && !t.buf.Borrowed() }

// SetGrad makes g, which may be nil, the gradient of the variable, and lets go the one before. In a shape-only
// run it is so only until that ends.
func (e *Env) SetGrad(v *Variable, g *Tensor) {
	switch {
	case e.shapeOnly:
		e.pretended = append(e.pretended, pretended{v, v.Grad})
	case v.Grad != nil:
		v.Grad.Free()
	}
	v.Grad = g
}

// pretended is a gradient that a shape-only run has set aside.
type pretended struct {
	of   *Variable
	grad *Tensor
}

// Record runs f with the recording of operations switched on or off.
func (e *Env) Record(on bool, f func()) {
	was := e.noRecord
	e.noRecord = !on
	defer func() { e.noRecord = was }()
	f()
}

// tracked is which operands of the running operation have to be recorded, by bits; bit 63 stands for
// all operands from there on.
func (c *call) tracked() (want uint64) {
	if c.env.noRecord || c.env.trying {
		return 0
	}
	for i, t := range c.in {
		if t != nil && t.node != nil {
			want |= bit(i)
		}
	}
	if want == 0 {
		return 0
	}
	for _, t := range c.outs {
		if t.dtype.IsFloat() {
			return want
		}
	}
	return 0 // integers have no gradient
}

// bit stands for operand or output i in a set of them.
func bit(i int) uint64 { return 1 << min(i, 63) }

// record notes how the outputs came about, if a gradient is wanted for an operand.
func (c *call) record() {
	want := c.tracked()
	if want == 0 || c.info.inPlace && c.env.shapeOnly && !c.outs[0].meta {
		return // without data, a tensor that has some must stay as it is
	}
	n := &Node{info: c.info, op: c.info.clone(c.op), made: c.made(), state: c.state}
	c.state = nil
	in, out := c.saves(want)
	n = c.env.note(n, c.in, c.outs, in, out)
	if c.info.inPlace {
		c.supersede(c.outs[0])
	}
	n.attach(c.outs)
}

// note fills in where the operands of a new node came from, and what it saves: the operands and outputs in the bits
// of saveIn and saveOut. It returns the node that stands for the operation.
func (e *Env) note(n *Node, in, outs []*Tensor, saveIn, saveOut uint64) *Node {
	s := e.segment
	if s != nil && !s.again {
		saveIn, saveOut = 0, 0
	}
	n.edges = make([]Edge, len(in))
	twins := make([]*Tensor, len(in))
	for i, t := range in {
		if t == nil {
			continue
		}
		twins[i] = t.twin(saveIn&bit(i) != 0)
		if t.node != nil {
			n.edges[i] = t.Origin()
			t.node.refs.Add(1)
		}
	}
	n.info.setOperands(n.op, twins)
	if saveOut != 0 || len(outs) > 1 {
		for i, t := range outs {
			n.outs = append(n.outs, t.twin(saveOut&bit(i) != 0))
		}
	}
	if s != nil {
		return s.note(n, in)
	}
	return n
}

// attach makes the node the history of what it made.
func (n *Node) attach(outs []*Tensor) {
	for i, t := range outs {
		if t.dtype.IsFloat() {
			t.node, t.slot = n, int32(i)
			n.refs.Add(1)
			if !t.meta {
				t.version = t.buf.Version()
			}
		}
	}
}

// made is where the running operation was called.
func (c *call) made() Site {
	if c.info.inPlace {
		return c.env.where()
	}
	return c.outs[0].made
}

// saves is which operands and outputs the gradient reads.
func (c *call) saves(want uint64) (in, out uint64) {
	if !Is[Differentiable](c.info) {
		return 0, 0
	}
	in, out = ^uint64(0), ^uint64(0)
	if s, ok := c.op.(Saver); ok {
		in, out = s.Saves(want)
	}
	if Is[Once](c.info) {
		in = ^uint64(0)
	}
	return in, out
}

// supersede readies t, which was changed in place, for a new history.
func (c *call) supersede(t *Tensor) {
	if !t.meta {
		t.buf.MarkRecorded()
	}
	if t.node != nil {
		t.node.release()
	} else if s := t.scope(); s != nil {
		s.holds = append(s.holds, owned{strong: t}) // from now on it has something to let go
	}
}

// stale tells whether the bytes were changed in place through another handle, so that the tensor's
// history is no longer how they came about.
func (t *Tensor) stale() bool {
	switch {
	case t.meta || t.buf == nil:
		return false
	case t.node == nil:
		return t.view && t.buf.Recorded() > t.version
	}
	return t.node.leaf == nil && t.buf.Version() != t.version
}

// release lets one holder go. Producers are let go in a loop, not by recursion: a graph may be a
// million operations deep.
func (n *Node) release() {
	if n.refs.Add(-1) > 0 {
		return
	}
	for todo := []*Node{n}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n.Spend()
		if n.leaf != nil && n.leaf.Grad != nil {
			n.leaf.Grad.Free()
			n.leaf.Grad = nil
		}
		for i, e := range n.edges {
			if e.Node != nil && e.Node.refs.Add(-1) == 0 {
				todo = append(todo, e.Node)
			}
			n.edges[i].Node = nil
		}
	}
}

// Spend lets the saved buffers go; a gradient through the node is not possible afterwards.
func (n *Node) Spend() {
	if n.spent || n.op == nil {
		return
	}
	n.spent = true
	n.unpin()
	n.outs = nil
	if n.segment != nil {
		n.segment.leave()
	}
}

// unpin lets the saved buffers go.
func (n *Node) unpin() {
	for _, list := range [][]*Tensor{n.operands(), n.outs, n.state} {
		for _, t := range list {
			t.unpin()
		}
	}
	n.state = nil
}

func (t *Tensor) unpin() {
	if t != nil && !t.meta {
		t.buf.Release()
		t.buf, t.data, t.meta = nil, nil, true
	}
}

// operands is the node's detached operands in field order.
func (n *Node) operands() []*Tensor { return n.info.operands(n.op) }

// operands is the tensor operands of an operation, in field order; nil where one was left out.
func (i *Info) operands(op Op) []*Tensor {
	var ts []*Tensor
	for _, k := range i.tensors {
		f := &i.Fields[k]
		if f.Kind == KindTensors {
			ts = append(ts, *(*[]*Tensor)(f.At(op))...)
		} else {
			ts = append(ts, *(**Tensor)(f.At(op)))
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
	if c, ok := n.op.(*custom); ok {
		return c.name
	}
	return n.info.Name
}

// Edges is where the operands came from, in field order; it must not be changed.
func (n *Node) Edges() []Edge { return n.edges }

// Leaf is the variable the node stands for, or nil.
func (n *Node) Leaf() *Variable { return n.leaf }

// Made is the place in the script where the operation ran.
func (n *Node) Made() Site { return n.made }

// Outputs is how many outputs a gradient may come back through.
func (n *Node) Outputs() int { return max(1, len(n.outs)) }

// Check panics with an *Error if there is no gradient through the node, or no longer: its operation has
// none, an earlier backward let go what it saved, or that was changed in place since.
func (n *Node) Check() {
	if n.op == nil {
		return
	}
	if n.spent {
		panic(&Error{Op: "backward",
			Msg: fmt.Sprintf("the graph through %s at %s was used by an earlier backward and let go", n.Name(),
				n.made),
			Hint: "the first time: backward(loss, retain_graph=True)"})
	}
	if !Is[Differentiable](n.info) {
		panic(&Error{Op: "backward", Msg: fmt.Sprintf("%s at %s has no gradient", n.Name(), n.made),
			Hint: "if none is wanted: x.detach()"})
	}
	if n.segment != nil {
		n.segment.check()
	}
	for _, saved := range [][]*Tensor{n.operands(), n.outs} {
		for _, t := range saved {
			if t != nil && !t.meta && t.buf.Version() != t.version {
				panic(&Error{Op: "backward",
					Msg: fmt.Sprintf("%s, which %s at %s saved for its gradient, was changed in place since", t.Shape(),
						n.Name(), n.made),
					Hint: "change a copy: x.copy()"})
			}
		}
	}
}
