package core

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// misuse is a call that is refused, and in which words.
type misuse struct {
	want string
	run  func(e *Env)
}

// An axis that is not there.
var axisMisuse = []misuse{
	{`softmax: no axis "sequence" in x[batch=8, seq=128]; its axes are batch, seq: x.softmax("seq")`,
		func(e *Env) { f32(e, "batch=8 seq=128").Softmax("sequence") }},
	{`softmax: no axis "embd" in x[seq=2, embed=3]; did you mean x.softmax("embed")?`,
		func(e *Env) { f32(e, "seq=2 embed=3").Softmax("embd") }},
	{`sum: no axis "row" in x[]; a scalar has no axes: x.expand(row=1)`, func(e *Env) { f32(e, "").Sum("row") }},
	{`dot: "in" is not in w[out=10, inp=784] but in x[batch=2, in=784]; w has "inp" of the same size: ` +
		`w.rename(inp="in")`,
		func(e *Env) { f32(e, "batch=2 in=784").Dot(f32(e, "out=10 inp=784"), "in") }},
	{`dot: "in" is not in w[out=10, inp=784] but in x[batch=2, in=700]; repeat w: w.expand(in_=700)`,
		func(e *Env) { f32(e, "batch=2 in=700").Dot(f32(e, "out=10 inp=784"), "in") }},
	{`dot: "in" is not in x[batch=2, out=5] but in w[out=3, in=5]; x has "out" of the same size: x.rename(out="in")`,
		func(e *Env) { f32(e, "batch=2 out=5").Dot(f32(e, "out=3 in=5"), "in") }},
	{`dot: "in" is not in x[batch=2] but in w[out=10, in=784]; repeat x: x.expand(in_=784)`,
		func(e *Env) { f32(e, "batch=2").Dot(f32(e, "out=10 in=784"), "in") }},
	{`rms_norm: "embd" is not in x[row=2, embed=4] but in weight[embd=4]; x has "embed" of the same size: ` +
		`x.rename(embed="embd")`,
		func(e *Env) { f32(e, "row=2 embed=4").RMSNorm(f32(e, "embd=4"), 0) }},
	{`rms_norm: want one axis in weight[a=1, b=2] (with x[a=1, b=2]); it is the one to normalize along: ` +
		`weight.at(a=0)`,
		func(e *Env) { f32(e, "a=1 b=2").RMSNorm(f32(e, "a=1 b=2"), 0) }},
}

// Sizes and axes that do not go together.
var sizeMisuse = []misuse{
	{`add: axis "seq" is 128 in x[batch=8, seq=128] but 64 in y[seq=64]; slice one of them: x.slice(seq=(0, 64))`,
		func(e *Env) { f32(e, "batch=8 seq=128").Add(f32(e, "seq=64")) }},
	{`add: axis "in" is 1 in x[in=1] but 4 in y[in=4]; size 1 does not stretch: x.at(in_=0)`,
		func(e *Env) { f32(e, "in=1").Add(f32(e, "in=4")) }},
	{`mul: x[row=2] alone has "row" and y[col=3] alone has "col"; for every combination: x.mul(y, ` +
		`outer=True)`,
		func(e *Env) { f32(e, "row=2").Mul(f32(e, "col=3")) }},
	{`mul: x[row=2, seq=3] alone has "seq" and y[row=2, in=3] alone has "in"; outer=True gives every ` +
		`combination, or if "in" is meant to be "seq": y.rename(in_="seq")`,
		func(e *Env) { f32(e, "row=2 seq=3").Mul(f32(e, "row=2 in=3")) }},
	{`dots: axis "a" is 3 in x[a=3, b=2] but 4 in weights[1][a=4] (with weights[0][a=3]); slice one of ` +
		`them: weights[1].slice(a=(0, 3))`,
		func(e *Env) { f32(e, "a=3 b=2").Dots("a", f32(e, "a=3"), f32(e, "a=4")) }},
	{`dot: axis "row" is 2 in x[row=2, in=3] but 5 in add[row=5, out=4] (with w[out=4, in=3]); slice one of them: ` +
		`add.slice(row=(0, 2))`, func(e *Env) { added(e, "row=5 out=4") }},
	{`dot: add[row=2, in=3] has "in", which the product lacks (with x[row=2, in=3], w[out=4, in=3]); take one ` +
		`place: add.at(in_=0)`, func(e *Env) { added(e, "row=2 in=3") }},
	{`concat: "b" is not in xs[1][a=2] but in xs[0][a=2, b=3]; repeat xs[1]: xs[1].expand(b=3)`,
		func(e *Env) { ConcatAll("a", f32(e, "a=2 b=3"), f32(e, "a=2")) }},
	{`concat: xs[1][a=2, b=3, c=4] has "c", which xs[0][a=2, b=3] lacks; take one place of it: ` +
		`xs[1].at(c=0)`,
		func(e *Env) { ConcatAll("a", f32(e, "a=2 b=3"), f32(e, "a=2 b=3 c=4")) }},
	{`concat: axis "b" is 3 in xs[0][a=2, b=3] but 4 in xs[1][a=2, b=4]; slice one of them: xs[1].slice(b=(0, 3))`,
		func(e *Env) { ConcatAll("a", f32(e, "a=2 b=3"), f32(e, "a=2 b=4")) }},
	{`concat: got no tensors in xs, want at least one; as in: concat([zeros(a=2), ones(a=1)], "a")`,
		func(e *Env) { ConcatAll("a") }},
}

