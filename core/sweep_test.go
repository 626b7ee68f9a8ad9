package core

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
)

// TestSweep goes over tensors of every float dtype at once, of every length around a chunk, with any number of workers,
// also while the work is being stopped.
func TestSweep(t *testing.T) {
	dtypes := []dtype.Type{dtype.F32, dtype.F64, dtype.F16, dtype.BF16}
	for _, first := range dtypes {
		for _, second := range dtypes {
			for _, n := range []int{0, 1, 17, SweepGrain - 1, SweepGrain, SweepGrain + 1, 3*SweepGrain + 5} {
				env := NewEnv(0, 1+n%3)
				x, y := env.Tensor(first, axisList("a"), n), env.Tensor(second, axisList("a"), n)
				version := x.buf.Version()
				s := &Sweep{Writes: 1, F32: counts[float32], F64: counts[float64]}
				env.Control.Stop()
				s.Run(env, x, y)
				env.Control.Reset()
				read := y.Values()
				for i, v := range x.Values() {
					want := float64(i % 100)
					if v.(float64) != want || read[i].(float64) != 0 {
						t.Fatalf("%s and %s, element %d of %d is %v, want %v", first, second, i, n, v, want)
					}
				}
				if n > 0 && (x.buf.Version() == version || y.buf.Version() != 0) {
					t.Errorf("the versions are %d and %d", x.buf.Version(), y.buf.Version())
				}
				env.Close()
			}
		}
	}
}

// counts sets the first tensor to the place of each element, modulo 100, and spoils what it read, if that is a copy.
func counts[T float32 | float64](at int, xs [][]T) {
	for i := range xs[0] {
		xs[0][i] = T((at+i)%100) + xs[1][i]
	}
}

func TestSweepRefuses(t *testing.T) {
	env := NewEnv(0, 1)
	defer env.Close()
	x, y := env.Tensor(dtype.F32, axisList("a"), 6), env.Tensor(dtype.F32, axisList("a"), 7)
	turned := env.Tensor(dtype.F32, axisList("a b"), 2, 3).Order("b a")
	freed := env.Tensor(dtype.F32, axisList("a"), 6)
	freed.Free()
	for _, bad := range []*Tensor{y, turned, freed} {
		err := func() (err error) {
			defer Recover(&err)
			(&Sweep{Writes: 1, F32: counts[float32]}).Run(env, x, bad)
			return nil
		}()
		if !errors.As(err, new(*Error)) {
			t.Errorf("%v: got %v", bad.Sizes(), err)
		}
	}
}

// TestPackedAndReshape wants the elements in the order asked for, and the same memory where it lies so.
func TestPackedAndReshape(t *testing.T) {
	env := NewEnv(0, 1)
	defer env.Close()
	x := env.FromFloats(dtype.F32, []float64{0, 1, 2, 3, 4, 5}, axisList("a b"), 2, 3)
	if x.Packed(x.Axes()) != x {
		t.Error("a dense tensor is copied")
	}
	y := x.Packed(axisList("b a"))
	if got := y.Float32s(); !slices.Equal(got, []float32{0, 3, 1, 4, 2, 5}) || !y.dense() {
		t.Errorf("got %v", got)
	}
	z := y.Reshape(axisList("flat"), 6)
	if got := z.Float32s(); !slices.Equal(got, []float32{0, 3, 1, 4, 2, 5}) || z.buf != y.buf {
		t.Errorf("got %v", got)
	}
	y.Free()
	if z.Float32s()[5] != 5 || math.IsNaN(float64(z.Float32s()[0])) {
		t.Error("the memory went with its first owner")
	}
	for _, f := range []func(){
		func() { x.Reshape(axisList("a"), 5) },
		func() { x.Order("b a").Reshape(axisList("a"), 6) },
	} {
		err := func() (err error) {
			defer Recover(&err)
			f()
			return nil
		}()
		if !errors.As(err, new(*Error)) {
			t.Errorf("got %v", err)
		}
	}
}

// TestReserve refuses what the budget does not allow and keeps nothing.
func TestReserve(t *testing.T) {
	env := NewEnv(1<<20, 1)
	defer env.Close()
	env.Reserve(1 << 19)
	err := func() (err error) {
		defer Recover(&err)
		env.Reserve(1 << 21)
		return nil
	}()
	if !errors.As(err, new(*Error)) || env.Memory().InUse != 0 {
		t.Errorf("got %v, and %d bytes in use", err, env.Memory().InUse)
	}
}
