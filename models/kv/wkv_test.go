package kv

import (
	"slices"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// With one key and one value the state of a head is one number, S = decay·S + k·v, and y = r·(S before + first·k·v).
func TestWKV(t *testing.T) {
	env := core.NewEnv(0, 1)
	c := New(env, 1)
	run := func(r, k, v []float64) []float32 {
		row := func(axes string, xs []float64) *core.Tensor { return floats(env, axes, []int{len(xs), 1, 1}, xs...) }
		return c.WKV(0, row("row head key", r), row("row head key", k), row("row head value", v),
			floats(env, "head key", []int{1, 1}, 0.5), floats(env, "head key", []int{1, 1}, 3)).Float32s()
	}
	// S: 0, 8, 4 + 2
	if got := run([]float64{1, 10}, []float64{2, 1}, []float64{4, 2}); !slices.Equal(got, []float32{24, 140}) {
		t.Errorf("got %v, want 24 and 140", got)
	}
	c.Commit(2)
	if got, want := run([]float64{1}, []float64{0}, []float64{7}), []float32{6}; !slices.Equal(got, want) {
		t.Errorf("the state is %v, want %v", got, want)
	}
	if got := run([]float64{1}, []float64{0}, []float64{7}); got[0] != 6 {
		t.Errorf("a pass without Commit changed the state to %v", got)
	}
	if n := c.Truncate(1); n != 0 {
		t.Errorf("%d positions count, want none: a state cannot forget one", n)
	}
}

// However many rows are computed at once, the bits are the same.
func TestWKVPieces(t *testing.T) {
	defer func(n int) { wkvElements = n }(wkvElements)
	env := core.NewEnv(0, 2)
	m := &core.Maker{Env: env}
	r, k := m.Tensor(dtype.F32, "row=7 head=2 key=3"), m.Tensor(dtype.F32, "row=7 head=2 key=3")
	v := m.Tensor(dtype.F32, "row=7 head=2 value=4")
	decay, first := m.Tensor(dtype.F32, "head=2 key=3").Sigmoid(), m.Tensor(dtype.F32, "head=2 key=3")
	var want []float32
	for _, n := range []int{1 << 20, 24, 72, 1} {
		wkvElements = n
		c := New(env, 1)
		got := c.WKV(0, r, k, v, decay, first).Float32s()
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("with %d elements at once: got %v, want %v", n, got, want)
		}
		c.Free()
	}
}

func TestWKVMisuse(t *testing.T) {
	env := core.NewEnv(0, 1)
	one := floats(env, "row head key", []int{1, 1, 1}, 1)
	head := floats(env, "head key", []int{1, 1}, 1)
	for want, v := range map[string]*core.Tensor{
		`no axis "row" in v, f32[head=1, value=1]`:  floats(env, "head value", []int{1, 1}, 1),
		"v: no rows in f32[row=0, head=1, value=1]": env.Zeros(dtype.F32, must(axis.Parse("row head value")), 0, 1, 1),
	} {
		err := func() (err error) {
			defer core.Recover(&err)
			New(env, 1).WKV(0, one, one, v, head, head)
			return nil
		}()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
