package qdot

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/kernels/gemm"
)

// guard is what stands behind every buffer, so that a write too far shows.
const guard = 0xA5

// inTiers runs the test in every tier of this machine.
func inTiers(t *testing.T, test func(t *testing.T)) {
	for _, tier := range cpu.Tiers() {
		t.Run(tier.String(), func(t *testing.T) {
			restore, _ := cpu.Force(tier)
			defer restore()
			test(t)
		})
	}
}

// randomRows is n rows of k weights with any bits but for scales, which are finite numbers of moderate size.
func randomRows(r *rand.Rand, f *Format, n, k int) []byte {
	b := make([]byte, n*k/f.Block*f.Bytes)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	for at := 0; at < len(b); at += f.Bytes {
		scales := []int{f.oddAt}
		if f.odd == 0 {
			scales = []int{0}
			if f.offsets > 0 {
				scales = []int{0, 2}
			}
			switch f.Name {
			case "q2_k":
				scales = []int{80, 82}
			case "q8_k": // a float32, by its upper half
				binary.LittleEndian.PutUint16(b[at+2:], uint16(0x3C00+r.IntN(0x200))|uint16(r.IntN(2))<<15)
				continue
			case "iq1_m": // the upper four bits of an f16
				b[at+55] = b[at+55]&15 | byte(2+r.IntN(2)+r.IntN(2)*8)<<4
				continue
			}
		}
		if f.odd == 1 { // an exponent, anything is a number
			b[at] = byte(118 + r.IntN(20))
			continue
		}
		for _, s := range scales {
			binary.LittleEndian.PutUint16(b[at+s:], uint16(0x2000+r.IntN(0x1400))|uint16(r.IntN(2))<<15)
		}
	}
	return b
}

// randomX is k activations; every few groups one is zero, tiny or has outliers.
func randomX(r *rand.Rand, k int) []float32 {
	x := make([]float32, k)
	for g := range k / Group {
		size := [...]float32{1, 1, 1, 1, 1, 1e-3, 1e4, 0, 1e-37}[r.IntN(9)]
		for j := range Group {
			x[g*Group+j] = float32(r.NormFloat64()) * size
		}
		x[g*Group+r.IntN(Group)] *= float32(1 + r.IntN(8))
	}
	return x
}

func sizesOf(f *Format) []int {
	if f.Block == 256 {
		return []int{256, 512, 1280}
	}
	return []int{f.Block, 2 * f.Block, 3 * f.Block, 7 * f.Block, 512, 1024 + f.Block}
}

func TestPanels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	inTiers(t, func(t *testing.T) {
		for _, f := range formats {
			for _, k := range sizesOf(f) {
				for _, n := range []int{1, 5, 15, 16} {
					stride := k/f.Block*f.Bytes + r.IntN(3)*4
					rows := randomRows(r, f, n+1, k)
					rows = append(rows, make([]byte, n*stride)...)
					panel := bytes.Repeat([]byte{guard}, f.PanelSize(k)+64)
					f.Pack(panel, rows[:(n-1)*stride+k/f.Block*f.Bytes], n, k, stride)
					row := make([]byte, k/f.Block*f.Bytes)
					for i := range Rows {
						want := make([]byte, len(row))
						if i < n {
							want = rows[i*stride:][:len(row)]
						}
						if f.Row(row, panel, i, k); !bytes.Equal(row, want) {
							t.Fatalf("%s: row %d of %d, %d weights, came back otherwise", f.Name, i, n, k)
						}
					}
					if !bytes.Equal(panel[f.PanelSize(k):], bytes.Repeat([]byte{guard}, 64)) {
						t.Fatalf("%s: a panel of %d weights was written beyond its end", f.Name, k)
					}
				}
			}
		}
	})
}

