package kv

import (
	"slices"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
)

// TestBatchMisuse insists that what does not fit is an error that says so, changes nothing and leaves no memory.
func TestBatchMisuse(t *testing.T) {
	env := core.NewEnv(0, 1)
	zeros := func(names string, sizes ...int) *core.Tensor {
		n := 1
		for _, size := range sizes {
			n *= size
		}
		return floats(env, names, sizes, make([]float64, n)...)
	}
	attend := func(rows int, k *core.Tensor) func(Batch) {
		return func(b Batch) {
			b[0].Rows = rows
			b.Attend(0, core.PagedAttention{Q: zeros("row head head_dim", 2, 2, 32), K: k, V: k})
		}
	}
	delta := func(rows int, k, v *core.Tensor) func(Batch) {
		return func(b Batch) {
			b[0].Rows = rows
			b.DeltaRule(0, k, k, v, zeros("row head", 2, 2), zeros("row head", 2, 2))
		}
	}
	for _, c := range []struct {
		name string
		run  func(b Batch)
		want string // "" for none
	}{
		{"rows", attend(3, zeros("row kv_head head_dim", 2, 2, 32)), "the batch has 3"},
		{"heads", attend(2, zeros("row heads head_dim", 2, 2, 32)), `attend: no axis "kv_head" in k`},
		{"window", func(b Batch) {
			x := zeros("row head head_dim", 2, 2, 32)
			k := x.Rename("head", "kv_head")
			b[0].Rows = 2
			b.Attend(0, core.PagedAttention{Q: x, K: k, V: k, Window: -1})
		}, "attend: window=-1, want 0 or more"},
		{"width", attend(2, zeros("row kv_head width", 2, 2, 32)), `attend: "head_dim" is not in k`},
		{"rows of a state", delta(3, zeros("row head key", 2, 2, 32), zeros("row head value", 2, 2, 32)),
			"the batch has 3"},
		{"keys", delta(2, zeros("row head dim", 2, 2, 32), zeros("row head value", 2, 2, 32)), `no axis "key" in q`},
		{"values", delta(2, zeros("row head key", 2, 2, 32), zeros("row head dim", 2, 2, 32)), `no axis "value" in v`},
		{"rows of a convolution", func(b Batch) {
			b[0].Rows = 3
			b.Convolve(0, zeros("row channel", 2, 4), zeros("channel kernel", 4, 2))
		}, "conv: x, f32[row=2, channel=4], has 2 rows, the batch has 3"},
		{"rows of RWKV", func(b Batch) {
			b[0].Rows = 3
			k, w := zeros("row head key", 2, 2, 4), zeros("head key", 2, 4)
			b.WKV(0, k, k, zeros("row head value", 2, 2, 4), w, w)
		}, "wkv: v[row=2, head=2, value=4] has 2 rows, the batch has 3"},
		{"values of RWKV", func(b Batch) {
			k, w := zeros("row head key", 2, 2, 4), zeros("head key", 2, 4)
			b.WKV(0, k, k, zeros("row head values", 2, 2, 4), w, w)
		}, `no axis "value" in v`},
		{"no keys", delta(2, zeros("row head key", 2, 2, 0), zeros("row head value", 2, 2, 32)), ""},
	} {
		used := env.Memory().InUse
		cache := New(env, 1)
		s := env.Open()
		err := func() (err error) {
			defer core.Recover(&err)
			c.run(Batch{{Cache: cache}})
			return nil
		}()
		s.Close()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
		if n := cache.Len(); n != 0 {
			t.Errorf("%s: %d positions count", c.name, n)
		}
		cache.Free()
		if n := env.Memory().InUse; n != used {
			t.Errorf("%s: %d bytes are in use, %d were before", c.name, n, used)
		}
	}
}

// TestDiscard insists that a pass which is given up leaves what there was, and no memory.
func TestDiscard(t *testing.T) {
	env := core.NewEnv(0, 1)
	m := &core.Maker{Env: env}
	k, x := m.Tensor(dtype.F32, "row=70 kv_head=1 head_dim=32"), m.Tensor(dtype.F32, "row=70 channel=4")
	w, v := m.Tensor(dtype.F32, "channel=4 kernel=3"), m.Tensor(dtype.F32, "row=70 head=1 value=4")
	q, one := m.Tensor(dtype.F32, "row=70 head=1 key=4"), m.Tensor(dtype.F32, "row=70 head=1").Sigmoid()
	a, c := New(env, 2), New(env, 2)
	defer a.Free()
	defer c.Free()
	run := func(b Batch) (got []float32) {
		s := env.Open()
		defer s.Close()
		got = b.Attend(0, core.PagedAttention{Q: k.Rename("kv_head", "head"), K: k, V: k}).Float32s()
		got = append(got, b.Convolve(0, x, w).Float32s()...)
		return append(got, b.DeltaRule(1, q, q, v, one, one).Float32s()...)
	}
	run(Batch{{a, 60}, {c, 10}})
	Batch{{a, 60}, {c, 10}}.Commit()
	used := env.Memory().InUse
	var want []float32
	for range 2 {
		got := run(Batch{{c, 50}, {a, 20}})
		if want == nil {
			want = got
		} else if !slices.Equal(got, want) {
			t.Error("a pass that was given up changed the next")
		}
		Batch{{c, 50}, {a, 20}}.Discard()
		if n := env.Memory().InUse; n != used {
			t.Errorf("%d bytes in use after a pass that was given up, %d before", n, used)
		}
	}
	if a.Len() != 60 || c.Len() != 10 {
		t.Errorf("%d and %d positions count, want 60 and 10", a.Len(), c.Len())
	}
}
