package kv

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fucina-go/fucina/core"
)

// attended stores a number as keys and values of each row in two layers, the second of which has a window, and returns
// what they say of the rows.
func attended(env *core.Env, b Batch, ids []float64) (all [][]float32) {
	var x []float64
	for _, id := range ids {
		x = append(x, id, id*id/7, 1-id)
	}
	for i := range 2 {
		k := floats(env, "row kv_head head_dim", []int{len(ids), 1, 3}, x...)
		y := b.Attend(i, core.PagedAttention{Q: k.Rename("kv_head", "head"), K: k, V: k, Window: i * 40})
		all = append(all, slices.Clone(y.Float32s()))
		y.Free()
		k.Free()
	}
	return all
}

// TestForks extends, forks, cuts back, exchanges and frees caches in any order, with passes that do not count among
// the rest. What each cache says of its next row is what a new one says that was given the same rows, bit for bit; in
// the end all memory is given back.
func TestForks(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	type held struct {
		*Cache
		ids []float64 // that count
	}
	caches := []*held{{Cache: New(env, 2)}}
	r := rand.New(rand.NewPCG(1, 2))
	rows := func(n int) []float64 {
		list := make([]float64, n)
		for i := range list {
			list[i] = r.Float64()*2 - 1
		}
		return list
	}
	for step := range 400 {
		h := caches[r.IntN(len(caches))]
		switch next := rows(1 + r.IntN(2*core.PageLen)); r.IntN(7) {
		case 0, 1:
			attended(env, Batch{{h.Cache, len(next)}}, next)
			h.Commit(len(next))
			h.ids = append(slices.Clone(h.ids), next...)
		case 2:
			attended(env, Batch{{h.Cache, len(next)}}, next)
			Batch{{h.Cache, len(next)}}.Discard()
		case 3:
			if len(caches) < 6 {
				caches = append(caches, &held{h.Fork(), h.ids})
			}
		case 4:
			h.ids = h.ids[:h.Truncate(r.IntN(len(h.ids)+1))]
		case 5:
			other := caches[r.IntN(len(caches))]
			if other != h {
				h.Swap(other.Cache)
				h.ids, other.ids = other.ids, h.ids
			}
		case 6:
			if len(h.ids) > 6*core.PageLen {
				h.Free()
				h.ids = nil
			}
		}
		if h.Len() != len(h.ids) {
			t.Fatalf("step %d: the cache has %d positions, want %d", step, h.Len(), len(h.ids))
		}
		anew, next := New(env, 2), rows(1)
		want := attended(env, Batch{{anew, len(h.ids) + 1}}, slices.Concat(h.ids, next))
		got := attended(env, Batch{{h.Cache, 1}}, next)
		for i := range want {
			if !slices.Equal(got[i], want[i][len(want[i])-3:]) {
				t.Fatalf("step %d: after %d rows layer %d gives %v, want %v", step, len(h.ids), i, got[i],
					want[i][len(want[i])-3:])
			}
		}
		anew.Free()
		if r.IntN(2) == 0 {
			Batch{{h.Cache, 1}}.Discard()
		}
	}
	for _, h := range caches {
		h.Free()
	}
	env.Collect()
	if n := env.Memory().InUse; n != 0 {
		t.Errorf("%d bytes are in use", n)
	}
}
