package core

import "fmt"

// At is x at one place along each of the named axes, which the result lacks. It is a view.
//
// Shape: x[…, axis=n, …] → y[…, …]. A negative place counts from the end.
//
// Errors: an axis that x lacks; a place outside of -n … n-1.
//
// Example:
//
//	tensor([[1, 2], [3, 4]], "row col").at(row=-1)
type At struct {
	X      *Tensor  `arg:"x"`
	Places Map[int] `arg:"places,rest"`
}

var at = Declare[At]("at")

// At is x at one place of one axis; see the At operation.
func (x *Tensor) At(axis string, place int) *Tensor {
	return at.Call(At{X: x, Places: Map[int]{axisList(axis), []int{place}}})
}

// Names drops the axes.
func (a *At) Names(p *Plan) {
	p.NeedAll(a.X, a.Places.Keys)
	p.Out(a.X.axes.Without(a.Places.Keys), a.X.dtype)
}

// Sizes checks the places.
func (a *At) Sizes(s *Sizes) {
	for i, name := range a.Places.Keys.Names() {
		n, place := a.X.Size(name), a.Places.Values[i]
		if place < -n || place >= n {
			hint := fmt.Sprintf("valid places are %d … %d", -n, n-1)
			if n == 0 {
				hint = "the axis is empty"
			}
			s.Fail(fmt.Sprintf("%s=%d is outside of axis %q of %s", keyword(name), place, name, s.Describe(a.X)), hint)
		}
	}
}

// View moves the start.
func (a *At) View(v *View) bool {
	skip, out := 0, 0
	for k, name := range a.X.axes.Names() {
		i := a.Places.Keys.Index(name)
		if i < 0 {
			v.Stride(out, a.X.strides[k])
			out++
			continue
		}
		place := a.Places.Values[i]
		if place < 0 {
			place += a.X.sizes[k]
		}
		skip += place * a.X.strides[k]
	}
	v.Alias(a.X, skip)
	return true
}
