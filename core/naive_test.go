package core

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/fucina-go/fucina/core/dtype"
)

// Operations are compared with definitions that know nothing of strides, plans or kernels: a naive
// array is a function from an index, a place for every axis name, to a number.

type index map[string]int

type naive struct {
	names []string
	sizes index
	at    func(i index) float64
}

// naiveOf reads a tensor.
func naiveOf(t *Tensor) naive {
	values := map[string]float64{}
	n := naive{names: t.axes.Names(), sizes: index{}}
	for k, name := range n.names {
		n.sizes[name] = t.sizes[k]
	}
	all := n.each()
	eachOffset(t, func(off int) {
		values[n.key(all[0])] = toFloat(t.element(off))
		all = all[1:]
	})
	n.at = func(i index) float64 {
		v, ok := values[n.key(i)]
		if !ok {
			panic(fmt.Sprintf("no element %v in %v", i, n.sizes))
		}
		return v
	}
	return n
}

// key is the part of an index that the array's axes need: others are broadcast.
func (n naive) key(i index) (s string) {
	for _, name := range n.names {
		s += fmt.Sprint(i[name], ",")
	}
	return s
}

// each is every index, the last axis fastest.
func (n naive) each() []index { return eachOf(n.names, n.sizes) }

func eachOf(names []string, sizes index) (all []index) {
	var visit func(k int, i index)
	visit = func(k int, i index) {
		if k == len(names) {
			all = append(all, maps.Clone(i))
			return
		}
		for p := range sizes[names[k]] {
			i[names[k]] = p
			visit(k+1, i)
		}
	}
	visit(0, index{})
	return all
}

func toFloat(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case int64:
		return float64(v)
	case bool:
		if v {
			return 1
		}
	}
	return 0
}

// compare says where t is not the array, within tol relative to max(1, |want|).
func (n naive) compare(t *Tensor, tol float64) error {
	if !slices.Equal(t.axes.Names(), n.names) {
		return fmt.Errorf("got the axes %v, want %v", t.axes.Names(), n.names)
	}
	for k, name := range n.names {
		if t.sizes[k] != n.sizes[name] {
			return fmt.Errorf("got %s, want %s=%d", t.Shape(), name, n.sizes[name])
		}
	}
	got := naiveOf(t)
	for _, i := range n.each() {
		a, b := got.at(i), n.at(i)
		if !(a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= tol*max(1, math.Abs(b))) {
			return fmt.Errorf("%s at %v: got %v, want %v", t.Shape(), i, a, b)
		}
	}
	return nil
}

// with is an array with the axes of x in the given order, some added, computed by at.
func (n naive) with(names []string, more index, at func(i index) float64) naive {
	y := naive{names: names, sizes: maps.Clone(n.sizes), at: at}
	maps.Copy(y.sizes, more)
	return y
}

// place is i with some places changed.
func (i index) place(more index) index {
	j := maps.Clone(i)
	maps.Copy(j, more)
	return j
}

// world draws operands: axes from a set of names with one size each, stored anyhow. Numbers are multiples of
// a quarter between -2 and 2, so that sums and products of a few are exact in every dtype.
type world struct {
	*rapid.T
	env   *Env
	sizes index
}

var worldNames = []string{"a", "b", "c", "d", "e"}

func newWorld(t *rapid.T) *world {
	w := &world{t, NewEnv(0, 1), index{}}
	for _, name := range worldNames {
		w.sizes[name] = rapid.SampledFrom([]int{1, 2, 3, 3, 4, 5, 0}).Draw(t, "size of "+name)
	}
	return w
}

// names draws some of the names, in any order.
func (w *world) names(from []string, least int) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(from), least, len(from), rapid.ID[string]).Draw(w.T, "names")
}

// drawn is one of the values.
func drawn[T any](w *world, values ...T) T { return rapid.SampledFrom(values).Draw(w.T, "choice") }

func (w *world) bool() bool { return rapid.Bool().Draw(w.T, "bool") }

// tensor draws the elements and the storage of a tensor with the named axes.
func (w *world) tensor(dt dtype.Type, names ...string) *Tensor {
	t := w.env.Tensor(dt, axisList(names...), w.sized(names)...)
	seed := rapid.Uint64().Draw(w.T, "seed")
	size := dt.Size()
	for i := range t.Len() {
		seed = seed*6364136223846793005 + 1442695040888963407
		k := int64(seed>>33)%17 - 8
		switch {
		case dt == dtype.Bool:
			k &= 1
		case dt == dtype.U8:
			k += 8
		}
		put(unsafe.Add(t.data, i*size), dt, float64(k)/4, k)
	}
	order := rapid.Permutation(forward(len(names))).Draw(w.T, "order")
	steps := make([]int, len(names))
	for k := range steps {
		steps[k] = drawn(w, 1, 1, 1, 2, -1, -3, 0)
	}
	return lay(w.env, t, order, steps).Tensor
}

func (w *world) sized(names []string) (sizes []int) {
	for _, name := range names {
		sizes = append(sizes, w.sizes[name])
	}
	return sizes
}

// numberDTypes are the dtypes in which the numbers of a world are exact.
var numberDTypes = append(append([]dtype.Type{}, floats...), integers...)

// loose is how far results may lie from those computed in f64, relative to max(1, |want|).
var loose = map[dtype.Type]float64{dtype.F32: 1e-6, dtype.F64: 1e-14, dtype.F16: 1e-3, dtype.BF16: 8e-3}

// check runs f on random worlds.
func check(t *testing.T, f func(w *world)) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		f(w)
		w.env.Close()
	})
}

// same fails unless t is the array.
func (w *world) same(t *Tensor, want naive, tol float64) {
	w.Helper()
	if err := want.compare(t, tol); err != nil {
		w.Fatal(err)
	}
}

// refused runs f and fails unless it panics with the *Error of that text.
func refused(t interface {
	Helper()
	Errorf(string, ...any)
}, want string, f func()) {
	t.Helper()
	var err error
	func() {
		defer Recover(&err)
		f()
	}()
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v, want\n%s", err, want)
	}
}
