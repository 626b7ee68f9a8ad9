package core

import (
	"fmt"
	"unsafe"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
	"github.com/fucina-go/fucina/kernels/qdot"
)

// MoE is the mixture of a row's experts, which route has chosen: the sum over the choices of weight · down · (act(gate
// · x) · (up · x)), each with the weights of that expert (Shazeer et al. 2017).
//
// Shape: x[row, embed], weights[row, choice], indices[row, choice] of integers, w_gate[expert, ffn, embed],
// w_up[expert, ffn, embed], w_down[expert, embed, ffn] → y[row, embed]. Rows may have any axes, and the weights' axes
// any order; choice is the axis of the indices that x lacks.
// Numerics: the rows of an expert are one product of matrices, whose rows are those of dot; a row's experts are added
// in the order of the choices, each product and sum rounded once together; f16 and bf16 compute in f32 and round once.
//
// Weights of experts may be quantized, each on its own: products are those of dot. Their first axis is that of the
// experts, and their blocks lie along the axes that are contracted.
//
// w_up may be None: then w_gate has both, w_gate[expert, part=2, ffn, embed], that of gate first. part is the axis that
// neither x nor w_down has, and the result is that of the two apart, bit for bit.
//
// Errors: axes that do not fit; indices outside of 0 … number of experts - 1; different dtypes; quantized weights with
// other blocks.
//
// Example:
//
//	x, w = ones(row=2, embed=3), ones(expert=4, ffn=5, embed=3)
//	weights, indices = route(ones(row=2, expert=4), 2)
//	moe(x, weights, indices, w, w, w)
type MoE struct {
	X          *Tensor `arg:"x"`
	Weights    *Tensor `arg:"weights"`
	Indices    *Tensor `arg:"indices"`
	WGate      *Tensor `arg:"w_gate"`
	WUp        *Tensor `arg:"w_up?"`
	WDown      *Tensor `arg:"w_down"`
	Axis       Axis    `arg:"axis=expert"`
	Activation string  `arg:"activation=silu" enum:"silu gelu gelu_tanh relu"`
}

var moe = Declare[MoE]("moe")

// MoE is the mixture of the experts that route has chosen for x, along the axis "expert" of the weights; see the MoE
// operation.
func (x *Tensor) MoE(weights, indices, wGate, wUp, wDown *Tensor) *Tensor {
	return moe.Call(MoE{X: x, Weights: weights, Indices: indices, WGate: wGate, WUp: wUp, WDown: wDown, Axis: "expert",
		Activation: "silu"})
}

// moePick is the axis of the rows of one expert.
const moePick = "moe_pick"

// moeRoles is the axes by role, and how the rows of an expert are contracted with each of its weights. part tells gate
// from up in weights that have both.
type moeRoles struct {
	rows, choice, embed, part, ffn, out *axis.List
	gate, up, down                      axis.Contraction
}

// weights is those of the experts, in the order of the arguments; nil for what is not given.
func (a *MoE) weights() [3]*Tensor { return [3]*Tensor{a.WGate, a.WUp, a.WDown} }

