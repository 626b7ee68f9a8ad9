package core

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fucina-go/fucina/core/dtype"
)

// The recurrence is what its definition says, in f64, with the same bits however the rows are cut up, among rows of
// other sequences, in any order of axes and for any number of workers.
func TestWKV(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := NewEnv(0, rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(t, "workers"))
		defer env.Close()
		env.Seed(uint64(rapid.IntRange(0, 1000).Draw(t, "seed")))
		heads := rapid.IntRange(1, 3).Draw(t, "head")
		keys := rapid.SampledFrom([]int{1, 3, 16, 20}).Draw(t, "key")
		values := rapid.SampledFrom([]int{1, 5, 16, 33}).Draw(t, "value")
		rows := rapid.SampledFrom([]int{1, 2, 9}).Draw(t, "rows")
		normal := func(axes string, sizes ...int) *Tensor { return env.Randn(dtype.F32, axisList(axes), sizes...) }
		a := WKV{R: normal("row head key", rows, heads, keys), K: normal("head row key", heads, rows, keys),
			V: normal("row head value", rows, heads, values), Decay: normal("key head", keys, heads).Sigmoid(),
			First: normal("head key", heads, keys)}
		whole := wkvOf(env, a, nil, 0, rows)
		r, k, v := a.R.Float32s(), a.K.Order("row head key").Copy().Float32s(), a.V.Float32s()
		decay, first := a.Decay.Order("head key").Copy().Float32s(), a.First.Float32s()
		state := make([]float64, heads*keys*values)
		for row := range rows {
			for h := range heads {
				for j := range values {
					y := 0.0
					for i := range keys {
						s, at := &state[(h*keys+i)*values+j], (row*heads+h)*keys+i
						pair := float64(k[at]) * float64(v[(row*heads+h)*values+j])
						y += float64(r[at]) * (*s + float64(first[h*keys+i])*pair)
						*s = *s*float64(decay[h*keys+i]) + pair
					}
					got := float64(whole[(row*heads+h)*values+j])
					if math.Abs(got-y) > 1e-4*(1+math.Abs(y)) {
						t.Fatalf("row %d, head %d, value %d is %g, want %g", row, h, j, got, y)
					}
				}
			}
		}
		cut, other := rapid.IntRange(0, rows-1).Draw(t, "cut"), a
		other.R, other.K, other.V = a.R.Mul(a.R), a.K.Mul(a.K), a.V.Mul(a.V)
		if got := wkvOf(env, a, &other, cut, rows); !slices.Equal(got, whole) {
			t.Fatalf("cut at %d of %d, among others, the bits differ", cut, rows)
		}
	})
}

// wkvOf is the results for a sequence, whose rows come in two pieces, each behind the rows of another sequence if there
// is one.
func wkvOf(env *Env, a WKV, other *WKV, cut, rows int) (ys []float32) {
	var state, past *Tensor
	for _, piece := range [][2]int{{0, cut}, {cut, rows}} {
		n, from := piece[1]-piece[0], 0
		if n == 0 {
			continue
		}
		b := a
		for j, x := range []**Tensor{&b.R, &b.K, &b.V} {
			*x = (*x).Slice("row", piece[0], piece[1], 1)
			if other != nil {
				*x = ConcatAll("row", []*Tensor{other.R, other.K, other.V}[j].Slice("row", piece[0], piece[1], 1), *x)
			}
		}
		if other != nil {
			b.V, from = b.V.Order("value row head").Copy(), n
			next := MakeState(env, b.K, b.V)
			b.Parts, past = append(b.Parts, StateRows{n, past, next}), next
		}
		next := MakeState(env, b.K, b.V)
		b.Parts, state = append(b.Parts, StateRows{n, state, next}), next
		y := ApplyWKV(b).Order("row head value").Slice("row", from, from+n, 1)
		ys = append(ys, y.Copy().Float32s()...)
	}
	return ys
}
