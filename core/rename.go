package core

import "github.com/fucina-go/fucina/core/dtype"

// Rename gives axes other names; order and sizes stay. It is a view. Names may be swapped.
//
// Shape: x[…, old, …] → y[…, new, …].
//
// Errors: an axis that x lacks; a new name that x then has twice.
//
// Example:
//
//	zeros(batch=2, seq=3).rename(seq="key_seq")
type Rename struct {
	X  *Tensor     `arg:"x"`
	To Map[string] `arg:"names,rest"`
}

var rename = Declare[Rename]("rename")

// Rename gives one axis another name; see the Rename operation.
func (x *Tensor) Rename(from, to string) *Tensor {
	return rename.Call(Rename{X: x, To: Map[string]{axisList(from), []string{to}}})
}

// Names replaces the names.
func (a *Rename) Names(p *Plan) {
	p.NeedAll(a.X, a.To.Keys)
	axes, err := a.X.axes.Rename(a.To.Keys, a.To.Values)
	if err != nil {
		p.Fail(p.Describe(a.X)+": "+err.Error()+" after the renaming", "rename the other one too, or drop it")
	}
	p.Out(axes, a.X.dtype)
}

// Sizes copies the sizes by place.
func (a *Rename) Sizes(s *Sizes) { copy(s.c.outs[0].sizes, a.X.sizes) }

// View copies the layout.
func (a *Rename) View(v *View) bool {
	copy(v.out.strides, a.X.strides)
	v.Alias(a.X, 0)
	return true
}

// Samples covers the lengths, a swap, and the dtypes.
func (*Rename) Samples(m *Maker) (list []Rename) {
	for _, n := range lengths {
		list = append(list, Rename{X: m.Tensor(dtype.F32, "row=3 a=%d", n), To: Map[string]{axisList("a"), []string{"c"}}})
	}
	for _, dt := range allDTypes {
		list = append(list, Rename{X: m.Tensor(dt, "row=3 a=2 b=4"), To: Map[string]{axisList("a", "b"), []string{"b", "a"}}})
	}
	return list
}

// Saves nothing.
func (*Rename) Saves(uint64) (in, out uint64) { return 0, 0 }

// VJP gives the axes their old names.
func (a *Rename) VJP(_, gy []*Tensor, g *Grads) {
	back := Map[string]{axisList(a.To.Values...), a.To.Keys.Names()}
	g.Set(0, rename.Call(Rename{X: gy[0], To: back}))
}
