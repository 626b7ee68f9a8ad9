package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/num"
)

// LinearCrossEntropy is cross_entropy(x.dot(w, …), target, axis) over all axes of w but the axis of classes: the last
// linear of a language model and its loss in one. The scores of all rows and classes are never in memory at once, nor
// is their gradient: rows go in blocks of 128, and the gradient computes the scores again.
//
// Shape: x[row, embed], w[vocab, embed], target[row] of integers → a scalar, or [row] for reduction="none". Rows may
// have any axes.
// Numerics: as dot and cross_entropy one after another, in f32 where these would round to f16 or bf16 in between; the
// gradient of w adds up row after row.
//
// Errors: as dot and cross_entropy.
//
// Example:
//
//	linear_cross_entropy(ones(row=2, embed=3), ones(vocab=4, embed=3), tensor([0, 1], "row"), "vocab")
type LinearCrossEntropy struct {
	X           *Tensor `arg:"x"`
	W           *Tensor `arg:"w"`
	Target      *Tensor `arg:"target"`
	Axis        Axis    `arg:"axis"`
	IgnoreIndex int     `arg:"ignore_index=-100"`
	Reduction   string  `arg:"reduction=mean" enum:"mean sum none"`
}

var linearCrossEntropy = Declare[LinearCrossEntropy]("linear_cross_entropy")

// LinearCrossEntropy is the mean cross-entropy of the right classes and softmax(x·w); see the LinearCrossEntropy
// operation.
func (x *Tensor) LinearCrossEntropy(w, target *Tensor, axis string) *Tensor {
	return linearCrossEntropy.Call(LinearCrossEntropy{X: x, W: w, Target: target, Axis: Axis(axis), IgnoreIndex: -100,
		Reduction: "mean"})
}

// entropyRows is how many rows of scores are in memory at once.
const entropyRows = 128

// entropyDepth is how many classes are multiplied at once on the way to the gradient of x.
const entropyDepth = 4096

// Names insists that w has classes and what is contracted.
func (a *LinearCrossEntropy) Names(p *Plan) {
	p.Need(a.W, a.Axis)
	in := a.W.axes.Without(axisList(string(a.Axis)))
	p.NeedAll(a.X, in)
	p.Float(a.X)
	rows := a.X.axes.Without(in)
	if rows.Has(string(a.Axis)) {
		p.Fail(fmt.Sprintf("%s has the axis %q of the classes", p.Describe(a.X), a.Axis),
			p.c.hint(p.c.taken("take one place", a.X, axisList(string(a.Axis)))))
	}
	(&ClassLoss{Target: a.Target}).classes(p, rows)
	p.reduced(a.Reduction, rows, p.Same(a.X, a.W))
}

// loss is the loss of the classes, whose scores are nowhere.
func (a *LinearCrossEntropy) loss() *ClassLoss {
	return &ClassLoss{X: a.X, Target: a.Target, Axis: a.Axis, IgnoreIndex: a.IgnoreIndex, Reduction: a.Reduction}
}

// Eval does the rows block by block.
func (a *LinearCrossEntropy) Eval(c *Ctx) {
	if a.X.dtype == dtype.F64 {
		linearEntropies[float64](c, a)
	} else {
		linearEntropies[float32](c, a)
	}
}

func linearEntropies[C float32 | float64](c *Ctx, a *LinearCrossEntropy) {
	rows, classes := c.Data().(*axis.List), a.W.Size(string(a.Axis))
	ones := elementsOf[C](c.Scratch(native[C](), axisList(string(a.Axis)), []int{classes}))
	for lo, hi := range c.c.env.scan(len(ones)) {
		for i := lo; i < hi; i++ {
			ones[i] = 1
		}
	}
	loss := a.loss()
	right := rightClassesOf(c, loss, a.W, rows, ones)
	losses := elementsOf[C](c.Scratch(native[C](), axisList("row"), []int{len(right.ids)}))
	s := scoresOf[C](c, a.X, a.W, rows, string(a.Axis))
	s.eachBlock(c, func(from, n int) {
		c.Split(n, max(1, pointGrain/max(1, classes)), func(lo, hi int) {
			var r logits[C]
			for i := lo; i < hi; i++ {
				at := from + i
				losses[at] = 0
				if right.counts[at] != 0 {
					r.read(c, s.block[i*classes:][:classes])
					losses[at] = C(-r.log(int(right.ids[at])) * right.factor[at])
				}
			}
		})
	})
	reduceRowLosses(c, loss, rows, right.factor, func(lo int, y []C) { copy(y, losses[lo:]) })
}

