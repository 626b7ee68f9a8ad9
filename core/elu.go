package core

// ELU is x where it is above 0, else alpha · (exp(x) - 1) (Clevert et al. 2015), element by element.
//
// Shape: x[axes] → y[axes].
// Numerics: as expm1, multiplied once; f16 and bf16 compute in f32 and round once.
//
// Errors: integers (cast them first).
//
// Example:
//
//	tensor([-1.0, 0.0, 2.0], "a").elu()
type ELU struct {
	Unary
	Alpha float64 `arg:"alpha=1"`
}

var elu = Declare[ELU]("elu")

// ELU is x above 0, alpha · (exp(x) - 1) below; see the ELU operation.
func (x *Tensor) ELU(alpha float64) *Tensor { return elu.Call(ELU{Unary: Unary{x}, Alpha: alpha}) }

// F32 is the f32 kernel.
func (a *ELU) F32(y, x []float32) { bend(y, x, a.Alpha) }

// F64 is the f64 kernel.
func (a *ELU) F64(y, x []float64) { bend(y, x, a.Alpha) }

func bend[T float32 | float64](y, x []T, alpha float64) {
	x = x[:len(y)]
	for i, v := range x {
		if v <= 0 {
			v = T(alpha * expm1At(float64(v)))
		}
		y[i] = v
	}
}

// Saves x.
func (*ELU) Saves(uint64) (in, out uint64) { return 1, 0 }

// VJP is gy, times alpha · exp(x) where x is not above 0.
func (a *ELU) VJP(_, gy []*Tensor, g *Grads) {
	below := a.X.Minimum(Number(a.X.env, 0, 0, false)).Exp().times(a.Alpha)
	g.Set(0, a.X.above(0).Where(gy[0], gy[0].Mul(below)))
}
