package qdot

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestUnpack compares the form of panels of any bits, scales that are subnormal, infinite or no numbers included, with
// what the format's definition says.
func TestUnpack(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	inTiers(t, func(t *testing.T) {
		for _, f := range formats {
			k := 8 * f.Block
			size := k / f.Block * f.Bytes
			rows := make([]byte, Rows*size)
			for i := range rows {
				rows[i] = byte(r.Uint32())
			}
			if f.odd == 1 {
				for i := range Rows * 8 {
					rows[i*f.Bytes] = byte([]int{0, 1, 2, 3, 127, 253, 254, 255}[i%8])
				}
			}
			panel := make([]byte, f.PanelSize(k))
			f.Pack(panel, rows, Rows, k, size)
			form := NewForm(k)
			for i := range form.Bytes {
				form.Bytes[i] = guard
			}
			for _, floats := range [][]float32{form.S, form.M} {
				for i := range floats {
					floats[i] = guard
				}
			}
			f.Unpack(form, 1, panel, k)
			checkForm(t, f, form, rows, k)
		}
	})
}

// checkForm holds panel 1 of the form to its rows, and what stands before and behind it to the guards.
func checkForm(t *testing.T, f *Format, form *Form, rows []byte, k int) {
	q, s, m := make([]int8, f.Block), make([]float32, 16), make([]float32, 16)
	n := k / f.each * Rows
	for row := range Rows {
		for b := range k / f.Block {
			f.expand(q, s, m, rows[(row*k/f.Block+b)*f.Bytes:][:f.Bytes])
			for j, v := range q {
				at := b*f.Block + j
				got := form.Bytes[k*Rows+at/4*64+row*4+at%4]
				if f.seconds() > f.offsets { // the factor is apart
					factor := math.Float32bits(form.M[n*f.seconds()+at/16*Rows+row])
					if factor>>16 != factor&0xffff {
						t.Fatalf("%s: factor %d of row %d is %08x, want the same twice", f.Name, at/16, row, factor)
					}
					got = uint8(int(got-128)*int(int16(factor))) + 128
				}
				if got != uint8(v)+128 {
					t.Fatalf("%s: weight %d of row %d is %d, want %d", f.Name, at, row, int(got)-128, v)
				}
			}
			for i := range f.Block / f.each {
				at := n + (b*f.Block/f.each+i)*Rows + row
				if !same(form.S[at], s[i]) {
					t.Fatalf("%s: scale %d of row %d is %g, want %g", f.Name, i, row, form.S[at], s[i])
				}
			}
			for i := range f.Block / f.each * f.offsets {
				at := (n+b*f.Block/f.each*Rows)*f.offsets + i*Rows + row
				if !same(form.M[at], m[i]) {
					t.Fatalf("%s: offset %d of row %d is %g, want %g", f.Name, i, row, form.M[at], m[i])
				}
			}
		}
	}
	guards := form.Bytes[:k*Rows]
	if !bytes.Equal(guards, bytes.Repeat([]byte{guard}, len(guards))) {
		t.Fatalf("%s: bytes of panel 0 were written", f.Name)
	}
	n *= f.seconds()
	for _, floats := range [][]float32{form.S[:k/f.each*Rows], form.S[2*k/f.each*Rows:], form.M[:n], form.M[2*n:]} {
		if !slices.Equal(floats, slices.Repeat([]float32{guard}, len(floats))) {
			t.Fatalf("%s: scales or offsets were written beside panel 1", f.Name)
		}
	}
}

// TestLongRows multiplies and unpacks rows that take more than one call of the assembly.
func TestLongRows(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for _, f := range []*Format{&q8_0, &q4_1, &q6_k, &q2_k} {
		const k = unpreempted + 512
		const panels = 2
		size := k / f.Block * f.Bytes
		rows := randomRows(r, f, panels*Rows, k)
		packed := make([]byte, panels*f.PanelSize(k))
		for p := range panels {
			f.Pack(packed[p*f.PanelSize(k):], rows[p*Rows*size:], Rows, k, size)
		}
		x := make([]uint32, ActivationWords(k))
		Quantize(x, randomX(r, k))
		inTiers(t, func(t *testing.T) {
			c := make([]float32, panels*Rows)
			f.Vec(c, Rows, packed, f.PanelSize(k), panels, 1, x, k)
			for i := 0; i < len(c); i += 5 {
				if want := product(f, rows[i*size:][:size], x, k); !same(c[i], want) {
					t.Fatalf("%s: %g at %d, want %g", f.Name, c[i], i, want)
				}
			}
			form := NewForm(k)
			for _, p := range [][]float32{form.S, form.M} {
				for i := range p {
					p[i] = guard
				}
			}
			for i := range form.Bytes {
				form.Bytes[i] = guard
			}
			f.Unpack(form, 1, packed, k)
			checkForm(t, f, form, rows, k)
		})
	}
}

// BenchmarkUnpack unpacks panels that are in the second cache.
func BenchmarkUnpack(b *testing.B) {
	benchInTiers(b, func(b *testing.B, f *Format) {
		const k = 2048
		panel := make([]byte, f.PanelSize(k))
		r := rand.New(rand.NewPCG(15, 16))
		rows := randomRows(r, f, Rows, k)
		f.Pack(panel, rows, Rows, k, len(rows)/Rows)
		form := NewForm(k)
		b.SetBytes(int64(len(panel)))
		for b.Loop() {
			f.Unpack(form, 0, panel, k)
		}
	})
}

// BenchmarkVecCached multiplies four panels that are in the second cache: what Vec could reach with faster memory.
func BenchmarkVecCached(b *testing.B) {
	benchInTiers(b, func(b *testing.B, f *Format) {
		const k = 2048
		size := f.PanelSize(k)
		packed := make([]byte, 4*size)
		r := rand.New(rand.NewPCG(17, 18))
		rows := randomRows(r, f, Rows, k)
		for p := range 4 {
			f.Pack(packed[p*size:], rows, Rows, k, len(rows)/Rows)
		}
		x := make([]uint32, ActivationWords(k))
		Quantize(x, randomX(r, k))
		c := make([]float32, 4*Rows)
		b.SetBytes(int64(len(packed)))
		for b.Loop() {
			f.Vec(c, Rows, packed, size, 4, 1, x, k)
		}
	})
}
