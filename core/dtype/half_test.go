package dtype

import (
	"math"
	"math/rand/v2"
	"testing"
)

// format describes a 16-bit float for the oracle, which works in float64 and shares no code with the
// conversions: p is the number of significand bits with the hidden one, bias the exponent bias.
type format struct {
	name     string
	p, bias  int
	toF32    func(uint16) float32
	fromF32  func(float32) uint16
	inf, nan uint16 // positive infinity, positive quiet NaN with empty payload
}

var formats = []format{
	{"f16", 11, 15, F16ToF32, F32ToF16, 0x7c00, 0x7e00},
	{"bf16", 8, 127, BF16ToF32, F32ToBF16, 0x7f80, 0x7fc0},
}

// value is the float64 value of the bits h, which are not NaN.
func (f format) value(h uint16) float64 {
	frac := int(h) & (1<<(f.p-1) - 1)
	exp := int(h&0x7fff) >> (f.p - 1)
	var v float64
	switch {
	case h&0x7fff == f.inf:
		v = math.Inf(1)
	case exp == 0:
		v = math.Ldexp(float64(frac), 1-f.bias-(f.p-1))
	default:
		v = math.Ldexp(float64(frac+1<<(f.p-1)), exp-f.bias-(f.p-1))
	}
	if h&0x8000 != 0 {
		v = -v
	}
	return v
}

// round is x rounded to the format, ties to even, as a float64.
func (f format) round(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) {
		return x
	}
	_, e := math.Frexp(x) // |x| in [2^(e-1), 2^e)
	ulp := max(e-f.p, 1-f.bias-(f.p-1))
	r := math.Copysign(math.Ldexp(math.RoundToEven(math.Ldexp(x, -ulp)), ulp), x)
	if math.Abs(r) > f.value(f.inf-1) {
		return math.Copysign(math.Inf(1), x)
	}
	return r
}

func (f format) isNaN(h uint16) bool { return h&0x7fff > f.inf }

// TestEveryValue checks all 65,536 bit patterns: the value, and the way back to the same bits.
func TestEveryValue(t *testing.T) {
	for _, f := range formats {
		for i := range 1 << 16 {
			h := uint16(i)
			got := f.toF32(h)
			if f.isNaN(h) {
				if !math.IsNaN(float64(got)) || math.Signbit(float64(got)) != (h&0x8000 != 0) {
					t.Fatalf("%s %#04x: got %v, want a NaN of the same sign", f.name, h, got)
				}
				if back, want := f.fromF32(got), h|f.nan&^f.inf; back != want {
					t.Fatalf("%s NaN %#04x: came back as %#04x, want the quiet %#04x", f.name, h, back, want)
				}
				continue
			}
			want := f.value(h)
			if math.Float64bits(float64(got)) != math.Float64bits(want) {
				t.Fatalf("%s %#04x: got %v, want %v", f.name, h, got, want)
			}
			if back := f.fromF32(got); back != h {
				t.Fatalf("%s %#04x: came back as %#04x", f.name, h, back)
			}
		}
	}
}

// TestEveryBoundary checks the two sides and the middle of every gap between neighbours, the last gap
// being the one below infinity. Rounding is monotone, so nothing is left between these points.
func TestEveryBoundary(t *testing.T) {
	for _, f := range formats {
		for h := range f.inf {
			low, high := f.value(h), f.value(h+1)
			if h+1 == f.inf {
				high = low + (low - f.value(h-1))
			}
			mid := float32((low + high) / 2)
			if float64(mid) != (low+high)/2 {
				t.Fatalf("%s %#04x: the middle of the gap above it is not an f32", f.name, h)
			}
			even := h + h&1
			for _, tt := range []struct {
				x    float32
				want uint16
			}{
				{mid, even},
				{math.Nextafter32(mid, 0), h},
				{math.Nextafter32(mid, math.MaxFloat32), h + 1},
			} {
				if got := f.fromF32(tt.x); got != tt.want {
					t.Fatalf("%s of %v: got %#04x, want %#04x", f.name, tt.x, got, tt.want)
				}
				if got := f.fromF32(-tt.x); got != tt.want|0x8000 {
					t.Fatalf("%s of %v: got %#04x, want %#04x", f.name, -tt.x, got, tt.want|0x8000)
				}
			}
		}
	}
}

func TestRoundingOracle(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, f := range formats {
		for range 1 << 20 {
			x := math.Float32frombits(rnd.Uint32())
			got := f.fromF32(x)
			if math.IsNaN(float64(x)) {
				if !f.isNaN(got) {
					t.Fatalf("%s of NaN %#08x: got %#04x, not a NaN", f.name, math.Float32bits(x), got)
				}
				continue
			}
			want := f.round(float64(x))
			if f.isNaN(got) || math.Float64bits(f.value(got)) != math.Float64bits(want) {
				t.Fatalf("%s of %v: got %#04x, want %v", f.name, x, got, want)
			}
		}
	}
}

func TestSpecialValues(t *testing.T) {
	signalling := math.Float32frombits(0x7f800001)
	tests := []struct {
		name      string
		x         float32
		f16, bf16 uint16
	}{
		{"zero", 0, 0, 0},
		{"minus zero", float32(math.Copysign(0, -1)), 0x8000, 0x8000},
		{"infinity", float32(math.Inf(1)), 0x7c00, 0x7f80},
		{"minus infinity", float32(math.Inf(-1)), 0xfc00, 0xff80},
		{"signalling NaN with only low payload bits", signalling, 0x7e00, 0x7fc0},
		{"largest f16", 65504, 0x7bff, 0x4780},
		{"just below the f16 overflow tie", 65519.996, 0x7bff, 0x4780},
		{"f16 overflow tie", 65520, 0x7c00, 0x4780},
		{"largest f32", math.MaxFloat32, 0x7c00, 0x7f80},
		{"smallest f32", math.SmallestNonzeroFloat32, 0, 0},
		{"half the smallest f16", 0x1p-25, 0, 0x3300},
		{"smallest f16", 0x1p-24, 1, 0x3380},
		{"one third", 1.0 / 3, 0x3555, 0x3eab},
	}
	for _, tt := range tests {
		if got := F32ToF16(tt.x); got != tt.f16 {
			t.Errorf("%s: f16 %#04x, want %#04x", tt.name, got, tt.f16)
		}
		if got := F32ToBF16(tt.x); got != tt.bf16 {
			t.Errorf("%s: bf16 %#04x, want %#04x", tt.name, got, tt.bf16)
		}
	}
}