// scores is a product x·w whose rows are there only block by block.
type scores[C float32 | float64] struct {
	x, w, block         []C // [row, width], [class, width], [row of the block, class]
	packed              []C
	packedX             []C // room for the rows of a block in panels
	rows, width, number int // number of classes
}

// scoresOf readies the operands.
func scoresOf[C float32 | float64](c *Ctx, x, w *Tensor, rows *axis.List, class string) *scores[C] {
	in := w.axes.Without(axisList(class))
	s := &scores[C]{rows: volume(x, rows), width: volume(x, in), number: w.Size(class)}
	s.x = elementsOf[C](c.Dense(x, rows.Append(in), native[C]()))
	s.w = elementsOf[C](c.Dense(w, axisList(class).Append(in), native[C]()))
	s.block = elementsOf[C](c.Scratch(native[C](), axisList("row", "class"), []int{min(s.rows, entropyRows), s.number}))
	g := product[C]{b: s.w, n: s.number, k: s.width, all: s.width}
	if s.width > packDepth {
		g.room(c, 1, packDepth)
		s.packed = g.packed
	} else if s.rows > fewRows && s.number >= gemm.Width && s.width > 0 {
		g.room(c, 1, s.width)
		g.pack(c, 1)
		s.packed = g.packed
	}
	return s
}

// eachBlock computes block after block and calls f for each: n rows, counted from row from on.
func (s *scores[C]) eachBlock(c *Ctx, f func(from, n int)) {
	for from := 0; from < s.rows; from += entropyRows {
		n := min(entropyRows, s.rows-from)
		if s.number > 0 {
			g := product[C]{c: s.block, a: s.x[from*s.width:], b: s.w, packed: s.packed, m: n, n: s.number, k: s.width,
				all: s.width}
			if s.width > packDepth {
				g.runPacked(c, 1, packDepth)
			} else {
				g.run(c, 1)
			}
		}
		f(from, n)
	}
}

// Ref is the two operations.
func (a *LinearCrossEntropy) Ref() *Tensor {
	in := a.W.axes.Without(axisList(string(a.Axis)))
	loss := a.loss()
	loss.X = dot.Call(Dot{X: a.X.wide(), W: a.W.wide(), Axes: in})
	return crossEntropy.Call(CrossEntropy{ClassLoss: *loss}).narrow(a.X.dtype)
}

// Saves the operands; the right classes are state of Eval.
func (*LinearCrossEntropy) Saves(uint64) (in, out uint64) { return 3, 0 }

// VJP computes the scores' gradients, gy · (softmax(x·w) - 1 at the target), block by block, and their products with w
// and x.
func (a *LinearCrossEntropy) VJP(_, gy []*Tensor, g *Grads) {
	scale := g.State(stateFactor).Mul(a.loss().perFactor(gy[0], g))
	grads := linearEntropyGrad.All(entropyGrad{X: a.X, W: a.W, IDs: g.State(stateIDs), Scale: scale, Axis: a.Axis,
		ForX: g.Wants(0), ForW: g.Wants(1)})
	if g.Wants(0) {
		g.Set(0, grads[0])
		grads = grads[1:]
	}
	if g.Wants(1) {
		g.Set(1, grads[0])
	}
}

// entropyGrad is the gradient of LinearCrossEntropy, for those of x and w that want one. It is in no table.
type entropyGrad struct {
	X     *Tensor `arg:"x"`
	W     *Tensor `arg:"w"`
	IDs   *Tensor `arg:"ids"`
	Scale *Tensor `arg:"scale"` // of each row's gradient
	Axis  Axis    `arg:"axis"`
	ForX  bool    `arg:"for_x"`
	ForW  bool    `arg:"for_w"`
}

var linearEntropyGrad = Define[entropyGrad]("linear_cross_entropy")

// Names has rows and classes first.
func (a *entropyGrad) Names(p *Plan) {
	in := a.W.axes.Without(axisList(string(a.Axis)))
	rows := a.X.axes.Without(in)
	if a.ForX {
		p.Out(rows.Append(in), a.Scale.dtype)
	}
	if a.ForW {
		p.Out(axisList(string(a.Axis)).Append(in), a.Scale.dtype)
	}
	p.Keep(rows)
}

// Eval does the rows block by block.
func (a *entropyGrad) Eval(c *Ctx) {
	if a.Scale.dtype == dtype.F64 {
		linearEntropyGrads[float64](c, a)
	} else {
		linearEntropyGrads[float32](c, a)
	}
}

