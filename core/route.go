package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// Route chooses the experts of each row of a mixture (Shazeer et al. 2017): the k greatest scores, and how much each
// of these experts counts.
//
// score makes scores from x: "softmax" over the experts, or "sigmoid" of each. The bias, if given, is added for the
// choice only and not to the weights (DeepSeek-V3), and gets no gradient. With normalize the weights of a row are
// divided by their sum; then they are multiplied by scale.
//
// Shape: x[row, expert], bias[expert] → weights[row, choice=k] of x's dtype, indices[row, choice=k] of i64, for
// out="choice". The greatest comes first; of equals the one that stands first.
// Numerics: as softmax, sigmoid and topk; f16 and bf16 compute in f32 and round once.
//
// Errors: an axis that x lacks; k outside of 0 … number of experts; an out that x has already.
//
// Example:
//
//	weights, indices = route(tensor([[1.0, 3.0, 2.0]], "row expert"), 2)
type Route struct {
	X         *Tensor `arg:"x"`
	K         int     `arg:"k"`
	Axis      Axis    `arg:"axis=expert"`
	Out       Axis    `arg:"out=choice"`
	Score     string  `arg:"score=softmax" enum:"softmax sigmoid"`
	Normalize bool    `arg:"normalize=true"`
	Bias      *Tensor `arg:"bias?"`
	Scale     float64 `arg:"scale=1"`
}

var route = Declare[Route]("route")

// Route is the weights and the places of x's k greatest along the axis "expert", along the axis "choice"; see the
// Route operation.
func (x *Tensor) Route(k int) (weights, indices *Tensor) {
	both := route.All(Route{X: x, K: k, Axis: "expert", Out: "choice", Score: "softmax", Normalize: true, Scale: 1})
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
	if n := a.X.Size(string(a.Axis)); a.K < 0 || a.K > n {
		s.Fail(fmt.Sprintf("k=%d, but axis %q of %s has %d elements", a.K, a.Axis, s.Describe(a.X), n),
			refit(s.c, fmt.Sprintf("k is 0 … %d", n), "k", max(0, min(a.K, n))))
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
	if a.Bias == nil {
		weights, indices = scores.TopK(a.K, axis, out)
	} else {
		_, indices = scores.Detach().Add(a.Bias.wide()).TopK(a.K, axis, out)
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

// Samples covers the numbers of experts and of choices, scores of both kinds, biases, and the dtypes.
func (*Route) Samples(m *Maker) (list []Route) {
	for i, n := range lengths {
		for _, k := range []int{0, min(n, 2), n} {
			list = append(list, Route{X: m.Tensor(dtype.F32, "row=3 expert=%d", n), K: k, Axis: "expert", Out: "choice",
				Score: []string{"softmax", "sigmoid"}[i%2], Normalize: k != n, Scale: 1})
		}
	}
	for _, dt := range floats {
		list = append(list, Route{X: m.Tensor(dt, "row=3 expert=17 batch=2"), K: 5, Axis: "expert", Out: "choice",
			Score: "sigmoid", Normalize: true, Bias: m.Tensor(dt, "expert=17"), Scale: 2.5},
			Route{X: m.Tensor(dt, "expert=17"), K: 16, Axis: "expert", Out: "expert", Score: "softmax", Scale: 1})
	}
	return list
}