// Names finds the roles.
func (a *MoE) Names(p *Plan) {
	p.Integer(a.Indices)
	p.Float(a.X)
	for _, w := range a.weights() {
		if w != nil {
			p.Need(w, a.Axis)
		}
	}
	if a.X.axes.Has(string(a.Axis)) {
		p.Fail(fmt.Sprintf("%s has the axis %q of the experts", p.Describe(a.X), a.Axis),
			p.c.hint(p.c.taken("every row goes to those that the indices say", a.X, axisList(string(a.Axis)))))
	}
	if own := a.Indices.axes.Without(a.X.axes); own.Len() != 1 {
		p.Fail(fmt.Sprintf("want one axis of choices in %s that %s lacks", p.Describe(a.Indices), p.Describe(a.X)),
			p.c.info.AsIn())
	}
	p.NeedAll(a.Weights, a.Indices.axes)
	p.Within(a.Weights, a.Indices.axes, "indices")
	r := a.roles()
	p.NeedAll(a.WGate, r.embed)
	if one := axisList(string(a.Axis)); a.WUp != nil {
		p.NeedAll(a.WUp, r.embed)
		p.NeedAll(a.WUp, r.ffn)
		p.Within(a.WUp, one.Append(r.embed).Append(r.ffn), "w_gate")
	} else if r.part.Len() != 1 {
		p.Fail(fmt.Sprintf("got no w_up, want it or an axis in %s that tells gate from up, which neither %s nor %s has",
			p.Describe(a.WGate), p.Describe(a.X), p.Describe(a.WDown)), p.c.info.AsIn())
	}
	p.NeedAll(a.WDown, r.ffn)
	for _, w := range []*Tensor{a.WGate, a.WDown} {
		if both := w.axes.Shared(a.Indices.axes); both.Len() > 0 {
			p.Fail(fmt.Sprintf("%s and %s share %s", p.Describe(w), p.Describe(a.Indices), quoted(both.Names())),
				p.c.hint(p.c.renamed("", w, both.Names(), freshNames(both, w.axes, a.Indices.axes))))
		}
	}
	axes := r.rows.Append(r.out)
	if a.X.axes.HasAll(axes) && axes.HasAll(a.X.axes) {
		axes = a.X.axes
	}
	plain := []*Tensor{a.X, a.Weights}
	for i, w := range a.weights() {
		if w == nil {
			continue
		}
		if p.product(a.X, w); !w.stored() {
			plain = append(plain, w)
			continue
		}
		con := []*axis.Contraction{&r.gate, &r.up, &r.down}[i] // one tensor may be two of them
		p.alongBlocks(w, con.Sum)
		con.Sum = w.axes.Shared(con.Sum)
		if w.axes.At(0) != string(a.Axis) {
			p.Fail(fmt.Sprintf("the first axis of %s is %q, want that of the experts", p.Describe(w), w.axes.At(0)),
				p.c.param(w)+".dequantize()")
		}
	}
	p.Out(axes, p.Same(plain...))
	p.Keep(r)
}

// Quantized takes quantized weights of experts.
func (*MoE) Quantized() (operands uint64, named bool) { return 7 << 3, false }

// roles sorts the axes.
func (a *MoE) roles() moeRoles {
	one := axisList(string(a.Axis))
	r := moeRoles{rows: a.X.axes.Shared(a.Indices.axes), choice: a.Indices.axes.Without(a.X.axes)}
	r.embed = a.X.axes.Without(r.rows)
	r.ffn = a.WGate.axes.Without(one).Without(r.embed)
	if a.WUp == nil {
		r.part = r.ffn.Without(a.WDown.axes)
		r.ffn = r.ffn.Without(r.part)
	}
	r.out = a.WDown.axes.Without(one).Without(r.ffn)
	pick := axisList(moePick)
	r.gate = axis.Contract(pick.Append(r.embed), a.WGate.axes.Without(one), r.embed)
	if a.WUp != nil {
		r.up = axis.Contract(pick.Append(r.embed), a.WUp.axes.Without(one), r.embed)
	}
	r.down = axis.Contract(pick.Append(r.ffn), a.WDown.axes.Without(one), r.ffn)
	return r
}

// Sizes insists on gate and up where they are one.
func (a *MoE) Sizes(s *Sizes) {
	s.Match(nil)
	if a.WUp != nil {
		return
	}
	if part := s.c.plan.data.(moeRoles).part.At(0); a.WGate.Size(part) != 2 {
		s.Fail(fmt.Sprintf("axis %q of %s is %d, want 2: that of gate and that of up", part, s.Describe(a.WGate),
			a.WGate.Size(part)), "")
	}
}

// Eval does the rows expert by expert.
func (a *MoE) Eval(c *Ctx) {
	if c.Out(0).Len() == 0 {
		return
	}
	if a.X.dtype == dtype.F64 {
		mixExperts[float64](c, a)
	} else {
		mixExperts[float32](c, a)
	}
}

// chosen is the choices of all rows, sorted by expert: choices are numbered row by row.
type chosen struct {
	pairs []int // numbers, those of the first expert first
	place []int // of each number in pairs
	from  []int // where each expert's begin; one more at the end
}

