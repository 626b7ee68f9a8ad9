package grad

import (
	"fmt"
	"slices"

	"github.com/fucina-go/fucina/core"
)

// Mode says how a backward walk treats the graph. The zero value is what training wants.
type Mode struct {
	// RetainGraph keeps what the recorded operations saved, so that the same graph can be walked again.
	RetainGraph bool

	// CreateGraph records the walk itself, so that the gradients can be differentiated. It retains the graph.
	CreateGraph bool

	// AllowUnused makes the gradient of an input on which no output depends nil instead of an error.
	AllowUnused bool
}

// Backward adds to the Grad of every variable on which the outputs depend the gradient of the outputs with
// respect to it. seeds are the gradients with respect to the outputs, of their axes, sizes and dtypes; a nil
// one, or none at all, stands for 1, and its output must be a scalar.
//
// Misuse panics with a *core.Error, before any gradient has changed unless an operation lacks the gradient for one of
// its operands only. A walk that is stopped midway leaves the gradients incomplete.
func Backward(outputs, seeds []*core.Tensor, mode Mode) {
	w := begin("backward", "loss", outputs, mode)
	defer w.discard()
	w.run(seeds, func(n *core.Node) bool { return n.Leaf() != nil })
}

// Gradients is the gradients of the outputs with respect to the inputs, which may be any tracked tensors. seeds
// are as in Backward. No variable's Grad changes. The results belong to the innermost open scope.
func Gradients(outputs, inputs, seeds []*core.Tensor, mode Mode) []*core.Tensor {
	w := begin("grad", "the output", outputs, mode)
	defer w.discard()
	targets := map[*core.Node]bool{}
	w.captured = map[core.Edge]*core.Tensor{}
	for i, x := range inputs {
		if x == nil {
			panic(w.error(fmt.Sprintf("inputs[%d] is nil, want a tensor", i), ""))
		}
		w.mustTrack(fmt.Sprintf("inputs[%d]", i), x)
		targets[x.Origin().Node] = true
		w.captured[x.Origin()] = nil
	}
	w.inputs, w.allowUnused = inputs, mode.AllowUnused
	w.run(seeds, func(n *core.Node) bool { return targets[n] })
	results := make([]*core.Tensor, len(inputs))
	for i, x := range inputs {
		t := w.captured[x.Origin()]
		if t == nil {
			w.unused(i)
		} else {
			results[i] = t.Alias()
			w.env.Own(results[i])
		}
	}
	return results
}

// walk is one pass over a graph.
type walk struct {
	op, what    string // for messages: the call and an output
	retain      bool
	create      bool
	allowUnused bool
	seek        bool // for the first NaN
	env         *core.Env
	outputs     []*core.Tensor
	inputs      []*core.Tensor // of Gradients
	tasks       map[*core.Node]*task
	order       []*task                    // those on a way to a target, producers before consumers
	captured    map[core.Edge]*core.Tensor // of Gradients: what came to the inputs
}

func begin(op, what string, outputs []*core.Tensor, mode Mode) *walk {
	w := &walk{op: op, what: what, create: mode.CreateGraph, outputs: outputs, tasks: map[*core.Node]*task{}}
	if len(outputs) == 0 {
		panic(w.error("got no outputs", ""))
	}
	for i, y := range outputs {
		if y == nil {
			panic(w.error(fmt.Sprintf("outputs[%d] is nil, want a tensor", i), ""))
		}
	}
	w.env = outputs[0].Env()
	// A shape-only run may meet a graph with data, which it leaves as it is.
	w.retain = mode.RetainGraph || mode.CreateGraph || w.env.IsShapeOnly()
	for _, y := range outputs {
		w.mustTrack(what, y)
		if y.Env() != w.env {
			panic(w.error("the outputs belong to two interpreters", ""))
		}
	}
	return w
}

func (w *walk) error(msg, hint string) *core.Error {
	return &core.Error{Op: w.op, Msg: msg, Hint: hint}
}

func (w *walk) mustTrack(what string, t *core.Tensor) {
	if hint := t.Ended(what); hint != "" {
		panic(w.error(what+", "+t.String(), hint))
	}
	if !t.Tracked() && !t.DType().IsFloat() {
		panic(w.error(fmt.Sprintf("%s, %s, holds integers, through which no gradient flows", what, t.Shape()),
			fmt.Sprintf("a gradient needs floating-point numbers all the way: x.cast(%q)", "f32")))
	}
	if !t.Tracked() {
		panic(w.error(fmt.Sprintf("%s, %s, depends on no variable", what, t.Shape()),
			"make one before it is computed: w = variable(w)"))
	}
}

