package update

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fucina-go/fucina/kernels/cpu"
)

// step is a kernel in a common form: it changes some of five runs of the same length.
type step[T Float] struct {
	name string
	runs int // how many of them it takes
	f    func(x [5][]T, c [10]T)
}

func steps[T Float]() []step[T] {
	adam := func(c [10]T) *Adam[T] { return &Adam[T]{c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9]} }
	sgd := func(c [10]T) *SGD[T] { return &SGD[T]{c[0], c[1], c[2], c[3], c[4], c[5], c[6]} }
	return []step[T]{
		{"Combine", 3, func(x [5][]T, c [10]T) { Combine(x[0], x[1], x[2], c[0], c[1]) }},
		{"SGD.Step", 2, func(x [5][]T, c [10]T) { sgd(c).Step(x[0], x[1]) }},
		{"SGD.Momentum", 3, func(x [5][]T, c [10]T) { sgd(c).Momentum(x[0], x[1], x[2]) }},
		{"Adam.Step", 4, func(x [5][]T, c [10]T) { adam(c).Step(x[0], x[1], x[2], x[3]) }},
		{"Adam.StepMax", 5, func(x [5][]T, c [10]T) { adam(c).StepMax(x[0], x[1], x[2], x[3], x[4]) }},
		{"Lion.Step", 3, func(x [5][]T, c [10]T) {
			(&Lion[T]{c[0], c[1], c[2], c[3], c[4], c[5], c[6]}).Step(x[0], x[1], x[2])
		}},
	}
}

// same treats all NaN as equal.
func same[T Float](x, y T) bool {
	return math.Float64bits(float64(x)) == math.Float64bits(float64(y)) || x != x && y != y
}

// TestTiersAgree compares every tier of this machine with the plain Go code, bit by bit, at every length around the
// width of a vector, for ordinary numbers and for special ones, with numbers behind the end that must stay.
func TestTiersAgree(t *testing.T) {
	t.Run("float32", testTiersAgree[float32])
	t.Run("float64", testTiersAgree[float64])
}

var special = []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1e-320, 1e-40, -1e-40, 1e30}

func testTiersAgree[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	number := func(odd bool) T {
		if odd && r.IntN(4) == 0 {
			return T(special[r.IntN(len(special))])
		}
		return T(r.NormFloat64())
	}
	const guard = 4
	for _, tier := range cpu.Tiers()[1:] {
		for n := range 71 {
			if n == 70 {
				n = 1<<14 + 35 // more than one call of assembly
			}
			for _, k := range steps[T]() {
				odd := n%2 == 1
				var in [5][]T
				for i := range in {
					in[i] = make([]T, n+guard)
					for j := range in[i] {
						in[i][j] = number(odd)
						if i >= 3 {
							in[i][j] = T(math.Abs(float64(in[i][j])))
						}
					}
				}
				var c [10]T
				for i := range c {
					c[i] = number(false)
				}
				compare(t, fmt.Sprintf("%s, %s, %d elements", k.name, tier, n), tier, k, in, c, n)
			}
		}
	}
}

func compare[T Float](t *testing.T, what string, tier cpu.Tier, k step[T], in [5][]T, c [10]T, n int) {
	t.Helper()
	run := func(tier cpu.Tier) (out [5][]T) {
		restore, _ := cpu.Force(tier)
		defer restore()
		var cut [5][]T
		for i := range in {
			out[i] = append([]T(nil), in[i]...)
			cut[i] = out[i][:n]
		}
		k.f(cut, c)
		return out
	}
	want, got := run(cpu.Generic), run(tier)
	for i := range k.runs {
		for j := range want[i] {
			if !same(want[i][j], got[i][j]) || j >= n && !same(got[i][j], in[i][j]) {
				t.Fatalf("%s: element %d of run %d is %v, want %v", what, j, i, got[i][j], want[i][j])
			}
		}
	}
}

// TestSteps compares the steps with their formulas, written out once more in float64.
func TestSteps(t *testing.T) {
	p, g, m, v, top := []float64{0.5}, []float64{-0.25}, []float64{0.1}, []float64{0.04}, []float64{0.09}
	a := Adam[float64]{Sign: -1, L2: 0.1, Decay: 0.99, B1: 0.9, C1: 0.1, B2: 0.8, C2: 0.2, Root: 2, Eps: 0.01,
		Rate: 0.3}
	x := 0.25 + 0.05
	wantM, wantV := 0.9*0.1+0.1*x, 0.8*0.04+0.2*x*x
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-15 {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	a.StepMax(p, g, m, v, top)
	near("m", m[0], wantM)
	near("v", v[0], wantV)
	near("top", top[0], 0.09)
	near("p", p[0], 0.5*0.99-wantM/(0.3*2+0.01)*0.3)
	p[0], m[0], v[0] = 0.5, 0.1, 0.04
	a.Step(p, g, m, v)
	near("p", p[0], 0.5*0.99-wantM/(math.Sqrt(wantV)*2+0.01)*0.3)

	b := []float64{0.2}
	s := SGD[float64]{Sign: 1, L2: 0.1, Keep: 0.9, Add: 0.5, Fresh: 1, Old: 0.9, Rate: 0.1}
	p[0] = 0.5
	s.Momentum(p, g, b)
	x = -0.25 + 0.05
	near("b", b[0], 0.18+0.5*x)
	near("p", p[0], 0.5-(x+0.9*b[0])*0.1)
	p[0] = 0.5
	s.Step(p, g)
	near("p", p[0], 0.5-x*0.1)

	for _, c := range []struct{ g, sign float64 }{{2, 1}, {-2, -1}, {-0.9, 0}} {
		l := Lion[float64]{Sign: 1, Decay: 0.9, B1: 0.5, C1: 0.5, B2: 0.75, C2: 0.25, Rate: 0.1}
		p[0], m[0], g[0] = 0.5, 0.9, c.g
		if c.sign == -1 {
			g[0] = -3
		}
		l.Step(p, g, m)
		near("p", p[0], 0.45-c.sign*0.1)
		near("m", m[0], 0.675+0.25*g[0])
	}
}

// BenchmarkSteps times every step on 4096 elements, which fit the cache, in every tier; the runs begin at places of the
// same remainder by 4096, as large tensors do.
func BenchmarkSteps(b *testing.B) {
	const n = 4096
	var runs [5][]float32
	for i := range runs {
		runs[i] = make([]float32, n)
	}
	c := [10]float32{1, 0.5, 0.25, 0.9, 0.1, 0.9, 0.1, 1, 0.5, 1e-9}
	for _, tier := range cpu.Tiers() {
		for _, k := range steps[float32]() {
			b.Run(fmt.Sprintf("%s/%s", k.name, tier), func(b *testing.B) {
				restore, _ := cpu.Force(tier)
				defer restore()
				b.SetBytes(4 * n)
				for range b.N {
					k.f(runs, c)
				}
			})
		}
	}
}