func TestQuantize(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	inTiers(t, func(t *testing.T) {
		for trial := range 300 {
			k := Group * (1 + r.IntN(9))
			x := randomX(r, k)
			if trial%4 == 0 {
				x[r.IntN(k)] = []float32{inf, -inf, nan, -nan, math.MaxFloat32, 0x1p-100, 0x1p-149}[r.IntN(7)]
			}
			got := slices.Repeat([]uint32{guard}, ActivationWords(k)+16)
			Quantize(got[:ActivationWords(k)], x)
			for g := range k / Group {
				var want [Record]uint32
				quantizeGroup(&want, (*[Group]float32)(x[g*Group:]))
				if !slices.Equal(got[g*Record:][:Record], want[:]) {
					t.Fatalf("group %v\ngot  %x\nwant %x", x[g*Group:][:Group], got[g*Record:][:Record], want)
				}
			}
			if !slices.Equal(got[ActivationWords(k):], slices.Repeat([]uint32{guard}, 16)) {
				t.Fatalf("%d activations were written beyond their end", k)
			}
		}
	})
}

// TestWidths expands blocks of any bits: what a format says of its integers is what the tiles of AVX2 rely on.
func TestWidths(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	var q [256]int8
	var s, m [16]float32
	for _, f := range formats {
		low, high := int8(0), int8(0)
		for range 1000 {
			f.expand(q[:f.Block], s[:], m[:], randomRows(r, f, 1, f.Block))
			low, high = min(low, slices.Min(q[:f.Block])), max(high, slices.Max(q[:f.Block]))
		}
		least := int8(-32)
		if f.offsets == 8 { // whose tiles take 6 bits without sign
			least = 0
		}
		if wide := low < least || int(high)-int(least) > 63; wide != f.wide {
			t.Errorf("%s: integers from %d to %d, but wide is %t", f.Name, low, high, f.wide)
		}
	}
}

// product is y as the package comment defines it.
func product(f *Format, row []byte, x []uint32, k int) float32 {
	y := float32(0)
	for b := range k / f.Block {
		q, s, m := make([]int8, f.Block), make([]float32, 16), make([]float32, 16)
		f.expand(q, s, m, row[b*f.Bytes:][:f.Bytes])
		half := float32(0)
		for from := 0; from < f.Block; from += f.each {
			// sums of q times the activations, and of these, over n weights of the block from place i on
			sums := func(i, n int) (sum, plain int32, d float32) {
				record := x[(b*f.Block+i)/Group*Record:][:Record]
				for j := i; j < i+n; j++ {
					at := (b*f.Block + j) % Group
					a := int32(int8(record[at/4] >> (at % 4 * 8)))
					sum, plain = sum+int32(q[j])*a, plain+a
				}
				return sum, plain, math.Float32frombits(record[wordScale])
			}
			scale := s[from/f.each]
			if f.each == Group {
				sum, _, d := sums(from, f.each)
				y += float32(float32(sum) * float32(scale*d))
			}
			if f.each < Group {
				if sum, _, d := sums(from, f.each); from%Group == 0 {
					half = float32(float32(sum) * scale)
				} else {
					y += float32((half + float32(float32(sum)*scale)) * d)
				}
			}
			for i := range f.offsets {
				n := f.each / f.offsets
				_, plain, d := sums(from+i*n, n)
				y += float32(m[from/f.each*f.offsets+i] * float32(d*float32(plain)))
			}
			total := float32(0)
			for i := from; i < from+f.each && f.each > Group; i += Group {
				sum, _, d := sums(i, Group)
				total += float32(float32(sum) * d)
			}
			if f.each > Group {
				y += float32(scale * total)
			}
		}
	}
	return y
}

func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func TestProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	inTiers(t, func(t *testing.T) {
		for _, f := range formats {
			t.Run(f.Name, func(t *testing.T) {
				for _, k := range sizesOf(f) {
					testProducts(t, r, f, k)
				}
			})
		}
	})
}

