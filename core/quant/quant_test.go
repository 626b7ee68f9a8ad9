package quant

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fucina-go/fucina/core/dtype"
)

func TestRegistry(t *testing.T) {
	last := -1
	for _, f := range Formats() {
		if int(f.ID) <= last {
			t.Errorf("%s: number %d is not above %d", f.Name, f.ID, last)
		}
		last = int(f.ID)
		if got, ok := ByName(f.Name); !ok || got != f {
			t.Errorf("ByName(%q) is another", f.Name)
		}
		if got, ok := ByID(f.ID); !ok || got != f {
			t.Errorf("ByID(%d) is another", f.ID)
		}
		if f.Name != strings.ToLower(f.Name) || f.Block < 1 || f.Bytes < 1 || f.Size(3*f.Block) != 3*f.Bytes {
			t.Errorf("%+v", f)
		}
		of, ok := Of(f.DType)
		if ok != f.DType.Quantized() || ok != (f.Block > 1) || ok && of != f || f.DType.String() != f.Name {
			t.Errorf("%s has the element type %s, whose format is %v", f.Name, f.DType, of)
		}
		if dt, ok := dtype.Parse(f.Name); !ok || dt != f.DType {
			t.Errorf("%s is read as %s", f.Name, dt)
		}
		for _, at := range f.scales {
			if at < 0 || at+2 > f.Bytes {
				t.Errorf("%s: a scale at byte %d of %d", f.Name, at, f.Bytes)
			}
		}
	}
	for _, name := range []string{"", "Q4_0", "q4", "q4_2", "i8"} {
		if f, ok := ByName(name); ok {
			t.Errorf("ByName(%q) is %s", name, f.Name)
		}
	}
	if f, ok := ByID(4); ok {
		t.Errorf("ByID(4) is %s", f.Name)
	}
}

// bounds is how far a decoded weight may be from the one encoded, as a part of the greatest magnitude in a block:
// worst for the numbers of TestBounds, usual for the root of the mean square over normally distributed ones. An
// importance of about 0 lets a weight be far off, which is why worst is wide.
var bounds = map[string]struct{ worst, usual float64 }{
	"f32": {0, 0}, "f16": {0.00049, 0.0003}, "bf16": {0.0040, 0.0017},
	"q4_0": {0.2, 0.038}, "q4_1": {0.25, 0.035}, "q5_0": {0.1, 0.019}, "q5_1": {0.1, 0.017},
	"q8_0": {0.0045, 0.0024}, "q8_1": {0.0045, 0.0024}, "q8_k": {0.0041, 0.0024},
	"q2_k": {0.8, 0.105}, "q3_k": {0.5, 0.055}, "q4_k": {0.3, 0.024}, "q5_k": {0.15, 0.013}, "q6_k": {0.1, 0.0075},
	"iq2_xxs": {2, 0.15}, "iq2_xs": {2, 0.13}, "iq2_s": {2, 0.12}, "iq3_xxs": {1.5, 0.08}, "iq3_s": {1.5, 0.075},
	"iq1_s": {2, 0.2}, "iq1_m": {2, 0.2}, "iq4_nl": {0.25, 0.035}, "iq4_xs": {0.25, 0.028},
	"tq1_0": {0.501, 0.32}, "tq2_0": {0.501, 0.32}, "mxfp4": {0.26, 0.052}, "nvfp4": {0.2, 0.05},
	"q1_0": {1.0, 0.26}, "q2_0": {0.501, 0.31},
}

// encodings is x encoded in every way that f has.
func encodings(t *testing.T, f *Format, x, importance []float32) [][]byte {
	t.Helper()
	var list [][]byte
	for _, w := range [][]float32{nil, importance} {
		if w == nil && f.Importance {
			continue
		}
		b := make([]byte, f.Size(len(x)))
		if err := f.Encode(b, x, w); err != nil {
			t.Fatalf("%v, of %v", err, x)
		}
		list = append(list, b)
	}
	return list
}

