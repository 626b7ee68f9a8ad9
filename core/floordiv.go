package core

import (
	"math"

	"github.com/fucina-go/fucina/core/dtype"
)

// FloorDiv is x / y rounded down to an integer, element by element, aligned by axis name; the operator //. Either
// may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes].
// Numerics: as in Python, x = y · (x // y) + x % y. Integers stay integers, and the least one divided by -1 wraps
// around. Floats divided by 0 give what x / y gives. f16 and bf16 compute in f32 and round once.
//
// Errors: an integer divided by 0.
//
// Example:
//
//	tensor([7, -7], "a").floordiv(2)
type FloorDiv struct{ Binary }

var floorDiv = Declare[FloorDiv]("floordiv")

// FloorDiv is x / y rounded down; see the FloorDiv operation.
func (x *Tensor) FloorDiv(y *Tensor) *Tensor { return floorDiv.Call(FloorDiv{Binary{X: x, Y: y}}) }

// Eval refuses integer divisors of 0 and calls the kernel.
func (a *FloorDiv) Eval(c *Ctx) {
	c.noZero(a.Y)
	a.Binary.Eval(c)
}

// noZero insists that no integer of t is 0.
func (c *Ctx) noZero(t *Tensor) {
	if t.dtype.IsFloat() {
		return
	}
	buf, zero := []int64(nil), false
	for offset := range t.each {
		if zero = load(t, offset, 1, 1, &buf)[0] == 0; zero {
			break
		}
	}
	if zero {
		c.Fail(c.c.param(t)+" has a 0, and integers cannot be divided by it",
			`divide floats: x.cast("f32")`)
	}
}

// F32 is the f32 kernel.
func (*FloorDiv) F32(z, x, y []float32) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		if _, q, ok := nearRemainder(x[i], y[i]); ok {
			z[i] = float32(math.Floor(q))
		} else {
			z[i] = floorQuotient(x[i], y[i])
		}
	}
}

// F64 is the f64 kernel.
func (*FloorDiv) F64(z, x, y []float64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = floorQuotient(x[i], y[i])
	}
}

// floorQuotient is that of Python: x less the exact remainder is near a multiple of y, so that the quotient is
// near an integer.
func floorQuotient[T float32 | float64](x, y T) T {
	if y == 0 {
		return x / y
	}
	rest := T(math.Mod(float64(x), float64(y)))
	q := (x - rest) / y
	if rest != 0 && (y < 0) != (rest < 0) {
		q--
	}
	if q == 0 {
		return T(math.Copysign(0, float64(x/y)))
	}
	f := T(math.Floor(float64(q)))
	if q-f > 0.5 {
		f++
	}
	return f
}

// I64 is the integer kernel.
func (*FloorDiv) I64(z, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] / y[i]
		if rest := x[i] % y[i]; rest != 0 && (rest < 0) != (y[i] < 0) {
			z[i]--
		}
	}
}

// Weight is what an element costs beside that of a usual operation.
func (*FloorDiv) Weight() int { return 4 }

// Saves nothing.
func (*FloorDiv) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP is 0 for both.
func (a *FloorDiv) VJP(_, gy []*Tensor, g *Grads) {
	g.zero(0, gy[0])
	g.zero(1, gy[0])
}

// Samples covers what binary operations do, with divisors other than 0.
func (*FloorDiv) Samples(m *Maker) (list []FloorDiv) {
	for _, a := range m.divisions() {
		list = append(list, FloorDiv{a})
	}
	return list
}

// divisions is operands of divisions that rest.
func (m *Maker) divisions() (list []Binary) {
	for _, n := range lengths {
		list = append(list, Binary{X: m.Tensor(dtype.F32, "col=%d", n), Y: m.Tensor(dtype.F32, "col=%d", n)})
	}
	for _, dt := range allDTypes {
		y := m.Indices(dtype.I64, 7, "row=3 col=17").plus(1).Cast(dt)
		list = append(list, Binary{X: m.Tensor(dt, "row=3 col=17"), Y: y},
			Binary{X: m.Tensor(dt, "col=17"), Y: y},
			Binary{X: m.Tensor(dt, "row=3"), Y: m.Indices(dtype.I64, 7, "col=17").plus(1).Cast(dt), Outer: true})
	}
	return list
}
