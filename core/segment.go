package core

import "fmt"

// segment is a part of a computation whose operations are recorded without what they save. When a gradient needs
// that, the part is run once more, in the same order and with the same random numbers: the k-th operation that
// would be recorded is then the k-th node, which takes what it saves.
type segment struct {
	env   *Env
	outer *segment           // in whose first run this one began
	run   func(xs []*Tensor) // once more
	args  []*Tensor          // held for that; nil while outer would have to be run to know them
	made  Site

	seed, stream uint64 // of random operations, at the beginning

	nodes []*Node    // in the order of recording
	inner []*segment // in the order of their beginnings
	alive int        // nodes and inner segments that may still have to be computed again

	again           bool // it is being run once more
	fill            bool // for the nodes to take what they save
	atNode, atInner int  // the next ones of a run
}

// Checkpoint calls f(xs) and keeps only xs for the gradient of what f does: the rest is computed again when a gradient
// passes through (Chen et al. 2016), by another call of f. f must do the same operations each time; the random
// numbers that it draws are the same. Tensors that f reads besides xs must live, unchanged, until then. Where
// nothing is recorded f is called and nothing else happens.
func (e *Env) Checkpoint(xs []*Tensor, f func(xs []*Tensor)) {
	for i, x := range xs {
		if x == nil {
			panic(&Error{Op: "checkpoint", Msg: fmt.Sprintf("inputs[%d] is nil, want a tensor", i)})
		}
	}
	if e.noRecord || e.shapeOnly {
		f(xs)
		return
	}
	outer := e.segment
	if outer != nil && outer.again {
		outer.enter(xs, f)
		return
	}
	s := &segment{env: e, outer: outer, seed: e.seed, stream: e.stream, run: f}
	s.made = e.where()
	if outer == nil {
		s.hold(xs)
	} else {
		outer.inner = append(outer.inner, s)
		outer.alive++
	}
	s.alive++ // the run itself
	defer s.leave()
	defer func() { e.segment = outer }()
	e.segment = s
	f(xs)
}

// hold keeps the arguments.
func (s *segment) hold(xs []*Tensor) {
	s.args = make([]*Tensor, len(xs))
	for i, x := range xs {
		s.args[i] = x.Alias()
		if !x.meta {
			s.args[i].version = x.buf.Version()
		}
	}
}

// leave notes that one less may have to be computed again.
func (s *segment) leave() {
	if s.alive--; s.alive > 0 {
		return
	}
	for _, x := range s.args {
		x.Free()
	}
	s.args = nil
	if s.outer != nil {
		s.outer.leave()
	}
}

// note takes the node of an operation that the segment did, and returns the one that stands for it.
func (s *segment) note(n *Node, in []*Tensor) *Node {
	if !s.again {
		for _, t := range n.state {
			t.unpin()
		}
		n.state, n.segment = nil, s
		s.nodes = append(s.nodes, n)
		s.alive++
		return n
	}
	for i, e := range n.edges { // those of the first run count
		if e.Node != nil {
			e.Node.release()
			n.edges[i] = Edge{}
		}
	}
	first := s.next(n)
	if s.fill && !first.spent && !first.full {
		first.info.setOperands(first.op, n.operands())
		first.outs, first.state, first.full = n.outs, n.state, true
	} else {
		n.Spend()
	}
	if first.refs.Load() == 0 { // nobody holds it any more
		n.spent, n.outs = true, nil
		return n
	}
	return first
}

// next is the node that n, of a run once more, is. It panics with an *Error if they differ.
func (s *segment) next(n *Node) *Node {
	if s.atNode >= len(s.nodes) {
		panic(s.differs(n.describe(), "nothing"))
	}
	first := s.nodes[s.atNode]
	s.atNode++
	if n.info != first.info || n.describe() != first.describe() {
		panic(s.differs(n.describe(), first.describe()))
	}
	old := first.operands()
	for i, t := range n.operands() {
		if t != nil && t.version != old[i].version {
			panic(&Error{Op: "backward", Msg: fmt.Sprintf(
				"%s, which %s at %s reads, was changed in place since the checkpoint at %s was computed", t.Shape(),
				n.Name(), n.made, s.made), Hint: "change a copy: x.copy()"})
		}
	}
	return first
}

// describe is what the node did, with the shapes of what it read.
func (n *Node) describe() string {
	text := n.Name()
	for _, t := range n.operands() {
		if t != nil {
			text += " " + t.Shape()
		}
	}
	return text
}

// differs is the error of a function that did something else the second time.
func (s *segment) differs(now, before string) *Error {
	return &Error{Op: "checkpoint", Msg: fmt.Sprintf(
		"the function called at %s did %s where it had done %s before, when it was run again for the gradient",
		s.made, now, before),
		Hint: "what it does may hang on its arguments alone"}
}

// enter is a checkpoint inside of s, which is being run once more: the one that began here the first time.
func (s *segment) enter(xs []*Tensor, f func([]*Tensor)) {
	if s.atInner >= len(s.inner) {
		panic(s.differs("another checkpoint", "none"))
	}
	in := s.inner[s.atInner]
	s.atInner++
	if in.alive > 0 && in.args == nil {
		in.hold(xs)
	}
	in.rerun(false, func() { f(xs) })
}

// Restore makes sure that what the node saved is there: a node of a checkpoint has it computed again.
func (n *Node) Restore() {
	if n.segment != nil && !n.full && !n.spent {
		n.segment.restore()
	}
}

// Forget lets go what Restore brought.
func (n *Node) Forget() {
	if n.segment != nil && n.full && !n.spent {
		n.unpin()
		n.full = false
	}
}

func (s *segment) restore() {
	for o := s; o != nil; o = o.outer {
		for at := s.env.segment; at != nil; at = at.outer {
			if at == o {
				panic(&Error{Op: "checkpoint", Msg: fmt.Sprintf(
					"the function called at %s asks for a gradient of what it computes itself", s.made),
					Hint: "ask for it outside of checkpoint"})
			}
		}
	}
	if s.args == nil && s.outer != nil {
		s.outer.restore() // which comes to s
	}
	s.check()
	e := s.env
	seed, stream := e.seed, e.stream
	e.seed, e.stream = s.seed, s.stream
	defer func() { e.seed, e.stream = seed, stream }()
	scope := e.Open()
	defer scope.Close()
	xs := make([]*Tensor, len(s.args))
	for i, x := range s.args {
		xs[i] = x.Alias()
		e.Own(xs[i])
	}
	e.Record(true, func() { s.rerun(true, func() { s.run(xs) }) })
}

// check panics with an *Error if an argument was changed in place.
func (s *segment) check() {
	for i, x := range s.args {
		if !x.meta && x.buf.Version() != x.version {
			panic(&Error{Op: "backward", Msg: fmt.Sprintf(
				"args[%d], %s, of checkpoint at %s was changed in place since", i, x.Shape(), s.made),
				Hint: "change a copy: x.copy()"})
		}
	}
}

// rerun is a run once more.
func (s *segment) rerun(fill bool, f func()) {
	e := s.env
	was := e.segment
	s.again, s.fill, s.atNode, s.atInner = true, fill, 0, 0
	e.segment = s
	defer func() {
		s.again, s.fill = false, false
		e.segment = was
	}()
	f()
	if s.atNode < len(s.nodes) {
		panic(s.differs("nothing", s.nodes[s.atNode].describe()))
	}
}
