package core

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/quant"
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

// TestQuantizedProducts insists that a product with a quantized operand has the bits of the product with what that
// decodes to, in every format, for one row and for many, and whatever the axes' order.
func TestQuantizedProducts(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	weigh := m.Tensor(dtype.F32, "in=256").Square()
	for _, f := range quant.Formats() {
		if !f.DType.Quantized() {
			continue
		}
		w := quantize.Call(Quantize{X: m.Tensor(dtype.F32, "out=45 in=256"), DType: f.DType, Importance: weigh})
		plain := w.Dequantize()
		for _, rows := range []int{1, 3, 50} {
			x := m.Tensor(dtype.F32, "in=256 row=%d", rows)
			sameBits(t, f.Name, x.Dot(w, "in"), x.Dot(plain, "in"))
		}
		i := m.Indices(dtype.I64, 45, "row=7")
		sameBits(t, f.Name+" rows", i.Embedding(w, "out"), i.Embedding(plain, "out"))
		sameBits(t, f.Name+" cast", w.Cast(dtype.F32), plain)
	}
	q8 := quantized(t, "q8_0")
	w := m.Tensor(dtype.F32, "out=5 expert=3 head=2 head_dim=32").Quantize(q8, "")
	x := m.Tensor(dtype.F32, "head_dim=32 row=4 expert=3 head=2")
	sameBits(t, "batch", x.Dot(w, "head head_dim"), x.Dot(w.Dequantize(), "head head_dim"))
	sameBits(t, "several", x.Dots("head_dim head", w)[0], x.Dot(w.Dequantize(), "head head_dim"))
	sameBits(t, "renamed", x.Rename("head_dim", "d").Dot(w.Rename("head_dim", "d"), "d"),
		x.Dot(w.Dequantize(), "head_dim").Rename("expert", "expert"))
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
				"x.dequantize()"},
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
		{"values", func() { w.Float32s() }, "values: q4_0[out=3, in=64] is quantized; x.dequantize()"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := func() (err error) {
				defer Recover(&err)
				tt.run()
				return nil
			}()
			if err == nil || err.Error() != tt.want {
				t.Errorf("got\n%v\nwant\n%s", err, tt.want)
			}
		})
	}
}
