package core

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fucina-go/fucina/core/dtype"
)

// pagesOf are pages for n positions.
func pagesOf(env *Env, dt dtype.Type, n, kvHeads, width, value int) []Page {
	var pages []Page
	for len(pages)*PageLen < n {
		pages = append(pages, NewPage(env, dt, kvHeads, width, value))
	}
	return pages
}

// asKept is x as a page of that dtype has it.
func asKept(env *Env, x *Tensor, dt dtype.Type) *Tensor {
	switch {
	case dt == dtype.F32:
		return x
	case dt == dtype.F16:
		return x.Cast(dtype.F16).Cast(dtype.F32)
	}
	n := x.Size("head_dim")
	padded := env.Zeros(dtype.F32, x.Axes(), append(x.Sizes()[:2], paddedTo(dt, n))...)
	padded.SetSlice(x, "head_dim", 0, n)
	return padded.Quantize(dt, "head_dim").Dequantize().Slice("head_dim", 0, n, 1)
}

// Rows of several sequences in pages have the bits of attention to their own sequence as it lies, whichever came
// before in the pages and how the rows are cut up.
func TestPagedAttention(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := NewEnv(0, rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(t, "workers"))
		defer env.Close()
		env.Seed(uint64(rapid.IntRange(0, 1000).Draw(t, "seed")))
		dt := rapid.SampledFrom(PageTypes()).Draw(t, "dtype")
		kvHeads := rapid.IntRange(1, 3).Draw(t, "kv_head")
		heads := kvHeads * rapid.SampledFrom([]int{1, 2, 5}).Draw(t, "group")
		width := rapid.SampledFrom([]int{1, 8, 17, 32, 40}).Draw(t, "width")
		value := rapid.SampledFrom([]int{1, 8, 33}).Draw(t, "value")
		latent := rapid.Bool().Draw(t, "latent")
		if latent {
			value = min(value, width)
		}
		a := PagedAttention{Window: rapid.SampledFrom([]int{0, 0, 1, 5, 70}).Draw(t, "window"),
			Scale: rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "scale"), Value: value,
			Softcap: rapid.SampledFrom([]float64{0, 0, 2}).Draw(t, "softcap")}
		normal := func(rows int, heads string, n, width int) *Tensor {
			return env.Randn(dtype.F32, axisList("row", heads, "head_dim"), rows, n, width)
		}
		type sequence struct{ q, k, v, y *Tensor }
		all := make([]sequence, rapid.IntRange(1, 4).Draw(t, "sequences"))
		pages := make([][]Page, len(all))
		starts := make([]int, len(all))
		for i := range all {
			n := rapid.SampledFrom([]int{1, 2, 20, 64, 65, 150}).Draw(t, "length")
			s := sequence{q: normal(n, "head", heads, width), k: normal(n, "kv_head", kvHeads, width)}
			keys := asKept(env, s.k, dt)
			if s.v = normal(n, "kv_head", kvHeads, value); latent {
				s.v = nil
			}
			values := keys.Slice("head_dim", 0, value, 1)
			if !latent {
				values = asKept(env, s.v, dt)
			}
			s.y = Attend(Attention{Q: s.q, K: keys, V: values, Causal: true, Window: a.Window, Scale: a.Scale,
				Softcap: a.Softcap})
			all[i], pages[i] = s, pagesOf(env, dt, n, kvHeads, width, value*btoi(!latent))
		}
		for range 6 {
			var q, k, v, want []*Tensor
			b := a
			for i, s := range all {
				n := min(rapid.SampledFrom([]int{0, 1, 1, 30, 150}).Draw(t, "rows"), s.q.Size("row")-starts[i])
				if n == 0 {
					continue
				}
				cut := func(x *Tensor) *Tensor { return x.Slice("row", starts[i], starts[i]+n, 1) }
				q, k, want = append(q, cut(s.q)), append(k, cut(s.k)), append(want, cut(s.y))
				if !latent {
					v = append(v, cut(s.v))
				}
				b.Parts = append(b.Parts, PagedRows{Rows: n, Start: starts[i], Pages: pages[i]})
				starts[i] += n
			}
			if len(q) == 0 {
				continue
			}
			if b.Q, b.K = ConcatAll("row", q...), ConcatAll("row", k...); !latent {
				b.V = ConcatAll("row", v...)
			}
			if rapid.Bool().Draw(t, "turned") {
				b.Q, b.K = b.Q.Order("head_dim head row").Copy(), b.K.Order("kv_head row head_dim")
			}
			got := AttendPaged(b).Order("row head head_dim").Copy().Float32s()
			if !slices.EqualFunc(got, ConcatAll("row", want...).Float32s(), func(x, y float32) bool {
				return math.Float32bits(x) == math.Float32bits(y)
			}) {
				t.Fatal("differs from attention to the whole sequence")
			}
		}
	})
}