// sortChoices reads the indices in order, which ends with the choice. The lists go where room says.
func sortChoices(e *Env, room func(n int) []int, ids []int64, experts int) chosen {
	s := chosen{pairs: room(len(ids)), place: room(len(ids)), from: make([]int, experts+1)}
	for lo, hi := range e.scan(len(ids)) {
		for i := lo; i < hi; i++ {
			s.from[ids[i]+1]++
		}
	}
	for i := range experts {
		s.from[i+1] += s.from[i]
	}
	next := append([]int(nil), s.from...)
	for lo, hi := range e.scan(len(ids)) {
		for i := lo; i < hi; i++ {
			id := ids[i]
			s.place[i] = next[id]
			s.pairs[next[id]] = i
			next[id]++
		}
	}
	return s
}

func mixExperts[C float32 | float64](c *Ctx, a *MoE) {
	r, out, dt := c.Data().(moeRoles), c.Out(0), native[C]()
	ids := c.places(a.WGate, a.Indices, a.Axis, r.rows.Append(r.choice))
	s := sortChoices(c.c.env, c.placesOf, ids, a.WGate.Size(string(a.Axis)))
	k := a.Indices.Size(r.choice.At(0))
	x := c.Dense(a.X, r.rows.Append(r.embed), dt)
	width := volume(a.X, r.embed)
	// The rows of all choices, their products with gate and up, and then with down.
	room := func(axes *axis.List, like *Tensor) *Tensor {
		return c.Scratch(dt, axisList(moePick).Append(axes), append([]int{len(s.pairs)}, like.permuted(axes).sizes...))
	}
	xs, hidden, ys := room(r.embed, a.X), room(r.ffn, a.WGate), room(r.down.B, a.WDown)
	c.Split(len(s.pairs), max(1, pointGrain/max(1, width)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(row[C](xs, i, width), row[C](x, s.pairs[i]/k, width))
		}
	})
	each := func(f func(e, lo, hi int)) {
		for e, lo := range s.from[:len(s.from)-1] {
			if hi := s.from[e+1]; hi > lo {
				f(e, lo, hi)
			}
		}
	}
	if a.WUp == nil {
		both := room(r.gate.B, a.WGate)
		each(func(e, lo, hi int) {
			c.expert(both.rows(lo, hi), xs.rows(lo, hi), a.WGate, string(a.Axis), e, r.gate)
		})
		both = c.Dense(both, axisList(moePick).Append(r.part).Append(r.ffn), dt)
		gateHalves(c, a.Activation, elementsOf[C](hidden), elementsOf[C](both), volume(a.WGate, r.ffn))
	} else {
		up := room(r.up.B, a.WUp)
		each(func(e, lo, hi int) {
			c.expert(hidden.rows(lo, hi), xs.rows(lo, hi), a.WGate, string(a.Axis), e, r.gate)
			c.expert(up.rows(lo, hi), xs.rows(lo, hi), a.WUp, string(a.Axis), e, r.up)
		})
		gateExperts(c, a.Activation, elementsOf[C](hidden), elementsOf[C](c.Dense(up, hidden.axes, dt)))
	}
	each(func(e, lo, hi int) {
		c.expert(ys.rows(lo, hi), hidden.rows(lo, hi), a.WDown, string(a.Axis), e, r.down)
	})

	order := r.rows.Append(r.down.B)
	dst := out
	if out.axes != order || out.dtype != dt {
		dst = c.Scratch(dt, order, out.permuted(order).sizes)
	}
	weights := elementsOf[C](c.Dense(a.Weights, r.rows.Append(r.choice), dt))
	n := volume(out, r.out)
	c.Split(dst.Len()/n, max(1, pointGrain/(n*max(1, k))), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y := row[C](dst, i, n)
			clear(y)
			for j := i * k; j < (i+1)*k; j++ {
				num.AddScaled(y, row[C](ys, s.place[j], n), weights[j])
			}
		}
	})
	if dst != out {
		c.copyInto(out, dst.permuted(out.axes))
	}
}

