package core

// accumulation is add whose result takes the place of x. It is in no table.
type accumulation struct{ Add }

var accumulate = Define[accumulation]("add")

// Accumulate adds y, which has x's axes, sizes and dtype, to x in place: the same bits as x.Add(y), without new
// memory. It is for the runtime's own tensors: no gradient flows through it.
func (x *Tensor) Accumulate(y *Tensor) {
	accumulate.Call(accumulation{Add{Binary{X: x, Y: y}}})
}

// InPlace marks that x changes.
func (*accumulation) InPlace() {}

// Eval adds.
func (a *accumulation) Eval(c *Ctx) {
	a.Binary.Eval(c)
	a.X.buf.Touch()
	a.X.version = a.X.buf.Version()
}
