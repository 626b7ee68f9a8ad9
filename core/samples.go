package core

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/rng"
)

// Maker makes the operands of samples. An operation that is not one of the families (Unary, Predicate, Binary,
// Compare, Reduce), for which samples are made from their fields, says by a method
//
//	func (*Softmax) Samples(m *Maker) []Softmax
//
// on which arguments the generic tests and benchmarks run it: every dtype it takes, and the sizes of
// lengths. The tests themselves lay operands out permuted, strided and repeated. Samples call axes
// along which an operation works row by row "row" or "batch": a row of such a batch must come out as
// that row alone does, unless an argument of the sample names the axis.
type Maker struct {
	Env  *Env
	made uint64
}

// lengths are sizes around the lane width, and none, one and many.
var lengths = []int{0, 1, 15, 16, 17, 1000}

var (
	floats    = []dtype.Type{dtype.F32, dtype.F64, dtype.F16, dtype.BF16}
	integers  = []dtype.Type{dtype.I8, dtype.U8, dtype.I16, dtype.I32, dtype.I64}
	allDTypes = append(append(floats[:4:4], integers...), dtype.Bool)
)

// Tensor is a tensor of random numbers. shape is written "row=3 col=17", with verbs of fmt if sizes
// are given after it. Floats are uniform in [-2, 2), integers in [-8, 8), bools even.
func (m *Maker) Tensor(dt dtype.Type, shape string, sizes ...any) *Tensor {
	if !dt.IsFloat() {
		switch dt {
		case dtype.Bool:
			return m.Indices(dt, 2, shape, sizes...)
		case dtype.U8:
			return m.Indices(dt, 16, shape, sizes...)
		}
		return m.integers(dt, -8, 8, shape, sizes...)
	}
	axes, lens, n := parseShape(shape, sizes)
	m.made++
	values := make([]float64, n)
	for i := range values {
		values[i] = 4*rng.Float64(1, m.made, uint64(i)) - 2
	}
	return m.Env.FromFloats(dt, values, axes, lens...)
}

// Quantized is a tensor of random numbers in the format called name, its blocks along the last axis.
func (m *Maker) Quantized(name, shape string, sizes ...any) *Tensor {
	dt, _ := dtype.Parse(name)
	return m.Tensor(dtype.F32, shape, sizes...).Quantize(dt, "")
}

// Indices is a tensor of random integers in [0, n); shape as in Tensor.
func (m *Maker) Indices(dt dtype.Type, n int, shape string, sizes ...any) *Tensor {
	return m.integers(dt, 0, n, shape, sizes...)
}

func (m *Maker) integers(dt dtype.Type, lo, hi int, shape string, sizes ...any) *Tensor {
	axes, lens, n := parseShape(shape, sizes)
	m.made++
	values := make([]int64, n)
	for i := range values {
		values[i] = int64(lo + rng.IntN(1, m.made, uint64(i), hi-lo))
	}
	return m.Env.FromInts(dt, values, axes, lens...)
}

// parseShape reads "row=3 col=17"; n is the number of elements.
func parseShape(shape string, args []any) (axes Axes, sizes []int, n int) {
	var names []string
	n = 1
	for part := range strings.FieldsSeq(fmt.Sprintf(shape, args...)) {
		name, size, _ := strings.Cut(part, "=")
		s := 0
		if _, err := fmt.Sscan(size, &s); err != nil {
			panic(fmt.Sprintf("core: shape %q: %v", shape, err))
		}
		names, sizes, n = append(names, name), append(sizes, s), n*s
	}
	return axisList(names...), sizes, n
}

