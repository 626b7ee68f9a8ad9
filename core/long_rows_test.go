package core

import (
	"fmt"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/num"
)

// Rows that are normalized in pieces, so that an interrupt comes in between, have the bits of those in one.
func TestLongRows(t *testing.T) {
	env := NewEnv(0, 2)
	defer env.Close()
	m := &Maker{Env: env}
	for _, n := range []int{pauseLen, pauseLen + 1, 3*pauseLen + 17, num.Block + 1, 5*num.Block + 33} {
		x := m.Tensor(dtype.F32, "row=2 embed=%d", n)
		w, b := m.Tensor(dtype.F32, "embed=%d", n), m.Tensor(dtype.F32, "embed=%d", n)
		layer := layerNorm.Call(LayerNorm{X: x, Weight: w, Bias: b, Axes: axisList("embed"), Eps: 1e-5})
		rms := rmsNorm.Call(RMSNorm{X: x, Weight: w, Eps: 1e-5})
		want, wantRMS := env.Tensor(dtype.F32, x.axes, 2, n), env.Tensor(dtype.F32, x.axes, 2, n)
		for i := range 2 {
			ws, bs, xs := elementsOf[float32](w), elementsOf[float32](b), row[float32](x, i, n)
			num.LayerNormRow(row[float32](want, i, n), xs, ws, bs, 1e-5)
			num.RMSNormRow(row[float32](wantRMS, i, n), xs, ws, 1e-5)
		}
		sameBits(t, fmt.Sprintf("layer_norm of %d", n), layer, want)
		sameBits(t, fmt.Sprintf("rms_norm of %d", n), rms, wantRMS)
	}
}

// Memory that is written in several places at once is asked for before, 2 MiB between two looks at whether to stop.
func TestTouch(t *testing.T) {
	env := NewEnv(0, 1)
	defer env.Close()
	defer func() { paused = nil }()
	m := &Maker{Env: env}
	x := m.Tensor(dtype.F32, "x=600000")
	w := m.Tensor(dtype.F32, "out=8 kx=2")
	looks := 0
	paused = func() { looks++ }
	y := conv.Call(Conv{Convolution: Convolution{Input: x, Weight: w, Stride: Every(1), Dilation: Every(1), Groups: 1,
		Spatial: Map[string]{axisList("x"), []string{"kx"}}}})
	if pages := 4 * y.Len() >> 21; looks < pages || pages < 9 {
		t.Errorf("%d looks for %d huge pages", looks, pages)
	}
}
