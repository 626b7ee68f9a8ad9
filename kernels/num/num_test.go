package num

import (
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/google/go-cmp/cmp"
)

// values returns n reproducible values between -4 and 4.
func values[T Float](n int, seed uint64) []T {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]T, n)
	for i := range x {
		x[i] = T(r.Float64()*8 - 4)
	}
	return x
}

const (
	margin = 17
	guard  = 12345
)

// padded is an output between guard values.
type padded[T Float] struct{ all, out []T }

// guarded runs f on an output of n elements, with capacity and guard values
// beyond its end.
func guarded[T Float](n int, f func(y []T)) padded[T] {
	all := make([]T, margin+n+margin)
	for i := range all {
		all[i] = guard
	}
	out := all[margin : margin+n]
	f(out)
	return padded[T]{all, out}
}

func checkGuard[T Float](t *testing.T, name string, p padded[T]) {
	t.Helper()
	for i, v := range p.all {
		if (i < margin || i >= margin+len(p.out)) && v != guard {
			t.Fatalf("%s of %d elements wrote at %d", name, len(p.out), i-margin)
		}
	}
}

// laneSum is the definition of every sum, written out.
func laneSum[T Float](x []T) T {
	var l [16]T
	for i, v := range x {
		l[i%16] += v
	}
	s8 := func(j int) T { return l[j] + l[j+8] }
	s4 := func(j int) T { return s8(j) + s8(j+4) }
	return (s4(0) + s4(2)) + (s4(1) + s4(3))
}

// laneDot is the definition of Dot. Its products are rounded once with the sum.
func laneDot[T Float](x, y []T) T {
	var l [16]T
	for i, v := range x {
		l[i%16] = FMA(v, y[i], l[i%16])
	}
	return laneSum(l[:])
}

func TestReductions(t *testing.T) {
	t.Run("float32", testReductions[float32])
	t.Run("float64", testReductions[float64])
}

func testReductions[T Float](t *testing.T) {
	for n := range 200 {
		x, y := values[T](n, 1), values[T](n+3, 2)
		lo, hi := T(math.Inf(1)), T(math.Inf(-1))
		for i := range x {
			if x[i] < lo {
				lo = x[i]
			}
			if x[i] > hi {
				hi = x[i]
			}
		}
		if got, want := Sum(x), laneSum(x); got != want {
			t.Errorf("sum of %d values is %v, want %v", n, got, want)
		}
		if got, want := Dot(x, y), laneDot(x, y); got != want {
			t.Errorf("dot of %d values is %v, want %v", n, got, want)
		}
		if Min(x) != lo || Max(x) != hi {
			t.Errorf("%d values are between %v and %v, want %v and %v", n, Min(x), Max(x), lo, hi)
		}
		if n == 0 {
			continue
		}
		x[n-1] = T(math.NaN())
		for name, f := range map[string]func([]T) T{"Sum": Sum[T], "Max": Max[T], "Min": Min[T]} {
			if v := f(x); v == v {
				t.Errorf("%s of %d values and NaN is %v", name, n, v)
			}
		}
	}
	zeros := []T{0, T(math.Copysign(0, -1)), 0}
	if math.Signbit(float64(Max(zeros))) || !math.Signbit(float64(Min(zeros))) {
		t.Errorf("max and min of zeros are %v and %v", Max(zeros), Min(zeros))
	}
}

func TestLongRuns(t *testing.T) { // more than one call of assembly
	n := 1<<17 + 37
	x, y := values[float32](n, 1), values[float32](n, 2)
	x[n-20], x[5] = 9, -9
	var parts []float32
	for at := 0; at < n; at += Block {
		part := x[at:min(n, at+Block)]
		if len(part) == Block {
			quarters := make([]float32, Block/4)
			for i := range quarters {
				quarters[i] = (part[i] + part[i+Block/4]) + (part[i+Block/2] + part[i+3*Block/4])
			}
			part = quarters
		}
		parts = append(parts, laneSum(part))
	}
	for _, tier := range cpu.Tiers() {
		restore, _ := cpu.Force(tier)
		if got, want := Sum(x), laneSum(parts); got != want {
			t.Errorf("tier %s: sum is %v, want %v", tier, got, want)
		}
		restore()
	}
	if got, want := Sum(x), laneSum(parts); got != want {
		t.Errorf("sum is %v, want %v", got, want)
	}
	if got, want := Dot(x, y), laneDot(x, y); got != want {
		t.Errorf("dot is %v, want %v", got, want)
	}
	if Max(x) != 9 || Min(x) != -9 {
		t.Errorf("between %v and %v, want -9 and 9", Min(x), Max(x))
	}
	out := make([]float32, n)
	if got := ExpSum(out, x, 1); got != laneSum(out) || out[n-20] != exp32(8) || out[5] != exp32(-10) {
		t.Errorf("sum of exp is %v, want %v", got, laneSum(out))
	}
}