// Samples is the operation with arguments to test it on, made in m's Env. None means that it has no
// Samples.
func (i *Info) Samples(m *Maker) []Op {
	if i.sample != nil {
		return i.sample(m)
	}
	var sample func(*Maker, dtype.Type) []Op
	switch family := reflect.TypeOf(i.blank).Elem(); {
	case embeds[Unary](family), embeds[Predicate](family): // of equal fields
		sample = i.unarySamples
	case embeds[Binary](family), embeds[Compare](family): // of equal fields
		sample = i.binarySamples
	case embeds[Reduce](family):
		sample = i.reduceSamples
	default:
		return nil
	}
	var taken []Op
	for _, op := range sample(m, i.base(m)) {
		if i.takes(m.Env, op) {
			taken = append(taken, op)
		}
	}
	return taken
}

// embeds tells whether the argument struct is that of family F.
func embeds[F any](t reflect.Type) bool {
	return t.NumField() > 0 && t.Field(0).Anonymous && t.Field(0).Type == reflect.TypeFor[F]()
}

// takes tells whether the operation accepts the arguments, by its rules of names, dtypes and sizes.
func (i *Info) takes(e *Env, op Op) bool {
	var err error
	func() {
		defer Recover(&err)
		was := e.shapeOnly
		defer func() { e.shapeOnly = was }()
		e.shapeOnly = true
		i.Run(e, op, nil)
	}()
	return err == nil
}

// base is the first dtype that an operation of a family takes: lengths and layouts are sampled in it.
func (i *Info) base(m *Maker) dtype.Type {
	for _, dt := range allDTypes {
		op := i.New()
		for _, t := range i.tensors {
			*(**Tensor)(i.Fields[t].At(op)) = m.Tensor(dt, "col=2")
		}
		if i.takes(m.Env, op) {
			return dt
		}
	}
	return dtype.F32
}

func (i *Info) unarySamples(m *Maker, base dtype.Type) (list []Op) {
	add := func(x *Tensor) {
		op := i.New()
		(*Unary)(pointerOf(op)).X = x
		list = append(list, op)
	}
	for _, n := range lengths {
		add(m.Tensor(base, "col=%d", n))
	}
	for _, dt := range allDTypes {
		add(m.Tensor(dt, ""))
		add(m.Tensor(dt, "row=3 col=17"))
	}
	return list
}

func (i *Info) binarySamples(m *Maker, base dtype.Type) (list []Op) {
	add := func(dt dtype.Type, x, y string, outer bool) {
		op := i.New()
		a := (*Binary)(pointerOf(op))
		a.X, a.Y, a.Outer = m.Tensor(dt, x), m.Tensor(dt, y), outer
		list = append(list, op)
	}
	for _, n := range lengths {
		shape := fmt.Sprintf("col=%d", n)
		add(base, shape, shape, false)
	}
	add(base, "row=5 col=17", "col=17", false)
	add(base, "row=5", "col=17 row=5", false)
	add(base, "row=5 col=17", "col=17 row=5", false)
	add(base, "", "row=5 col=3", false)
	add(base, "row=3 col=0", "row=3", false)
	add(base, "row=5 a=3", "row=5 b=4", true)
	for _, dt := range allDTypes {
		add(dt, "row=3 col=17", "row=3 col=17", false)
		add(dt, "col=17", "", false)
	}
	return list
}

func (i *Info) reduceSamples(m *Maker, base dtype.Type) (list []Op) {
	add := func(axes Axes, x *Tensor) {
		op := i.New()
		a := (*Reduce)(pointerOf(op))
		a.X, a.Axes = x, axes
		list = append(list, op)
	}
	for _, n := range lengths {
		add(axisList("col"), m.Tensor(base, "row=3 col=%d", n))
	}
	add(axisList("col"), m.Tensor(base, "row=0 col=3"))
	add(axisList("col", "a"), m.Tensor(base, "a=3 row=4 col=5"))
	add(axisList("a"), m.Tensor(base, "a=3 row=4 col=5"))
	add(nil, m.Tensor(base, "a=3 row=4 col=5"))
	add(nil, m.Tensor(base, ""))
	for _, dt := range allDTypes {
		add(axisList("row"), m.Tensor(dt, "row=3 col=17"))
		add(nil, m.Tensor(dt, "row=3 col=17"))
	}
	return list
}