// Dtypes and numbers.
var dtypeMisuse = []misuse{
	{`add: x[a=2] is f32 but y[a=2] is i64; nothing is promoted silently: y.cast("f32")`,
		func(e *Env) { f32(e, "a=2").Add(i64(e, "a=2")) }},
	{`dot: x[row=2, in=3] is f32 but add[row=2] is i64 (with w[out=4, in=3]); nothing is promoted silently: ` +
		`add.cast("f32")`, func(e *Env) {
		dot.Call(Dot{X: f32(e, "row=2 in=3"), W: f32(e, "out=4 in=3"), Axes: axisList("in"), Add: i64(e, "row=2")})
	}},
	{`mul: y is 1.5 but x[a=2] is i64; nothing is promoted silently: x.cast("f32")`,
		func(e *Env) { i64(e, "a=2").Mul(Number(e, 1.5, 0, false)) }},
	{`add: y is 300, which does not fit x[a=2] of u8; a wider dtype holds it: x.cast("i64")`,
		func(e *Env) { tensorOf(e, dtype.U8, "a=2").Add(Number(e, 0, 300, true)) }},
	{`exp: x[a=2] is i64, want a floating-point dtype; use x.cast("f32")`, func(e *Env) { i64(e, "a=2").Exp() }},
	{`mean: x[a=2] is i64, want a floating-point dtype; use x.cast("f32")`,
		func(e *Env) { i64(e, "a=2").Mean() }},
	{`embedding: indices[row=2] is f32, want integers (with weight[vocab=3, embed=2]); use ` +
		`indices.cast("i64")`,
		func(e *Env) { f32(e, "row=2").Embedding(f32(e, "vocab=3 embed=2"), "vocab") }},
}