func linearEntropyGrads[C float32 | float64](c *Ctx, a *entropyGrad) {
	rows := c.Data().(*axis.List)
	ids := elementsOf[int64](c.Dense(a.IDs, rows, dtype.I64))
	scale := elementsOf[C](c.Dense(a.Scale, rows, native[C]()))
	s := scoresOf[C](c, a.X, a.W, rows, string(a.Axis))
	var gx, gw []C
	if a.ForX {
		gx = elementsOf[C](c.Out(0))
	}
	if a.ForW {
		gw = elementsOf[C](c.Out(len(c.c.outs) - 1))
		clear(gw)
	}
	panels := product[C]{n: s.width, all: s.number} // room for w while it is multiplied from the left
	if gx != nil && s.packed != nil && s.width <= packDepth {
		panels.room(c, 1, entropyDepth)
	}
	if gw != nil {
		x := product[C]{n: s.width, all: min(s.rows, entropyRows)}
		x.room(c, 1, entropyRows)
		s.packedX = x.packed
	}
	s.eachBlock(c, func(from, n int) {
		s.slopes(c, ids[from:][:n], scale[from:][:n])
		if gx != nil && s.width > 0 {
			g := product[C]{c: gx[from*s.width:], a: s.block, b: s.w, packed: panels.packed, m: n, n: s.width,
				k: s.number, all: s.number, plain: true}
			if panels.packed != nil {
				g.runPacked(c, 1, entropyDepth)
			} else {
				g.run(c, 1)
			}
		}
		if gw != nil {
			s.addTo(c, gw, from, n)
		}
	})
}

// slopes turns a block of scores into their gradients.
func (s *scores[C]) slopes(c *Ctx, ids []int64, scale []C) {
	c.Split(len(ids), max(1, pointGrain/max(1, s.number)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := s.block[i*s.number:][:s.number]
			if scale[i] == 0 || s.number == 0 {
				clear(row)
				continue
			}
			num.SoftmaxRow(row, row)
			row[ids[i]]--
			num.Scale(row, row, scale[i])
		}
	})
}

// addTo adds the block's part to the gradient of w: its transpose times the rows of x, which are packed once. Classes
// are shared out, so that each adds up row after row.
func (s *scores[C]) addTo(c *Ctx, gw []C, from, n int) {
	const tile = 64 // classes whose columns are turned at once
	x := product[C]{b: s.x[from*s.width:], packed: s.packedX, n: s.width, k: n, all: n, plain: true}
	x.pack(c, 1)
	c.Split(ceilDiv(s.number, tile), max(1, tileWork/max(1, tile*n*s.width)), func(lo, hi int) {
		turned := make([]C, tile*n)
		for t := lo; t < hi; t++ {
			first := t * tile
			count := min(tile, s.number-first)
			gemm.Transpose(turned, s.block[first:], count, n, n, s.number)
			gemm.Packed(gw[first*s.width:], turned, x.packed, count, s.width, n, n, s.width, true)
		}
	})
}

// Samples covers the lengths of rows, classes and what is contracted, blocks, and the dtypes.
func (*LinearCrossEntropy) Samples(m *Maker) (list []LinearCrossEntropy) {
	add := func(dt, ids dtype.Type, classes int, row, in, reduction string) {
		list = append(list, LinearCrossEntropy{X: m.Tensor(dt, row+" "+in), W: m.Tensor(dt, "%s class=%d", in, classes),
			Target: m.Indices(ids, max(1, classes), row), Axis: "class", IgnoreIndex: 1, Reduction: reduction})
	}
	for _, n := range lengths {
		if n > 0 {
			add(dtype.F32, dtype.I64, n, "row=3", "in=5", "none")
		}
		add(dtype.F32, dtype.I64, 17, fmt.Sprintf("row=%d", n), "in=4", "mean")
		add(dtype.F32, dtype.I64, 5, "row=3", fmt.Sprintf("in=%d", n), "sum")
	}
	add(dtype.F32, dtype.I64, 0, "row=0", "in=3", "sum")
	add(dtype.F32, dtype.I64, 70, "batch=2 row=40", "head=2 head_dim=4", "none")
	for _, dt := range floats {
		add(dt, dtype.I32, 17, "batch=2 row=3", "in=5", "none")
		add(dt, dtype.I64, 17, "row=3", "in=17 a=2", "mean")
	}
	for _, ids := range integers {
		add(dtype.F32, ids, 7, "row=4", "in=3", "mean")
	}
	return list
}
