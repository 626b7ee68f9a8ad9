package half

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/cpu"
)

// eachTier runs f in every tier of this machine.
func eachTier(t *testing.T, f func(t *testing.T)) {
	for _, tier := range cpu.Tiers() {
		t.Run(tier.String(), func(t *testing.T) {
			restore, _ := cpu.Force(tier)
			defer restore()
			f(t)
		})
	}
}

func TestEveryHalf(t *testing.T) {
	x := make([]uint16, 1<<16)
	for i := range x {
		x[i] = uint16(i)
	}
	y := make([]float32, len(x))
	eachTier(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			f    func([]float32, []uint16)
			one  func(uint16) float32
		}{{"FromF16", FromF16, dtype.F16ToF32}, {"FromBF16", FromBF16, dtype.BF16ToF32}} {
			c.f(y, x)
			for i, h := range x {
				if got, want := math.Float32bits(y[i]), math.Float32bits(c.one(h)); got != want {
					t.Fatalf("%s(%#04x) = %#08x, want %#08x", c.name, h, got, want)
				}
			}
		}
	})
}

// TestNarrowing takes both sides and the middle of the gaps between neighbours
// of either format, and random bits.
func TestNarrowing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var x []float32
	for i := range 1 << 16 {
		for _, v := range []uint32{math.Float32bits(dtype.F16ToF32(uint16(i))), uint32(i) << 16} {
			for _, d := range []uint32{0, 1, 0xffffffff, 0x1000, 0xfff, 0x1001, 0x8000, 0x7fff, 0x8001} {
				x = append(x, math.Float32frombits(v+d))
			}
		}
		x = append(x, math.Float32frombits(r.Uint32()), float32(math.Ldexp(r.NormFloat64(), -r.IntN(30))))
	}
	for i := range 1 << 11 { // around the middles of subnormal f16
		m := float32(i)*0x1p-24 + 0x1p-25
		x = append(x, m, math.Nextafter32(m, 0), math.Nextafter32(m, 1))
	}
	y := make([]uint16, len(x))
	eachTier(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			f    func([]uint16, []float32)
			one  func(float32) uint16
		}{{"ToF16", ToF16, dtype.F32ToF16}, {"ToBF16", ToBF16, dtype.F32ToBF16}} {
			c.f(y, x)
			for i, v := range x {
				if want := c.one(v); y[i] != want {
					t.Fatalf("%s(%v, bits %#08x) = %#04x, want %#04x", c.name, v, math.Float32bits(v), y[i], want)
				}
			}
		}
	})
}

func TestLengths(t *testing.T) {
	const guard = 0x1234
	eachTier(t, func(t *testing.T) {
		for n := range 71 {
			if n == 70 {
				n = 1<<14 + 35 // more than one call of assembly
			}
			wide, narrow := make([]float32, n+1), make([]uint16, n+1)
			for i := range n {
				wide[i], narrow[i] = float32(i)+0.3, uint16(0x3c00+i)
			}
			y, z := make([]float32, n+2), make([]uint16, n+2)
			for name, f := range map[string]func(){
				"FromF16":  func() { FromF16(y, narrow[:n]) },
				"FromBF16": func() { FromBF16(y, narrow[:n]) },
				"ToF16":    func() { ToF16(z, wide[:n]) },
				"ToBF16":   func() { ToBF16(z, wide[:n]) },
			} {
				for i := range y {
					y[i], z[i] = guard, guard
				}
				f()
				if y[n] != guard || z[n] != guard {
					t.Errorf("%s of %d elements wrote behind the end", name, n)
				}
				if n > 0 && y[n-1] == guard && z[n-1] == guard {
					t.Errorf("%s of %d elements left the last one out", name, n)
				}
			}
		}
	})
}

func benchmark(b *testing.B, f func(wide []float32, narrow []uint16)) {
	wide, narrow := make([]float32, 4096), make([]uint16, 4096)
	for _, tier := range cpu.Tiers() {
		b.Run(tier.String(), func(b *testing.B) {
			restore, _ := cpu.Force(tier)
			defer restore()
			b.SetBytes(6 * 4096)
			for b.Loop() {
				f(wide, narrow)
			}
		})
	}
}

func BenchmarkFromF16(b *testing.B)  { benchmark(b, FromF16) }
func BenchmarkFromBF16(b *testing.B) { benchmark(b, FromBF16) }
func BenchmarkToF16(b *testing.B) {
	benchmark(b, func(wide []float32, narrow []uint16) { ToF16(narrow, wide) })
}
func BenchmarkToBF16(b *testing.B) {
	benchmark(b, func(wide []float32, narrow []uint16) { ToBF16(narrow, wide) })
}

func TestFromQ8(t *testing.T) {
	const guard = 12345
	r := rand.New(rand.NewPCG(3, 4))
	for _, tier := range cpu.Tiers() {
		restore, _ := cpu.Force(tier)
		for blocks := range 5 {
			x, y := make([]byte, blocks*q8Bytes), make([]float32, blocks*q8Len+1)
			for i := range x {
				x[i] = byte(r.Uint32())
			}
			for b := range blocks {
				binary.LittleEndian.PutUint16(x[b*q8Bytes:], uint16(r.IntN(0x7c00)|r.IntN(2)<<15))
			}
			y[blocks*q8Len] = guard
			FromQ8(y, x, 100)
			for i, v := range y[:blocks*q8Len] {
				block := x[i/q8Len*q8Bytes:]
				want := Value(binary.LittleEndian.Uint16(block)) * float32(int8(block[2+i%q8Len]))
				if math.Float32bits(v) != math.Float32bits(want) {
					t.Fatalf("%s: element %d of %d blocks is %v, want %v", tier, i, blocks, v, want)
				}
			}
			if y[blocks*q8Len] != guard {
				t.Fatalf("%s: wrote behind the end", tier)
			}
		}
		restore()
	}
}
