package core

import (
	"fmt"

	"github.com/fucina-go/fucina/core/dtype"
)

// GroupNorm is layer_norm over every group of channels and the other axes named, then times the weight plus the
// bias (Wu and He 2018). One group is layer normalization, as many as channels instance normalization.
//
// Shape: x[batch, channel, y, x], weight[channel], bias[channel] → y of x's axes for group_norm(x, 2,
// weight, bias, axes="y x"). Axes not named, such as batch, are normalized apart.
// Numerics: as layer_norm.
//
// Errors: an axis that x lacks; channels that do not divide into the groups; integers.
//
// Example:
//
//	group_norm(ones(batch=2, channel=4, y=3), 2, axes="y")
type GroupNorm struct {
	X      *Tensor `arg:"x"`
	Groups int     `arg:"groups"`
	Weight *Tensor `arg:"weight?"`
	Bias   *Tensor `arg:"bias?"`
	Axis   Axis    `arg:"axis=channel"`
	Axes   Axes    `arg:"axes?"`
	Eps    float64 `arg:"eps=1e-05"`
}

var groupNorm = Declare[GroupNorm]("group_norm")

// Names insists on the axes.
func (a *GroupNorm) Names(p *Plan) {
	p.Need(a.X, a.Axis)
	channel := axisList(string(a.Axis))
	if a.Axes != nil {
		p.NeedAll(a.X, a.Axes)
	}
	p.Within(a.Weight, channel, "the group")
	p.Within(a.Bias, channel, "the group")
	p.Float(a.X)
	p.Same(a.X, a.Weight, a.Bias)
}

// divisor is the greatest divisor of n up to most, at least 1.
func divisor(n, most int) int {
	d := max(1, min(n, most))
	for n%d != 0 {
		d--
	}
	return d
}

// Sizes insists on groups of one size.
func (a *GroupNorm) Sizes(s *Sizes) {
	s.Match(nil)
	if n := a.X.Size(string(a.Axis)); a.Groups < 1 || n%a.Groups != 0 {
		s.Fail(fmt.Sprintf("axis %q of %s does not divide into %d groups", a.Axis, s.Describe(a.X), a.Groups),
			refit(s.c, fmt.Sprintf("groups is a divisor of %d", n), "groups", divisor(n, a.Groups)))
	}
}

// Compose splits the channels and normalizes.
func (a *GroupNorm) Compose() *Tensor {
	const group = "norm_group"
	channel := string(a.Axis)
	both := axisList(group, channel)
	cut := func(t *Tensor) *Tensor {
		if t == nil || !t.axes.Has(channel) {
			return t
		}
		n := t.Size(channel)
		return split.Call(Split{X: t, Axis: a.Axis, Into: Map[int]{both, []int{a.Groups, n / a.Groups}}})
	}
	axes := axisList(channel)
	if a.Axes != nil {
		axes = axes.Append(a.Axes)
	}
	y := layerNorm.Call(LayerNorm{X: cut(a.X), Weight: cut(a.Weight), Bias: cut(a.Bias), Axes: axes, Eps: a.Eps})
	return merge.Call(Merge{X: y, Into: Map[Axes]{axisList(channel), []Axes{both}}})
}

// Samples covers the sizes of a group, the numbers of groups, further axes, and the dtypes.
func (*GroupNorm) Samples(m *Maker) (list []GroupNorm) {
	for _, n := range lengths {
		list = append(list, GroupNorm{X: m.Tensor(dtype.F32, "row=3 channel=4 a=%d", n), Groups: 2, Axis: "channel",
			Axes: axisList("a"), Weight: m.Tensor(dtype.F32, "channel=4"), Bias: m.Tensor(dtype.F32, "channel=4"),
			Eps: 1e-5},
			GroupNorm{X: m.Tensor(dtype.F32, "channel=%d row=2", n), Groups: 1, Axis: "channel", Eps: 1e-5})
	}
	for _, dt := range floats {
		list = append(list, GroupNorm{X: m.Tensor(dt, "row=2 y=3 channel=6 x=2"), Groups: 3, Axis: "channel",
			Axes: axisList("x", "y"), Weight: m.Tensor(dt, "channel=6"), Bias: m.Tensor(dt, ""), Eps: 1e-5})
	}
	return list
}
