package core

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/quant"
	"github.com/fucina-go/fucina/kernels/cpu"
	"github.com/fucina-go/fucina/kernels/qdot"
)

func quantized(t *testing.T, name string) dtype.Type {
	t.Helper()
	f, ok := quant.ByName(name)
	if !ok {
		t.Fatalf("no format %q", name)
	}
	return f.DType
}

func sameBits(t *testing.T, what string, got, want *Tensor) {
	t.Helper()
	if got.Shape() != want.Shape() {
		t.Fatalf("%s is %s, want %s", what, got.Shape(), want.Shape())
	}
	if !bytes.Equal(bitsOf(got), bitsOf(want)) {
		t.Errorf("%s differs:\n got %v\nwant %v", what, got, want)
	}
}

// roughly insists that two tensors differ by at most 1 % of what they are, as roots of mean squares.
func roughly(t *testing.T, what string, got, want *Tensor) {
	t.Helper()
	if got.Shape() != want.Shape() {
		t.Fatalf("%s is %s, want %s", what, got.Shape(), want.Shape())
	}
	off := math.Sqrt(got.Sub(want).Square().Mean().Item().(float64))
	if size := math.Sqrt(want.Square().Mean().Item().(float64)); !(off <= 0.01*size) {
		t.Errorf("%s is off by %.3g of it", what, off/size)
	}
}

// TestQuantizedProducts insists that a product with a quantized operand is what package qdot defines and near to that
// with what it decodes to: in every format, for one row and for many, whether w lies in panels or not, and whatever the
// axes' order.
func TestQuantizedProducts(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	weigh := m.Tensor(dtype.F32, "in=256").Square()
	for _, f := range quant.Formats() {
		if !f.DType.Quantized() {
			continue
		}
		w := quantize.Call(Quantize{X: m.Tensor(dtype.F32, "out=45 in=256"), DType: f.DType, Importance: weigh})
		plain := w.Dequantize()
		packed := m.Env.Pack(w, 256, nil)
		for _, rows := range []int{1, 2, 3, 50} {
			x := m.Tensor(dtype.F32, "in=256 row=%d", rows)
			y := x.Dot(w, "in")
			sameBits(t, f.Name+" in panels", x.Dot(packed, "in"), y)
			roughly(t, f.Name, y, x.Dot(plain, "in"))
			whole := m.Tensor(dtype.F32, "row=%d out=45", rows)
			for _, add := range []*Tensor{whole, whole.Order("out row").Copy(), whole.At("row", 0),
				whole.At("out", 3)} {
				sum := dot.Call(Dot{X: x, W: packed, Axes: axisList("in"), Add: add})
				sameBits(t, f.Name+" and a sum", sum, composed(x, w, add, axisList("in")))
			}
			sameBits(t, f.Name, y, defined(m.Env, qdot.ByName(f.Name), x, w))
		}
		i := m.Indices(dtype.I64, 45, "row=7")
		var want bytes.Buffer
		for k, w := range []*Tensor{w, packed} {
			sameBits(t, f.Name+" rows", i.Embedding(w, "out"), i.Embedding(plain, "out"))
			sameBits(t, f.Name+" cast", w.Cast(dtype.F32), plain)
			sameBits(t, f.Name+" copy", w.Copy().Dequantize(), plain)
			sameBits(t, f.Name+" gather", w.Gather(i, "out").Dequantize(), plain.Gather(i, "out"))
			sameBits(t, f.Name+" select", w.IndexSelect(i, "out").Dequantize(), plain.IndexSelect(i, "out"))
			var blocks bytes.Buffer
			if err := w.WriteBlocks(&blocks); err != nil {
				t.Fatal(err)
			}
			if k == 0 {
				want = blocks
			} else if !bytes.Equal(blocks.Bytes(), want.Bytes()) {
				t.Errorf("%s: panels are written with other bytes", f.Name)
			}
		}
	}
	q8 := quantized(t, "q8_0")
	w := m.Tensor(dtype.F32, "out=5 expert=3 head=2 head_dim=32").Quantize(q8, "")
	x := m.Tensor(dtype.F32, "head_dim=32 row=4 expert=3 head=2")
	y := x.Dot(w, "head head_dim")
	roughly(t, "batch", y, x.Dot(w.Dequantize(), "head head_dim"))
	sameBits(t, "several", x.Dots("head_dim head", w)[0], y)
	sameBits(t, "packed batch", x.Dot(m.Env.Pack(w, 64, nil), "head head_dim"), y)
	roughly(t, "renamed", x.Rename("head_dim", "d").Dot(w.Rename("head_dim", "d"), "d"),
		x.Dot(w.Dequantize(), "head_dim").Rename("expert", "expert"))
	byHead := x.Dot(w, "head_dim")
	sameBits(t, "packed in longer rows", x.Dot(m.Env.Pack(w, 64, nil), "head_dim"), byHead)
	experts := m.Tensor(dtype.F32, "expert=3 out=32 in=64").Quantize(q8, "")
	x = m.Tensor(dtype.F32, "expert=3 row=4 in=64")
	sameBits(t, "experts", x.Dot(m.Env.Pack(experts, 64, nil), "in"), x.Dot(experts, "in"))
	deep := m.Tensor(dtype.F32, "out=21 in=%d", 8192+64).Quantize(q8, "")
	for _, rows := range []int{1, 3, 7} {
		x := m.Tensor(dtype.F32, "row=%d in=%d", rows, 8192+64)
		y := x.Dot(m.Env.Pack(deep, 8192+64, nil), "in")
		sameBits(t, "deep", y, defined(m.Env, qdot.ByName("q8_0"), x, deep))
	}
}

