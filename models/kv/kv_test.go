package kv

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

func floats(env *core.Env, axes string, sizes []int, xs ...float64) *core.Tensor {
	return env.FromFloats(dtype.F32, xs, must(axis.Parse(axes)), sizes...)
}

// A convolution remembers rows, but not those of a pass that did not end with Commit.
func TestConvolve(t *testing.T) {
	env := core.NewEnv(0, 0)
	c := New(env, 1)
	w := floats(env, "channel kernel", []int{1, 3}, 100, 10, 1)
	run := func(xs ...float64) []float32 {
		return Batch{{c, len(xs)}}.Convolve(0, floats(env, "row channel", []int{len(xs), 1}, xs...), w).Float32s()
	}
	if got, want := run(9, 9), []float32{9, 99}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := run(1, 2), []float32{1, 12}; !slices.Equal(got, want) {
		t.Errorf("after a pass without Commit: got %v, want %v", got, want)
	}
	c.Commit(2)
	if got, want := run(3, 4, 5, 6), []float32{123, 234, 345, 456}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	c.Commit(4)
	if n := c.Truncate(6); n != 6 {
		t.Errorf("%d positions count, want all 6", n)
	}
	if n := c.Truncate(5); n != 2 || c.Len() != 2 {
		t.Errorf("%d of %d positions count, want 2, the last point before 5", n, c.Len())
	}
	if got, want := run(3, 4, 5, 6), []float32{123, 234, 345, 456}; !slices.Equal(got, want) {
		t.Errorf("after going back: got %v, want %v", got, want)
	}
	if n := c.Truncate(1); n != 0 || c.Len() != 0 {
		t.Errorf("%d of %d positions count, want 0: there is no point before 2", n, c.Len())
	}
	if got, want := run(7), []float32{7}; !slices.Equal(got, want) {
		t.Errorf("after all is forgotten: got %v, want %v", got, want)
	}
}

// The delta rule with one key: the state of a head is one number, S = decay·S + k·beta·(v - k·decay·S).
func TestDeltaRule(t *testing.T) {
	env := core.NewEnv(0, 0)
	c := New(env, 1)
	one := func(axes string, xs ...float64) *core.Tensor {
		sizes := []int{len(xs), 1, 1}
		return floats(env, axes, sizes[:must(axis.Parse(axes)).Len()], xs...)
	}
	y := Batch{{c, 2}}.DeltaRule(0, one("row head key", 2, 1), one("row head key", 1, 2), one("row head value", 8, 10),
		one("row head", 1, 0.5), one("row head", 0.5, 0.25))
	// S = 4, y = 8; then S = 2 + 2·0.25·(10 - 4) = 5, y = 5
	if got, want := y.Float32s(), []float32{8, 5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	c.Commit(2)
	y = Batch{{c, 1}}.DeltaRule(0, one("row head key", 1), one("row head key", 1), one("row head value", 0),
		one("row head", 1), one("row head", 0))
	if got, want := y.Float32s(), []float32{5}; !slices.Equal(got, want) {
		t.Errorf("the state is %v, want %v", got, want)
	}
}

// Latent attention stores keys alone, whose beginning is the value; what is truncated is seen no more.
func TestAttendLatent(t *testing.T) {
	env := core.NewEnv(0, 0)
	c := New(env, 1)
	attend := func(k ...float64) []float32 {
		return Batch{{c, 1}}.Attend(0, core.PagedAttention{Q: floats(env, "row head head_dim", []int{1, 1, 2}, 0, 0),
			K: floats(env, "row kv_head head_dim", []int{1, 1, 2}, k...), Value: 1}).Float32s()
	}
	for i, want := range []float32{4, 3} {
		if got := attend(float64(4-2*i), 7); !slices.Equal(got, []float32{want}) {
			t.Errorf("row %d: got %v, want %g", i, got, want)
		}
		c.Commit(1)
	}
	if n := c.Truncate(1); n != 1 {
		t.Errorf("%d positions count, want 1", n)
	}
	if got := attend(6, 7); !slices.Equal(got, []float32{5}) {
		t.Errorf("got %v, want 5", got)
	}
	c.Free()
}

// With one key and one value the state of a head is one number, S = decay·S + k·v, and y = r·(S before + first·k·v).
func TestWKV(t *testing.T) {
	env := core.NewEnv(0, 1)
	c := New(env, 1)
	run := func(r, k, v []float64) []float32 {
		row := func(axes string, xs []float64) *core.Tensor { return floats(env, axes, []int{len(xs), 1, 1}, xs...) }
		return Batch{{c, len(r)}}.WKV(0, row("row head key", r), row("row head key", k), row("row head value", v),
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

// A number of layers that no model has is refused before memory is asked for it.
func TestNewRefuses(t *testing.T) {
	env := core.NewEnv(0, 1)
	defer env.Close()
	for _, n := range []int{-1, 1 << 40, math.MaxInt} {
		var err error
		func() {
			defer core.Recover(&err)
			New(env, n)
		}()
		if err == nil || !strings.Contains(err.Error(), "layers, want 0 … 1048576") {
			t.Errorf("%d layers: got %v", n, err)
		}
	}
}
