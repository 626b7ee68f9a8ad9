package core

import "fmt"

// Conv slides the weight over the input and sums the products over the named axis and the kernel, as PyTorch's
// conv1d, conv2d and conv3d do (the kernel is not turned round).
//
// Shape: input[batch, channel, y, x], weight[out, channel, kernel_y, kernel_x], bias[out] → y[batch, out, y, x] for
// conv(input, weight, "channel", y="kernel_y", x="kernel_x"). The weight slides along any number of axes; axes may
// stand in any order, and the weight's own ones take the place of the one summed up. Axes of both that are not named
// are batch axes of both: conv(input[channel, seq], weight[channel, kernel], seq="kernel") is depthwise.
//
// stride, padding and dilation are one number, or one per axis in a dict; padding takes (before, after) too, and
// "same" or "valid", and negative numbers, which crop. An axis of n gets (n + before + after - dilation · (kernel -
// 1) - 1) // stride + 1 places, with "same" ceil(n / stride). With groups, the weight's channel has 1/groups of the
// input's elements, and every group of them goes to one group of out.
//
// Numerics: products are added one after another in the order channel, kernel, as in dot, and the bias last; f16 and
// bf16 compute in f32 and round once. Places in the padding count as 0.
//
// Errors: an axis that is missing; a kernel longer than the padded axis; groups that do not divide; integers.
//
// Example:
//
//	image = ones(batch=1, channel=3, y=8, x=8)
//	image.conv(ones(out=4, channel=3, kernel_y=3, kernel_x=3), "channel", y="kernel_y", x="kernel_x", padding=1)
type Conv struct {
	Convolution
	Padding PerAxis `arg:"padding=0,pairs" enum:"same valid"`
}

var conv = Declare[Conv]("conv")

// geometry is how the weight slides along each axis.
func (a *Conv) geometry(r convRoles) []slide {
	slides := a.slides(r, a.Padding)
	for i := range slides {
		l := &slides[i]
		l.large = a.Input.Size(r.spatial.At(i))
		if a.Padding.Word == "same" {
			all := max(0, (ceilDiv(l.large, max(1, l.s))-1)*l.s+l.reach()-l.large)
			l.before, l.after = all/2, all-all/2
		}
		if free := l.large + l.before + l.after - l.reach(); free >= 0 && l.s > 0 {
			l.small = free/l.s + 1
		}
	}
	return slides
}

// Sizes counts the places of the kernel.
func (a *Conv) Sizes(s *Sizes) {
	r := s.c.plan.data.(convRoles)
	slides := a.geometry(r)
	a.check(s, r, slides)
	s.perAxis("padding", a.Padding, r.spatial)
	for _, name := range r.contract.Names() {
		if x, w := a.Input.Size(name), a.Weight.Size(name); x != w && a.Groups == 1 {
			s.c.sizeConflict(a.Input, a.Weight, name)
		} else if x != w*a.Groups {
			s.Fail(fmt.Sprintf("axis %q is %d in %s but %d times %d in %s", name, x, s.Describe(a.Input), a.Groups, w,
				s.Describe(a.Weight)), refit(s.c, "the weight has one group's elements", "groups", max(1, x/max(1, w))))
		}
	}
	if a.Groups > 1 && a.Weight.Size(r.own.At(0))%a.Groups != 0 {
		s.Fail(fmt.Sprintf("axis %q of %s does not divide into %d groups", r.own.At(0), s.Describe(a.Weight), a.Groups),
			refit(s.c, "1 is no grouping", "groups", 1))
	}
	for i, l := range slides {
		name := r.spatial.At(i)
		if l.small == 0 {
			s.Fail(fmt.Sprintf("the kernel reaches over %d places of axis %q, which with its padding has %d in %s",
				l.reach(), name,
				l.large+l.before+l.after, s.Describe(a.Input)), refit(s.c, "pad the input", "padding",
				Every(ceilDiv(l.reach()-l.large, 2))))
		}
		s.Set(0, name, l.small)
	}
	a.checkBias(s)
}

// Eval sums the products.
func (a *Conv) Eval(c *Ctx) {
	r := c.Data().(convRoles)
	slides := a.geometry(r)
	steps := make([]strided, len(slides))
	for i, l := range slides {
		steps[i] = strided{size: l.large, count: l.small, step: l.s}
		for k := range l.kernel {
			steps[i].offsets = append(steps[i].offsets, k*l.d-l.before)
		}
	}
	convolve(c, &a.Convolution, r, steps, r.own)
}

// Saves the other operand of each that wants a gradient.
func (*Conv) Saves(want uint64) (in, out uint64) { return want&1<<1 | want>>1&1, 0 }

// VJP is conv_transpose of gy for the input, conv of the input with gy for the weight, and gy for the bias.
func (a *Conv) VJP(_, gy []*Tensor, g *Grads) {
	r := a.roles()
	slides := a.geometry(r)
	if g.Wants(0) {
		op := ConvTranspose{Convolution: a.Convolution, Padding: perAxisOf(r.spatial),
			OutputPadding: perAxisOf(r.spatial)}
		op.Input, op.Axis, op.Bias = gy[0], r.own, nil
		for i, l := range slides {
			back := (l.small-1)*l.s + l.reach() - l.before - l.after
			op.Padding.Each.Values[i] = [2]int{l.before, l.after}
			op.OutputPadding.Each.Values[i] = [2]int{l.large - back, l.large - back}
		}
		g.Set(0, convTranspose.Call(op))
	}
	if g.Wants(1) {
		g.Set(1, a.weightGradient(r, slides, a.Input, gy[0], r.contract, r.own))
	}
	g.Set(2, gy[0])
}

// Samples covers strides, dilations, padding of every kind, groups, and what convolutions are tested on.
func (*Conv) Samples(m *Maker) (list []Conv) {
	for i, a := range m.convolutions() {
		op := Conv{Convolution: a}
		switch long := a.Input.Size("x") > 5; {
		case i%4 == 1 && long:
			op.Stride, op.Padding = Every(2), Every(1)
		case i%4 == 2 && long:
			op.Dilation, op.Padding.Each = Every(2), Map[[2]int]{axisList("x"), [][2]int{{3, 0}}}
		case i%4 == 3:
			op.Padding.Word = "same"
		}
		if a.Input.Size("in") == 4 {
			op.Groups = 2
			op.Weight = m.Tensor(a.Input.dtype, "in=2 kx=3 out=6 ky=2")
			op.Bias = nil
		}
		list = append(list, op)
	}
	return list
}