// TestPackedHalf insists that products with a weight of 16 bits in panels have the bits of those with it as f32, in
// pairs if it is of bf16.
func TestPackedHalf(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	for _, dt := range []dtype.Type{dtype.F16, dtype.BF16} {
		for _, rows := range []int{1, 3, 40} {
			for _, out := range []int{5, 16, 200, 269} {
				w := m.Tensor(dt, "out=%d head=3 head_dim=11", out)
				packed, plain := m.Env.Pack(w, 33, nil), w.Cast(dtype.F32)
				x := m.Tensor(dtype.F32, "head_dim=11 row=%d head=3", rows)
				y := pairwise(dt, x, w, "head head_dim")
				sameBits(t, "dot", x.Dot(packed, "head head_dim"), y)
				roughly(t, "dot", y, x.Dot(plain, "head head_dim"))
				sameBits(t, "dots", x.Dots("head head_dim", packed, plain)[0], y)
				bias := m.Tensor(dtype.F32, "out=%d", out)
				sameBits(t, "linear", linear.Call(Linear{X: x.Order("row head head_dim").Rename("head_dim", "in"),
					W: m.Env.Pack(w, 11, nil).Rename("head_dim", "in"), Bias: bias, Axis: "in"}),
					pairwise(dt, x.Order("row head head_dim"), w, "head_dim").Add(bias))
				axes, more := axisList("head head_dim"), m.Tensor(dtype.F32, "row=%d out=%d", rows, out)
				sameBits(t, "dot and a sum", dot.Call(Dot{X: x, W: packed, Axes: axes, Add: more}), more.Add(y))
				sameBits(t, "part", x.Dot(packed, "head_dim"), pairwise(dt, x, w, "head_dim"))
				sameBits(t, "dequantize", packed.Dequantize(), plain)
				i := m.Indices(dtype.I64, out, "row=7")
				sameBits(t, "embedding", i.Embedding(packed, "out"), i.Embedding(plain, "out"))
				sameBits(t, "copy", packed.Copy(), w)
				sameBits(t, "select", packed.IndexSelect(i, "out"), w.IndexSelect(i, "out"))
			}
		}
		for _, out := range []int{5, 300, 2100} { // many rows, which share a block made f32
			w := m.Tensor(dt, "out=%d in=300", out)
			x := m.Tensor(dtype.F32, "row=%d in=300", widenRows+1)
			sameBits(t, "many rows", x.Dot(m.Env.Pack(w, 300, nil), "in"), pairwise(dt, x, w, "in"))
		}
		w := m.Tensor(dt, "expert=2 out=32 in=600")
		x := m.Tensor(dtype.F32, "row=%d expert=2 in=600", widenRows)
		sameBits(t, "many rows of experts", x.Dot(m.Env.Pack(w, 600, nil), "in"), pairwise(dt, x, w, "in"))
		w = m.Tensor(dt, "expert=3 out=32 in=20")
		x = m.Tensor(dtype.F32, "row=3 expert=3 in=20")
		sameBits(t, "experts", x.Dot(m.Env.Pack(w, 20, nil), "in"), pairwise(dt, x, w, "in"))
		w = m.Tensor(dt, "expert=3 out=7 in=20")
		packed := m.Env.Pack(w, 20, nil)
		sameBits(t, "experts across panels", x.Dot(packed, "in"), pairwise(dt, x, w, "in"))
		err := failed(func() { m.Tensor(dtype.F32, "expert=3 row=2 out=7").Dot(packed, "out") })
		if err == nil || !strings.HasSuffix(err.Error(), "; w.dequantize()") {
			t.Errorf("along another axis: %v", err)
		}
		err = failed(func() { packed.ReLU() })
		if err == nil || !strings.Contains(err.Error(), "packed for products") {
			t.Errorf("relu of a packed weight: %v", err)
		}
		if err := failed(func() { x.Dot(w, "in") }); err == nil { // after the plan of the packed one
			t.Error("f32 times a weight of 16 bits without panels: no error")
		}
	}
}