// Rearranging.
var rearrangeMisuse = []misuse{
	{`order: "b", "d" is missing from the order "c a" of x[a=1, b=2, c=3, d=4]; name every axis: ` +
		`x.order("c a b d")`,
		func(e *Env) { f32(e, "a=1 b=2 c=3 d=4").Order("c a") }},
	{`split: axis "embed" of x[embed=64] has 64 elements but head=5, head_dim=12 make 60; 4 and 8 ` +
		`divide it: x.split("embed", head=4, head_dim=-1)`,
		func(e *Env) { splitOp(f32(e, "embed=64"), "embed", []string{"head", "head_dim"}, 5, 12) }},
	{`split: axis "embed" of x[embed=64] has 64 elements, which head=5, head_dim=-1 does not divide; 4 ` +
		`and 8 divide it: x.split("embed", head=4, head_dim=-1)`,
		func(e *Env) { splitOp(f32(e, "embed=64"), "embed", []string{"head", "head_dim"}, 5, -1) }},
	{`split: head_dim=-1 is no size; one size may be -1, for whatever is left: x.split("embed", head=-1, ` +
		`head_dim=1)`,
		func(e *Env) { splitOp(f32(e, "embed=64"), "embed", []string{"head", "head_dim"}, -1, -1) }},
	{`split: x[a=1, b=2] has the axis "b" already; choose another name: x.split("a", c=1, b_2=1)`,
		func(e *Env) { splitOp(f32(e, "a=1 b=2"), "a", []string{"c", "b"}, 1, 1) }},
	{`merge: x[a=1, b=2, c=3] has the axis "c" already; choose another name: x.merge(c_2="a b")`,
		func(e *Env) { merge.Call(Merge{X: f32(e, "a=1 b=2 c=3"), Into: into("c", "a b")}) }},
	{`merge: axis "b" of x[a=1, b=2, c=3] is in two groups; leave it out of one: x.merge(p="a b", q="c")`,
		func(e *Env) {
			merge.Call(Merge{X: f32(e, "a=1 b=2 c=3"),
				Into: Map[Axes]{axisList("p", "q"), []Axes{axisList("a", "b"), axisList("c", "b")}}})
		}},
	{`rename: x[batch=2, seq=3] would have an axis "seq" twice; swap them: x.rename(batch="seq", ` +
		`seq="batch")`,
		func(e *Env) { f32(e, "batch=2 seq=3").Rename("batch", "seq") }},
	{`expand: x[a=2] has the axis "a" already; choose another name: x.expand(a_2=3)`,
		func(e *Env) { f32(e, "a=2").Expand("a", 3) }},
}

// Places.
var placeMisuse = []misuse{
	{`at: in_=3 is outside of axis "in" of x[in=3]; valid places are -3 … 2: x.at(in_=2)`,
		func(e *Env) { f32(e, "in=3").At("in", 3) }},
	{`at: a=0 is outside of axis "a" of x[a=0]; there is nothing to choose from: x.at(a=0) if x.size("a") ` +
		`else None`, func(e *Env) { atOp(f32(e, "a=0"), placesOf("a", 0)) }},
	{`slice: the step along "a" is 0; a step is 1, 2, … or -1, -2, …: x.slice(a=(0, 3))`,
		func(e *Env) { f32(e, "a=3").Slice("a", 0, 3, 0) }},
	{`set: the step along "a" is 0 (with x[a=3], v[]); a step is 1, 2, … or -1, -2, …: x.set(v, a=(None, ` +
		`None))`,
		func(e *Env) { set.Call(Set{X: f32(e, "a=3"), V: f32(e, ""), Ranges: span("a", 0)}) }},
	{`set: axis "a" is 3 in v[a=3] but 2 in the part of x[a=5]; slice one of them: v.slice(a=(0, 2))`,
		func(e *Env) { f32(e, "a=5").SetSlice(f32(e, "a=3"), "a", 1, 3) }},
	{`set: x[a=4] is shared and may not be changed (with v[]); change a copy: x.copy()`,
		func(e *Env) { set.Call(Set{X: f32(e, "a=4").Share(), V: f32(e, ""), Ranges: span("a", 1)}) }},
	{`set: x[b=3, a=4] repeats the same memory along "b" and may not be changed (with v[]); change a ` +
		`copy: x.copy()`,
		func(e *Env) { set.Call(Set{X: f32(e, "a=4").Expand("b", 3), V: f32(e, ""), Ranges: span("a", 1)}) }},
	{`embedding: the index 3 is outside of axis "vocab" of weight[vocab=3, embed=2] (with ` +
		`indices[row=2]); indices are 0 … 2: indices.clamp(0, 2)`,
		func(e *Env) {
			e.FromInts(dtype.I64, []int64{0, 3}, axisList("row"), 2).Embedding(f32(e, "vocab=3 embed=2"), "vocab")
		}},
	{`embedding: the index 0 is outside of axis "vocab" of weight[vocab=0, embed=2] (with ` +
		`indices[row=1]); the axis is empty, look nothing up: indices.masked_select(indices.lt(0))`,
		func(e *Env) {
			e.FromInts(dtype.I64, []int64{0}, axisList("row"), 1).Embedding(f32(e, "vocab=0 embed=2"), "vocab")
		}},
	{`max: axis "a" of x[a=0, b=2] is empty; there is nothing to choose from: x.max("a") if x.size("a") ` +
		`else None`, func(e *Env) { f32(e, "a=0 b=2").Max("a") }},
}

