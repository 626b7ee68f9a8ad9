package gguf

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fucina-go/fucina/core/quant"
)

func TestTensors(t *testing.T) {
	data := make([]byte, 512)
	for i := range data {
		data[i] = byte(i)
	}
	f := mustParse(t, image{
		alignment: 64,
		keys:      []pair{{keyAlignment, one(KindU64, 64)}},
		tensors: []info{
			{"last", typeOf("bf16"), []uint64{2, 3, 1, 2}, 448}, // file order is not data order
			{"scalar", F64, nil, 0},
			{"empty", typeOf("f32"), []uint64{0, 5}, 0},
			{"blocks", typeOf("q4_0"), []uint64{64, 2}, 64},
		},
		data: data,
	})
	type tensor struct {
		Name     string
		Type     string
		Dims     []int
		Elements int
		First    int // of the data section; -1 if there is no data
		Bytes    int
	}
	want := []tensor{
		{"last", "bf16", []int{2, 3, 1, 2}, 12, 448, 24},
		{"scalar", "f64", []int{}, 1, 0, 8},
		{"empty", "f32", []int{0, 5}, 0, -1, 0},
		{"blocks", "q4_0", []int{64, 2}, 128, 64, 72},
	}
	var got []tensor
	for _, x := range f.Tensors() {
		b := x.Bytes()
		first := -1
		if len(b) > 0 {
			if b[len(b)-1] != b[0]+byte(len(b)-1) {
				t.Errorf("%s: bytes % x are not consecutive", x.Name, b)
			}
			first = int(b[0])
			if x.Name == "last" {
				first += 256
			}
		}
		if cap(b) != len(b) {
			t.Errorf("%s: an append to its %d bytes would reach %d of the next tensor", x.Name, len(b), cap(b)-len(b))
		}
		got = append(got, tensor{x.Name, x.Type.String(), x.Dims, x.Elements(), first, len(b)})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tensors (-want +got):\n%s", diff)
	}
	if x, ok := f.Tensor("blocks"); !ok || x.Name != "blocks" {
		t.Errorf(`Tensor("blocks") = %v, %v`, x.Name, ok)
	}
	if x, ok := f.Tensor("absent"); ok {
		t.Errorf(`Tensor("absent") = %v`, x.Name)
	}
}

// TestTypes compares the table with ggml's: number, name, elements and bytes of a block. Blocks of no
// bytes are removed types.
func TestTypes(t *testing.T) {
	const want = `
0 f32 1 4
1 f16 1 2
2 q4_0 32 18
3 q4_1 32 20
4 q4_2 0 0
5 q4_3 0 0
6 q5_0 32 22
7 q5_1 32 24
8 q8_0 32 34
9 q8_1 32 36
10 q2_k 256 84
11 q3_k 256 110
12 q4_k 256 144
13 q5_k 256 176
14 q6_k 256 210
15 q8_k 256 292
16 iq2_xxs 256 66
17 iq2_xs 256 74
18 iq3_xxs 256 98
19 iq1_s 256 50
20 iq4_nl 32 18
21 iq3_s 256 110
22 iq2_s 256 82
23 iq4_xs 256 136
24 i8 1 1
25 i16 1 2
26 i32 1 4
27 i64 1 8
28 f64 1 8
29 iq1_m 256 56
30 bf16 1 2
31 q4_0_4_4 0 0
32 q4_0_4_8 0 0
33 q4_0_8_8 0 0
34 tq1_0 256 54
35 tq2_0 256 66
36 i2_s 0 0
37 iq4_nl_4_8 0 0
38 iq4_nl_8_8 0 0
39 mxfp4 32 17
40 nvfp4 64 36
41 q1_0 128 18
42 q2_0 64 18
43 type 43 0 0
4294967295 type 4294967295 0 0
`
	got := "\n"
	ids := []uint32{math.MaxUint32}
	for id := range uint32(44) {
		ids = slices.Insert(ids, len(ids)-1, id)
	}
	for _, id := range ids {
		typ := Type(id)
		elements, bytes := typ.Block()
		got += fmt.Sprintln(id, typ, elements, bytes)
		d, ok := typ.DType()
		plain := elements == 1 && bytes == d.Size() && !d.Quantized()
		if ok != (elements > 0) || ok && (typ.String() != d.String() || !plain && !d.Quantized()) {
			t.Errorf("%s of %d elements in %d bytes has dtype %s, %v", typ, elements, bytes, d, ok)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

// A tensor of BitNet's i2_s is handed out as tq2_0, and written as it was.
func TestI2S(t *testing.T) {
	data := make([]byte, quant.I2SSize(512)+3) // what is behind it is the next tensor's
	for i := range 128 {
		data[i] = 0x58 // 1, 1, 2, 0
	}
	copy(data[128:], []byte{0, 0, 0, 0x3f}) // 0.5
	b := image{tensors: []info{{"w", I2S, []uint64{256, 2}, 0}, {"v", I8, []uint64{3}, 160}}, data: data}.bytes()
	f, err := parse("x.gguf", b)
	if err != nil {
		t.Fatal(err)
	}
	use(t, f)
	w, _ := f.Tensor("w")
	got, err := w.Import()
	if err != nil || got.Type != typeOf("tq2_0") || w.Type.String() != "i2_s" || len(w.Bytes()) != 160 {
		t.Fatalf("got %s of %s in %d bytes, %v", got.Type, w.Type, len(w.Bytes()), err)
	}
	tq2, _ := got.Type.Format()
	x := make([]float32, 512)
	if err := tq2.Decode(x, got.Bytes()); err != nil {
		t.Fatal(err)
	}
	for i, v := range x {
		if want := []float32{0, 0, 0.5, -0.5}[i/32%4]; v != want {
			t.Fatalf("weight %d is %g, want %g", i, v, want)
		}
	}
	again, err := parse("y.gguf", written(t, f.Draft()))
	if err != nil {
		t.Fatal(err)
	}
	if w, _ := again.Tensor("w"); w.Type != I2S || !bytes.Equal(w.Bytes(), data[:160]) {
		t.Errorf("it came back as %s", w.Type)
	}
	if v, _ := f.Tensor("v"); v.Type != I8 || len(v.Bytes()) != 3 {
		t.Errorf("the next one is %s of %d bytes", v.Type, len(v.Bytes()))
	}
	data[7] = 0xff
	f, err = parse("x.gguf", image{tensors: []info{{"w", I2S, []uint64{256, 2}, 0}}, data: data}.bytes())
	if err != nil {
		t.Fatal(err)
	}
	w, _ = f.Tensor("w")
	if _, err := w.Import(); err == nil || err.Error() != "quant: i2_s: weight 7 has the code 3, want 0, 1 or 2" {
		t.Errorf("got %v", err)
	}
	for want, dims := range map[string][]uint64{
		"a row of 128 elements is no multiple of the 256 of a i2_s block": {128, 2},
		"data ends at byte 384, the file has 259 bytes (truncated?)":      {256, 4},
		"dims [4611686018427387904 4]: more elements than an int holds":   {1 << 62, 4},
	} {
		_, err := parse("x.gguf", image{tensors: []info{{"w", I2S, dims, 0}}, data: data}.bytes())
		if err == nil || !strings.HasPrefix(err.Error(), "gguf: x.gguf: tensor w: "+want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