// failed is what run panics with.
func failed(run func()) (err error) {
	defer Recover(&err)
	run()
	return nil
}

// pairwise is x·w as package gemm defines it for a w of that dtype: with the numbers as f32, of bf16 with an x that is
// rounded, too, and the neighbours along the contracted axes changing places.
func pairwise(dt dtype.Type, x, w *Tensor, axes string) *Tensor {
	w = w.Cast(dtype.F32)
	if dt == dtype.F16 {
		return x.Dot(w, axes)
	}
	x = x.Cast(dtype.BF16).Cast(dtype.F32)
	if list := axisList(axes); list.Len() > 1 {
		into := Map[Axes]{axisList("sum"), []Axes{list}}
		x, w, axes = merge.Call(Merge{X: x, Into: into}), merge.Call(Merge{X: w, Into: into}), "sum"
	}
	var order []int64
	for i := range int64(w.Size(axes)) {
		order = append(order, min(i^1, int64(w.Size(axes)-1)))
	}
	i := w.env.Tensor(dtype.I64, axisList("place"), len(order))
	copy(elementsOf[int64](i), order)
	return x.IndexSelect(i, axes).Dot(w.IndexSelect(i, axes), axes)
}

// defined is x·w over the axis "in" of each, row by row of both, as the plain Go of package qdot computes it.
func defined(env *Env, q *qdot.Format, x, w *Tensor) *Tensor {
	restore, _ := cpu.Force(cpu.Generic)
	defer restore()
	x = x.Order("row in").Copy()
	rows, n, k := x.Size("row"), w.Size("out"), w.Size("in")
	out := env.Tensor(dtype.F32, axisList("row", "out"), rows, n)
	y, a, b := elementsOf[float32](out), elementsOf[float32](x), w.bytes()
	words, panel, c := make([]uint32, qdot.ActivationWords(k)), make([]byte, q.PanelSize(k)), make([]float32, qdot.Rows)
	size := k / q.Block * q.Bytes
	for i := range rows {
		qdot.Quantize(words, a[i*k:(i+1)*k])
		for j := range n {
			q.Pack(panel, b[j*size:(j+1)*size], 1, k, size)
			q.Vec(c, 0, panel, 0, 1, 1, words, k)
			y[i*n+j] = c[0]
		}
	}
	return out
}

