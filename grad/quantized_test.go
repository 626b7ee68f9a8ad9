package grad_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
)

// TestQuantized: the gradient through a product with a quantized operand is that with the numbers it stands for.
func TestQuantized(t *testing.T) {
	env := core.NewEnv(0, 1)
	m := &core.Maker{Env: env}
	w := m.Quantized("q4_0", "out=3 in=32")
	x, gy := m.Tensor(dtype.F32, "row=2 in=32"), m.Tensor(dtype.F32, "row=2 out=3")
	gradient := func(w *core.Tensor) []float64 {
		v := env.Watch(x)
		backward(v.Dot(w, "in").Mul(gy).Sum())
		return list(v.Variable().Grad)
	}
	got, want := gradient(w), gradient(w.Dequantize())
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 64 {
		t.Errorf("%d gradients (-want +got):\n%s", len(got), diff)
	}
}

// TestQuantizedExperts: the same through a mixture.
func TestQuantizedExperts(t *testing.T) {
	env := core.NewEnv(0, 1)
	m := &core.Maker{Env: env}
	w, down := m.Quantized("q4_0", "expert=3 ffn=64 embed=32"), m.Quantized("q8_0", "expert=3 embed=32 ffn=64")
	x, weights := m.Tensor(dtype.F32, "row=5 embed=32"), m.Tensor(dtype.F32, "row=5 choice=2")
	gy := m.Tensor(dtype.F32, "row=5 embed=32")
	ids := m.Indices(dtype.I64, 3, "row=5 choice=2")
	gradient := func(w, down *core.Tensor) []float64 {
		v, u := env.Watch(x), env.Watch(weights)
		backward(v.MoE(u, ids, w, w, down).Mul(gy).Sum())
		return append(list(v.Variable().Grad), list(u.Variable().Grad)...)
	}
	got, want := gradient(w, down), gradient(w.Dequantize(), down.Dequantize())
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 170 {
		t.Errorf("%d gradients (-want +got):\n%s", len(got), diff)
	}
}
