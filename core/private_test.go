package core

import (
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
)

// The end of a private scope gives its handles to what is made next, but those of survivors and those whose bytes a
// surviving view reads; a recycled tensor gives its own.
func TestHandlesAreUsedAgain(t *testing.T) {
	e := NewEnv(0, 1)
	defer e.Close()
	axes := axisList("a")
	fresh := func() *Tensor { return ones.In(e, Ones{Axes: Map[int]{axes, []int{100}}, DType: dtype.F32}) }
	first := map[*Tensor]bool{}
	s := e.OpenPrivate()
	kept, viewed := fresh(), fresh()
	view := viewed.Slice("a", 50, 100, 1)
	for range 3 {
		first[fresh()] = true
	}
	s.Close(kept, view)
	var then []*Tensor
	again := 0
	for range 4 {
		x := fresh()
		if x == kept || x == viewed || x == view {
			t.Fatal("a handle that is still needed was used again")
		}
		if first[x] {
			again++
		}
		then = append(then, x)
	}
	if again != len(first) {
		t.Errorf("%d of %d handles were used again", again, len(first))
	}
	for _, x := range then {
		if x.Closed() || x.Size("a") != 100 || x.Sum().Item() != 100.0 {
			t.Errorf("a handle that is used again is %s", x)
		}
	}
	if kept.Sum().Item() != 100.0 || view.Sum().Item() != 50.0 {
		t.Error("what survived has other values")
	}
	kept.Recycle()
	if x := fresh(); x != kept {
		t.Error("the handle of a recycled tensor was not used again")
	}
	w := fresh().Share()
	if w.Recycle(); w.Closed() {
		t.Error("a shared tensor was closed")
	}
	if n := e.Memory().Buffers; n != 7 { // that of the view, and six made since
		t.Errorf("%d buffers are held", n)
	}
}

// Tensors of an ordinary scope are known as ended, however many are made afterwards.
func TestHandlesOfAScopeAreNotUsedAgain(t *testing.T) {
	e := NewEnv(0, 1)
	defer e.Close()
	s := e.Open()
	x := e.Arange(100, "a", dtype.F32)
	s.Close()
	for range 10 {
		if e.Arange(100, "a", dtype.F32) == x {
			t.Fatal("the handle was used again")
		}
	}
	if !x.Closed() {
		t.Error("the tensor is not known as ended")
	}
}

// What a dots has in integers goes to the workers together: any number of weights of any number of rows gives the bits
// of one product after the other.
func TestDotsTogether(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	defer m.Env.Close()
	for _, rows := range []int{1, 2, 3} {
		x := m.Tensor(dtype.F32, "row=%d in=64", rows)
		for _, sizes := range [][]int{{1}, {16, 5}, {200, 3, 64, 17}, {64, 130, 64}} {
			var ws []*Tensor
			for i, n := range sizes {
				w := m.Quantized([]string{"q8_0", "q4_0"}[i%2], "out=%d in=64", n)
				if i%3 == 0 {
					w = m.Env.Pack(w, 64, nil)
				}
				ws = append(ws, w)
			}
			for i, y := range x.Dots("in", ws...) {
				want := x.Dot(ws[i], "in").Float32s()
				for k, v := range y.Float32s() {
					if v != want[k] {
						t.Fatalf("%d rows, weights of %v: element %d of product %d is %g, alone it is %g", rows, sizes,
							k, i, v, want[k])
					}
				}
			}
		}
	}
}

// What leaves a private scope counts as made where the scope around it ends, as nobody is asked for places inside.
func TestSurvivorsOfAPrivateScopeHaveAPlace(t *testing.T) {
	e := NewEnv(0, 1)
	defer e.Close()
	place := Site{"model.star", 1, 1}
	e.Where = func() Site { return place }
	outer := e.Open()
	x := e.Arange(100, "a", dtype.F32)
	var y *Tensor
	e.Record(false, func() {
		s := e.OpenPrivate()
		y = x.Add(x)
		s.Close(y)
	})
	place = Site{"script.star", 7, 5}
	outer.Close(x, y)
	if want := (Site{"model.star", 1, 1}); x.made != want {
		t.Errorf("a tensor was made at %s, want %s", x.made, want)
	}
	if y.made != place {
		t.Errorf("a survivor was made at %s, want %s", y.made, place)
	}
}
