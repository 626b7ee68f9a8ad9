package core

import (
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core/dtype"
)

// Route chooses the experts of each row of a mixture (Shazeer et al. 2017): the k greatest scores, and how much each
// of these experts counts.
//
// score makes scores from x: "softmax" over the experts, or "sigmoid" of each. The bias, if given, is added for the
// choice only and not to the weights (DeepSeek-V3), and gets no gradient. With normalize the weights of a row are
// divided by their sum; then they are multiplied by scale.
//
// With groups > 1 the experts are cut into that many of one size, and a row chooses among those of groups_used of them:
// the groups whose two best experts have the greatest sums of scores, the bias included (DeepSeek-V3). To a choice that
// finds no more than -∞ there, by such a bias, all experts left are equal, those of other groups too, as to llama.cpp.
//
// Shape: x[row, expert], bias[expert] → weights[row, choice=k] of x's dtype, indices[row, choice=k] of i64, for
// out="choice". The greatest comes first; of equals the one that stands first.
// Numerics: as softmax, sigmoid and topk; f16 and bf16 compute in f32 and round once.
//
// Errors: an axis that x lacks; k outside of 0 … number of experts that are left; an out that x has already; groups of
// different sizes; more groups used than there are.
//
// Example:
//
//	weights, indices = route(tensor([[1.0, 3.0, 2.0]], "row expert"), 2)
type Route struct {
	X          *Tensor `arg:"x"`
	K          int     `arg:"k"`
	Axis       Axis    `arg:"axis=expert"`
	Out        Axis    `arg:"out=choice"`
	Score      string  `arg:"score=softmax" enum:"softmax sigmoid"`
	Normalize  bool    `arg:"normalize=true"`
	Bias       *Tensor `arg:"bias?"`
	Scale      float64 `arg:"scale=1"`
	Groups     int     `arg:"groups=1"`
	GroupsUsed int     `arg:"groups_used=1"`
}

var route = Declare[Route]("route")

// Route is the weights and the places of x's k greatest along the axis "expert", along the axis "choice"; see the
// Route operation.
func (x *Tensor) Route(k int) (weights, indices *Tensor) {
	both := route.All(Route{X: x, K: k, Axis: "expert", Out: "choice", Score: "softmax", Normalize: true, Scale: 1,
		Groups: 1, GroupsUsed: 1})
	return both[0], both[1]
}

// Names insists on the axes.
func (a *Route) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	p.Float(a.X)
	p.Within(a.Bias, axisList(string(a.Axis)), "a choice")
	p.Same(a.X, a.Bias)
	if a.X.axes.Has(string(a.Out)) && a.Out != a.Axis {
		p.Fail(fmt.Sprintf("%s has the axis %q already", p.Describe(a.X), a.Out),
			refit(p.c, "choose another name", "out",
				Axis(freshNames(axisList(string(a.Out)), a.X.axes)[0])))
	}
}

// Sizes insists on enough experts.
func (a *Route) Sizes(s *Sizes) {
	s.Match(nil)
	n := a.X.Size(string(a.Axis))
	if a.Groups < 1 || n%a.Groups != 0 {
		s.Fail(fmt.Sprintf("groups=%d do not divide the %d elements of axis %q of %s", a.Groups, n, a.Axis,
			s.Describe(a.X)), refit(s.c, "all groups are of one size", "groups", 1))
	}
	if a.GroupsUsed < 1 || a.GroupsUsed > a.Groups {
		s.Fail(fmt.Sprintf("groups_used=%d of groups=%d", a.GroupsUsed, a.Groups),
			refit(s.c, fmt.Sprintf("groups_used is 1 … %d", a.Groups), "groups_used",
				max(1, min(a.GroupsUsed, a.Groups))))
	}
	if left := n / a.Groups * a.GroupsUsed; a.K < 0 || a.K > left {
		of := ""
		if a.Groups > 1 {
			of = fmt.Sprintf(", of which %d of %d groups have %d", a.GroupsUsed, a.Groups, left)
		}
		s.Fail(fmt.Sprintf("k=%d, but axis %q of %s has %d elements%s", a.K, a.Axis, s.Describe(a.X), n, of),
			refit(s.c, fmt.Sprintf("k is 0 … %d", left), "k", max(0, min(a.K, left))))
	}
}