// testStrips compares Vec of strips of several panels with the products of all rows. Of the last strip's last panel
// some lie behind the end.
func testStrips(t *testing.T, r *rand.Rand, f *Format, k int, rows []byte, x []uint32, want []float32) {
	size, panel := k/f.Block*f.Bytes, f.PanelSize(k)
	for _, count := range []int{1, 2, 4, 5} {
		units := 1 + r.IntN(3)
		next := units*panel + 32*r.IntN(3)
		packed := make([]byte, (count-1)*next+units*panel)
		n := count*units*Rows - r.IntN(Rows)
		c := slices.Repeat([]float32{guard}, n+1)
		of := func(j int) int { return (3*j + j/len(want)) % len(want) } // the row of weights that is row j
		for p := range count * units {
			var own []byte
			for j := range Rows {
				own = append(own, rows[of(p*Rows+j)*size:][:size]...)
			}
			f.Pack(packed[p/units*next+p%units*panel:], own, Rows, k, size)
		}
		f.Vec(c[:n], units*Rows, packed, next, count, units, x, k)
		for j, v := range c {
			if j == n && v == guard || j < n && same(v, want[of(j)]) {
				continue
			}
			t.Fatalf("Vec of %d strips of %d panels, %d weights: %g at %d of %d", count, units, k, v, j, n)
		}
	}
}

// testProducts compares Vec and Tile, of all numbers of rows and panels, with the definition.
func testProducts(t *testing.T, r *rand.Rand, f *Format, k int) {
	const panels, most = 5, 18
	size := k / f.Block * f.Bytes
	rows := randomRows(r, f, panels*Rows, k)
	next := f.PanelSize(k) + 32*r.IntN(3)
	packed := make([]byte, panels*next)
	for p := range panels {
		f.Pack(packed[p*next:], rows[p*Rows*size:], Rows, k, size)
	}
	stride := ActivationWords(k) + r.IntN(3)
	x := make([]uint32, most*stride)
	want := make([][]float32, most)
	for i := range most {
		values := randomX(r, k)
		if i == 3 {
			values[r.IntN(k)] = float32(math.NaN())
		}
		Quantize(x[i*stride:][:ActivationWords(k)], values)
		for j := range panels * Rows {
			want[i] = append(want[i], product(f, rows[j*size:][:size], x[i*stride:], k))
		}
	}
	for count := range panels + 1 {
		c := slices.Repeat([]float32{guard}, panels*Rows+1)
		f.Vec(c, Rows, packed[:max(0, (count-1)*next+f.PanelSize(k))], next, count, 1, x, k)
		expect := append(slices.Clone(want[0][:count*Rows]), slices.Repeat([]float32{guard}, len(c)-count*Rows)...)
		for j, v := range c {
			if !same(v, expect[j]) {
				t.Fatalf("Vec of %d panels, %d weights: %g at %d, want %g", count, k, v, j, expect[j])
			}
		}
	}
	testStrips(t, r, f, k, rows, x, want[0])
	form := NewForm(k)
	f.Unpack(form, 0, packed[next:], k)
	f.Unpack(form, 1, packed[2*next:], k)
	for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 7, 11, 13, most} {
		for _, cols := range []int{32, 16, 1, 31} {
			for _, add := range []bool{false, true} {
				ldc := cols + r.IntN(5)
				c := slices.Repeat([]float32{guard}, n*ldc+32)
				expect := slices.Clone(c)
				for i := range n {
					for j := range cols {
						c[i*ldc+j] = 0
						if expect[i*ldc+j] = want[i][Rows+j]; add {
							// what is added to: the product over nothing, so that the sum is known
							c[i*ldc+j] = 0
						}
					}
				}
				f.Tile(c, ldc, form, x, stride, n, cols, k, add)
				for at, v := range c {
					if !same(v, expect[at]) {
						t.Fatalf("Tile of %d rows, %d columns, %d weights, add %t: %g at %d, want %g",
							n, cols, k, add, v, at, expect[at])
					}
				}
			}
		}
	}
	if k >= 2*f.Block { // in two parts along k
		half := k / f.Block / 2 * f.Block
		c := make([]float32, 2*32)
		for _, part := range [][2]int{{0, half}, {half, k}} {
			from, n := part[0], part[1]-part[0]
			for p := range 2 {
				f.Unpack(form, p, packed[(1+p)*next+from/f.Block*f.Bytes*Rows:], n)
			}
			f.Tile(c, 32, form, x[from/Group*Record:], stride, 2, 32, n, from > 0)
		}
		for at, v := range c {
			if w := want[at/32][Rows+at%32]; !same(v, w) {
				t.Fatalf("in two parts: %g at %d, want %g", v, at, w)
			}
		}
	}
}

