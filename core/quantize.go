package core

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/quant"
)

// Quantize encodes x in blocks along one axis, the last unless it is named: a format of ggml such as "q8_0" or "q4_k".
// The axis becomes the last. The importance tells how much an error counts along it; some formats need it.
//
// Shape: x[out, in] → y[out, in]; x[in, out] → y[out, in] for quantize("q4_k", "in"); importance[in].
//
// Numerics: the bytes are those of ggml. y.dequantize() is near x, as near as the format allows.
//
// Errors: a dtype that is no quantized one; x that is not f32, f16 or bf16; an axis whose size is no multiple of a
// block; numbers that are not finite; no importance where the format needs it.
//
// Example:
//
//	ones(out=2, in_=64).quantize("q4_0")
type Quantize struct {
	X          *Tensor    `arg:"x"`
	DType      dtype.Type `arg:"dtype"`
	Axis       Axis       `arg:"axis?"`
	Importance *Tensor    `arg:"importance?"`
}

var quantize = Declare[Quantize]("quantize")

// Quantize encodes x in blocks along the axis, the last if it is ""; see the Quantize operation.
func (x *Tensor) Quantize(dt dtype.Type, axis string) *Tensor {
	return quantize.Call(Quantize{X: x, DType: dt, Axis: Axis(axis)})
}

// Quantized takes a quantized dtype.
func (*Quantize) Quantized() (operands uint64, named bool) { return 0, true }

// Names moves the axis to the end.
func (a *Quantize) Names(p *Plan) {
	if !a.DType.Quantized() {
		p.Fail(fmt.Sprintf("%s is no quantized dtype, want one of %s", a.DType,
			strings.Join(dtype.QuantizedNames(), " ")),
			fmt.Sprintf("use %s.cast(%q)", p.c.param(a.X), a.DType))
	}
	for _, t := range []*Tensor{a.X, a.Importance} {
		if t != nil && classOf(p.Float(t)) != dtype.F32 {
			p.Fail(fmt.Sprintf("%s is %s, want f32", p.Describe(t), t.dtype),
				fmt.Sprintf("use %s.cast(\"f32\")", p.c.param(t)))
		}
	}
	if a.X.Rank() == 0 {
		p.Fail(p.Describe(a.X)+" has no axis for blocks to lie along", "give it an axis: x.insert(\"in\")")
	}
	last := axisList(a.X.axes.At(a.X.Rank() - 1))
	if a.Axis != "" {
		p.Need(a.X, a.Axis)
		last = axisList(string(a.Axis))
	}
	if a.Importance != nil {
		p.Within(a.Importance, last, "the axis of the blocks")
	}
	p.Out(a.X.axes.Without(last).Append(last), a.DType)
	p.Keep(last)
}

// Sizes insists on whole blocks.
func (a *Quantize) Sizes(s *Sizes) {
	s.Match(axis.Empty)
	f, _ := quant.Of(a.DType)
	name := s.c.plan.data.(*axis.List).At(0)
	if n := a.X.Size(name); n%f.Block != 0 {
		s.Fail(fmt.Sprintf("axis %q is %d in %s, no multiple of the %d of a %s block", name, n, s.Describe(a.X),
			f.Block, f.Name), "formats of smaller blocks are q8_0, q4_0, iq4_nl and mxfp4, of 32")
	}
	if a.Importance != nil && a.Importance.Rank() == 0 {
		s.Fail(s.Describe(a.Importance)+" is one number, which weighs nothing", "one for each place of axis "+name)
	}
}

// Eval encodes row by row.
func (a *Quantize) Eval(c *Ctx) {
	out := c.Out(0)
	f, _ := quant.Of(a.DType)
	last := c.Data().(*axis.List)
	n := a.X.Size(last.At(0))
	if out.Len() == 0 {
		return
	}
	x := elementsOf[float32](c.Dense(a.X, out.axes, dtype.F32))
	var importance []float32
	if a.Importance != nil {
		importance = elementsOf[float32](c.Dense(a.Importance, last, dtype.F32))
	}
	var failed rowError
	bytes := out.bytes()
	c.Split(len(x)/n, max(1, quantizeGrain/n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			to, from := bytes[f.Size(i*n):f.Size((i+1)*n)], x[i*n:(i+1)*n]
			failed.note(i, f.EncodeUntil(to, from, importance, c.c.env.Control.Stopped))
		}
	})
	if errors.Is(failed.err, quant.ErrStopped) {
		panic(&Canceled{Op: c.c.info.Name})
	}
	if failed.err != nil {
		c.Fail(fmt.Sprintf("row %d: %s", failed.row, strings.TrimPrefix(failed.err.Error(), "quant: ")), "")
	}
}

// quantizeGrain is how many elements a worker encodes or decodes at once at least.
const quantizeGrain = 1 << 11

// rowError is the error of the first row that has one, whichever worker finds it.
type rowError struct {
	sync.Mutex
	row int
	err error
}

func (e *rowError) note(row int, err error) {
	if err == nil {
		return
	}
	e.Lock()
	defer e.Unlock()
	if e.err == nil || row < e.row {
		e.row, e.err = row, err
	}
}

// Samples covers the number of rows and of blocks, the dtypes, and importance.
func (*Quantize) Samples(m *Maker) (list []Quantize) {
	of := func(name string) dtype.Type {
		dt, _ := dtype.Parse(name)
		return dt
	}
	for _, n := range lengths {
		list = append(list, Quantize{X: m.Tensor(dtype.F32, "row=%d in=32", n), DType: of("q8_0"), Axis: "in"},
			Quantize{X: m.Tensor(dtype.F32, "in=64 row=%d", min(n, 17)), DType: of("q4_0"), Axis: "in",
				Importance: m.Tensor(dtype.F32, "in=64").Square()})
	}
	for _, dt := range []dtype.Type{dtype.F32, dtype.F16, dtype.BF16} {
		list = append(list, Quantize{X: m.Tensor(dt, "row=2 in=256"), DType: of("q4_k")},
			Quantize{X: m.Tensor(dt, "row=2 in=256"), DType: of("iq2_xs"), Importance: m.Tensor(dt, "in=256").Square()})
	}
	return list
}
