package core

import (
	"math"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
)

// TestScript writes calls of every kind of argument.
func TestScript(t *testing.T) {
	e := NewEnv(0, 1)
	x := e.Zeros(dtype.F32, axisList("in", "b"), 2, 3)
	one, minus := 1, -1
	for _, c := range []struct {
		want string
		info *Info
		op   Op
	}{
		{`x.softmax("in")`, &softmax.Info, &Softmax{X: x, Axis: "in", Scale: 1}},
		{`x.sum()`, &sum.Info, &Sum{Reduce{X: x}}},
		{`x.sum("in b")`, &sum.Info, &Sum{Reduce{X: x, Axes: x.axes}}},
		{`x.add(0.5, outer=True)`, &add.Info, &Add{Binary{X: x, Y: Number(e, 0.5, 0, false), Outer: true}}},
		{`add(3, y)`, &add.Info, &Add{Binary{X: Number(e, 0, 3, true), Y: x}}},
		{`concat(xs, "b")`, &concat.Info, &Concat{Xs: []*Tensor{x, x}, Axis: "b"}},
		{`full(float("+Inf"), dtype="f64", in_=2)`, &full.Info,
			&Full{Value: math.Inf(1), DType: dtype.F64, Axes: Map[int]{axisList("in"), []int{2}}}},
		{`zeros({"dtype": 2, "a": 1})`, &zeros.Info,
			&Zeros{DType: dtype.F32, Axes: Map[int]{axisList("dtype", "a"), []int{2, 1}}}},
		{`x.slice(in_=(1, None), b=(None, None, -1))`, &sliceOp.Info,
			&Slice{X: x, Ranges: Map[Range]{x.axes, []Range{{Start: &one}, {Step: &minus}}}}},
		{`x.rename(in_="c")`, &rename.Info, &Rename{X: x, To: Map[string]{axisList("in"), []string{"c"}}}},
		{`x.merge(flat="in b")`, &merge.Info, &Merge{X: x, Into: Map[Axes]{axisList("flat"), []Axes{x.axes}}}},
		{`x.cast("i64")`, &cast.Info, &Cast{X: x, DType: dtype.I64}},
		{`tensor(data, "a")`, &fromLists.Info, &FromLists{Axes: axisList("a")}},
	} {
		if got := c.info.script(c.op); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// TestRespelled changes an axis name wherever an argument says it.
func TestRespelled(t *testing.T) {
	x := NewEnv(0, 1).Zeros(dtype.F32, axisList("a", "b"), 2, 3)
	for _, c := range []struct {
		want string
		info *Info
		op   Op
	}{
		{`x.order("b a")`, &order.Info, &Order{X: x, Axes: axisList("b", "c")}},
		{`x.order("c a")`, &order.Info, &Order{X: x, Axes: axisList("c", "a")}}, // a stands there already
		{`x.at(a=1)`, &at.Info, &At{X: x, Places: Map[int]{axisList("c"), []int{1}}}},
		{`x.rename(b="a")`, &rename.Info, &Rename{X: x, To: Map[string]{axisList("b"), []string{"c"}}}},
		{`x.merge(d="b a")`, &merge.Info, &Merge{X: x, Into: Map[Axes]{axisList("d"), []Axes{axisList("b", "c")}}}},
	} {
		before := c.info.script(c.op)
		if got := c.info.script(c.info.respelled(c.op, "c", "a")); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
		if after := c.info.script(c.op); after != before {
			t.Errorf("%s became %s", before, after)
		}
	}
}

// TestKept follows what a product kept as batches to the step that misses an axis.
func TestKept(t *testing.T) {
	e := NewEnv(0, 1)
	q := e.Zeros(dtype.F32, axisList("seq", "in"), 3, 4)
	scores := q.Dot(e.Zeros(dtype.F32, axisList("seq", "in"), 3, 4), "in")
	const hint = `; w still has "seq" in dot at outside of a script: w.rename(seq="key_seq")`
	refused(t, `softmax: no axis "key_seq" in x[seq=3]`+hint, func() { scores.Softmax("key_seq") })
	refused(t, `softmax: no axis "key_seq" in x[seq=3]`+hint, func() { scores.Exp().Copy().Softmax("key_seq") })
	refused(t, `softmax: no axis "vocab" in x[seq=3]; its axes are seq: x.softmax("seq")`,
		func() { scores.Softmax("vocab") })
	refused(t, `softmax: no axis "key_seq" in x[seq=3, in=4]; its axes are seq, in: x.softmax("in")`,
		func() { q.Softmax("key_seq") })
}
