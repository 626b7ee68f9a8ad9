package core

import (
	"fmt"
	"strings"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/rng"
)

// Maker makes the operands of samples. An operation that is not one of the families (Unary, Binary,
// Compare, Reduce), for which samples are made from their fields, says by a method
//
//	func (*Softmax) Samples(m *Maker) []Softmax
//
// on which arguments the generic tests and benchmarks run it: every dtype it takes, sizes around the lane width
// and empty axes among them. The tests themselves lay operands out permuted, strided and repeated.
type Maker struct {
	Env  *Env
	made uint64
}

// Tensor is a tensor of random numbers. shape is written "row=3 col=17". Floats are uniform in
// [-2, 2), integers in [-8, 8), bools even.
func (m *Maker) Tensor(dt dtype.Type, shape string) *Tensor {
	axes, sizes := parseShape(shape)
	n := 1
	for _, s := range sizes {
		n *= s
	}
	m.made++
	if dt.IsFloat() {
		values := make([]float64, n)
		for i := range values {
			values[i] = 4*rng.Float64(1, m.made, uint64(i)) - 2
		}
		return m.Env.FromFloats(dt, values, axes, sizes...)
	}
	lo, span := int64(-8), 16
	switch dt {
	case dtype.Bool:
		lo, span = 0, 2
	case dtype.U8:
		lo = 0
	}
	return m.Indices(dt, shape, lo, lo+int64(span))
}

// Indices is a tensor of random integers in [lo, hi).
func (m *Maker) Indices(dt dtype.Type, shape string, lo, hi int64) *Tensor {
	axes, sizes := parseShape(shape)
	n := 1
	for _, s := range sizes {
		n *= s
	}
	m.made++
	values := make([]int64, n)
	for i := range values {
		values[i] = lo + int64(rng.IntN(1, m.made, uint64(i), int(hi-lo)))
	}
	return m.Env.FromInts(dt, values, axes, sizes...)
}

// parseShape reads "row=3 col=17".
func parseShape(shape string) (axes Axes, sizes []int) {
	var names []string
	for part := range strings.FieldsSeq(shape) {
		name, size, _ := strings.Cut(part, "=")
		n := 0
		if _, err := fmt.Sscan(size, &n); err != nil {
			panic(fmt.Sprintf("core: shape %q: %v", shape, err))
		}
		names, sizes = append(names, name), append(sizes, n)
	}
	return axisList(names...), sizes
}
