package rng

import (
	"math"
	"math/bits"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The vectors are those of philox4x32 with 10 rounds in kat_vectors of the
// Random123 distribution, by the authors of the paper.
func TestBlockKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		seed, stream, index uint64
		want                [4]uint32
	}{
		{0, 0, 0, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{
			math.MaxUint64, math.MaxUint64, math.MaxUint64,
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		{
			0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88,
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := Block(c.seed, c.stream, c.index); got != c.want {
			t.Errorf("Block(%#x, %#x, %#x) = %#x, want %#x", c.seed, c.stream, c.index, got, c.want)
		}
	}
}

// The values were printed by this package when its tests first passed: a
// change of any bit changes every seeded experiment.
func TestGoldenValues(t *testing.T) {
	var got golden
	for i := range uint64(5) {
		got.Uint64 = append(got.Uint64, Uint64(1, 2, i))
		got.Float32 = append(got.Float32, math.Float32bits(Float32(1, 2, i)))
		got.Float64 = append(got.Float64, math.Float64bits(Float64(1, 2, i)))
		got.Normal = append(got.Normal, math.Float64bits(Normal(1, 2, i)))
		got.Normal32 = append(got.Normal32, math.Float32bits(normal32(1, 2, i)))
		got.IntN = append(got.IntN, IntN(1, 2, i, 1000))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("values changed (-want +got):\n%s\ngot %#v", d, got)
	}
}

type golden struct {
	Uint64, Float64, Normal []uint64
	Float32, Normal32       []uint32
	IntN                    []int
}

var want = golden{
	Uint64: []uint64{
		0x8cedc5d3e73404cf, 0x0a0afddd3f071736, 0xdb04b052b7b4c173, 0x0e0b3cf344541f91, 0x5a8567b393ef3e55,
	},
	Float64: []uint64{
		0x3fe19db8ba7ce680, 0x3fa415fbba7e0e20, 0x3feb60960a56f698, 0x3fac1679e688a830, 0x3fd6a159ece4fbce,
	},
	Normal: []uint64{
		0x3ff0f42691aa2289, 0x3fd1100d6b43fd74, 0x3fe0d2f5f8138958, 0x3fc8292ad3d6a1f8, 0xbff70eca688b3e31,
	},
	Float32:  []uint32{0x3f673404, 0x3f0cedc5, 0x3e7c1c5c, 0x3d20afd0, 0x3f37b4c1},
	Normal32: []uint32{0xbedb93e6, 0xbe103a07, 0x3fcfd47e, 0x3ed12a88, 0x3f00621a},
	IntN:     []int{550, 39, 855, 54, 353},
}

func TestUniformValuesAreCutFromBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, stream := rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "stream")
		index := rapid.Uint64().Draw(t, "index")
		if f, w := Float32(seed, stream, index), Block(seed, stream, index/4)[index%4]; uint32(f*(1<<24)) != w>>8 {
			t.Errorf("Float32 is %v, its word %#x", f, w)
		}
		b := Block(seed, stream, index/2)
		u := uint64(b[index%2*2]) | uint64(b[index%2*2+1])<<32
		if got := Uint64(seed, stream, index); got != u {
			t.Errorf("Uint64 is %#x, its half block %#x", got, u)
		}
		if f := Float64(seed, stream, index); uint64(f*(1<<53)) != u>>11 {
			t.Errorf("Float64 is %v, its bits %#x", f, u)
		}
	})
}

func TestFillEqualsSingleCalls(t *testing.T) {
	const guard = 77
	for length := range 20 {
		for _, index := range []uint64{0, 1, 2, 3, 7, math.MaxUint64 - 6} {
			uniform, normal := make([]float32, length+2), make([]float32, length+2)
			uniform[0], uniform[length+1], normal[0], normal[length+1] = guard, guard, guard, guard
			FillFloat32(uniform[1:length+1], 5, 6, index)
			FillNormal32(normal[1:length+1], 5, 6, index)
			for i := range length {
				at := index + uint64(i)
				if got, want := uniform[i+1], Float32(5, 6, at); got != want {
					t.Errorf("length %d: uniform value %d is %v, want %v", length, at, got, want)
				}
				if got, want := normal[i+1], normal32(5, 6, at); got != want {
					t.Errorf("length %d: normal value %d is %v, want %v", length, at, got, want)
				}
			}
			if uniform[0] != guard || uniform[length+1] != guard || normal[0] != guard || normal[length+1] != guard {
				t.Errorf("length %d, index %d: wrote outside dst", length, index)
			}
		}
	}
}

// moments returns mean, variance, skewness and kurtosis of n values.
func moments(n int, value func(i uint64) float64) (m [4]float64) {
	for i := range uint64(n) {
		m[0] += value(i) / float64(n)
	}
	for i := range uint64(n) {
		d := value(i) - m[0]
		m[1] += d * d / float64(n)
		m[2] += d * d * d / float64(n)
		m[3] += d * d * d * d / float64(n)
	}
	m[2] /= math.Pow(m[1], 1.5)
	m[3] /= m[1] * m[1]
	return m
}