func TestSoftmaxRow(t *testing.T) {
	t.Run("float32", testSoftmaxRow[float32])
	t.Run("float64", testSoftmaxRow[float64])
}

func testSoftmaxRow[T Float](t *testing.T) {
	inf := T(math.Inf(1))
	for n := range 71 {
		x := values[T](n, 3)
		p := guarded(n, func(y []T) { SoftmaxRow(y, x) })
		checkGuard(t, "SoftmaxRow", p)
		total := 0.0
		for _, v := range x {
			total += math.Exp(float64(v))
		}
		for i, v := range x {
			if want := math.Exp(float64(v)) / total; math.Abs(float64(p.out[i])-want) > 2e-6*want {
				t.Errorf("softmax of %d values: element %d is %v, want %v", n, i, p.out[i], want)
			}
		}
		inPlace := append([]T{}, x...)
		SoftmaxRow(inPlace, inPlace)
		for i, v := range p.out {
			if inPlace[i] != v {
				t.Errorf("softmax of %d values in place: element %d is %v, want %v", n, i, inPlace[i], v)
			}
		}
	}
	for _, c := range []struct{ x, want []T }{
		{[]T{-inf, 1, -inf, 1}, []T{0, 0.5, 0, 0.5}},
		{[]T{1e30, -1e30}, []T{1, 0}},
		{[]T{-inf}, []T{T(math.NaN())}},
		{[]T{-inf, -inf}, []T{T(math.NaN()), T(math.NaN())}},
		{[]T{inf, 1}, []T{T(math.NaN()), T(math.NaN())}},
	} {
		got := make([]T, len(c.x))
		SoftmaxRow(got, c.x)
		for i, w := range c.want {
			if got[i] != w && (got[i] == got[i] || w == w) {
				t.Errorf("softmax of %v is %v, want %v", c.x, got, c.want)
			}
		}
	}
}

func TestRMSNormRow(t *testing.T) {
	t.Run("float32", testRMSNormRow[float32])
	t.Run("float64", testRMSNormRow[float64])
}

func testRMSNormRow[T Float](t *testing.T) {
	for n := 1; n < 71; n++ {
		x, w := values[T](n, 4), values[T](n, 5)
		mean := 0.0
		for _, v := range x {
			mean += float64(v) * float64(v) / float64(n)
		}
		want := 1 / math.Sqrt(mean+0.125)
		var r T
		p := guarded(n, func(y []T) { r = RMSNormRow(y, x, w, 0.125) })
		checkGuard(t, "RMSNormRow", p)
		if math.Abs(float64(r)-want) > 1e-6*want {
			t.Errorf("1/rms of %d values is %v, want %v", n, r, want)
		}
		plain := make([]T, n)
		RMSNormRow(plain, x, nil, 0.125)
		for i, v := range x {
			if one := T(v * r); plain[i] != one || p.out[i] != T(one*w[i]) {
				t.Errorf("norm of %d values: element %d is %v and %v, want %v and %v",
					n, i, plain[i], p.out[i], one, T(one*w[i]))
			}
		}
	}
}

func TestRope(t *testing.T) {
	t.Run("float32", testRope[float32])
	t.Run("float64", testRope[float64])
}

func testRope[T Float](t *testing.T) {
	for n := range 71 {
		for _, pairs := range []int{0, n / 4, n / 2} {
			x, cos, sin := values[T](n, 6), make([]T, pairs), make([]T, pairs)
			for i, a := range values[T](pairs, 7) {
				cos[i], sin[i] = T(math.Cos(float64(a))), T(math.Sin(float64(a)))
			}
			back := make([]T, pairs)
			for i, s := range sin {
				back[i] = -s
			}
			for _, c := range []struct {
				name string
				f    func(y, x, cos, sin []T)
				pair func(i int) (int, int)
			}{
				{"RopeInterleaved", RopeInterleaved[T], func(i int) (int, int) { return 2 * i, 2*i + 1 }},
				{"RopeHalf", RopeHalf[T], func(i int) (int, int) { return i, i + pairs }},
			} {
				want := append([]T{}, x...)
				for i := range pairs {
					p, q := c.pair(i)
					want[p], want[q] = T(x[p]*cos[i])-T(x[q]*sin[i]), T(x[p]*sin[i])+T(x[q]*cos[i])
				}
				got := guarded(n, func(y []T) { c.f(y, x, cos, sin) })
				checkGuard(t, c.name, got)
				inPlace := append([]T{}, x...)
				c.f(inPlace, inPlace, cos, sin)
				again := append([]T{}, x...)
				c.f(again, got.out, cos, back)
				for i := range x {
					if got.out[i] != want[i] || inPlace[i] != want[i] || math.Abs(float64(again[i]-x[i])) > 1e-6 {
						t.Fatalf("%s, %d values, %d pairs: element %d is %v, in place %v, want %v; back %v from %v",
							c.name, n, pairs, i, got.out[i], inPlace[i], want[i], again[i], x[i])
					}
				}
			}
		}
	}
}