// expert computes y = x·w for rows of one expert, whose weights are those of w at a place of the axis.
func (c *Ctx) expert(y, x, w *Tensor, axis string, place int, con axis.Contraction) {
	if rows := w.Len() / max(1, w.Size(axis)*w.panels); w.panels > 0 && rows%qdot.Rows != 0 {
		c.Fail(fmt.Sprintf("%s lies in panels that experts share: each has %d rows, want a multiple of %d",
			c.Describe(w), rows, qdot.Rows), c.c.param(w)+".dequantize()")
	}
	if told := c.c.env.Multiplied; told != nil {
		told(Product{X: x, W: w, Axes: con.Sum, Expert: axis, Place: place})
	}
	c.contract(y, x, w.only(axis, place), con)
}

// gateExperts sets gate to act(gate) · up.
func gateExperts[C float32 | float64](c *Ctx, activation string, gate, up []C) {
	c.Split(len(gate), pointGrain, func(lo, hi int) {
		g := gate[lo:hi]
		activate(activation, g, g)
		num.Mul(g, g, up[lo:hi])
	})
}

// gateHalves sets rows of n of y to act(gate) · up; a row of both is one of gate and then one of up.
func gateHalves[C float32 | float64](c *Ctx, activation string, y, both []C, n int) {
	c.Split(len(y)/max(1, n), max(1, pointGrain/max(1, n)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			to, gate, up := y[i*n:][:n], both[2*i*n:][:n], both[(2*i+1)*n:][:n]
			activate(activation, to, gate)
			num.Mul(to, to, up)
		}
	})
}

// activate sets y to act(x).
func activate[C float32 | float64](activation string, y, x []C) {
	switch activation {
	case "silu":
		num.SiLU(y, x)
	case "gelu":
		num.GELU(y, x)
	case "gelu_tanh":
		num.GELUTanh(y, x)
	case "relu":
		rectify(y, x)
	}
}

// rows is a header for places [lo, hi) of a dense tensor's first axis.
func (t *Tensor) rows(lo, hi int) *Tensor {
	v := &Tensor{env: t.env, dtype: t.dtype, axes: t.axes, strides: t.strides, data: t.data}
	v.sizes = append([]int{hi - lo}, t.sizes[1:]...)
	if t.Len() > 0 {
		v.data = unsafe.Add(t.data, lo*t.strides[0]*t.dtype.Size())
	}
	return v
}

// only is a header for one place of an axis, which it lacks. If the elements are in blocks it is the first axis, and
// a place has whole ones.
func (t *Tensor) only(name string, place int) *Tensor {
	k := t.axes.Index(name)
	v := &Tensor{env: t.env, dtype: t.dtype, panels: t.panels, axes: t.axes.Without(axisList(name)), data: t.data}
	v.sizes = append(append(v.sizes, t.sizes[:k]...), t.sizes[k+1:]...)
	v.strides = append(append(v.strides, t.strides[:k]...), t.strides[k+1:]...)
	if v.Len() > 0 {
		offset := place * t.strides[k] * t.dtype.Size()
		if t.stored() {
			offset = formatOf(t.dtype).Size(place * t.strides[k])
		}
		v.data = unsafe.Add(t.data, offset)
	}
	return v
}

// Saves the operands.
func (*MoE) Saves(uint64) (in, out uint64) { return 63, 0 }

// VJP computes each expert's rows again. With h = act(g) · u of g = gate · x and u = up · x it is, of a row and a
// choice, gy · down · h for the weight, gh = weight · gy · down for h, and from there as in swiglu and dot.
func (a *MoE) VJP(_, gy []*Tensor, g *Grads) {
	(&moeGradient{a: a, r: a.roles(), g: g, axis: string(a.Axis)}).run(gy[0])
}

type moeGradient struct {
	a                *MoE
	r                moeRoles
	g                *Grads
	axis             string
	x, weights, gy   *Tensor // by row, by choice, by row
	forX, forWeights []*Tensor
	w                [3]*Tensor   // w_gate, w_up and w_down, decoded
	wants            [3]bool      // which of their gradients are wanted
	experts          [3][]*Tensor // of them, expert by expert
}

const (
	moeRow  = "moe_row"
	moePair = "moe_pair"
)

