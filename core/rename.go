package core

import (
	"fmt"
	"slices"

	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

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
	if turned := a.turned(); turned != nil {
		p.Fail(fmt.Sprintf("%s has no axis %q, but %q", p.Describe(a.X), a.To.Keys.At(0), a.To.Values[0]),
			p.c.hint(p.c.recall("the old name comes first", turned)))
	}
	p.NeedAll(a.X, a.To.Keys)
	axes, err := a.X.axes.Rename(a.To.Keys, a.To.Values)
	if err != nil {
		tries := []remedy{p.c.recall("choose another name", a.apart())}
		if swapped := a.swapped(); swapped.To.Keys != a.To.Keys {
			tries = append([]remedy{p.c.recall("swap them", swapped)}, tries...)
		}
		p.Fail(fmt.Sprintf("%s would have an axis %q twice", p.Describe(a.X), a.twice()), p.c.hint(tries...))
	}
	p.Out(axes, a.X.dtype)
}

// turned is the renaming the other way round, if only that is possible.
func (a *Rename) turned() Op {
	if a.To.Keys.Len() == 0 || a.To.Keys.Shared(a.X.axes).Len() > 0 {
		return nil
	}
	keys, err := axis.Of(a.To.Values...)
	if err != nil || !a.X.axes.HasAll(keys) {
		return nil
	}
	return &Rename{X: a.X, To: Map[string]{keys, a.To.Keys.Names()}}
}

// twice is the first name that two axes would have.
func (a *Rename) twice() string {
	seen := a.X.axes.Without(a.To.Keys).Names()
	for _, name := range a.To.Values {
		if slices.Contains(seen, name) {
			return name
		}
		seen = append(slices.Clone(seen), name)
	}
	return ""
}

// swapped is the renaming where an axis whose name is taken gets the one given up.
func (a *Rename) swapped() *Rename {
	keys, values := a.To.Keys, slices.Clone(a.To.Values)
	for i, name := range a.To.Values {
		if a.X.axes.Has(name) && !keys.Has(name) {
			keys, values = keys.Append(axisList(name)), append(values, a.To.Keys.At(i))
		}
	}
	return &Rename{X: a.X, To: Map[string]{keys, values}}
}

// apart is the renaming with another name in the place of the one that is taken.
func (a *Rename) apart() Op {
	values := slices.Clone(a.To.Values)
	one := axisList(a.twice())
	values[slices.Index(values, a.twice())] = freshNames(one, a.X.axes, one)[0]
	return &Rename{X: a.X, To: Map[string]{a.To.Keys, values}}
}

// Quantized takes a quantized x.
func (*Rename) Quantized() (operands uint64, named bool) { return 1, false }

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
		list = append(list, Rename{X: m.Tensor(dtype.F32, "row=3 a=%d", n),
			To: Map[string]{axisList("a"), []string{"c"}}})
	}
	list = append(list, Rename{X: m.Quantized("q8_0", "row=3 a=32"), To: Map[string]{axisList("a"), []string{"b"}}})
	for _, dt := range allDTypes {
		list = append(list, Rename{X: m.Tensor(dt, "row=3 a=2 b=4"),
			To: Map[string]{axisList("a", "b"), []string{"b", "a"}}})
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
