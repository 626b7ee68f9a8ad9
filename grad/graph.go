package grad

import "github.com/fucina-go/fucina/core"

// task is a node of the graph during a walk.
//
// Every edge from a consumer has a slot of its own. Slots may be filled in any order but are added up in theirs,
// each as soon as those before it are there: the bits do not hang on who came first.
type task struct {
	node   *core.Node
	edges  []edge // one for each operand
	slots  []slot // one for each edge that leads here
	sums   []*core.Tensor
	next   int32 // of the search: the edge to follow next
	summed int   // how many slots have been added up
	needed bool  // it is a target or leads to one
	passes bool  // it leads to one
	fired  bool
}

// edge leads to a slot of the task that made an operand; to nil if no gradient is wanted for it.
type edge struct {
	to   *task
	slot int
}

// slot takes the gradient that one consumer sends.
type slot struct {
	output int // of the node
	sent   bool
	grad   *core.Tensor
}

// discard lets go the gradients that the task holds.
func (t *task) discard() {
	for i, g := range t.sums {
		if g != nil {
			g.Free()
			t.sums[i] = nil
		}
	}
	for _, s := range t.slots {
		if s.grad != nil {
			s.grad.Free()
		}
	}
	t.sums, t.slots, t.edges = nil, nil, nil
}

// search visits all nodes from root on, depth first and without recursion, and puts those that lead to a target
// into w.order, each behind its producers.
func (w *walk) search(root *core.Node, target func(*core.Node) bool) {
	var way []*task
	visit := func(n *core.Node) *task {
		t := w.tasks[n]
		if t == nil {
			t = &task{node: n, edges: make([]edge, len(n.Edges())), needed: target(n)}
			w.tasks[n] = t
			way = append(way, t)
		}
		return t
	}
	for visit(root); len(way) > 0; {
		t := way[len(way)-1]
		if int(t.next) < len(t.edges) {
			i := t.next
			t.next++
			if n := t.node.Edges()[i].Node; n != nil {
				t.edges[i].to = visit(n)
			}
			continue
		}
		way = way[:len(way)-1]
		for i := range t.edges {
			switch to := t.edges[i].to; {
			case to == nil:
			case to.needed:
				t.passes = true
			default:
				t.edges[i].to = nil
			}
		}
		if t.needed = t.needed || t.passes; t.needed {
			w.order = append(w.order, t)
		}
	}
}

// connect opens a slot for every edge, in the order in which the walk will come along them, and returns the
// edges that lead to the outputs. It insists that gradients can pass everywhere.
func (w *walk) connect() (roots []edge) {
	open := func(e *edge, output int) {
		if e.to != nil {
			e.slot = len(e.to.slots)
			e.to.slots = append(e.to.slots, slot{output: output})
		}
	}
	roots = make([]edge, len(w.outputs))
	for i, y := range w.outputs {
		if t := w.tasks[y.Origin().Node]; t.needed {
			roots[i].to = t
		}
		open(&roots[i], y.Origin().Slot)
	}
	for n := len(w.order) - 1; n >= 0; n-- {
		t := w.order[n]
		if t.passes {
			t.node.Check()
		}
		t.sums = make([]*core.Tensor, t.node.Outputs())
		for i := range t.edges {
			open(&t.edges[i], t.node.Edges()[i].Slot)
		}
	}
	return roots
}