// TestGoldenBits pins the bits of all results, which must not change with the
// architecture. The sums were printed by this test on amd64.
func TestGoldenBits(t *testing.T) {
	got := map[string][2]uint32{}
	for _, f := range elementwise {
		got[f.name] = [2]uint32{checksum(f.f32), checksum(f.f64)}
	}
	got["SoftmaxRow"] = [2]uint32{checksum(SoftmaxRow[float32]), checksum(SoftmaxRow[float64])}
	got["RMSNormRow"] = [2]uint32{checksum(rmsNorm[float32]), checksum(rmsNorm[float64])}
	got["LayerNormRow"] = [2]uint32{checksum(layerNorm[float32]), checksum(layerNorm[float64])}
	got["GELU"] = [2]uint32{checksum(GELU[float32]), checksum(GELU[float64])}
	got["GELUTanh"] = [2]uint32{checksum(GELUTanh[float32]), checksum(GELUTanh[float64])}
	got["RopeHalf"] = [2]uint32{checksum(rope[float32]), checksum(rope[float64])}
	if d := cmp.Diff(golden, got); d != "" {
		t.Errorf("bits changed (-want +got):\n%s", d)
	}
}

var golden = map[string][2]uint32{
	"Exp":          {0xcc0a8cc4, 0x6a49f66a},
	"Log":          {0xf0ca946f, 0x8ebb08e0},
	"Tanh":         {0xf52b5889, 0x2eb53f18},
	"Sigmoid":      {0x92b08ce3, 0x05e9a597},
	"Erf":          {0xe22cef5f, 0xcec17180},
	"SiLU":         {0x07b9bcef, 0x73244898},
	"SoftmaxRow":   {0x66b1783d, 0x77bcc492},
	"RMSNormRow":   {0xda6a87ba, 0x4e7e1b42},
	"LayerNormRow": {0x1214475c, 0x81239ede},
	"GELU":         {0xbfde766d, 0xf3b9ab1d},
	"GELUTanh":     {0xe477849b, 0x32bd785c},
	"RopeHalf":     {0xeb3595c2, 0xbf953df9},
}

func rmsNorm[T Float](y, x []T)   { RMSNormRow(y, x, x, 1e-6) }
func layerNorm[T Float](y, x []T) { LayerNormRow(y, x, x, x, 1e-6) }
func rope[T Float](y, x []T)      { RopeHalf(y, x, x[:len(x)/2], x[len(x)/2:]) }

// checksum adds up the bits that f gives for 10,000 values.
func checksum[T Float](f func(y, x []T)) uint32 {
	x := values[T](10_000, 9)
	y := make([]T, len(x))
	f(y, x)
	sum := crc32.NewIEEE()
	for _, v := range y {
		if v != v {
			v = T(math.Inf(1)) // the bits of a NaN are unspecified
		}
		fmt.Fprintf(sum, "%x ", math.Float64bits(float64(v)))
	}
	return sum.Sum32()
}

// BenchmarkKernels runs every kernel in every tier on 4096 elements, which stay
// in the first level cache.
func BenchmarkKernels(b *testing.B) {
	b.Run("float32", benchmarkKernels[float32])
	b.Run("float64", benchmarkKernels[float64])
}

func benchmarkKernels[T Float](b *testing.B) {
	const n = 4096
	in := [4][]T{values[T](n, 1), values[T](n, 2), values[T](n, 3), {2}}
	out := make([]T, n)
	for _, k := range kernels[T]() {
		for _, tier := range cpu.Tiers() {
			b.Run(k.name+"/"+tier.String(), func(b *testing.B) {
				restore, _ := cpu.Force(tier)
				defer restore()
				b.ReportAllocs()
				for b.Loop() {
					k.f(out, in)
				}
				b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gelem/s")
			})
		}
	}
}