// Making.
var makeMisuse = []misuse{
	{`full: i8 cannot hold 128; another dtype can: full(128, dtype="i64", a=2)`,
		func(e *Env) { fullOp(e, 128, dtype.I8) }},
	{`full: i64 cannot hold 0.5; another dtype can: full(0.5, a=2)`, func(e *Env) { fullOp(e, 0.5, dtype.I64) }},
	{`full: i64 cannot hold NaN; another dtype can: full(float("NaN"), a=2)`,
		func(e *Env) { fullOp(e, math.NaN(), dtype.I64) }},
	{`full: i64 cannot hold 9.223372036854776e+18; another dtype can: full(9.223372036854776e+18, a=2)`,
		func(e *Env) { fullOp(e, 1<<63, dtype.I64) }},
	{`zeros: axis "a" cannot have size -1; sizes are 0, 1, 2, …: zeros(a=1)`,
		func(e *Env) { e.Zeros(dtype.F32, axisList("a"), -1) }},
	{`tensor: u8 cannot hold 256; another dtype can: tensor(data, "a", dtype="i64")`,
		func(e *Env) { e.FromInts(dtype.U8, []int64{256}, axisList("a"), 1) }},
	{`tensor: i64 cannot hold 1e+19; another dtype can: tensor(data, "", dtype="f32")`,
		func(e *Env) { e.FromFloats(dtype.I64, []float64{1e19}, axis.Empty) }},
	{`tensor: the lists are nested 1 deep but 2 axes are named; name one axis per level: tensor(data, ` +
		`"a", dtype="i64")`, func(e *Env) { e.FromInts(dtype.I64, []int64{1}, axisList("a", "b"), 1) }},
	{`arange: from 0 to +Inf in steps of 1 never ends; want numbers that are finite`,
		func(e *Env) {
			Lookup("arange").Run1(e, &Arange{Stop: math.Inf(1), Step: 1, Axis: "a", DType: dtype.I64})
		}},
	{`arange: from 0 to 5 in steps of 0 never ends; give a step that gets there: arange(5, "a")`,
		func(e *Env) { arange.In(e, Arange{Stop: 5, Axis: "a", DType: dtype.I64}) }},
	{`arange: i8 cannot hold 299; another dtype can: arange(300, "a")`,
		func(e *Env) { e.Arange(300, "a", dtype.I8) }},
	{`arange: i64 cannot hold 0.5; another dtype can: arange(1, "a", step=0.5, dtype="f32")`,
		func(e *Env) { arange.In(e, Arange{Stop: 1, Axis: "a", Step: 0.5, DType: dtype.I64}) }},
	{`arange: bool cannot count; integers can: arange(2, "a")`, func(e *Env) { e.Arange(2, "a", dtype.Bool) }},
	{`add: the result would have 17 axes, at most 16 are possible (with x[b=1], y[a0=2, a1=2, a2=2, a3=2, ` +
		`a4=2, a5=2, a6=2, a7=2, a8=2, a9=2, a10=2, a11=2, a12=2, a13=2, a14=2, a15=2])`,
		func(e *Env) { binary("add", e.Zeros(dtype.U8, axisList("b"), 1), ranked(e, "a", 16), true) }},
}

// Fused operations.
var fusedMisuse = []misuse{
	{`attention: q[seq=2, head=3, head_dim=4] has 3 heads, no multiple of the 2 of k[seq=2, head=2, ` +
		`head_dim=4]; slice one of them: q.slice(head=(0, 2))`,
		func(e *Env) {
			q := f32(e, "seq=2 head=3 head_dim=4")
			k := f32(e, "seq=2 head=2 head_dim=4")
			q.Attention(k, k, 0)
		}},
	{`rope: cannot turn 3 elements of axis "head_dim" of x[row=2, head_dim=3] (with positions[row=2]); ` +
		`dims is an even number up to 3: x.rope(positions=positions, dims=2)`,
		func(e *Env) {
			a := rope.New().(*Rope)
			a.X, a.Positions = f32(e, "row=2 head_dim=3"), i64(e, "row=2")
			rope.Call(*a)
		}},
}

