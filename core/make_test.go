package core

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

func TestCast(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	e := NewEnv(0, 1)
	for _, c := range []struct {
		from, to dtype.Type
		x, want  float64
	}{
		{dtype.F32, dtype.I8, 1.9, 1}, {dtype.F32, dtype.I8, -1.9, -1},
		{dtype.F32, dtype.I8, 127.5, 127}, {dtype.F32, dtype.I8, 1000, 127}, {dtype.F32, dtype.I8, -1000, -128},
		{dtype.F32, dtype.U8, -3, 0}, {dtype.F32, dtype.U8, 255.9, 255}, {dtype.F32, dtype.U8, 256, 255},
		{dtype.F64, dtype.I16, inf, math.MaxInt16}, {dtype.F64, dtype.I16, -inf, math.MinInt16},
		{dtype.F64, dtype.I32, nan, 0}, {dtype.F16, dtype.I32, nan, 0}, {dtype.BF16, dtype.U8, nan, 0},
		{dtype.F32, dtype.I64, 1e30, math.MaxInt64}, {dtype.F32, dtype.I64, -1e30, math.MinInt64},
		{dtype.F64, dtype.I64, 1 << 53, 1 << 53},
		{dtype.I64, dtype.I8, 300, 44}, {dtype.I32, dtype.U8, -1, 255}, {dtype.U8, dtype.I8, 200, -56},
		{dtype.I64, dtype.I32, 1<<32 + 5, 5}, {dtype.I16, dtype.I64, -7, -7},
		{dtype.F32, dtype.Bool, 0, 0}, {dtype.F32, dtype.Bool, 0.25, 1}, {dtype.F64, dtype.Bool, nan, 1}, {dtype.I8,
			dtype.Bool, -1, 1},
		{dtype.F64, dtype.Bool, 1e-300, 1}, {dtype.F32, dtype.Bool, math.Copysign(0, -1), 0},
		{dtype.Bool, dtype.F16, 1, 1}, {dtype.Bool, dtype.I64, 1, 1},
		{dtype.F32, dtype.F16, 70000, inf}, {dtype.F32, dtype.F16, 65519, 65504}, {dtype.F32, dtype.F16, 65520, inf},
		{dtype.F32, dtype.F16, 1 + 0x1p-11, 1}, {dtype.F32, dtype.F16, 1 + 3*0x1p-11, 1 + 0x1p-9},
		{dtype.F32, dtype.BF16, 1 + 0x1p-8, 1}, {dtype.F64, dtype.F32, 1 + 0x1p-24, 1}, {dtype.F64, dtype.F32, 1e300,
			inf},
		{dtype.F64, dtype.F16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10}, // f32 between them would round twice
		{dtype.F64, dtype.BF16, 1 + 0x1p-8 - 0x1p-40, 1}, {dtype.F64, dtype.BF16, -1 - 0x1p-8 - 0x1p-40, -1 - 0x1p-7},
		{dtype.F64, dtype.F16, 65520 - 0x1p-30, 65504}, {dtype.F64, dtype.BF16, 1e300, inf}, {dtype.F64, dtype.F16,
			1e-300, 0},
		{dtype.F16, dtype.F64, 0x1p-24, 0x1p-24}, {dtype.I64, dtype.F32, 1<<24 + 1, 1 << 24},
	} {
		x := e.FromFloats(c.from, []float64{c.x}, axis.Empty)
		y := x.Cast(c.to)
		if got := toFloat(y.Item()); y.dtype != c.to || got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%v of %s as %s is %v of %s, want %v", c.x, c.from, c.to, got, y.dtype, c.want)
		}
	}
}

// TestNumberRoundsOnce takes numbers whose nearest f32 lies halfway between two of f16.
func TestNumberRoundsOnce(t *testing.T) {
	e, above := NewEnv(0, 1), 1+0x1p-11+0x1p-40
	zero := e.FromInts(dtype.F16, []int64{0}, axis.Empty)
	for name, x := range map[string]*Tensor{
		"a number": zero.Add(Number(e, above, 0, false)),
		"tensor":   e.FromFloats(dtype.F16, []float64{above}, axis.Empty),
		"full":     full.In(e, Full{Value: above, DType: dtype.F16}),
	} {
		if got := x.Item(); got != 1+0x1p-10 {
			t.Errorf("%s: %v as f16 is %v, want %v", name, above, got, 1+0x1p-10)
		}
	}
}