// TestDepths multiplies rows of more weights than one call of a tile takes.
func TestDepths(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	inTiers(t, func(t *testing.T) {
		for _, f := range []*Format{&q8_0, &q4_k, &q3_k, &iq2_xs} {
			for _, k := range []int{apartDepth + 256, 2*apartDepth + 512, tileDepth + 256} {
				const n, cols = 15, Rows + 3
				size := k / f.Block * f.Bytes
				rows := randomRows(r, f, 2*Rows, k)
				form, panel, x := NewForm(k), make([]byte, f.PanelSize(k)), make([]uint32, n*ActivationWords(k))
				for p := range 2 {
					f.Pack(panel, rows[p*Rows*size:], Rows, k, size)
					f.Unpack(form, p, panel, k)
				}
				for i := range n {
					Quantize(x[i*ActivationWords(k):][:ActivationWords(k)], randomX(r, k))
				}
				c := make([]float32, n*cols)
				f.Tile(c, cols, form, x, ActivationWords(k), n, cols, k, false)
				for at, v := range c {
					w := product(f, rows[at%cols*size:][:size], x[at/cols*ActivationWords(k):], k)
					if !same(v, w) {
						t.Fatalf("%s, %d weights: %g at %d, want %g", f.Name, k, v, at, w)
					}
				}
			}
		}
	})
}

// BenchmarkVec reads matrices of 4096 × 4096 weights, one after another, four distant panels at a time. In between it
// reads as many bytes by the product of a float32 row, which takes them from four distant places too, in the best tier:
// of-reading is that time by Vec's, medians.
func BenchmarkVec(b *testing.B) {
	benchInTiers(b, func(b *testing.B, f *Format) {
		const n, k, matrices = 4096, 4096, 8
		size := f.PanelSize(k)
		count := n / Rows
		floats := make([]float32, matrices*count*size/4)
		packed := unsafe.Slice((*byte)(unsafe.Pointer(&floats[0])), 4*len(floats))
		r := rand.New(rand.NewPCG(7, 8))
		rows := randomRows(r, f, Rows, k)
		for p := range matrices * count {
			f.Pack(packed[p*size:], rows, Rows, k, len(rows)/Rows)
		}
		x := make([]uint32, ActivationWords(k))
		Quantize(x, randomX(r, k))
		c := make([]float32, n)
		wide := make([]float32, 1024)
		deep := make([]float32, count*size/4/len(wide))
		var vec, read []time.Duration
		for i := 0; b.Loop(); i += 2 {
			m := packed[i%matrices*count*size:][:count*size]
			start := time.Now()
			f.Vec(c, n/4, m, count/4*size, 4, count/4, x, k)
			vec = append(vec, time.Since(start))
			tiers := cpu.Tiers()
			restore, _ := cpu.Force(tiers[len(tiers)-1])
			start = time.Now()
			other := floats[(i+1)%matrices*count*size/4:]
			gemm.Packed(wide, deep, other, 1, len(wide), len(deep), len(deep), len(wide), false)
			read = append(read, time.Since(start))
			restore()
		}
		slices.Sort(vec)
		slices.Sort(read)
		middle := vec[len(vec)/2]
		b.ReportMetric(float64(count*size)/float64(middle)*1e3, "MB/s")
		b.ReportMetric(float64(read[len(read)/2])/float64(middle), "of-reading")
	})
}