// TestBounds encodes and decodes numbers of many kinds and holds the errors to what a format promises.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range Formats() {
		t.Run(f.Name, func(t *testing.T) {
			bound, ok := bounds[f.Name]
			if !ok {
				t.Fatal("no bounds")
			}
			var square, power float64
			worst := 0.0
			for n := range 60 {
				x := make([]float32, max(f.Block, 64))
				w := make([]float32, len(x))
				scale := math.Exp(r.Float64()*8 - 4)
				for i := range x {
					switch n % 5 {
					case 0, 1:
						x[i] = float32(scale * r.NormFloat64())
					case 2:
						x[i] = float32(scale * (r.Float64()*2 - 1))
					case 3:
						x[i] = float32(scale * float64(r.IntN(5)-2))
					case 4:
						x[i] = float32(scale * math.Pow(r.NormFloat64(), 3) / 10)
					}
					w[i] = r.Float32()
				}
				for _, b := range encodings(t, f, x, w) {
					y := make([]float32, len(x))
					if err := f.Decode(y, b); err != nil {
						t.Fatal(err)
					}
					for i := 0; i < len(x); i += max(f.Block, 32) {
						top := float64(abs(peak(x[i : i+max(f.Block, 32)])))
						for j := i; j < i+max(f.Block, 32) && top > 0; j++ {
							e := math.Abs(float64(y[j])-float64(x[j])) / top
							worst = max(worst, e)
							if n%5 < 2 {
								square, power = square+e*e, power+1
							}
						}
					}
				}
			}
			usual := math.Sqrt(square / power)
			if !(worst <= bound.worst) || !(usual <= bound.usual) {
				t.Errorf("errors of at most %.5f, usually %.5f, want %.5f and %.5f",
					worst, usual, bound.worst, bound.usual)
			}
		})
	}
}

// TestRows: a row of several has the bytes of that row alone, and the order of the calls does not matter.
func TestRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, f := range Formats() {
		row := 2 * max(f.Block, 32)
		x, w := make([]float32, 3*row), make([]float32, row)
		for i := range x {
			x[i], w[i%row] = float32(r.NormFloat64()), r.Float32()
		}
		all := make([]byte, f.Size(len(x)))
		if err := f.Encode(all, x, w); err != nil {
			t.Fatal(err)
		}
		for i := 2; i >= 0; i-- {
			one := make([]byte, f.Size(row))
			if err := f.Encode(one, x[i*row:(i+1)*row], w); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(one, all[f.Size(i*row):f.Size((i+1)*row)]) {
				t.Errorf("%s: row %d alone has other bytes", f.Name, i)
			}
		}
	}
}

// TestSmall: zeros decode to zeros, and denormal numbers to numbers as good as zero.
func TestSmall(t *testing.T) {
	for _, f := range Formats() {
		for _, v := range []float32{0, float32(math.Copysign(0, -1)), 1e-45, -3e-42, 1e-38} {
			x, w := make([]float32, max(f.Block, 32)), make([]float32, max(f.Block, 32))
			for i := range x {
				x[i], w[i] = v*float32(i%3), 1
			}
			for _, b := range encodings(t, f, x, w) {
				y := make([]float32, len(x))
				if err := f.Decode(y, b); err != nil {
					t.Fatal(err)
				}
				for i, got := range y {
					if v == 0 && got != 0 || !(abs(got) < 1e-35) {
						t.Errorf("%s: %v became %v", f.Name, x[i], got)
						break
					}
				}
			}
		}
	}
}

func TestErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	with := func(n, at int, v float32) []float32 {
		x := make([]float32, n)
		x[at] = v
		return x
	}
	encode := func(name string, size int, x, w []float32) error {
		f, _ := ByName(name)
		return f.Encode(make([]byte, size), x, w)
	}
	decode := func(name string, n, size int) error {
		f, _ := ByName(name)
		return f.Decode(make([]float32, n), make([]byte, size))
	}
	tests := []struct {
		err  error
		want string
	}{
		{decode("q4_k", 255, 144), "quant: q4_k: 255 weights are no multiple of the 256 of a block"},
		{decode("q4_k", 512, 144), "quant: q4_k: 512 weights take 288 bytes, got 144"},
		{decode("q8_0", 32, 35), "quant: q8_0: 32 weights take 34 bytes, got 35"},
		{encode("q4_0", 18, make([]float32, 33), nil), "quant: q4_0: 33 weights are no multiple of the 32 of a block"},
		{encode("q4_0", 17, make([]float32, 32), nil), "quant: q4_0: 32 weights take 18 bytes, got 17"},
		{encode("q4_0", 54, make([]float32, 96), make([]float32, 64)),
			"quant: q4_0: 96 weights are no whole number of rows of 64, the length of the importance"},
		{encode("q4_0", 36, make([]float32, 64), make([]float32, 16)),
			"quant: q4_0: an importance of 16 weights is no multiple of the 32 of a block"},
		{encode("q4_0", 36, make([]float32, 64), []float32{}),
			"quant: q4_0: 64 weights are no whole number of rows of 0, the length of the importance"},
		{encode("iq2_xs", 74, make([]float32, 256), nil),
			"quant: iq2_xs needs an importance matrix: at so few bits it decides what is kept"},
		{encode("q4_0", 18, make([]float32, 32), with(32, 7, -1)),
			"quant: q4_0: the importance of weight 7 is -1, want a finite number of 0 or more"},
		{encode("q4_0", 18, make([]float32, 32), with(32, 7, nan)),
			"quant: q4_0: the importance of weight 7 is NaN, want a finite number of 0 or more"},
		{encode("q4_0", 18, with(32, 31, nan), nil), "quant: q4_0: weight 31 is NaN, want a finite number"},
		{encode("q8_0", 68, with(64, 40, inf), nil), "quant: q8_0: weight 40 is -Inf, want a finite number"},
		{encode("q8_0", 68, with(64, 40, 1e10), nil),
			"quant: q8_0: weights 32 to 63 reach 1e+10, and the scale of their block is more than the format holds"},
		{encode("iq1_m", 56, with(256, 40, -1e10), nil),
			"quant: iq1_m: weights 0 to 255 reach 1e+10, and the scale of their block is more than the format holds"},
		{encode("q6_k", 210, with(256, 40, 1e30), nil),
			"quant: q6_k: weights 0 to 255 reach 1e+30, and the scale of their block is more than the format holds"},
		{encode("q3_k", 110, with(256, 40, -3e38), nil),
			"quant: q3_k: weights 0 to 255 reach 3e+38, and the scale of their block is more than the format holds"},
		{encode("iq4_xs", 136, with(256, 40, 1e18), nil),
			"quant: iq4_xs: weights 0 to 255 reach 1e+18, and the scale of their block is more than the format holds"},
		{encode("q8_0", 0, nil, nil), ""},
		{encode("q4_0", 0, nil, []float32{}), ""},
		{decode("q4_0", 0, 0), ""},
	}
	for _, tt := range tests {
		got := ""
		if tt.err != nil {
			got = tt.err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestIQ3SZeros records what ggml does to a block of iq3_s with a group of zeros in front: see the format.
func TestIQ3SZeros(t *testing.T) {
	x := make([]float32, 256)
	for i := 32; i < 256; i++ {
		x[i] = float32(i%7) - 3
	}
	b, moved := make([]byte, 110), make([]byte, 110)
	if err := iq3_s.Encode(b, x, nil); err != nil {
		t.Fatal(err)
	}
	copy(x, x[32:])
	clear(x[224:])
	if err := iq3_s.Encode(moved, x, nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b[2:66], moved[2:66]) || bytes.Equal(b[2:66], make([]byte, 64)) {
		t.Errorf("points are\n%x, want\n%x", b[2:66], moved[2:66])
	}
}

// TestSums looks at what q8_1 and q8_k, which are in no reference set, store beside the weights.
func TestSums(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	x := make([]float32, 256)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	b := make([]byte, 36)
	if err := q8_1.Encode(b, x[:32], nil); err != nil {
		t.Fatal(err)
	}
	plain := make([]byte, 34)
	if err := q8_0.Encode(plain, x[:32], nil); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, q := range b[4:] {
		total += int(int8(q))
	}
	if !bytes.Equal(b[4:], plain[2:]) || !bytes.Equal(b[:2], plain[:2]) {
		t.Errorf("q8_1 has other weights than q8_0")
	}
	got, want := half(b[2:]), float32(total)*abs(peak(x[:32]))/127
	if math.Abs(float64(got-want)) > 1e-3*math.Abs(float64(want)) {
		t.Errorf("q8_1: the sum is %v, want %v", got, want)
	}
	b = make([]byte, 292)
	if err := q8_k.Encode(b, x, nil); err != nil {
		t.Fatal(err)
	}
	for g := range 16 {
		total := 0
		for _, q := range b[4+16*g : 20+16*g] {
			total += int(int8(q))
		}
		if got := int(int16(binary.LittleEndian.Uint16(b[260+2*g:]))); got != total {
			t.Errorf("q8_k: sum %d is %d, want %d", g, got, total)
		}
	}
}

func TestImportI2S(t *testing.T) {
	const n = 512
	r := rand.New(rand.NewPCG(7, 8))
	want := make([]float32, n)
	src := make([]byte, I2SSize(n))
	binary.LittleEndian.PutUint32(src[n/4:], math.Float32bits(0.75))
	for i := range want {
		code := r.IntN(3)
		want[i] = 0.75 * float32(code-1)
		src[i/128*32+i%32] |= byte(code) << (6 - 2*(i%128/32))
	}
	b, err := ImportI2S(src, n)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, n)
	if err := tq2_0.Decode(got, b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	bad := bytes.Clone(src)
	bad[5] |= 3
	inf := bytes.Clone(src)
	binary.LittleEndian.PutUint32(inf[n/4:], 0x7f800000)
	for _, tt := range []struct {
		src  []byte
		n    int
		want string
	}{
		{src, 511, "quant: i2_s: 511 weights are no multiple of the 256 of a tq2_0 block"},
		{src, 256, "quant: i2_s: 256 weights take 96 bytes, got 160"},
		{bad, n, "quant: i2_s: weight 101 has the code 3, want 0, 1 or 2"},
		{inf, n, "quant: i2_s: the scale is +Inf, which tq2_0 cannot hold"},
	} {
		if _, err := ImportI2S(tt.src, tt.n); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// formatNumber is the format of a fuzz test's number.
func formatNumber(n uint8) *Format { return Formats()[int(n)%len(Formats())] }

// FuzzDecode decodes bytes of any kind as some format: no read or write outside of a block, the same bits for
// each block alone, and no more than a scale that is no number makes weights that are none.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(9, 10))
	for n := range Formats() {
		b := make([]byte, 700)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		for _, data := range [][]byte{b, bytes.Repeat([]byte{0xff}, 700), bytes.Repeat([]byte{0, 0x7c}, 350)} {
			f.Add(uint8(n), data)
		}
	}
	f.Fuzz(func(t *testing.T, number uint8, data []byte) {
		data = data[:min(len(data), 1<<10)]
		f := formatNumber(number)
		n := len(data) / f.Bytes
		const guard = 12345
		y := make([]float32, n*f.Block+1)
		y[n*f.Block] = guard
		if err := f.Decode(y[:n*f.Block], data[:n*f.Bytes]); err != nil {
			t.Fatal(err)
		}
		if y[n*f.Block] != guard {
			t.Fatalf("%s: wrote behind its weights", f.Name)
		}
		one := make([]float32, f.Block)
		for i := range n {
			b := bytes.Clone(data[i*f.Bytes : (i+1)*f.Bytes])
			if err := f.Decode(one, b); err != nil {
				t.Fatal(err)
			}
			for j, v := range one {
				if math.Float32bits(v) != math.Float32bits(y[i*f.Block+j]) {
					t.Fatalf("%s: block %d alone decodes otherwise", f.Name, i)
				}
				// A product of finite scales may still overflow in formats with an exponent of 8 bits.
				if v != v && f.Sound(b) && f != &mxfp4 {
					t.Fatalf("%s: NaN from scales that are finite: %x", f.Name, b)
				}
			}
		}
	})
}

// FuzzEncode encodes numbers of any kind in some format: an error, or blocks whose scales are finite, the same twice.
func FuzzEncode(f *testing.F) {
	r := rand.New(rand.NewPCG(11, 12))
	for n := range Formats() {
		b := make([]byte, 4*512)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(uint8(n), bytes.Clone(b))
		for i := 3; i < len(b); i += 4 {
			b[i] = b[i]&0x83 | 0x3c // finite numbers of about one
		}
		f.Add(uint8(n), bytes.Clone(b))
		for i := 3; i < len(b); i += 4 {
			b[i] &= 0x80
			b[i-1] &= 1 // denormal numbers
		}
		f.Add(uint8(n), b)
	}
	f.Fuzz(func(t *testing.T, number uint8, data []byte) {
		data = data[:min(len(data), 1<<12)]
		f := formatNumber(number)
		n := len(data) / 8 / f.Block * f.Block
		x, w := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
			w[i] = abs(math.Float32frombits(binary.LittleEndian.Uint32(data[4*(n+i):])))
		}
		for _, w := range [][]float32{nil, w} {
			b, again := make([]byte, f.Size(n)), make([]byte, f.Size(n))
			err := f.Encode(b, x, w)
			if err2 := f.Encode(again, x, w); (err == nil) != (err2 == nil) || !bytes.Equal(b, again) {
				t.Fatalf("%s: twice the same, and different", f.Name)
			}
			if err != nil {
				continue
			}
			for i := 0; i < len(b); i += f.Bytes {
				if !f.Sound(b[i : i+f.Bytes]) {
					t.Fatalf("%s: no error, but scales that are not finite", f.Name)
				}
			}
		}
	})
}

// A part of a block is not sound, in no format.
func TestPartIsUnsound(t *testing.T) {
	for _, f := range Formats() {
		for _, n := range []int{0, 1, f.Bytes - 1} {
			if n < f.Bytes && f.Sound(make([]byte, n)) {
				t.Errorf("%s: %d of %d bytes are sound", f.Name, n, f.Bytes)
			}
		}
		if !f.Sound(make([]byte, f.Bytes)) {
			t.Errorf("%s: zeros are not sound", f.Name)
		}
	}
}