func TestFull(t *testing.T) {
	e := NewEnv(0, 1)
	for _, dt := range allDTypes {
		axes := Map[int]{axisList("a", "b"), []int{3, 700}}
		for value, x := range map[float64]*Tensor{
			7: full.In(e, Full{Value: 7, Axes: axes, DType: dt}),
			0: zeros.In(e, Zeros{Axes: axes, DType: dt}),
			1: ones.In(e, Ones{Axes: axes, DType: dt}),
		} {
			want := naive{names: []string{"a", "b"}, sizes: index{"a": 3, "b": 700},
				at: func(index) float64 { return rounded(dt, value) }}
			if err := want.compare(x, 0); err != nil || x.dtype != dt {
				t.Errorf("full of %v: %s, %v", value, x.Shape(), err)
			}
		}
	}
}

func TestArange(t *testing.T) {
	e := NewEnv(0, 1)
	for _, c := range []struct {
		start, stop, step float64
		dt                dtype.Type
		want              []float64
	}{
		{0, 5, 1, dtype.I64, []float64{0, 1, 2, 3, 4}},
		{2, 10, 3, dtype.U8, []float64{2, 5, 8}},
		{2, 11, 3, dtype.U8, []float64{2, 5, 8}},
		{5, 0, -2, dtype.I8, []float64{5, 3, 1}},
		{0, 0, 1, dtype.F32, nil},
		{0, -5, 1, dtype.F32, nil},
		{0, 1, 0.25, dtype.F16, []float64{0, 0.25, 0.5, 0.75}},
		{0, 1, 0.3, dtype.F64, []float64{0, 0.3, 0.6, 0.8999999999999999}},
		{-1, 1, 1, dtype.BF16, []float64{-1, 0}},
		{250, 256, 2, dtype.U8, []float64{250, 252, 254}},
	} {
		x := arange.In(e, Arange{Stop: c.stop, Axis: "seq", Start: c.start, Step: c.step, DType: c.dt})
		var got []float64
		for _, v := range x.Values() {
			got = append(got, toFloat(v))
		}
		if x.dtype != c.dt || x.axes != axisList("seq") || !slices.Equal(got, c.want) {
			t.Errorf("from %v to %v by %v: got %s %v, want %v", c.start, c.stop, c.step, x.Shape(), got, c.want)
		}
	}
	long := e.Arange(100_000, "seq", dtype.I32).Int64s()
	for i, v := range long {
		if int(v) != i {
			t.Fatalf("arange: element %d is %d", i, v)
		}
	}
}

func TestTensorDType(t *testing.T) {
	e := NewEnv(0, 1)
	row := axisList("row")
	for _, c := range []struct {
		data Nested
		dt   dtype.Type
		want string
	}{
		{Nested{Ints: []int64{1, 2}}, dtype.Invalid, "i64[row=2]1 2"},
		{Nested{Floats: []float64{1, 2.5}}, dtype.Invalid, "f32[row=2]1 2.5"},
		{Nested{Bools: []bool{true, false}}, dtype.Invalid, "bool[row=2]true false"},
		{Nested{Ints: []int64{1, 2}}, dtype.F16, "f16[row=2]1 2"},
		{Nested{Floats: []float64{1, 2}}, dtype.U8, "u8[row=2]1 2"},
		{Nested{Bools: []bool{true, false}}, dtype.F32, "f32[row=2]1 0"},
		{Nested{Ints: []int64{0, 2}}, dtype.Bool, "bool[row=2]false true"},
		{Nested{Ints: []int64{-128, 127}}, dtype.I8, "i8[row=2]-128 127"},
		{Nested{Floats: []float64{-9223372036854775808, 0}}, dtype.I64, "i64[row=2]-9223372036854775808 0"},
	} {
		c.data.Sizes = []int{2}
		x := fromLists.In(e, FromLists{Data: c.data, Axes: row, DType: c.dt})
		if got := x.Shape() + fmt.Sprint(x.Values()[0], " ", x.Values()[1]); got != c.want {
			t.Errorf("%+v as %s: got %s, want %s", c.data, c.dt, got, c.want)
		}
	}
}
