package update

// Lion is a step of Lion, on x = g·Sign:
//
//	p = p·Decay - sign(m·B1 + x·C1)·Rate
//	m = m·B2 + x·C2
type Lion[T Float] struct{ Sign, Decay, B1, C1, B2, C2, Rate T }

// Step changes p and m.
func (c *Lion[T]) Step(p, g, m []T) {
	g, m = g[:len(p)], m[:len(p)]
	for ; len(p) > most; p, g, m = p[most:], g[most:], m[most:] {
		c.Step(p[:most], g, m)
	}
	n := whole(len(p))
	switch {
	case n == 0:
	case wide[T]():
		lionF64(f64(p), f64(g), f64(m), float64(c.Sign), float64(c.Decay), float64(c.B1), float64(c.C1),
			float64(c.B2), float64(c.C2), float64(c.Rate), n)
	default:
		lionF32(f32(p), f32(g), f32(m), float32(c.Sign), float32(c.Decay), float32(c.B1), float32(c.C1),
			float32(c.B2), float32(c.C2), float32(c.Rate), n)
	}
	for i := n; i < len(p); i++ {
		x := T(g[i] * c.Sign)
		s := T(m[i]*c.B1) + T(x*c.C1)
		switch {
		case s > 0:
			s = 1
		case s < 0:
			s = -1
		}
		p[i] = T(p[i]*c.Decay) - T(s*c.Rate)
		m[i] = T(m[i]*c.B2) + T(x*c.C2)
	}
}
