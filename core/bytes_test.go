package core

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// panicked is the error that f panics with.
func panicked(f func()) (err error) {
	defer Recover(&err)
	f()
	return nil
}

// TestAssign puts values back in place: into dense tensors and others, into variables, and not where they would be seen
// by others.
func TestAssign(t *testing.T) {
	e := NewEnv(0, 1)
	defer e.Close()
	ab, _ := axis.Parse("a b")
	ba, _ := axis.Parse("b a")
	x := e.FromFloats(dtype.F32, []float64{1, 2, 3, 4, 5, 6}, ab, 2, 3)
	v := e.Watch(x)
	turned := e.FromFloats(dtype.F32, []float64{10, 40, 20, 50, 30, 60}, ba, 3, 2).Order("a b")
	view := x.Order("a b")
	v.Assign(turned)
	for _, y := range []*Tensor{x, v, view} {
		if got := y.Float32s(); got[1] != 20 || got[3] != 40 || got[5] != 60 {
			t.Errorf("got %v", got)
		}
	}
	if v.Variable() == nil {
		t.Error("it is no variable any more")
	}
	column := x.Slice("b", 1, 2, 1)
	column.Assign(e.FromFloats(dtype.F32, []float64{7, 8}, ab, 2, 1))
	if got := x.Float32s(); got[1] != 7 || got[4] != 8 || got[0] != 10 {
		t.Errorf("after a column: %v", got)
	}
	loss := v.Mul(v).Sum("a", "b")
	v.Assign(turned)
	if loss.Origin().Node == nil {
		t.Error("the loss is not recorded")
	}
	for name, f := range map[string]func(){
		"x is f32[a=2, b=3], but the new values are f32[a=2, b=1]": func() { x.Assign(column) },
		"is shared and may not be changed":                         func() { x.Copy().Share().Assign(x) },
		`repeats the same memory along "c"`:                        func() { x.Expand("c", 2).Assign(x) },
		"was ended by free()": func() {
			y := x.Copy()
			y.Free()
			y.Assign(x)
		},
	} {
		var misused *Error
		if err := panicked(f); !errors.As(err, &misused) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

// TestRandomState lets random operations go on from where they stood.
func TestRandomState(t *testing.T) {
	e := NewEnv(0, 1)
	defer e.Close()
	a, _ := axis.Parse("a")
	draw := func() float32 {
		return uniform.In(e, Uniform{High: 1, Axes: Map[int]{Keys: a, Values: []int{1}}, DType: dtype.F32,
			Random: Random{Seed: -1}}).Float32s()[0]
	}
	e.Seed(1 << 63)
	draw()
	seed, stream := e.RandomState()
	first, second := draw(), draw()
	draw()
	e.SetRandomState(seed, stream)
	if x, y := draw(), draw(); x != first || y != second || first == second {
		t.Errorf("%v %v, want %v %v", x, y, first, second)
	}
}

// TestReadTensorEmpty refuses an axis so long that walking it would never end, though there are no elements.
func TestReadTensorEmpty(t *testing.T) {
	e := NewEnv(0, 1)
	defer e.Close()
	ab, _ := axis.Parse("a b")
	if _, err := e.ReadTensor(bytes.NewReader(nil), dtype.F32, ab, 0, 1<<40); err == nil {
		t.Error("no error")
	}
	if x, err := e.ReadTensor(bytes.NewReader(nil), dtype.F32, ab, 0, 3); err != nil || x.Len() != 0 {
		t.Errorf("%v, %v", x, err)
	}
}
