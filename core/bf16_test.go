package core

import (
	"math"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
)

// TestBF16IsNearTheProduct compares products with a packed weight of bf16 with those in f64 of the same numbers: each
// activation errs by at most 2⁻⁹ of it, and each sum by 2⁻²⁴.
func TestBF16IsNearTheProduct(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	for _, rows := range []int{1, 9, 130} {
		const out, in = 48, 1024
		w, x := m.Tensor(dtype.BF16, "out=%d in=%d", out, in), m.Tensor(dtype.F32, "row=%d in=%d", rows, in)
		y := x.Dot(m.Env.Pack(w, in, nil), "in").Float32s()
		exact := elementsOf[float64](x.Cast(dtype.F64).Dot(w.Cast(dtype.F64), "in").Copy())
		sizes := elementsOf[float64](x.Cast(dtype.F64).Abs().Dot(w.Cast(dtype.F64).Abs(), "in").Copy())
		square, errors := 0.0, 0.0
		for i, v := range y {
			off := math.Abs(float64(v) - exact[i])
			if bound := sizes[i] * (0x1p-9 + in*0x1p-24); off > bound {
				t.Fatalf("%d rows: element %d is %g, exactly %g: it is off by %g, at most %g is right", rows, i, v,
					exact[i], off, bound)
			}
			square, errors = square+exact[i]*exact[i], errors+off*off
		}
		if rel := math.Sqrt(errors / square); !(rel < 0x1p-9) || rel < 0x1p-13 {
			t.Errorf("%d rows: products are off by %.2g of them, which rounding is not", rows, rel)
		} else {
			t.Logf("%d rows: off by %.2g", rows, rel)
		}
	}
}

// TestBF16KeepsItsBytes: what is packed is unpacked as it was, whatever the bits stand for, and gradients flow through
// the numbers that they are.
func TestBF16KeepsItsBytes(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	for _, in := range []int{32, 33} {
		w := m.Env.Tensor(dtype.BF16, axisList("out", "in"), 1<<16/32, in)
		bits := elementsOf[uint16](w)
		for i := range bits {
			bits[i] = uint16(i)
		}
		packed := m.Env.Pack(w, in, nil)
		sameBits(t, "copy", packed.Copy(), w)
	}
	w, x := m.Tensor(dtype.BF16, "out=20 in=32"), m.Tensor(dtype.F32, "row=5 in=32")
	gy := m.Tensor(dtype.F32, "row=5 out=20")
	sameBits(t, "gradient", back(gy, m.Env.Pack(w, 32, nil), axisList("out")),
		gy.Dot(w.Cast(dtype.F32), "out"))
	sameBits(t, "what is not packed", x.Cast(dtype.BF16).Dot(w, "in"),
		x.Cast(dtype.BF16).Cast(dtype.F32).Dot(w.Cast(dtype.F32), "in").Cast(dtype.BF16))
}

// TestBF16Looks insists that products with long rows look often enough at whether to stop, few rows as many.
func TestBF16Looks(t *testing.T) {
	defer func() { paused = nil }()
	m := &Maker{Env: NewEnv(0, 1)}
	for _, c := range []struct{ rows, work int }{{1, bf16Work}, {fewRows, bf16Work},
		{fewRows + 1, bf16Rows * bf16Cols * bf16Depth}} {
		const out, in = 64, 1 << 17
		w := m.Env.Pack(m.Env.Tensor(dtype.BF16, axisList("out", "in"), out, in), in, nil)
		x := m.Tensor(dtype.F32, "row=%d in=%d", c.rows, in)
		looks := 0
		paused = func() { looks++ }
		x.Dot(w, "in")
		if paused = nil; looks < c.rows*out*in/c.work {
			t.Errorf("%d rows: %d looks in %d multiplications", c.rows, looks, c.rows*out*in)
		}
	}
}