func TestMoments(t *testing.T) {
	const n = 400_000 // standard errors: below 0.0016, 0.0023, 0.004 and 0.008
	uniform, normal := [4]float64{0.5, 1. / 12, 0, 1.8}, [4]float64{0, 1, 0, 3}
	for name, c := range map[string]struct {
		want  [4]float64
		value func(i uint64) float64
	}{
		"Float32":  {uniform, func(i uint64) float64 { return float64(Float32(7, 1, i)) }},
		"Float64":  {uniform, func(i uint64) float64 { return Float64(7, 2, i) }},
		"Normal":   {normal, func(i uint64) float64 { return Normal(7, 3, i) }},
		"Normal32": {normal, func(i uint64) float64 { return float64(normal32(7, 4, i)) }},
		"seeds":    {uniform, func(i uint64) float64 { return Float64(i, 7, 0) }},
		"streams":  {uniform, func(i uint64) float64 { return Float64(7, i, 0) }},
		"product":  {[4]float64{0, 1, 0, 9}, func(i uint64) float64 { return Normal(7, 5, 2*i) * Normal(7, 5, 2*i+1) }},
	} {
		got := moments(n, c.value)
		for k, tol := range [4]float64{0.006, 0.01, 0.02, 0.04} {
			if c.want[3] == 9 {
				tol *= 8 // heavy tails
			}
			if math.Abs(got[k]-c.want[k]) > tol {
				t.Errorf("%s: moments %v, want %v", name, got, c.want)
			}
		}
	}
}

// chiSquare returns the statistic for equally likely bins.
func chiSquare(n, bins int, bin func(i uint64) int) float64 {
	count := make([]float64, bins)
	for i := range uint64(n) {
		count[bin(i)]++
	}
	expect := float64(n) / float64(bins)
	sum := 0.0
	for _, c := range count {
		sum += (c - expect) * (c - expect) / expect
	}
	return sum
}

func TestChiSquare(t *testing.T) {
	const n = 200_000
	cdf := func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }
	for name, c := range map[string]struct {
		bins int
		bin  func(i uint64) int
	}{
		"Float32":         {256, func(i uint64) int { return int(Float32(3, 1, i) * 256) }},
		"Float64":         {256, func(i uint64) int { return int(Float64(3, 2, i) * 256) }},
		"low bits":        {256, func(i uint64) int { return int(Uint64(3, 3, i) & 255) }},
		"pairs":           {256, func(i uint64) int { return int(Uint64(3, 4, i)&15 | Uint64(3, 4, i+1)&15<<4) }},
		"streams in step": {256, func(i uint64) int { return int(Uint64(3, i, 9)&15 | Uint64(3, i+1, 9)&15<<4) }},
		"Normal":          {100, func(i uint64) int { return int(cdf(Normal(3, 5, i)) * 100) }},
		"Normal32":        {100, func(i uint64) int { return int(cdf(float64(normal32(3, 6, i))) * 100) }},
		"IntN":            {257, func(i uint64) int { return IntN(3, 7, i, 257) }},
	} {
		// The statistic has mean bins-1 and variance 2(bins-1).
		free := float64(c.bins - 1)
		if got := chiSquare(n, c.bins, c.bin); math.Abs(got-free) > 4*math.Sqrt(2*free) {
			t.Errorf("%s: chi-square %.1f with %v degrees of freedom", name, got, free)
		}
	}
}

func TestIntN(t *testing.T) {
	for i := range uint64(50) {
		if got := IntN(1, 1, i, 1); got != 0 {
			t.Errorf("IntN of 1 is %d", got)
		}
	}
	// With n = 3·2⁶¹ a quarter of all draws is rejected; without rejection one
	// remainder in three would be less likely than the others, 2:3:3.
	const n = 3 << (bits.UintSize - 3)
	if got := chiSquare(30_000, 3, func(i uint64) int { return IntN(1, 2, i, n) / (n / 3) }); got > 14 {
		t.Errorf("IntN(%d): chi-square of thirds %.1f with 2 degrees of freedom", n, got)
	}
	if got := chiSquare(30_000, 3, func(i uint64) int { return IntN(1, 2, i, n) % 3 }); got > 14 {
		t.Errorf("IntN(%d): chi-square of remainders %.1f with 2 degrees of freedom", n, got)
	}
	for _, n := range []int{0, -1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("IntN accepts n = %d", n)
				}
			}()
			IntN(1, 2, 3, n)
		}()
	}
}

func BenchmarkFillFloat32(b *testing.B) {
	dst := make([]float32, 4096)
	b.SetBytes(int64(len(dst) * 4))
	for b.Loop() {
		FillFloat32(dst, 1, 2, 0)
	}
}

func BenchmarkFillNormal32(b *testing.B) {
	dst := make([]float32, 4096)
	b.SetBytes(int64(len(dst) * 4))
	for b.Loop() {
		FillNormal32(dst, 1, 2, 0)
	}
}

// normal32 is a value of FillNormal32 by itself.
func normal32(seed, stream, index uint64) float32 {
	b := Block(seed, stream, index/4)
	return float32(pair32(&b, index/2%2)[index%2])
}
