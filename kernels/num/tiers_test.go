package num

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fucina-go/fucina/kernels/cpu"
)

// A kernel is a function of this package in a common form: out has n elements,
// each input too; what it returns is a result like the others.
type kernel[T Float] struct {
	name string
	f    func(out []T, in [4][]T) T
}

func kernels[T Float]() []kernel[T] {
	var list []kernel[T]
	unary := func(name string, f func(y, x []T)) {
		list = append(list, kernel[T]{name, func(out []T, in [4][]T) T { f(out, in[0]); return 0 }})
	}
	binary := func(name string, f func(z, x, y []T)) {
		list = append(list, kernel[T]{name, func(out []T, in [4][]T) T { f(out, in[0], in[1]); return 0 }})
	}
	compare := func(name string, f func(z []bool, x, y []T)) {
		list = append(list, kernel[T]{name, func(out []T, in [4][]T) T {
			z := make([]bool, len(out)+1)
			f(z, in[0], in[1])
			for i := range out {
				out[i] = 0
				if z[i] {
					out[i] = 1
				}
			}
			if z[len(out)] {
				return 1
			}
			return 0
		}})
	}
	other := func(name string, f func(out []T, in [4][]T) T) { list = append(list, kernel[T]{name, f}) }
	unary("Neg", Neg[T])
	unary("Abs", Abs[T])
	unary("Sqrt", Sqrt[T])
	unary("Exp", Exp[T])
	unary("Log", Log[T])
	unary("Tanh", Tanh[T])
	unary("Erf", Erf[T])
	unary("Sigmoid", Sigmoid[T])
	unary("SiLU", SiLU[T])
	unary("GELU", GELU[T])
	unary("GELUTanh", GELUTanh[T])
	unary("SoftmaxRow", SoftmaxRow[T])
	binary("Add", Add[T])
	binary("Sub", Sub[T])
	binary("Mul", Mul[T])
	binary("Div", Div[T])
	binary("Maximum", Maximum[T])
	binary("Minimum", Minimum[T])
	binary("SwiGLU", SwiGLU[T])
	compare("Equal", Equal[T])
	compare("NotEqual", NotEqual[T])
	compare("Less", Less[T])
	compare("LessEqual", LessEqual[T])
	other("MulAdd", func(out []T, in [4][]T) T { MulAdd(out, in[0], in[1], in[2]); return 0 })
	other("Scale", func(out []T, in [4][]T) T { Scale(out, in[0], in[3][0]); return 0 })
	other("AddScaled", func(out []T, in [4][]T) T {
		copy(out, in[1])
		AddScaled(out, in[0], in[3][0])
		return 0
	})
	other("Sum", func(_ []T, in [4][]T) T { return Sum(in[0]) })
	other("Dot", func(_ []T, in [4][]T) T { return Dot(in[0], in[1]) })
	other("Squares", func(_ []T, in [4][]T) T { return Squares(in[0], in[3][0]) })
	other("Max", func(_ []T, in [4][]T) T { return Max(in[0]) })
	other("Min", func(_ []T, in [4][]T) T { return Min(in[0]) })
	other("ExpSum", func(out []T, in [4][]T) T { return ExpSum(out, in[0], in[3][0]) })
	other("RMSNormRow", func(out []T, in [4][]T) T { return RMSNormRow(out, in[0], in[1], 1e-6) })
	other("RMSNormRow without weight", func(out []T, in [4][]T) T { return RMSNormRow(out, in[0], nil, 1e-6) })
	other("LayerNormRow", func(out []T, in [4][]T) T {
		_, r := LayerNormRow(out, in[0], in[1], in[2], 1e-6)
		return r
	})
	other("RopeHalf", func(out []T, in [4][]T) T {
		RopeHalf(out, in[0], in[1][:len(out)/2], in[2][:len(out)/2])
		return 0
	})
	other("RopeInterleaved", func(out []T, in [4][]T) T {
		RopeInterleaved(out, in[0], in[1][:len(out)/2], in[2][:len(out)/2])
		return 0
	})
	return list
}