// Tensors that cannot be operands.
var operandMisuse = []misuse{
	{`neg: x[a=2] was ended by free() at outside of a script (it was made at outside of a script); free ` +
		`it after its last use: x.free()`, func(e *Env) { x := f32(e, "a=2"); x.Free(); x.Neg() }},
	{`add: y[a=2] belongs to another interpreter (with x[a=2]); in Go, share it first: y.Share()`,
		func(e *Env) { f32(e, "a=2").Add(NewEnv(0, 1).Tensor(dtype.F32, axisList("a"), 2)) }},
}

// What a Go program can pass and a script cannot: several names for one axis or none, numbers that do not fit.
var goMisuse = []misuse{
	{`at: places: got 1 values for the axes "a b"; as in: tensor([[1, 2], [3, 4]], "row col").at(row=-1)`,
		func(e *Env) { f32(e, "a=2 b=2").At("a b", 0) }},
	{`expand: axes: got 1 values for the axes ""; as in: tensor([1, 2], "a").expand(batch=3)`,
		func(e *Env) { f32(e, "a=2").Expand("", 2) }},
	{`zeros: axes: got 1 values for the axes "a b"; as in: zeros(batch=2, seq=3)`,
		func(e *Env) { e.Zeros(dtype.F32, axisList("a b"), 2) }},
	{`nonzero: got "", want the name of one axis; as in: rows, cols = tensor([[0, 1], [2, 0]], "row col").nonzero()`,
		func(e *Env) { f32(e, "a=2").Nonzero("") }},
	{`unfold: no axis "" in x[a=2]; did you mean x.unfold("a", q=1)?`,
		func(e *Env) { f32(e, "a=2").Unfold("", "q", 1, 1) }},
	{`tensor: got 5 numbers for [a=3]; as in: tensor([[1, 2], [3, 4]], "row col", dtype="f32")`,
		func(e *Env) { e.FromFloats(dtype.F32, make([]float64, 5), axisList("a"), 3) }},
	{`fill: got 5 values for f32[a=3]`, func(e *Env) { f32(e, "a=3").Fill(make([]float32, 5)) }},
	{`tensor: got 1 sizes for the axes "a b"`, func(e *Env) { e.Tensor(dtype.F32, axisList("a b"), 2) }},
	{`borrow: f32[a=4294967296, b=4294967296] cannot be in memory`,
		func(*Env) { Borrow(nil, nil, dtype.F32, axisList("a b"), 1<<32, 1<<32) }},
	{`borrow: f32[a=-1, b=-3] cannot be in memory`,
		func(*Env) { Borrow(make([]byte, 12), nil, dtype.F32, axisList("a b"), -1, -3) }},
	{`reshape: f32[a=-1, b=-4] cannot be in memory`,
		func(e *Env) { f32(e, "a=4").Reshape(axisList("a b"), -1, -4) }},
	{`unbind: no axis "b" in f32[a=4]; its axes are a: x.unbind("a")`, func(e *Env) { f32(e, "a=4").Unbind("b") }},
	{`tolist: f32[a=400] was ended by free() at outside of a script (it was made at outside of a script); free it ` +
		`after its last use: x.free()`, func(e *Env) {
		x := f32(e, "a=400")
		elements := x.Elements()
		x.Free()
		for range elements {
			panic("an element of what has ended")
		}
	}},
	{`tolist: f32[a=400] was ended by free() at outside of a script (it was made at outside of a script); free it ` +
		`after its last use: x.free()`, func(e *Env) {
		x := f32(e, "a=400")
		for range x.Elements() {
			x.Free()
		}
	}},
}

// TestMisuse insists on the exact words for every kind of misuse: what, got, want, hint, with names and
// sizes.
func TestMisuse(t *testing.T) {
	for _, c := range slices.Concat(axisMisuse, sizeMisuse, dtypeMisuse, rearrangeMisuse, placeMisuse, makeMisuse,
		fusedMisuse, operandMisuse, goMisuse) {
		e := NewEnv(0, 1)
		refused(t, c.want, func() { c.run(e) })
		if n := len(e.busy); n != 0 {
			t.Errorf("%s: %d calls are still open", c.want, n)
		}
	}
}