// TestQuantizedExperts: each row of a mixture is what dot makes of it with the weights of its experts alone, whatever
// other rows there are.
func TestQuantizedExperts(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	const experts = 4
	var alone [3][]*Tensor // the experts' weights one by one
	var all [3]*Tensor
	for i, shape := range []string{"ffn=64 embed=256", "ffn=64 embed=256", "embed=256 ffn=64"} {
		format := []string{"q4_k", "q8_0", "q5_1"}[i]
		var plain []*Tensor
		for range experts {
			w := m.Tensor(dtype.F32, shape)
			plain = append(plain, w)
			alone[i] = append(alone[i], w.Quantize(quantized(t, format), ""))
		}
		all[i] = StackAll("expert", plain...).Quantize(quantized(t, format), "")
	}
	for _, rows := range []int{1, 2, 40} {
		x := m.Tensor(dtype.F32, "row=%d embed=256", rows)
		weights := m.Tensor(dtype.F32, "row=%d choice=2", rows)
		ids := m.Indices(dtype.I64, experts, "row=%d choice=2", rows)
		got := x.MoE(weights, ids, all[0], all[1], all[2])
		for r := range rows {
			row, places := x.Slice("row", r, r+1, 1), ids.At("row", r).Int64s()
			want := row.zerosIn(m.Env)
			for k, e := range places {
				h := row.Dot(alone[0][e], "embed").SiLU().Mul(row.Dot(alone[1][e], "embed"))
				y := h.Dot(alone[2][e], "ffn")
				// one rounding of product and sum
				w := float64(weights.At("row", r).Float32s()[k])
				sums, ys := want.Float32s(), y.Float32s()
				values := make([]float64, len(ys))
				for j := range ys {
					values[j] = float64(float32(math.FMA(float64(ys[j]), w, float64(sums[j]))))
				}
				want = m.Env.FromFloats(dtype.F32, values, row.axes, 1, 256)
			}
			sameBits(t, fmt.Sprintf("row %d of %d", r, rows), got.Slice("row", r, r+1, 1).Copy(), want)
		}
	}
}

// TestExpertsTogether: weights that have gate and up in one give what the two do apart, of every storage, in panels or
// not.
func TestExpertsTogether(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	gate, up := m.Tensor(dtype.F32, "expert=4 ffn=64 embed=256"), m.Tensor(dtype.F32, "expert=4 ffn=64 embed=256")
	both := StackAll("part", gate, up).Order("expert part ffn embed").Copy()
	down := m.Tensor(dtype.F32, "expert=4 embed=256 ffn=64")
	for _, rows := range []int{1, 40} {
		x, weights := m.Tensor(dtype.F32, "row=%d embed=256", rows), m.Tensor(dtype.F32, "row=%d choice=2", rows)
		ids := m.Indices(dtype.I64, 4, "row=%d choice=2", rows)
		check := func(what string, stored func(w *Tensor) *Tensor) {
			want := x.MoE(weights, ids, stored(gate), stored(up), down)
			got := x.MoE(weights, ids, stored(both), nil, down)
			sameBits(t, fmt.Sprintf("%s, %d rows", what, rows), got, want)
		}
		check("f32", func(w *Tensor) *Tensor { return w })
		check("another order", func(w *Tensor) *Tensor {
			if w == both {
				return w.Order("ffn part expert embed").Copy()
			}
			return w
		})
		check("f16", func(w *Tensor) *Tensor { return m.Env.Pack(w.Cast(dtype.F16), 256, nil) })
		for _, format := range []string{"q4_k", "q8_0"} {
			quantize := func(w *Tensor) *Tensor { return w.Quantize(quantized(t, format), "") }
			check(format, quantize)
			check(format+" in panels", func(w *Tensor) *Tensor { return m.Env.Pack(quantize(w), 256, nil) })
		}
	}
}

// TestOneExpertTwice: gate and up may be one tensor, with axes in another order than those of x, and what is found out
// about the call holds for two tensors, too.
func TestOneExpertTwice(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	x := m.Tensor(dtype.F32, "row=3 embed=32 part=2")
	w := m.Tensor(dtype.F32, "expert=4 ffn=64 part=2 embed=32").Quantize(quantized(t, "q8_0"), "embed")
	down := m.Tensor(dtype.F32, "expert=4 part=2 embed=32 ffn=64")
	weights, ids := m.Tensor(dtype.F32, "row=3 choice=2"), m.Indices(dtype.I64, 4, "row=3 choice=2")
	once := x.MoE(weights, ids, w, w, down)
	twice := x.MoE(weights, ids, w, w.Copy(), down)
	sameBits(t, "one tensor", once, twice)
	ordered := x.Order("row part embed").MoE(weights, ids, w, w.Copy(), down)
	sameBits(t, "x in the order of the weights", once, ordered.Order("row embed part"))
}