// Compose scores and chooses.
func (a *Route) Compose() []*Tensor {
	axis, out := string(a.Axis), string(a.Out)
	scores := a.X.wide()
	if a.Score == "sigmoid" {
		scores = scores.Sigmoid()
	} else {
		scores = scores.Softmax(axis)
	}
	var weights, indices *Tensor
	if a.Bias == nil && a.Groups == 1 {
		weights, indices = scores.TopK(a.K, axis, out)
	} else {
		choice := scores.Detach()
		if a.Bias != nil {
			choice = choice.Add(a.Bias.wide())
		}
		if a.GroupsUsed < a.Groups {
			choice = a.best(choice)
		}
		_, indices = choice.TopK(a.K, axis, out)
		weights = scores.Gather(indices, axis)
	}
	if a.Normalize {
		weights = weights.Div(weights.Sum(out).plus(1e-20)) // the sum of sigmoids may be 0
	}
	if a.Scale != 1 {
		weights = weights.times(a.Scale)
	}
	return []*Tensor{weights.narrow(a.X.dtype), indices}
}

// best is the scores for the choice, -∞ outside of the groups that a row uses.
func (a *Route) best(choice *Tensor) *Tensor {
	names := freshNames(axisList("group", "member", "best"), choice.axes)
	group, member, best := names[0], names[1], names[2]
	each := choice.Size(string(a.Axis)) / a.Groups
	choice = split.Call(Split{X: choice, Axis: a.Axis,
		Into: Map[int]{axisList(group, member), []int{a.Groups, each}}})
	two, _ := choice.TopK(min(2, each), member, member)
	_, used := two.Sum(member).TopK(a.GroupsUsed, group, best)
	within := used.OneHot(group, a.Groups, dtype.Bool).Any(best)
	choice = within.Where(choice, choice.constant(math.Inf(-1)))
	return merge.Call(Merge{X: choice, Into: Map[Axes]{axisList(string(a.Axis)), []Axes{axisList(group, member)}}})
}

// Samples covers the numbers of experts, of choices and of groups, scores of both kinds, biases, and the dtypes.
func (*Route) Samples(m *Maker) (list []Route) {
	for i, n := range lengths {
		for _, k := range []int{0, min(n, 2), n} {
			list = append(list, Route{X: m.Tensor(dtype.F32, "row=3 expert=%d", n), K: k, Axis: "expert", Out: "choice",
				Score: []string{"softmax", "sigmoid"}[i%2], Normalize: k != n, Scale: 1,
				Groups: 1, GroupsUsed: 1})
		}
	}
	for _, groups := range []int{1, 2, 8, 16} {
		used := (groups + 1) / 2
		list = append(list, Route{X: m.Tensor(dtype.F32, "row=5 expert=16 batch=2"), K: used, Axis: "expert",
			Out: "choice", Score: "sigmoid", Normalize: true, Bias: m.Tensor(dtype.F32, "expert=16"), Scale: 1.5,
			Groups: groups, GroupsUsed: used})
	}
	for _, dt := range floats {
		list = append(list, Route{X: m.Tensor(dt, "row=3 expert=17 batch=2"), K: 5, Axis: "expert", Out: "choice",
			Score: "sigmoid", Normalize: true, Bias: m.Tensor(dt, "expert=17"), Scale: 2.5, Groups: 1, GroupsUsed: 1},
			Route{X: m.Tensor(dt, "group=2 expert=24"), K: 5, Axis: "expert", Out: "choice", Score: "softmax",
				Scale: 1, Groups: 4, GroupsUsed: 2},
			Route{X: m.Tensor(dt, "expert=17"), K: 16, Axis: "expert", Out: "expert", Score: "softmax", Scale: 1,
				Groups: 1, GroupsUsed: 1})
	}
	return list
}