// anyBits is a number of any magnitude: special, ordinary, or random bits.
func anyBits[T Float](r *rand.Rand) T {
	switch r.IntN(8) {
	case 0:
		return T(special[r.IntN(len(special))])
	case 1:
		if wide[T]() {
			return T(math.Float64frombits(r.Uint64()))
		}
		return T(math.Float32frombits(r.Uint32()))
	}
	return T(r.NormFloat64() * math.Ldexp(1, r.IntN(12)-6))
}

// sameBits treats all NaN as equal.
func sameBits[T Float](x, y T) bool {
	return math.Float64bits(float64(x)) == math.Float64bits(float64(y)) || x != x && y != y
}

// TestTiersAgree compares every tier of this machine with the plain Go code, bit
// by bit, at every length around the width of a vector, for ordinary numbers and
// for any, and in place.
func TestTiersAgree(t *testing.T) {
	t.Run("float32", testTiersAgree[float32])
	t.Run("float64", testTiersAgree[float64])
}

func testTiersAgree[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for _, tier := range cpu.Tiers()[1:] {
		t.Run(tier.String(), func(t *testing.T) {
			for n := range 71 {
				if n == 70 {
					n = 1<<14 + 35 // more than one call of assembly
				}
				for _, any := range []bool{false, true} {
					var in [4][]T
					for k := range in {
						in[k] = make([]T, n, n+1)
						for i := range in[k] {
							if in[k][i] = T(r.NormFloat64() * 3); any {
								in[k][i] = anyBits[T](r)
							}
						}
					}
					in[3] = append(in[3], T(r.NormFloat64()))[n:]
					for _, k := range kernels[T]() {
						compareTier(t, tier, k, in, n)
					}
				}
			}
		})
	}
}

func compareTier[T Float](t *testing.T, tier cpu.Tier, k kernel[T], in [4][]T, n int) {
	t.Helper()
	run := func(tier cpu.Tier, in [4][]T) (padded[T], T) {
		restore, _ := cpu.Force(tier)
		defer restore()
		var result T
		p := guarded(n, func(y []T) { result = k.f(y, in) })
		checkGuard(t, fmt.Sprintf("%s, tier %s", k.name, tier), p)
		return p, result
	}
	want, wantResult := run(cpu.Generic, in)
	got, gotResult := run(tier, in)
	if !sameBits(gotResult, wantResult) {
		t.Errorf("%s of %d elements returns %x, want %x", k.name, n, gotResult, wantResult)
	}
	check := func(how string, got []T) {
		t.Helper()
		for i, w := range want.out {
			if !sameBits(got[i], w) {
				t.Errorf("%s of %d elements%s: element %d is %x, want %x, from %x, %x, %x",
					k.name, n, how, i, got[i], w, in[0][i], in[1][i], in[2][i])
				break
			}
		}
	}
	check("", got.out)
	restore, _ := cpu.Force(tier)
	defer restore()
	if k.name != "AddScaled" {
		alias := in
		alias[0] = append([]T{}, in[0]...)
		k.f(alias[0], alias)
		if want.out != nil && n > 0 && !sameBits(want.out[0], guard) {
			check(" in place", alias[0])
		}
	}
}

func TestMaxOfZeros(t *testing.T) {
	minus := float32(math.Copysign(0, -1))
	for _, tier := range cpu.Tiers() {
		restore, _ := cpu.Force(tier)
		for n := 1; n < 50; n++ {
			x := make([]float32, n)
			for i := range x {
				x[i] = minus
			}
			if !math.Signbit(float64(Max(x))) {
				t.Errorf("%s: the maximum of %d times -0 is +0", tier, n)
			}
			x[n-1] = 0
			if math.Signbit(float64(Max(x))) || n > 1 && !math.Signbit(float64(Min(x))) {
				t.Errorf("%s: of %d zeros, the last positive, maximum %v, minimum %v", tier, n, Max(x), Min(x))
			}
		}
		restore()
	}
}
