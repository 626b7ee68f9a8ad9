package core

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fucina-go/fucina/core/dtype"
)

// The rule as it is written, in f64; x(name, row, g, h, j) is an element of an operand.
func deltaDefinition(rows, groups, heads, keys, values int, x func(name string, row, g, h, j int) float64) []float64 {
	var ys []float64
	state := make([]float64, groups*heads*keys*values)
	for row := range rows {
		for g := range groups {
			for h := range heads {
				s := state[(g*heads+h)*keys*values:][:keys*values]
				for j := range values {
					found := 0.0
					for i := range keys {
						s[i*values+j] *= x("decay", row, g, h, 0)
						found += s[i*values+j] * x("k", row, g, h, i)
					}
					change := x("beta", row, g, h, 0) * (x("v", row, g, h, j) - found)
					y := 0.0
					for i := range keys {
						s[i*values+j] += x("k", row, g, h, i) * change
						y += s[i*values+j] * x("q", row, g, h, i)
					}
					ys = append(ys, y)
				}
			}
		}
	}
	return ys
}

// The delta rule is what its definition says, with the same bits however the rows are cut up, among rows of other
// sequences, in any order of axes and for any number of workers.
func TestDeltaRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := NewEnv(0, rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(t, "workers"))
		defer env.Close()
		env.Seed(uint64(rapid.IntRange(0, 1000).Draw(t, "seed")))
		groups, heads := rapid.IntRange(1, 2).Draw(t, "group"), rapid.IntRange(1, 3).Draw(t, "head")
		keys := rapid.SampledFrom([]int{1, 3, 16, 20}).Draw(t, "key")
		values := rapid.SampledFrom([]int{1, 5, 16, 33}).Draw(t, "value")
		rows := rapid.SampledFrom([]int{1, 2, 9}).Draw(t, "rows")
		normal := func(axes string, sizes ...int) *Tensor { return env.Randn(dtype.F32, axisList(axes), sizes...) }
		all := map[string]*Tensor{
			"q":     normal("row head key", rows, heads, keys),
			"k":     normal("row head key", rows, heads, keys),
			"v":     normal("row group head value", rows, groups, heads, values),
			"decay": normal("row group head", rows, groups, heads).Sigmoid(),
			"beta":  normal("group row head", groups, rows, heads).Sigmoid()}
		all["k"] = all["k"].Div(all["k"].Square().Sum("key").Sqrt())
		whole := deltaOf(env, all, [][2]int{{0, rows}}, nil)
		flat := map[string][]float32{}
		for name, x := range all {
			order := map[string]string{"q": "row head key", "k": "row head key", "v": "row group head value"}[name]
			if order == "" {
				order = "row group head"
			}
			flat[name] = x.Order(order).Copy().Float32s()
		}
		want := deltaDefinition(rows, groups, heads, keys, values, func(name string, row, g, h, j int) float64 {
			switch name {
			case "q", "k":
				return float64(flat[name][(row*heads+h)*keys+j])
			case "v":
				return float64(flat[name][((row*groups+g)*heads+h)*values+j])
			}
			return float64(flat[name][(row*groups+g)*heads+h])
		})
		for i, x := range whole {
			if math.Abs(float64(x)-want[i]) > 1e-4*(1+math.Abs(want[i])) {
				t.Fatalf("element %d is %g, want %g", i, x, want[i])
			}
		}
		cut := rapid.IntRange(0, rows-1).Draw(t, "cut")
		other := map[string]*Tensor{}
		for name, x := range all {
			other[name] = x.Mul(x)
		}
		if got := deltaOf(env, all, [][2]int{{0, cut}, {cut, rows}}, other); !slices.Equal(got, whole) {
			t.Fatalf("cut at %d of %d, among others, the bits differ", cut, rows)
		}
	})
}

// deltaOf is the results for one sequence, whose rows come in pieces, each behind the rows of another sequence if there
// is one.
func deltaOf(env *Env, all map[string]*Tensor, pieces [][2]int, other map[string]*Tensor) (ys []float32) {
	var state, past *Tensor
	for _, piece := range pieces {
		n, from := piece[1]-piece[0], 0
		if n == 0 {
			continue
		}
		one := func(name string) *Tensor {
			x := all[name].Slice("row", piece[0], piece[1], 1)
			if other != nil {
				x = ConcatAll("row", other[name].Slice("row", piece[0], piece[1], 1), x)
			}
			return x
		}
		a := DeltaRule{Q: one("q"), K: one("k"), V: one("v"), Decay: one("decay"), Beta: one("beta")}
		if other != nil {
			a.V, from = a.V.Order("value row group head").Copy(), n
			a.Parts = append(a.Parts, StateRows{n, past, MakeState(env, a.K, a.V)})
			past = a.Parts[0].To
		}
		next := MakeState(env, a.K, a.V)
		a.Parts = append(a.Parts, StateRows{n, state, next})
		state = next
		y := ApplyDeltaRule(a).Order("row group head value").Slice("row", from, from+n, 1)
		ys = append(ys, y.Copy().Float32s()...)
	}
	return ys
}

// BenchmarkDeltaRule is rows of one sequence in a layer of a small Qwen 3.5: 16 heads of 128 keys and values.
func BenchmarkDeltaRule(b *testing.B) {
	for _, rows := range []int{1, 64} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			env := NewEnv(0, 0)
			defer env.Close()
			k := env.Randn(dtype.F32, axisList("row", "head", "key"), rows, 16, 128).times(0.01)
			v := env.Randn(dtype.F32, axisList("row", "head", "value"), rows, 16, 128)
			decay := env.Randn(dtype.F32, axisList("row", "head"), rows, 16).Sigmoid()
			state := MakeState(env, k, v)
			state.Fill(make([]float32, state.Len()))
			for range b.N {
				next := MakeState(env, k, v)
				ApplyDeltaRule(DeltaRule{Q: k, K: k, V: v, Decay: decay, Beta: decay,
					Parts: []StateRows{{rows, state, next}}}).Free()
				next.Free()
			}
			b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