// unused complains about an input on which no output depends.
func (w *walk) unused(i int) {
	if !w.allowUnused {
		panic(w.error(fmt.Sprintf("the outputs do not depend on inputs[%d], %s", i, w.inputs[i].Shape()),
			"pass allow_unused=True to get None for it: grad(outputs, inputs, allow_unused=True)"))
	}
}

// run walks from the outputs to the nodes that target picks. The search for a NaN is the walk's own meanwhile.
func (w *walk) run(seeds []*core.Tensor, target func(*core.Node) bool) {
	w.seek = w.env.SeeksNaN()
	w.env.Anomaly(false, func() { w.env.Record(w.create, func() { w.fireAll(seeds, target) }) })
}

func (w *walk) fireAll(seeds []*core.Tensor, target func(*core.Node) bool) {
	w.prepare(seeds, target)
	for n := len(w.order) - 1; n >= 0; n-- {
		w.fire(w.order[n])
		w.order[n] = nil
		w.order = w.order[:n]
	}
}

// prepare finds the way and sends the seeds off.
func (w *walk) prepare(seeds []*core.Tensor, target func(*core.Node) bool) {
	for _, y := range w.outputs {
		w.search(y.Origin().Node, target)
	}
	for i, x := range w.inputs {
		if w.tasks[x.Origin().Node] == nil {
			w.unused(i)
		}
	}
	roots := w.connect()
	w.tasks = nil
	for i, e := range roots {
		if g := w.seed(i, seeds); e.to != nil {
			w.send(e, g)
		} else {
			g.Free()
		}
	}
}

// seed is the gradient with respect to output i.
func (w *walk) seed(i int, seeds []*core.Tensor) *core.Tensor {
	y := w.outputs[i]
	if len(seeds) != 0 && len(seeds) != len(w.outputs) {
		panic(w.error(fmt.Sprintf("got %d seeds for %d outputs", len(seeds), len(w.outputs)), "give one for each"))
	}
	if len(seeds) == 0 || seeds[i] == nil {
		if y.Rank() > 0 {
			panic(w.error(fmt.Sprintf("%s must be a scalar, got %s", w.what, y.Shape()),
				fmt.Sprintf("use loss.mean(%q)", y.Axes())))
		}
		return w.compute(func() *core.Tensor { return w.env.FromFloats(y.DType(), []float64{1}, nil) })
	}
	s := seeds[i]
	same := s.DType() == y.DType() && s.Rank() == y.Rank()
	for _, name := range y.Axes().Names() {
		same = same && s.Size(name) == y.Size(name)
	}
	if !same {
		panic(w.error(fmt.Sprintf("seeds[%d] is %s for an output %s", i, s.Shape(), y.Shape()),
			"a seed has its output's axes, sizes and dtype"))
	}
	return w.compute(func() *core.Tensor {
		if s.Axes() == y.Axes() {
			return s
		}
		return s.Order(y.Axes().String())
	})
}

// compute runs f in a scope of its own. The result is a handle that belongs to no scope and that only the walk
// holds, whatever f returned.
func (w *walk) compute(f func() *core.Tensor) *core.Tensor {
	s := w.env.Open()
	defer s.Close()
	return f().Alias()
}

// fire passes on what came to a task from all its consumers.
func (w *walk) fire(t *task) {
	if t.fired {
		return
	}
	t.fired = true
	leaf := t.node.Leaf()
	var hooks []*core.Hook
	if leaf != nil {
		hooks = slices.Clone(leaf.Hooks)
		w.hooks(hooks, t)
	}
	for i, sum := range t.sums {
		if sum == nil {
			continue
		}
		place := core.Edge{Node: t.node, Slot: i}
		if _, ok := w.captured[place]; ok {
			w.captured[place] = sum.Alias()
		} else if leaf != nil {
			w.accumulate(leaf, t)
			for _, h := range hooks {
				if h.After != nil {
					h.After()
				}
			}
		}
	}
	if t.passes {
		w.pass(t)
		if w.retain {
			t.node.Forget()
		} else {
			t.node.Spend()
		}
	}
	t.discard()
}

// accumulate adds what came to a variable to its gradient, in place if nobody else can see that.
func (w *walk) accumulate(v *core.Variable, t *task) {
	g := t.sums[0]
	switch {
	case v.Grad != nil && addable(v.Grad, g) && !w.env.IsShapeOnly():
		v.Grad.Accumulate(g)
	default:
		w.env.SetGrad(v, w.compute(func() *core.Tensor {
			switch {
			case v.Grad != nil:
				return v.Grad.Add(g)
			case !g.Sole():
				return g.Copy() // its bytes are a view, or another gradient's too
			}
			return g
		}))
	}
	t.discard() // so that a hook may let the gradient go
}

