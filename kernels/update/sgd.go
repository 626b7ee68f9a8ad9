package update

// SGD is a step of gradient descent, on x = g·Sign + p·L2. Without momentum
//
//	p -= x·Rate
//
// and with it
//
//	b = b·Keep + x·Add
//	p -= (x·Fresh + b·Old)·Rate
type SGD[T Float] struct{ Sign, L2, Keep, Add, Fresh, Old, Rate T }

// Step changes p, without momentum.
func (c *SGD[T]) Step(p, g []T) {
	g = g[:len(p)]
	for ; len(p) > most; p, g = p[most:], g[most:] {
		c.Step(p[:most], g)
	}
	n := whole(len(p))
	switch {
	case n == 0:
	case wide[T]():
		descendF64(f64(p), f64(g), float64(c.Sign), float64(c.L2), float64(c.Rate), n)
	default:
		descendF32(f32(p), f32(g), float32(c.Sign), float32(c.L2), float32(c.Rate), n)
	}
	for i := n; i < len(p); i++ {
		p[i] -= T((T(g[i]*c.Sign) + T(p[i]*c.L2)) * c.Rate)
	}
}

// Momentum changes p and b.
func (c *SGD[T]) Momentum(p, g, b []T) {
	g, b = g[:len(p)], b[:len(p)]
	for ; len(p) > most; p, g, b = p[most:], g[most:], b[most:] {
		c.Momentum(p[:most], g, b)
	}
	n := whole(len(p))
	switch {
	case n == 0:
	case wide[T]():
		momentumF64(f64(p), f64(g), f64(b), float64(c.Sign), float64(c.L2), float64(c.Keep), float64(c.Add),
			float64(c.Fresh), float64(c.Old), float64(c.Rate), n)
	default:
		momentumF32(f32(p), f32(g), f32(b), float32(c.Sign), float32(c.L2), float32(c.Keep), float32(c.Add),
			float32(c.Fresh), float32(c.Old), float32(c.Rate), n)
	}
	for i := n; i < len(p); i++ {
		x := T(g[i]*c.Sign) + T(p[i]*c.L2)
		b[i] = T(b[i]*c.Keep) + T(x*c.Add)
		p[i] -= T((T(x*c.Fresh) + T(b[i]*c.Old)) * c.Rate)
	}
}