// TestQuantizedPlaces: what is taken of quantized tensors stays quantized, and decodes to what is taken of the decoded.
func TestQuantizedPlaces(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	for _, shape := range []string{"a=4 in=64", "row=3 a=4 out=2 in=32", "a=4 out=0 in=32"} {
		x := m.Quantized("q5_0", shape)
		plain := x.Dequantize()
		some, many := m.Indices(dtype.I64, 4, "place=7"), m.Indices(dtype.I32, 4, "p=2 a=3")
		for what, pair := range map[string][2]*Tensor{
			"select": {x.IndexSelect(some, "a"), plain.IndexSelect(some, "a")},
			"gather": {x.Gather(many, "a"), plain.Gather(many, "a")},
			"none":   {x.Gather(many.Slice("p", 0, 0, 1), "a"), plain.Gather(many.Slice("p", 0, 0, 1), "a")},
			"copy":   {x.Copy(), plain},
		} {
			if pair[0].dtype != x.dtype {
				t.Errorf("%s of %s is %s", what, x.Shape(), pair[0].Shape())
			}
			sameBits(t, what+" "+shape, pair[0].Dequantize(), pair[1])
		}
	}
}

// TestQuantizedAxis: the axis that is quantized becomes the last; the numbers stay where they were.
func TestQuantizedAxis(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 1)}
	x := m.Tensor(dtype.F32, "in=64 out=3")
	q := x.Quantize(quantized(t, "q8_0"), "in")
	if got, want := q.String(), "q8_0[out=3, in=64] of 1.062 bytes per element"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	y := q.Dequantize()
	for i := range 64 {
		for o := range 3 {
			got, want := y.At("in", i).At("out", o).Item().(float64), x.At("in", i).At("out", o).Item().(float64)
			if math.Abs(got-want) > 0.01 {
				t.Fatalf("in=%d out=%d: %v became %v", i, o, want, got)
			}
		}
	}
}

// TestQuantizedRange: products of great numbers are those of f32, or say that they are none.
func TestQuantizedRange(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 1)}
	number := func(v float64) *Tensor { return Number(m.Env, v, 0, false) }
	w := m.Tensor(dtype.F32, "out=16 in=256")
	for _, name := range []string{"q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k", "iq4_nl", "q2_k",
		"q3_k", "tq2_0"} {
		for _, sign := range []float64{-1, 0, 1} { // of the weights; 0: of either, and small in the sum
			v := w.Mul(number(1e-4))
			if sign != 0 {
				v = w.Abs().Mul(number(sign * 1e-4))
			}
			q := v.Quantize(quantized(t, name), "in")
			for _, great := range []float64{1e30, 0x1p113, 0x1.fp122, 3e38} {
				x := m.Tensor(dtype.F32, "in=256").Abs().Clamp(number(0.5), number(1)).Mul(number(great))
				got, want := x.Dot(q, "in").Float32s(), x.Dot(q.Dequantize(), "in").Float32s()
				size := x.Dot(q.Dequantize().Abs(), "in").Float32s()
				for i, y := range got {
					wild := math.IsInf(float64(y), 0) || math.IsNaN(float64(y))
					most := math.Inf(1) // up to which a product is a number
					switch name {
					case "q4_1", "q5_1", "q4_k", "q5_k":
						most = 0x1p123
					case "q2_k", "q3_k", "tq2_0":
						most = 0x1p113
					}
					if wild && great > most {
						continue
					}
					if wild || math.Abs(float64(y)-float64(want[i])) > 0.02*float64(size[i]) {
						t.Errorf("%s %g: got %g, want %g", name, great, y, want[i])
					}
				}
			}
		}
	}
}

