package core

import (
	"fmt"
	"iter"
	"slices"

	"github.com/fucina-go/fucina/core/dtype"
)

// Elements goes through the elements in the order of the axes: float64, int64 or bool each. It panics with an *Error
// when t has ended by then.
func (t *Tensor) Elements() iter.Seq[any] {
	t.mustHaveData("tolist")
	return func(yield func(any) bool) {
		for offset := range t.each {
			if t.mustBeThere("tolist"); !yield(t.element(offset)) {
				return
			}
		}
	}
}

// Values is every element in the order of the axes: float64, int64 or bool each.
func (t *Tensor) Values() []any {
	return slices.AppendSeq(make([]any, 0, t.Len()), t.Elements())
}

// Float32s is a copy of every element in the order of the axes, as float32.
func (t *Tensor) Float32s() []float32 {
	t.mustHaveData("values")
	values := make([]float32, 0, t.Len())
	if t.dtype == dtype.F32 && t.dense() {
		return append(values, slice[float32](t)...)
	}
	var buf []float32
	for offset := range t.each {
		values = append(values, load(t, offset, 0, 1, &buf)[0])
	}
	return values
}

// Int64s is a copy of every element in the order of the axes, as int64.
func (t *Tensor) Int64s() []int64 {
	t.mustHaveData("values")
	values := make([]int64, 0, t.Len())
	var buf []int64
	for offset := range t.each {
		values = append(values, load(t, offset, 0, 1, &buf)[0])
	}
	return values
}

// Fill sets the elements of a dense tensor of the runtime's own from float32 values, in the order
// of the axes. It is a change in place.
func (t *Tensor) Fill(values []float32) {
	t.mustTake(len(values))
	scatter(t.data, t.dtype, values)
	t.buf.Touch()
}

// FillInts is Fill from integers.
func (t *Tensor) FillInts(values []int64) {
	t.mustTake(len(values))
	scatter(t.data, t.dtype, values)
	t.buf.Touch()
}

// mustTake insists that t, dense and not shared, has n elements.
func (t *Tensor) mustTake(n int) {
	t.mustHaveData("fill")
	if why := t.Fixed(); why != "" || n != t.Len() || !t.dense() {
		if why == "" {
			why = fmt.Sprintf("got %d values for %s", n, t.Shape())
		}
		panic(&Error{Op: "fill", Msg: why})
	}
}

func (t *Tensor) mustHaveData(op string) {
	t.mustBeThere(op)
	if t.stored() {
		panic(&Error{Op: op, Msg: t.Shape() + " is " + t.storage(), Hint: "x.dequantize()"})
	}
}

// mustBeThere insists that t is open and that there is something in it, be it blocks.
func (t *Tensor) mustBeThere(op string) {
	if t == nil {
		panic(&Error{Op: op, Msg: "got nil, want a tensor"})
	}
	if end := t.ending(); end != nil {
		panic(&Error{Op: op, Msg: t.String(), Hint: end.hint("x")})
	}
	if t.meta {
		panic(&Error{Op: op, Msg: t.Shape() + " has no data in a shape-only run",
			Hint: "check(fn) computes nothing, so call fn itself: fn()"})
	}
}

// each goes through the offsets of the elements, in elements, in the order of the axes.
func (t *Tensor) each(yield func(offset int) bool) {
	if t.Len() == 0 {
		return
	}
	index := make([]int, len(t.sizes))
	offset := 0
	for {
		if !yield(offset) {
			return
		}
		k := len(index) - 1
		for ; k >= 0; k-- {
			index[k]++
			offset += t.strides[k]
			if index[k] < t.sizes[k] {
				break
			}
			offset -= index[k] * t.strides[k]
			index[k] = 0
		}
		if k < 0 {
			return
		}
	}
}
