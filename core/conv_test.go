package core

import (
	"fmt"
	"math"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
)

// TestConvTiles compares convolutions of many products, places and channels, which take several tiles and parts of
// sums, with their definition.
func TestConvTiles(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	for _, c := range []struct{ batch, in, out, size, kernel, stride, before, groups int }{
		{1, 300, 20, 70, 5, 1, 2, 1}, // a sum of 1500 products
		{2, 3, 150, 200, 3, 2, 1, 1}, // 100 places, 150 rows of the weight
		{40, 6, 4, 5, 3, 1, 0, 2},    // few places: tiles over several batches
		{3, 70, 60, 40, 9, 1, 8, 1},
	} {
		x := m.Tensor(dtype.F64, "batch=%d in=%d x=%d", c.batch, c.in, c.size)
		w := m.Tensor(dtype.F64, "out=%d in=%d k=%d", c.out, c.in/c.groups, c.kernel)
		y := conv.Call(Conv{Convolution: Convolution{Input: x, Weight: w, Axis: axisList("in"),
			Spatial: Map[string]{axisList("x"), []string{"k"}}, Stride: Every(c.stride), Dilation: Every(1),
			Groups: c.groups}, Padding: PerAxis{Each: Map[[2]int]{axisList("x"), [][2]int{{c.before, 0}}}}})
		xs, ws, ys := elementsOf[float64](x), elementsOf[float64](w), elementsOf[float64](y)
		n, in, out := y.Size("x"), c.in/c.groups, c.out/c.groups
		for i, got := range ys {
			place, channel, batch := i%n, i/n%c.out, i/n/c.out
			want, size := 0.0, 0.0
			for j := range in {
				row := xs[(batch*c.in+channel/out*in+j)*c.size:][:c.size]
				for k := range c.kernel {
					if p := place*c.stride + k - c.before; p >= 0 && p < c.size {
						v := row[p] * ws[(channel*in+j)*c.kernel+k]
						want, size = want+v, size+math.Abs(v)
					}
				}
			}
			if math.Abs(got-want) > 1e-14*size {
				t.Errorf("%s of %s: element %d is %v, want %v", w.Shape(), x.Shape(), i, got, want)
				break
			}
		}
	}
}

// TestConvAlone insists that an input has the same bits alone and in a batch, whatever the tiles.
func TestConvAlone(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	for _, size := range []int{5, 40, 300} {
		x, w := m.Tensor(dtype.F32, "batch=50 in=130 x=%d", size), m.Tensor(dtype.F32, "out=9 in=130 k=3")
		run := func(x *Tensor) *Tensor {
			return conv.Call(Conv{Convolution: Convolution{Input: x, Weight: w, Axis: axisList("in"),
				Spatial: Map[string]{axisList("x"), []string{"k"}}, Stride: Every(1), Dilation: Every(1), Groups: 1}})
		}
		all, one := run(x), run(x.At("batch", 17))
		if got, want := fmt.Sprint(all.At("batch", 17).Values()), fmt.Sprint(one.Values()); got != want {
			t.Errorf("%d places: another result in a batch than alone", size)
		}
	}
}