// addable tells whether g can be added to sum in place: no other tensor has its bytes, and neither has a history.
func addable(sum, g *core.Tensor) bool {
	return sum.Sole() && !sum.Tracked() && !g.Tracked() && sum.Axes() == g.Axes()
}

// hooks lets a variable's hooks have what came to it.
func (w *walk) hooks(hooks []*core.Hook, t *task) {
	for _, h := range hooks {
		g := t.sums[0]
		if h.Before == nil || g == nil {
			continue
		}
		own := g.Alias()
		w.env.Own(own)
		r := h.Before(own)
		switch {
		case r == nil || r == own:
			continue
		case r.Closed() || r.Env() != nil && r.Env() != w.env || !r.LooksLike(g):
			panic(w.error(fmt.Sprintf("a variable's hook gave %s for a gradient %s", r.Shape(), g.Shape()),
				"it returns a gradient of the same axes, sizes and dtype, or None"))
		}
		t.sums[0] = w.compute(func() *core.Tensor {
			if r.Axes() != g.Axes() {
				return r.Order(g.Axes().String())
			}
			return r
		})
		g.Free()
	}
}

// pass asks the node for the gradients with respect to its operands and sends them to their producers. A variable
// that has heard from all its consumers is served at once, so that its gradient may be used, and let go, early.
func (w *walk) pass(t *task) {
	grads := w.apply(t)
	for i, e := range t.edges {
		if e.to != nil {
			w.send(e, grads[i])
		}
	}
	for _, e := range t.edges {
		if e.to != nil && e.to.node.Leaf() != nil && e.to.summed == len(e.to.slots) {
			w.fire(e.to)
		}
	}
}

// apply is the gradients with respect to the node's operands, which only the walk holds.
func (w *walk) apply(t *task) []*core.Tensor {
	grads := make([]*core.Tensor, len(t.edges))
	if !slices.ContainsFunc(t.sums, func(g *core.Tensor) bool { return g != nil }) {
		return grads
	}
	want := uint64(0)
	for i, e := range t.edges {
		if e.to != nil {
			want |= 1 << min(i, 63)
		}
	}
	s := w.env.Open()
	defer s.Close()
	t.node.Restore()
	t.node.Check() // a function called on the way may have changed something
	for i, g := range t.node.Apply(t.sums, want, w.create, differentiate) {
		if g != nil && t.edges[i].to != nil {
			w.seekNaN(t, i, g)
			grads[i] = g.Alias()
		}
	}
	return grads
}

// seekNaN fails if a NaN comes out of a node into which none went.
func (w *walk) seekNaN(t *task, operand int, g *core.Tensor) {
	if !w.seek {
		return
	}
	place, is := g.FindNaN()
	if !is {
		return
	}
	for _, sum := range t.sums {
		if sum != nil {
			if _, had := sum.FindNaN(); had {
				return
			}
		}
	}
	panic(w.error(fmt.Sprintf("%s at %s made a NaN%s in the gradient of its %s operand, %s; what came to it has none",
		t.node.Name(), t.node.Made(), place, ordinal(operand), g.Shape()),
		"look at what it was given there: print(x)"))
}

func ordinal(i int) string {
	if words := []string{"first", "second", "third", "fourth"}; i < len(words) {
		return words[i]
	}
	return fmt.Sprintf("%dth", i+1)
}

// differentiate is for operations whose gradient cannot be differentiated as it stands.
func differentiate(y *core.Tensor, xs []*core.Tensor, gy *core.Tensor) []*core.Tensor {
	return Gradients([]*core.Tensor{y}, xs, []*core.Tensor{gy}, Mode{CreateGraph: true, AllowUnused: true})
}

// send puts a gradient, which may be nil, into a slot. It belongs to the slot from then on.
func (w *walk) send(e edge, g *core.Tensor) {
	slots := e.to.slots
	slots[e.slot].grad, slots[e.slot].sent = g, true
	for n := &e.to.summed; *n < len(slots) && slots[*n].sent; *n++ {
		s := &slots[*n]
		sum := &e.to.sums[s.output]
		switch {
		case s.grad == nil:
			continue
		case *sum == nil:
			*sum = s.grad
		case addable(*sum, s.grad):
			(*sum).Accumulate(s.grad)
			s.grad.Free()
		default:
			both := w.compute(func() *core.Tensor { return (*sum).Add(s.grad) })
			(*sum).Free()
			s.grad.Free()
			*sum = both
		}
		s.grad = nil
	}
}

// discard lets go what the walk still holds.
func (w *walk) discard() {
	for _, t := range w.order {
		t.discard()
	}
	for _, t := range w.captured {
		if t != nil {
			t.Free()
		}
	}
}
