package core

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// contracted is the definition of dot: for every place of the axes that stay, the sum over those named.
func contracted(x, w naive, sum []string) naive {
	var batch, left, right []string
	for _, n := range x.names {
		switch {
		case slices.Contains(sum, n):
		case slices.Contains(w.names, n):
			batch = append(batch, n)
		default:
			left = append(left, n)
		}
	}
	for _, n := range w.names {
		if !slices.Contains(sum, n) && !slices.Contains(batch, n) {
			right = append(right, n)
		}
	}
	return x.with(slices.Concat(batch, left, right), w.sizes, func(i index) (total float64) {
		for _, j := range eachOf(sum, x.sizes) {
			at := i.place(j)
			total += x.at(at) * w.at(at)
		}
		return total
	})
}

func TestDot(t *testing.T) {
	check(t, func(w *world) {
		sum := w.names([]string{"a", "b"}, 1)
		var free []string
		for _, n := range worldNames {
			if !slices.Contains(sum, n) {
				free = append(free, n)
			}
		}
		dt := drawn(w, append(slices.Clone(numberDTypes), dtype.Bool)...)
		operand := func() *Tensor {
			names := slices.Concat(sum, w.names(free, 0))
			return w.tensor(dt, rapid.Permutation(names[:min(len(names), 4)]).Draw(w.T, "order")...)
		}
		x, y := operand(), operand()
		want := contracted(naiveOf(x), naiveOf(y), sum)
		exact := want.at
		want.at = func(i index) float64 { return rounded(dt, exact(i)) }
		z := x.Dot(y, axisList(sum...).String())
		if z.dtype != dt {
			w.Fatalf("%s · %s gives %s", dt, dt, z.dtype)
		}
		w.same(z, want, 0)

		more := w.tensor(dt, w.names(append(z.axes.Names(), "f"), 0)...)
		add := func() *Tensor { return dot.Call(Dot{X: x, W: y, Axes: axisList(sum...), Add: more}) }
		if lacks := more.axes.Without(z.axes); lacks.Len() > 0 {
			err := failed(func() { add() })
			if err == nil || !strings.Contains(err.Error(), `has "f", which the product lacks`) {
				w.Fatalf("adding %s to %s: %v", more.Shape(), z.Shape(), err)
			}
		} else if err := same(add(), composed(x, y, more, axisList(sum...))); err != nil {
			w.Fatalf("adding %s: %v", more.Shape(), err)
		}

		both := dots.All(Dots{X: x, Axes: axisList(sum...), Weights: []*Tensor{y, y.Copy()}})
		for _, d := range both {
			if err := same(d, z); err != nil {
				w.Fatalf("dots: %v", err)
			}
		}
	})
}

// composed is add + x·w of two operations, with the sum rounded once and the axes in the order of the product.
func composed(x, w, add *Tensor, axes Axes) *Tensor {
	dt := x.dtype
	if !w.stored() {
		w = w.wide()
	}
	y := dot.Call(Dot{X: x.wide(), W: w, Axes: axes})
	return add.wide().Add(y).Order(y.axes.String()).narrow(dt)
}

// same says where two tensors differ in a bit.
func same(x, want *Tensor) error {
	return (&result{[]string{x.Shape()}, [][]byte{bitsOf(x)}}).differs(&result{[]string{want.Shape()},
		[][]byte{bitsOf(want)}})
}

// TestDotOrder insists that products are added one after another in the order of the call's axes, each with
// one rounding: the bits are those of a loop.
func TestDotOrder(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 1)}
	x, w := m.Tensor(dtype.F32, "row=3 a=7 b=33"), m.Tensor(dtype.F32, "b=33 out=70 a=7")
	for _, axes := range []string{"a b", "b a"} {
		list, _ := axis.Parse(axes)
		a, b := naiveOf(x), naiveOf(w)
		want := a.with([]string{"row", "out"}, b.sizes, func(i index) float64 {
			total := float32(0)
			for _, j := range eachOf(list.Names(), a.sizes) {
				at := i.place(j)
				total = fused(a.at(at), b.at(at), total)
			}
			return float64(total)
		})
		for _, v := range []*Tensor{w, w.Order("out a b").Copy(), w.Order("a out b").Copy()} {
			if err := want.compare(x.Dot(v, axes), 0); err != nil {
				t.Errorf("over %q of %s: %v", axes, v.Shape(), err)
			}
		}
	}
}

// fused is x·y + z of f32 numbers, rounded once.
func fused(x, y float64, z float32) float32 {
	exact := func(v float64) *big.Float { return new(big.Float).SetPrec(600).SetFloat64(v) }
	p := new(big.Float).SetPrec(600).Mul(exact(x), exact(y))
	sum, _ := p.Add(p, exact(float64(z))).Float32()
	return sum
}

func TestEmbedding(t *testing.T) {
	check(t, func(w *world) {
		names := w.names(worldNames[:3], 1)
		vocab := drawn(w, names...)
		weight := w.tensor(w.anyDType(), names...)
		n := w.sizes[vocab]
		if n == 0 {
			return // refused, see TestMisuse
		}
		rows := w.names([]string{"d", "e"}, 0)
		places := rapid.SliceOfN(rapid.Int64Range(0, int64(n-1)), 25, 25).Draw(w.T, "places")
		ids := w.env.Tensor(drawn(w, integers...), axisList(rows...), w.sized(rows)...)
		ids.FillInts(places[:ids.Len()])
		a, b := naiveOf(ids), naiveOf(weight)
		rest := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == vocab })
		w.same(ids.Embedding(weight, vocab), b.with(append(rows, rest...), w.sizes, func(i index) float64 {
			return b.at(i.place(index{vocab: int(a.at(i))}))
		}), 0)
	})
}
