package gguf

import (
	"encoding/binary"
	"fmt"
	"iter"
	"runtime"
)

// Array is a metadata array. Its elements stay in the file and are decoded as they are asked for, so a
// vocabulary of any size costs no memory; in return an Array must not be used after the file is closed.
// The zero Array is empty.
type Array struct {
	elem Kind
	n    int
	data []byte // the elements on the wire, all checked by reader.array
	file *File  // whose mapping they are in, not to be collected; nil if they are in none
}

// Len returns the number of elements.
func (a Array) Len() int { return a.n }

// Elem returns the kind of the elements, KindArray for arrays of arrays.
func (a Array) Elem() Kind { return a.elem }

// Ints yields the elements of an integer array. A u64 of 2⁶³ or more comes out negative; File.Ints has
// none of those. Ints, like the other iterators, panics if the elements are of another kind: check Elem,
// or get the array from File.Ints.
func (a Array) Ints() iter.Seq[int64] {
	a.need(a.elem.IsInt(), "integers")
	return func(yield func(int64) bool) {
		defer runtime.KeepAlive(a.file)
		size := a.elem.size()
		for i := range a.n {
			if !yield(toInt(a.elem, a.data[i*size:])) {
				return
			}
		}
	}
}

// Floats yields the elements of an array of floats or integers, rounded to the nearest float64.
func (a Array) Floats() iter.Seq[float64] {
	a.need(a.elem.isNumber(), "numbers")
	return func(yield func(float64) bool) {
		defer runtime.KeepAlive(a.file)
		size := a.elem.size()
		for i := range a.n {
			if !yield(toFloat(a.elem, a.data[i*size:])) {
				return
			}
		}
	}
}

// Bools yields the elements of an array of bools.
func (a Array) Bools() iter.Seq[bool] {
	a.need(a.elem.isBool(), "bools")
	return func(yield func(bool) bool) {
		defer runtime.KeepAlive(a.file)
		for _, b := range a.data {
			if !yield(b != 0) {
				return
			}
		}
	}
}

// Strings yields the elements of an array of strings. They alias the file: the caller must not change
// them nor keep them after it is closed.
func (a Array) Strings() iter.Seq[[]byte] {
	a.need(a.elem.isString(), "strings")
	return func(yield func([]byte) bool) {
		defer runtime.KeepAlive(a.file)
		rest := a.data
		for range a.n {
			n := int(binary.LittleEndian.Uint64(rest))
			if !yield(rest[8 : 8+n : 8+n]) {
				return
			}
			rest = rest[8+n:]
		}
	}
}

// Arrays yields the elements of an array of arrays, whose kinds may differ from each other.
func (a Array) Arrays() iter.Seq[Array] {
	a.need(a.elem.isArray(), "arrays")
	return func(yield func(Array) bool) {
		defer runtime.KeepAlive(a.file)
		r := reader{data: a.data}
		for range a.n {
			inner, err := r.array(1)
			if err != nil {
				panic(fmt.Sprintf("gguf: the file changed while it was open: %v", err))
			}
			inner.file = a.file
			if !yield(inner) {
				return
			}
		}
	}
}

func (a Array) need(ok bool, want string) {
	if !ok && a.n > 0 {
		panic(fmt.Sprintf("gguf: an array of %s has no %s", a.elem, want))
	}
}

// Values yields the elements of an array of any kind, as they are in the file.
func (a Array) Values() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		defer runtime.KeepAlive(a.file)
		r := reader{data: a.data}
		for range a.n {
			start := r.pos
			if err := r.value(a.elem); err != nil {
				panic(fmt.Sprintf("gguf: the file changed while it was open: %v", err))
			}
			if !yield(Value{a.elem, a.data[start:r.pos:r.pos], a.file}) {
				return
			}
		}
	}
}
