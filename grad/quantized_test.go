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
	x := m.Tensor(dtype.F32, "row=2 in=32")
	gradient := func(w *core.Tensor) []float64 {
		v := env.Watch(x)
		y := v.Dot(w, "in")
		backward(y.Mul(y).Sum())
		return list(v.Variable().Grad)
	}
	got, want := gradient(w), gradient(w.Dequantize())
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 64 {
		t.Errorf("%d gradients (-want +got):\n%s", len(got), diff)
	}
}