func (m *moeGradient) run(gy *Tensor) {
	a := m.a
	ids := a.Indices.in(m.r.rows.Append(m.r.choice))
	s := sortChoices(gy.env, func(n int) []int { return make([]int, n) }, ids, a.WGate.Size(m.axis))
	if len(ids) == 0 {
		for i := range 6 {
			if i != 2 && m.g.Wants(i) {
				m.g.Set(i, m.g.in[i].zerosIn(gy.env))
			}
		}
		return
	}
	m.decode()
	m.x, m.gy = flat(a.X, m.r.rows, moeRow), flat(gy, m.r.rows, moeRow)
	m.weights = flat(a.Weights, m.r.rows.Append(m.r.choice), moePair)
	k := a.Indices.Size(m.r.choice.At(0))
	var pairs, rows []int64
	for _, pair := range s.pairs {
		pairs, rows = append(pairs, int64(pair)), append(rows, int64(pair/k))
	}
	places := func(list []int64) *Tensor {
		return gy.env.FromInts(dtype.I64, list, axisList(moePick), len(list))
	}
	for e, lo := range s.from[:len(s.from)-1] {
		hi := s.from[e+1]
		m.expert(e, places(rows[lo:hi]), places(pairs[lo:hi]))
	}
	if m.g.Wants(0) {
		gx := m.x.zerosIn(gy.env).IndexAdd(places(rows), ConcatAll(moePick, m.forX...), moeRow)
		m.g.Set(0, unflat(gx, moeRow, a.X, m.r.rows))
	}
	if m.g.Wants(1) {
		gw := m.weights.zerosIn(gy.env).IndexAdd(places(pairs), ConcatAll(moePick, m.forWeights...), moePair)
		m.g.Set(1, unflat(gw, moePair, a.Weights, m.r.rows.Append(m.r.choice)))
	}
	if a.WUp == nil && m.wants[0] {
		m.g.Set(3, StackAll(m.r.part.At(0), StackAll(m.axis, m.experts[0]...), StackAll(m.axis, m.experts[1]...)))
		m.experts[0], m.experts[1] = nil, nil
	}
	for i, list := range m.experts {
		if len(list) > 0 {
			m.g.Set(3+i, StackAll(m.axis, list...))
		}
	}
}

// decode sets the weights as the gradient needs them: gate and up apart.
func (m *moeGradient) decode() {
	for i, w := range m.a.weights() {
		if m.w[i], m.wants[i] = w, m.g.Wants(3+i); w != nil && w.stored() {
			m.w[i] = w.Dequantize()
		}
	}
	if m.a.WUp == nil {
		part := m.r.part.At(0)
		m.w[0], m.w[1] = m.w[0].At(part, 0), m.w[0].At(part, 1)
		m.wants[1] = m.wants[0]
	}
}

// expert adds what one expert gives to the gradients.
func (m *moeGradient) expert(e int, rows, pairs *Tensor) {
	gate, up, down := m.w[0].At(m.axis, e).wide(), m.w[1].At(m.axis, e).wide(), m.w[2].At(m.axis, e).wide()
	x, gy := m.x.Gather(rows, moeRow), m.gy.Gather(rows, moeRow)
	contract := func(x, w *Tensor, axes Axes) *Tensor { return dot.Call(Dot{X: x, W: w, Axes: axes}) }
	g, u := contract(x, gate, m.r.embed), contract(x, up, m.r.embed)
	act, slope := activated(g, m.a.Activation)
	h := act.Mul(u)
	if m.g.Wants(1) {
		y := contract(h, down, m.r.ffn)
		m.forWeights = append(m.forWeights, y.Mul(gy).over(m.r.out))
	}
	gy = gy.Mul(m.weights.Gather(pairs, moePair))
	gh := contract(gy, down, m.r.out)
	gu, gg := gh.Mul(act), gh.Mul(u).Mul(slope)
	if m.g.Wants(0) {
		m.forX = append(m.forX, contract(gg, gate, m.r.ffn).Add(contract(gu, up, m.r.ffn)))
	}
	pick := axisList(moePick)
	for i, pair := range [3][2]*Tensor{{gg, x}, {gu, x}, {gy, h}} {
		if m.wants[i] {
			m.experts[i] = append(m.experts[i], contract(pair[0], pair[1], pick))
		}
	}
}

// activated is the activation and its slope at x.
func activated(x *Tensor, activation string) (y, slope *Tensor) {
	switch activation {
	case "silu":
		return x.SiLU(), x.siluSlope()
	case "relu":
		return x.ReLU(), x.above(0).Cast(x.dtype)
	}
	form := "none"
	if activation == "gelu_tanh" {
		form = "tanh"
	}
	return gelu.Call(GELU{Unary{x}, form}), x.geluSlope(form)
}

