package plot

import (
	"fmt"
	"math"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/bindings/starlark"
	"github.com/fucina-go/fucina/core"
)

// maxPoints is how many numbers a figure takes.
const maxPoints = 1 << 24

// numbers is v, a list of numbers or a tensor of one axis, called name; numbers that are None are NaN.
func numbers(op, name string, v star.Value) ([]float64, error) {
	if x, ok := v.(starlark.Tensor); ok {
		if x.Axes().Len() != 1 {
			return nil, &core.Error{Op: op, Msg: fmt.Sprintf("%s is %s, want one axis", name, x.Shape())}
		}
		return elements(op, name, x.Tensor)
	}
	list, ok := v.(star.Iterable)
	if !ok || star.Len(v) > maxPoints {
		return nil, &core.Error{Op: op, Msg: fmt.Sprintf("%s is %s %s, want a list of numbers or a tensor", name,
			article(v.Type()), v.Type())}
	}
	var all []float64
	for item := range star.Elements(list) {
		f, ok := star.AsFloat(item)
		if x, isTensor := item.(starlark.Tensor); isTensor && x.Len() == 1 {
			one, err := elements(op, name, x.Tensor)
			if err != nil {
				return nil, err
			}
			f, ok = one[0], true
		}
		if item == star.None {
			f, ok = math.NaN(), true
		}
		if !ok {
			return nil, &core.Error{Op: op, Msg: fmt.Sprintf("%s[%d] is %s %s, want a number", name, len(all),
				article(item.Type()), item.Type())}
		}
		if len(all) == maxPoints {
			return nil, &core.Error{Op: op, Msg: fmt.Sprintf("%s has more than %d numbers", name, maxPoints)}
		}
		all = append(all, f)
	}
	return all, nil
}

func article(noun string) string {
	if len(noun) > 0 && (noun[0] == 'i' || noun[0] == 'a' || noun[0] == 'o') {
		return "an"
	}
	return "a"
}

// elements is every number of a tensor in the order of its axes.
func elements(op, name string, x *core.Tensor) ([]float64, error) {
	if x.Len() > maxPoints {
		return nil, &core.Error{Op: op, Msg: fmt.Sprintf("%s is %s; at most %d numbers can be drawn", name, x.Shape(),
			maxPoints)}
	}
	all := make([]float64, 0, x.Len())
	for _, v := range x.Values() {
		switch v := v.(type) {
		case float64:
			all = append(all, v)
		case int64:
			all = append(all, float64(v))
		case bool:
			f := 0.0
			if v {
				f = 1
			}
			all = append(all, f)
		}
	}
	return all, nil
}

// classNumbers is v as whole numbers from 0, one for each of n points; without v all are 0.
func classNumbers(op, name string, v star.Value, n int) ([]int, error) {
	classes := make([]int, n)
	if v == star.None {
		return classes, nil
	}
	found, err := numbers(op, name, v)
	if err != nil {
		return nil, err
	}
	if len(found) != n {
		return nil, &core.Error{Op: op, Msg: fmt.Sprintf("%s has %d numbers for %d points", name, len(found), n)}
	}
	for i, f := range found {
		if f < 0 || f > 1e6 || f != math.Trunc(f) {
			return nil, &core.Error{Op: op, Msg: fmt.Sprintf("%s[%d] is %v, want a whole number from 0", name, i, f)}
		}
		classes[i] = int(f)
	}
	return classes, nil
}

// drawn reports whether a number is drawn: NaN is not, nor is what is infinite or so great that a difference or a
// margin might be.
func drawn(f float64) bool { return math.Abs(f) <= 1e300 }

// apart is the bounds of an axis, moved apart if they are so close that the marks between them would be one number.
func apart(low, high float64) (float64, float64) {
	most := math.Max(math.Abs(low), math.Abs(high))
	if high-low > math.Max(1e-300, 1e-12*most) {
		return low, high
	}
	half := math.Max(0.5, 1e-3*most)
	return low - half, high + half
}

// bounds are the least and the greatest of the numbers that are drawn, or NaN if there are none.
func bounds(all ...[]float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, list := range all {
		for _, f := range list {
			if drawn(f) {
				low, high = math.Min(low, f), math.Max(high, f)
			}
		}
	}
	if low > high {
		return math.NaN(), math.NaN()
	}
	return low, high
}
