package core

import "math"

// Mod is the remainder of x / y rounded down, element by element, aligned by axis name; the operator %. It has the
// sign of y, as in Python and PyTorch. Either may be a plain number.
//
// Shape: x[axes], y[a subset of them, or the other way round] → z[the wider operand's axes].
// Numerics: exact where x and y have one sign, else rounded once; floats divided by 0 give NaN.
//
// Errors: an integer divided by 0.
//
// Example:
//
//	tensor([7, -7], "a").mod(3)
type Mod struct{ Binary }

var mod = Declare[Mod]("mod")

// Mod is the remainder of x / y rounded down; see the Mod operation.
func (x *Tensor) Mod(y *Tensor) *Tensor { return mod.Call(Mod{Binary{X: x, Y: y}}) }

// Eval refuses integer divisors of 0 and calls the kernel.
func (a *Mod) Eval(c *Ctx) {
	c.noZero(a.Y)
	a.Binary.Eval(c)
}

// F32 is the f32 kernel.
func (*Mod) F32(z, x, y []float32) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		r, _, ok := nearRemainder(x[i], y[i])
		if !ok {
			r = float32(math.Mod(float64(x[i]), float64(y[i])))
		}
		a, b := math.Float32bits(r), math.Float32bits(y[i])
		if a<<1 == 0 { // ±0 has the sign of y
			z[i] = math.Float32frombits(b & (1 << 31))
			continue
		}
		z[i] = r + math.Float32frombits(b&uint32(int32(a^b)>>31)) // y where the signs differ, without a jump
	}
}

// F64 is the f64 kernel.
func (*Mod) F64(z, x, y []float64) { remainders(z, x, y) }

func remainders(z, x, y []float64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		r := math.Mod(x[i], y[i])
		switch {
		case r == 0:
			r = math.Copysign(0, y[i])
		case (r < 0) != (y[i] < 0):
			r += y[i]
		}
		z[i] = r
	}
}

// nearRemainder is the remainder of x / y towards 0, exact, and the quotient in f64, if that is not great: then it is
// on the same side of every integer as what it was rounded from, since integers are at least 2⁻²⁴ from other quotients
// of two f32, and so many bits of the multiple of y that all of it is exact.
func nearRemainder(x, y float32) (r float32, quotient float64, ok bool) {
	a, b := float64(x), float64(y)
	q := a / b
	if q > -1<<20 && q < 1<<20 && y-y == 0 {
		return float32(a - math.Trunc(q)*b), q, true
	}
	return 0, 0, false
}

// I64 is the integer kernel.
func (*Mod) I64(z, x, y []int64) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		r := x[i] % y[i]
		if r != 0 && (r < 0) != (y[i] < 0) {
			r += y[i]
		}
		z[i] = r
	}
}

// Weight is what an element costs beside that of a usual operation.
func (*Mod) Weight() int { return 4 }

// Saves both operands if y wants a gradient.
func (*Mod) Saves(want uint64) (in, out uint64) { return want >> 1 & 1 * 3, 0 }

// VJP is gy and -gy · (x // y).
func (a *Mod) VJP(_, gy []*Tensor, g *Grads) {
	g.Set(0, gy[0])
	if g.Wants(1) {
		g.Set(1, gy[0].Mul(floorDiv.Call(FloorDiv{Binary{X: a.X, Y: a.Y, Outer: a.Outer}})).Neg())
	}
}

// Samples covers what binary operations do, with divisors other than 0.
func (*Mod) Samples(m *Maker) (list []Mod) {
	for _, a := range m.divisions() {
		list = append(list, Mod{a})
	}
	return list
}