// flat merges axes into one, wide; with none of them it is a new one of size 1.
func flat(t *Tensor, axes Axes, name string) *Tensor {
	t = t.wide()
	if axes.Len() == 0 {
		return insert.Call(Insert{X: t, Axes: axisList(name)})
	}
	return merge.Call(Merge{X: t, Into: Map[Axes]{axisList(name), []Axes{axes}}})
}

// unflat undoes flat; the sizes are those of like.
func unflat(t *Tensor, name string, like *Tensor, axes Axes) *Tensor {
	if axes.Len() == 0 {
		return t.At(name, 0)
	}
	return split.Call(Split{X: t, Axis: Axis(name), Into: like.sized(axes)})
}

// in is the elements of a tensor of integers in the order of the axes.
func (t *Tensor) in(order *axis.List) []int64 {
	v := t.permuted(order)
	list := make([]int64, 0, v.Len())
	for offset := range v.each {
		list = append(list, v.element(offset).(int64))
	}
	return list
}

// Samples covers the numbers of rows, experts and choices, the sizes of an expert, activations, and the dtypes.
func (*MoE) Samples(m *Maker) (list []MoE) {
	add := func(dt, ids dtype.Type, rows string, k, experts, embed, ffn int, activation string) {
		list = append(list, MoE{X: m.Tensor(dt, rows+" embed=%d", embed), Weights: m.Tensor(dt, "choice=%d "+rows, k),
			Indices: m.Indices(ids, experts, rows+" choice=%d", k),
			WGate:   m.Tensor(dt, "expert=%d ffn=%d embed=%d", experts, ffn, embed),
			WUp:     m.Tensor(dt, "expert=%d embed=%d ffn=%d", experts, embed, ffn),
			WDown: m.Tensor(dt, "expert=%d embed=%d ffn=%d",
				experts, embed, ffn), Axis: "expert", Activation: activation})
	}
	for _, n := range lengths {
		add(dtype.F32, dtype.I64, fmt.Sprintf("row=%d", n), 2, 3, 4, 5, "silu")
		add(dtype.F32, dtype.I64, "row=2", 2, 3, min(n, 17), 3, "gelu")
		add(dtype.F32, dtype.I64, "row=3", 2, max(1, min(n, 17)), 3, min(n, 17), "gelu_tanh")
	}
	add(dtype.F32, dtype.I64, "row=3", 0, 2, 3, 4, "relu")
	for _, ids := range integers {
		add(dtype.F32, ids, "row=3", 3, 2, 3, 4, "silu")
	}
	for _, gate := range []string{"expert=3 part=2 ffn=5 embed=4", "ffn=5 embed=4 part=2 expert=3"} {
		list = append(list, MoE{X: m.Tensor(dtype.F32, "row=3 embed=4"), Weights: m.Tensor(dtype.F32, "row=3 choice=2"),
			Indices: m.Indices(dtype.I64, 3, "row=3 choice=2"), WGate: m.Tensor(dtype.F32, gate),
			WDown: m.Tensor(dtype.F32, "expert=3 embed=4 ffn=5"), Axis: "expert", Activation: "silu"})
	}
	for _, dt := range []dtype.Type{dtype.F32, dtype.BF16} {
		list = append(list, MoE{X: m.Tensor(dt, "row=5 embed=32"), Weights: m.Tensor(dt, "row=5 choice=2"),
			Indices: m.Indices(dtype.I64, 3, "row=5 choice=2"), WGate: m.Quantized("q8_0", "expert=3 ffn=64 embed=32"),
			WUp:   m.Quantized("q4_1", "expert=3 ffn=64 embed=32"),
			WDown: m.Quantized("q4_0", "expert=3 embed=32 ffn=64"), Axis: "expert", Activation: "silu"})
	}
	for _, dt := range floats {
		add(dt, dtype.I64, "batch=2 row=3", 2, 4, 5, 3, "silu")
		add(dt, dtype.I64, "", 2, 3, 4, 5, "relu")
	}
	return list
}