// BenchmarkTile multiplies 240 rows by 512 × 4096 weights, once unpacked, once with their unpacking; a weight and an
// activation are two operations.
func BenchmarkTile(b *testing.B) {
	benchInTiers(b, func(b *testing.B, f *Format) {
		const n, k, rows = 512, 4096, 240
		size := f.PanelSize(k)
		packed := make([]byte, n/Rows*size)
		r := rand.New(rand.NewPCG(9, 10))
		weights := randomRows(r, f, n, k)
		for p := range n / Rows {
			f.Pack(packed[p*size:], weights[p*Rows*len(weights)/n:], Rows, k, len(weights)/n)
		}
		words := ActivationWords(k)
		x := make([]uint32, rows*words)
		for i := range rows {
			Quantize(x[i*words:][:words], randomX(r, k))
		}
		c := make([]float32, rows*n)
		form := NewForm(k)
		unpack := func(p int) {
			f.Unpack(form, 0, packed[p*size:], k)
			f.Unpack(form, 1, packed[(p+1)*size:], k)
		}
		report := func(b *testing.B) {
			b.ReportMetric(2*n*k*rows*float64(b.N)/b.Elapsed().Seconds()/1e9, "GOP/s")
		}
		b.Run("alone", func(b *testing.B) {
			unpack(0)
			for b.Loop() {
				for p := 0; p < n/Rows; p += 2 {
					f.Tile(c[p*Rows:], n, form, x, words, rows, 2*Rows, k, false)
				}
			}
			report(b)
		})
		b.Run("unpack", func(b *testing.B) {
			for b.Loop() {
				for p := 0; p < n/Rows; p += 2 {
					unpack(p)
					f.Tile(c[p*Rows:], n, form, x, words, rows, 2*Rows, k, false)
				}
			}
			report(b)
		})
	})
}

// BenchmarkPeak is the integer products of a tile on registers: what BenchmarkTile is to be compared with.
func BenchmarkPeak(b *testing.B) {
	for _, tier := range cpu.Tiers()[1:] {
		restore, _ := cpu.Force(tier)
		b.Run(tier.String(), func(b *testing.B) {
			operations := 0
			for b.Loop() {
				operations += Peak(4096)
			}
			b.ReportMetric(float64(operations)/b.Elapsed().Seconds()/1e9, "GOP/s")
		})
		restore()
	}
}

func BenchmarkQuantize(b *testing.B) {
	for _, tier := range cpu.Tiers() {
		b.Run(tier.String(), func(b *testing.B) {
			restore, _ := cpu.Force(tier)
			defer restore()
			x := randomX(rand.New(rand.NewPCG(11, 12)), 4096)
			dst := make([]uint32, ActivationWords(len(x)))
			for b.Loop() {
				Quantize(dst, x)
			}
			b.ReportMetric(float64(len(x))*float64(b.N)/b.Elapsed().Seconds()/1e9, "G/s")
		})
	}
}

// BenchmarkPack packs rows from memory.
func BenchmarkPack(b *testing.B) {
	benchInTiers(b, func(b *testing.B, f *Format) {
		const k = 4096
		size := k / f.Block * f.Bytes
		n := (128 << 20) / size / Rows * Rows
		rows := make([]byte, n*size)
		for i := range rows {
			rows[i] = byte(i)
		}
		panel := make([]byte, len(rows))
		clear(panel[1:])
		b.SetBytes(int64(len(rows)))
		for b.Loop() {
			for i := 0; i < n; i += Rows {
				f.Pack(panel[i*size:], rows[i*size:], Rows, k, size)
			}
		}
	})
}

func benchInTiers(b *testing.B, run func(b *testing.B, f *Format)) {
	for _, tier := range cpu.Tiers() {
		for _, f := range formats {
			b.Run(tier.String()+"/"+f.Name, func(b *testing.B) {
				restore, _ := cpu.Force(tier)
				defer restore()
				run(b, f)
			})
		}
	}
}