func TestQuantizedMisuse(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 1)}
	q4k, q40 := quantized(t, "q4_k"), quantized(t, "q4_0")
	x, f64 := m.Tensor(dtype.F32, "row=2 in=64"), m.Tensor(dtype.F64, "row=2 in=64")
	w := m.Tensor(dtype.F32, "out=3 in=64").Quantize(q40, "")
	split := m.Tensor(dtype.F32, "out=3 head=4 head_dim=32").Quantize(q40, "")
	nan := m.Tensor(dtype.F32, "row=3 in=32").Mul(Number(m.Env, math.NaN(), 0, false))
	tests := []struct {
		name string
		run  func()
		want string
	}{
		{"blocks", func() { x.Quantize(q4k, "in") },
			`quantize: axis "in" is 64 in x[row=2, in=64], no multiple of the 256 of a q4_k block; ` +
				`formats of smaller blocks are q8_0, q4_0, iq4_nl and mxfp4, of 32`},
		{"plain dtype", func() { x.Quantize(dtype.F16, "") },
			"quantize: f16 is no quantized dtype, want one of q4_0 q4_1 q5_0 q5_1 q8_0 q8_1 q2_k q3_k q4_k q5_k " +
				"q6_k q8_k iq2_xxs iq2_xs iq3_xxs iq1_s iq4_nl iq3_s iq2_s iq4_xs iq1_m tq1_0 tq2_0 mxfp4 " +
				`nvfp4 q1_0 q2_0; use x.cast("f16")`},
		{"no importance", func() { m.Tensor(dtype.F32, "in=256").Quantize(quantized(t, "iq1_s"), "") },
			"quantize: row 0: iq1_s needs an importance matrix: at so few bits it decides what is kept"},
		{"not finite", func() { nan.Quantize(q40, "") },
			"quantize: row 0: q4_0: weight 0 is NaN, want a finite number"},
		{"f64", func() { f64.Quantize(q40, "") }, `quantize: x[row=2, in=64] is f64, want f32; use x.cast("f32")`},
		{"pointwise", func() { w.ReLU() },
			`relu: x[out=3, in=64] is q4_0, which is quantized, want plain numbers; x.dequantize()`},
		{"on the left", func() { w.Dot(x, "in") },
			"dot: x[out=3, in=64] is q4_0, which is quantized, want plain numbers (with w[row=2, in=64]); " +
				`the quantized one comes second: w.dot(x, "in")`},
		{"on both sides", func() { w.Dot(w, "in") },
			"dot: x[out=3, in=64] is q4_0, which is quantized, want plain numbers; decode it: x.dequantize()"},
		{"too long", func() { m.Tensor(dtype.F32, "row=2 in=32").Dot(w, "in") },
			`dot: axis "in" is 32 in x[row=2, in=32] but 64 in w[out=3, in=64]; slice one of them: ` +
				`w.dequantize().slice(in_=(0, 32))`},
		{"cast to it", func() { x.Cast(q40) },
			`cast: dtype is "q4_0", which is quantized, want one of f32 f64 f16 bf16 i8 u8 ` +
				`i16 i32 i64 bool; quantize the result: x.quantize("q4_0")`},
		{"across the blocks", func() { m.Tensor(dtype.F32, "row=2 out=3").Dot(w, "out") },
			`dot: w[out=3, in=64] has its blocks of q4_0 along "in", want them along "out" (with x[row=2, out=3]); ` +
				`quantize it along "out": w.dequantize().quantize("q4_0", "out")`},
		{"not the last", func() { m.Tensor(dtype.F32, "row=2 head=4").Dot(split, "head") },
			`dot: w[out=3, head=4, head_dim=32] has its blocks of q4_0 along "head_dim", want them along "head" ` +
				`(with x[row=2, head=4]); quantize it along "head": w.dequantize().quantize("q4_0", "head")`},
		{"f64 times it", func() { f64.Dot(w, "in") },
			`dot: x[row=2, in=64] is f64 and w[out=3, in=64] is q4_0, whose numbers are f32; use x.cast("f32")`},
		{"embedding", func() { m.Indices(dtype.I64, 3, "row=2").Embedding(w, "in") },
			`embedding: weight[out=3, in=64] has its blocks of q4_0 along "in", want them along "out" ` +
				`(with indices[row=2]); quantize it along "out": weight.dequantize().quantize("q4_0", "out")`},
		{"plain", func() { x.Dequantize() },
			"dequantize: x[row=2, in=64] is f32, which is not quantized; use x as it is"},
		{"select", func() { w.IndexSelect(m.Indices(dtype.I64, 3, "place=2"), "in") },
			`index_select: x[out=3, in=64] has its blocks of q4_0 along "in", of which single places cannot be taken ` +
				"(with index[place=2]); x.dequantize()"},
		{"gather", func() { w.Gather(m.Indices(dtype.I64, 3, "in=2"), "out") },
			`gather: x[out=3, in=64] and index[in=2] share "in", and blocks of q4_0 are taken whole; x.dequantize()`},
		{"experts behind", func() {
			x, ids := m.Tensor(dtype.F32, "row=2 embed=64"), m.Indices(dtype.I64, 2, "row=2 choice=1")
			w := m.Quantized("q4_0", "ffn=32 expert=2 embed=64")
			x.MoE(m.Tensor(dtype.F32, "row=2 choice=1"), ids, w, w, m.Quantized("q4_0", "expert=2 embed=64 ffn=32"))
		}, `moe: the first axis of w_gate[ffn=32, expert=2, embed=64] is "ffn", want that of the experts; ` +
			"w_gate.dequantize()"},
		{"experts' blocks", func() {
			x, ids := m.Tensor(dtype.F32, "row=2 embed=64"), m.Indices(dtype.I64, 2, "row=2 choice=1")
			w := m.Quantized("q4_0", "expert=2 ffn=32 embed=64")
			x.MoE(m.Tensor(dtype.F32, "row=2 choice=1"), ids, w, w, m.Quantized("q4_0", "expert=2 ffn=32 embed=64"))
		}, `moe: w_down[expert=2, ffn=32, embed=64] has its blocks of q4_0 along "embed", want them along "ffn"; ` +
			`quantize it along "ffn": w_down.dequantize().quantize("q4_0", "ffn")`},
		{"assigned from panels", func() { w.Copy().Assign(m.Env.Pack(w, 64, nil)) },
			"assign: the new values, q4_0[out=3, in=64], lie in panels; v.copy()"},
		{"values", func() { w.Float32s() }, "values: q4_0[out=3, in=64] is quantized; x.dequantize()"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := failed(tt.run)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got\n%v\nwant\n%s", err, tt.want)
			}
		})
	}
}

