package core

// Square is x · x, element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: one product, rounded once; f16 and bf16 compute in f32 and round again. Integers wrap around.
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").square()
type Square struct{ Unary }

var square = Declare[Square]("square")

// Square is x · x; see the Square operation.
func (x *Tensor) Square() *Tensor { return square.Call(Square{Unary{x}}) }

// F32 is the f32 kernel.
func (*Square) F32(y, x []float32) { squares(y, x) }

// F64 is the f64 kernel.
func (*Square) F64(y, x []float64) { squares(y, x) }

// I64 is the integer kernel.
func (*Square) I64(y, x []int64) { squares(y, x) }

func squares[T number](y, x []T) {
	x = x[:len(y)]
	for i := range y {
		y[i] = x[i] * x[i]
	}
}

// Saves x.
func (*Square) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy · 2x.
func (a *Square) VJP(_, gy []*Tensor, g *Grads) { g.Set(0, gy[0].Mul(a.X.times(2))) }