func checkFails(t *testing.T, want string, f func()) {
	t.Helper()
	var err error
	func() {
		defer Recover(&err)
		f()
	}()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want …%s…", err, want)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// What does not fit is an error, and so is a position that is not kept.
func TestPagedAttentionErrors(t *testing.T) {
	env := NewEnv(0, 1)
	x := env.Zeros(dtype.F32, axisList("row", "head", "head_dim"), 2, 2, 8)
	k := x.Rename("head", "kv_head")
	pages := pagesOf(env, dtype.F32, 100, 2, 8, 8)
	few := x.Slice("head", 0, 1, 1)
	narrow := k.Slice("head_dim", 0, 4, 1)
	part := []PagedRows{{2, 0, pages}}
	for want, a := range map[string]PagedAttention{
		"not kept":                          {Q: x, K: k, V: k, Parts: []PagedRows{{2, 70, []Page{{}, pages[1]}}}},
		"has 2 rows, the batch has 3":       {Q: x, K: k, V: k, Parts: []PagedRows{{3, 0, pages}}},
		"does not fit what the cache holds": {Q: x, K: k, Value: 4, Parts: part},
		"a value of width 9":                {Q: x, K: k, Value: 9, Parts: part},
		"window=-1, want 0 or more":         {Q: x, K: k, V: k, Window: -1, Parts: part},
		"no multiple of":                    {Q: few, K: k, V: k, Parts: part},
		`axis "head_dim" is 8`:              {Q: x, K: narrow, V: k, Parts: part},
	} {
		checkFails(t, want, func() { AttendPaged(a) })
	}
	q8, _ := dtype.Parse("q8_0")
	inf := env.Zeros(dtype.F32, axisList("row", "kv_head", "head_dim"), 1, 2, 8)
	inf.Fill(slices.Repeat([]float32{float32(math.Inf(1))}, 16))
	checkFails(t, "the cache cannot hold row 0", func() {
		AttendPaged(PagedAttention{Q: x.Slice("row", 0, 1, 1), K: inf, V: inf,
			Parts: []PagedRows{{1, 0, pagesOf(env, q8, 1, 2, 8, 8)}}})
	})
}

// A stop is seen between two blocks of keys, not only between rows.
func TestPagedAttentionStops(t *testing.T) {
	const keys = 1 << 17
	env := NewEnv(0, 1)
	defer env.Close()
	x := env.Zeros(dtype.F32, axisList("row", "head", "head_dim"), 1, 1, 64)
	k := x.Rename("head", "kv_head")
	one := NewPage(env, dtype.F32, 1, 64, 64)
	a := PagedAttention{Q: x, K: k, V: k, Parts: []PagedRows{{1, keys - 1, slices.Repeat([]Page{one}, keys/PageLen)}}}
	pauses := 0
	defer func() { paused = nil }()
	paused = func() {
		if pauses++; pauses == 3 {
			env.Control.Stop()
		}
	}
	var err error
	func() {
		defer Recover(&err)
		AttendPaged(a)
	}()
	if _, ok := err.(*Canceled); !ok || pauses > 4 {
		t.Errorf("ended with %v after %d blocks, want it to stop after 3", err, pauses)
	}
}