func tensorOf(e *Env, dt dtype.Type, shape string) *Tensor {
	axes, sizes, _ := parseShape(shape, nil)
	return e.Tensor(dt, axes, sizes...)
}

// added is a product [row=2, out=4] to which a tensor of that shape is added.
func added(e *Env, shape string) *Tensor {
	return dot.Call(Dot{X: f32(e, "row=2 in=3"), W: f32(e, "out=4 in=3"), Axes: axisList("in"), Add: f32(e, shape)})
}

func f32(e *Env, shape string) *Tensor { return tensorOf(e, dtype.F32, shape) }

func i64(e *Env, shape string) *Tensor { return tensorOf(e, dtype.I64, shape) }

func placesOf(name string, p int) Map[int] { return Map[int]{axisList(name), []int{p}} }

func span(name string, step int) Map[Range] {
	return Map[Range]{axisList(name), []Range{{Step: &step}}}
}

func into(name, group string) Map[Axes] { return Map[Axes]{axisList(name), []Axes{axisList(group)}} }

func splitOp(x *Tensor, axis string, names []string, sizes ...int) *Tensor {
	return split.Call(Split{X: x, Axis: Axis(axis), Into: Map[int]{axisList(names...), sizes}})
}

func fullOp(e *Env, v float64, dt dtype.Type) *Tensor {
	return full.In(e, Full{Value: v, Axes: Map[int]{axisList("a"), []int{2}}, DType: dt})
}

// ranked is a tensor with n axes of size 2.
func ranked(e *Env, name string, n int) *Tensor {
	m := Map[int]{}
	var names []string
	for i := range n {
		names, m.Values = append(names, fmt.Sprint(name, i)), append(m.Values, 2)
	}
	m.Keys = axisList(names...)
	return zeros.In(e, Zeros{Axes: m, DType: dtype.U8})
}

// TestSetAfterPlan changes a tensor of this Env and then shared ones, which the cached plan must not let through.
func TestSetAfterPlan(t *testing.T) {
	e := NewEnv(0, 1)
	one := 1
	part := Map[Range]{axisList("a"), []Range{{Start: &one}}}
	v := e.FromInts(dtype.U8, []int64{7}, axis.Empty)
	set.Call(Set{X: e.Zeros(dtype.U8, axisList("a"), 4), V: v, Ranges: part})
	borrowed := Borrow(make([]byte, 4), nil, dtype.U8, axisList("a"), 4)
	const want = `set: x[a=4] is shared and may not be changed (with v[]); change a copy: x.copy()`
	refused(t, want, func() { set.Call(Set{X: borrowed, V: v, Ranges: part}) })
	refused(t, want, func() { set.Call(Set{X: e.Zeros(dtype.U8, axisList("a"), 4).Share(), V: v, Ranges: part}) })
}

// planCounts is how many plans each operation's cache holds at most.
func planCounts() (most int) {
	for _, info := range registry {
		n := 0
		for i := range info.plans.slots {
			if info.plans.slots[i].Load() != nil {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// TestPlansAreBounded calls an operation with more axis names than its cache has room for.
func TestPlansAreBounded(t *testing.T) {
	e := NewEnv(0, 1)
	x := e.FromInts(dtype.I8, []int64{3}, axisList("a"), 1)
	for range 2 {
		for i := range 3 * planSlots {
			name := fmt.Sprint("axis", i)
			y := x.Rename("a", name).Neg()
			if y.axes != axisList(name) || y.Int64s()[0] != -3 {
				t.Fatalf("neg gives %s", y)
			}
		}
	}
	if n := planCounts(); n > planSlots {
		t.Errorf("an operation keeps %d plans, at most %d are wanted", n, planSlots)
	}
}

// A hint that repeats a call with thousands of names helps nobody.
func TestLongHint(t *testing.T) {
	e := &Error{Op: "rename", Msg: "no axis", Hint: strings.Repeat("a", longestHint)}
	if got := e.Error(); got != "rename: no axis; "+e.Hint {
		t.Errorf("got %d bytes", len(got))
	}
	if e.Hint += "a"; e.Error() != "rename: no axis" {
		t.Errorf("got %d bytes", len(e.Error()))
	}
}
