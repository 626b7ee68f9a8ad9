package core

import "fmt"

// ConvTranspose is the transpose of conv: every element of the input adds the weight, times itself, to the places
// that conv would have read it from, as in PyTorch's conv_transpose1d, 2d and 3d.
//
// Shape: input[batch, channel, y, x], weight[channel, out, kernel_y, kernel_x], bias[out] → y[batch, out, y, x] for
// conv_transpose(input, weight, "channel", y="kernel_y", x="kernel_x"). Axes are as in conv.
//
// An axis of n gets (n - 1) · stride - before - after + dilation · (kernel - 1) + 1 + output_padding places: padding
// is cut off, output_padding (less than the stride or the dilation) is added at the end. Options are one number, or
// one per axis in a dict. With groups, every group of the input's channels goes to one group of outputs, of which
// the weight's out has the elements of one.
//
// Numerics: as conv.
//
// Errors: an axis that is missing; padding that leaves nothing; groups that do not divide; integers.
//
// Example:
//
//	x = ones(batch=1, channel=3, seq=5)
//	x.conv_transpose(ones(channel=3, out=2, kernel=4), "channel", seq="kernel", stride=2, padding=1)
type ConvTranspose struct {
	Convolution
	Padding       PerAxis `arg:"padding=0,pairs"`
	OutputPadding PerAxis `arg:"output_padding=0"`
}

var convTranspose = Declare[ConvTranspose]("conv_transpose")

// geometry is how the weight slides along each axis.
func (a *ConvTranspose) geometry(r convRoles) []slide {
	slides := a.slides(r, a.Padding)
	for i := range slides {
		l := &slides[i]
		more, _ := a.OutputPadding.At(r.spatial.At(i), 0)
		l.small = a.Input.Size(r.spatial.At(i))
		l.large = (l.small-1)*l.s - l.before - l.after + l.reach() + more
	}
	return slides
}

// Sizes counts the places that the kernel reaches.
func (a *ConvTranspose) Sizes(s *Sizes) {
	r := s.c.plan.data.(convRoles)
	slides := a.geometry(r)
	a.check(s, r, slides)
	s.perAxis("padding", a.Padding, r.spatial)
	s.perAxis("output_padding", a.OutputPadding, r.spatial)
	for _, name := range r.contract.Names() {
		if a.Input.Size(name) != a.Weight.Size(name) {
			s.c.sizeConflict(a.Input, a.Weight, name)
		}
	}
	if a.Groups > 1 && a.Input.Size(r.contract.At(0))%a.Groups != 0 {
		s.Fail(fmt.Sprintf("axis %q of %s does not divide into %d groups", r.contract.At(0), s.Describe(a.Input),
			a.Groups),
			refit(s.c, "1 is no grouping", "groups", 1))
	}
	if a.Groups > 1 {
		s.Set(0, r.own.At(0), a.Groups*a.Weight.Size(r.own.At(0)))
	}
	for i, l := range slides {
		name := r.spatial.At(i)
		if more, _ := a.OutputPadding.At(name, 0); more < 0 || more >= max(l.s, l.d) {
			s.Fail(fmt.Sprintf("output_padding along %q is %d", name, more), refit(s.c,
				fmt.Sprintf("it is 0 … %d here, less than the stride or the dilation", max(l.s, l.d)-1),
				"output_padding", Every(0)))
		}
		if l.large < 1 {
			s.Fail(fmt.Sprintf("axis %q would get %d places", name, l.large),
				refit(s.c, "less padding", "padding", Every(0)))
		}
		s.Set(0, name, l.large)
	}
	a.checkBias(s)
}

// Eval sums up in the places themselves. Places whose distance is a multiple of the stride are reached by the same
// part of the kernel, with a stride of 1: each such phase is a convolution, of the kernel turned round.
func (a *ConvTranspose) Eval(c *Ctx) {
	r := c.Data().(convRoles)
	slides := a.geometry(r)
	phases := 1
	for _, l := range slides {
		phases *= min(l.s, l.large)
	}
	for phase := range phases {
		steps, rest := make([]strided, len(slides)), phase
		for i := len(slides) - 1; i >= 0; i-- {
			l, n := slides[i], min(slides[i].s, slides[i].large)
			at := rest % n
			rest /= n
			steps[i] = strided{size: l.small, count: ceilDiv(l.large-at, l.s), step: 1, from: at, every: l.s}
			for k := range l.kernel {
				if d := at + l.before - k*l.d; d%l.s == 0 {
					steps[i].places, steps[i].offsets = append(steps[i].places, k), append(steps[i].offsets, d/l.s)
				}
			}
		}
		convolve(c, &a.Convolution, r, steps, r.contract)
	}
}

// Saves the other operand of each that wants a gradient.
func (*ConvTranspose) Saves(want uint64) (in, out uint64) { return want&1<<1 | want>>1&1, 0 }

// VJP is conv of gy for the input, conv of gy with the input for the weight, and gy for the bias.
func (a *ConvTranspose) VJP(_, gy []*Tensor, g *Grads) {
	r := a.roles()
	slides := a.geometry(r)
	if g.Wants(0) {
		op := Conv{Convolution: a.Convolution, Padding: perAxisOf(r.spatial)}
		op.Input, op.Axis, op.Bias = gy[0], r.own, nil
		for i, l := range slides {
			op.Padding.Each.Values[i] = [2]int{l.before, (l.small-1)*l.s + l.reach() - l.large - l.before}
		}
		g.Set(0, conv.Call(op))
	}
	if g.Wants(1) {
		g.Set(1, a.weightGradient(r, slides, gy[0], a.Input, r.own, r.contract))
	}
	g.Set(2, gy[0])
}

// Samples covers strides, dilations, padding, groups, and what convolutions are tested on.
func (*ConvTranspose) Samples(m *Maker) (list []ConvTranspose) {
	for i, a := range m.convolutions() {
		op := ConvTranspose{Convolution: a}
		switch i % 4 {
		case 1:
			op.Stride, op.OutputPadding = Every(2), Every(1)
		case 2:
			op.Dilation = Every(2)
		case 3:
			op.Stride.Each, op.Padding.Each = Map[[2]int]{axisList("x"), [][2]int{{3, 3}}}, Map[[2]int]{axisList("x"),
				[][2]int{{1, 0}}}
		}
		if a.Input.Size("in") == 4 {
			op.Groups, op.Bias = 2, m.Tensor(a.Input.dtype, "out=10")
		}
		list = append(list, op)
	}
	return list
}