func TestExpertsTogetherMisuse(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 1)}
	for shape, want := range map[string]string{
		"expert=2 ffn=32 embed=64": "moe: got no w_up, want it or an axis in w_gate[expert=2, ffn=32, embed=64] that " +
			"tells gate from up, which neither x[row=2, embed=64] nor w_down[expert=2, embed=64, ffn=32] has; as in: " +
			"x, w = ones(row=2, embed=3), ones(expert=4, ffn=5, embed=3); " +
			"weights, indices = route(ones(row=2, expert=4), 2); moe(x, weights, indices, w, w, w)",
		"expert=2 part=3 ffn=32 embed=64": `moe: axis "part" of w_gate[expert=2, part=3, ffn=32, embed=64] is 3, ` +
			"want 2: that of gate and that of up",
	} {
		err := failed(func() {
			x, ids := m.Tensor(dtype.F32, "row=2 embed=64"), m.Indices(dtype.I64, 2, "row=2 choice=1")
			down := m.Tensor(dtype.F32, "expert=2 embed=64 ffn=32")
			x.MoE(m.Tensor(dtype.F32, "row=2 choice=1"), ids, m.Tensor(dtype.F32, shape), nil, down)
		})
		if err == nil || err.Error() != want {
			t.Errorf("got\n%v\nwant\n%s", err, want)
		}
	}
}

// A weight in panels takes its bytes once, beside the weights that were packed before it.
func TestPackedBesideOthers(t *testing.T) {
	e := NewEnv(0, 1)
	defer e.Close()
	m := &Maker{Env: e}
	for _, x := range []*Tensor{m.Quantized("q8_0", "out=1024 in=512"), m.Tensor(dtype.F16, "out=1024 in=512")} {
		e.Collect()
		before, bytes := e.Memory(), len(x.bytes())
		a, b := e.Pack(x, 512, nil), e.Pack(x, 512, nil)
		if now := e.Memory(); now.Buffers != before.Buffers+2 || now.InUse != before.InUse+2*int64(bytes) {
			t.Errorf("two weights of %d bytes take %d buffers and %d bytes", bytes, now.Buffers-before.Buffers,
				now.InUse-before.InUse)
		}
		if gap := uintptr(b.data) - uintptr(a.data); gap != uintptr(bytes) {
			t.Errorf("a weight of %d bytes begins %d bytes behind the one before it", bytes, int(gap))
		}
	}
}

// Packing tells its reader of all bytes once, in their order, and of no more than packPiece at a time.
func TestPackTellsItsReader(t *testing.T) {
	e := NewEnv(0, 2)
	axes, err := axis.Parse("out in")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 45, packPiece/2/512 + 77} {
		x := e.Zeros(dtype.F16, axes, n, 512)
		at := 0
		e.Pack(x, 512, func(piece []byte) {
			if &piece[0] != &x.bytes()[at] || len(piece) > packPiece {
				t.Errorf("%d rows: after %d bytes come %d others", n, at, len(piece))
			}
			at += len(piece)
		})
		if at != n*512*2 {
			t.Errorf("%d rows: told of %d bytes, want %d", n, at, n*512*2)
		}
	}
}
