package update

import "math"

// Adam is a step of Adam and its kin, on x = g·Sign + p·L2:
//
//	m = m·B1 + x·C1
//	v = v·B2 + x²·C2
//	p = p·Decay - m / (√v·Root + Eps)·Rate
type Adam[T Float] struct{ Sign, L2, Decay, B1, C1, B2, C2, Root, Eps, Rate T }

// Step changes p, m and v.
func (c *Adam[T]) Step(p, g, m, v []T) {
	g, m, v = g[:len(p)], m[:len(p)], v[:len(p)]
	for ; len(p) > most; p, g, m, v = p[most:], g[most:], m[most:], v[most:] {
		c.Step(p[:most], g, m, v)
	}
	n := whole(len(p))
	switch {
	case n == 0:
	case wide[T]():
		adamF64(f64(p), f64(g), f64(m), f64(v), float64(c.Sign), float64(c.L2), float64(c.Decay), float64(c.B1),
			float64(c.C1), float64(c.B2), float64(c.C2), float64(c.Root), float64(c.Eps), float64(c.Rate), n)
	default:
		adamF32(f32(p), f32(g), f32(m), f32(v), float32(c.Sign), float32(c.L2), float32(c.Decay), float32(c.B1),
			float32(c.C1), float32(c.B2), float32(c.C2), float32(c.Root), float32(c.Eps), float32(c.Rate), n)
	}
	for i := n; i < len(p); i++ {
		c.moments(&p[i], &m[i], &v[i], g[i])
		p[i] -= T(m[i] / (T(root(v[i])*c.Root) + c.Eps) * c.Rate)
	}
}

// StepMax is Step with the greatest v so far, top, in place of v in the last line (AMSGrad). It changes p, m, v, top.
func (c *Adam[T]) StepMax(p, g, m, v, top []T) {
	g, m, v, top = g[:len(p)], m[:len(p)], v[:len(p)], top[:len(p)]
	for ; len(p) > most; p, g, m, v, top = p[most:], g[most:], m[most:], v[most:], top[most:] {
		c.StepMax(p[:most], g, m, v, top)
	}
	n := whole(len(p))
	switch {
	case n == 0:
	case wide[T]():
		adamMaxF64(f64(p), f64(g), f64(m), f64(v), f64(top), float64(c.Sign), float64(c.L2), float64(c.Decay),
			float64(c.B1), float64(c.C1), float64(c.B2), float64(c.C2), float64(c.Root), float64(c.Eps),
			float64(c.Rate), n)
	default:
		adamMaxF32(f32(p), f32(g), f32(m), f32(v), f32(top), float32(c.Sign), float32(c.L2), float32(c.Decay),
			float32(c.B1), float32(c.C1), float32(c.B2), float32(c.C2), float32(c.Root), float32(c.Eps),
			float32(c.Rate), n)
	}
	for i := n; i < len(p); i++ {
		c.moments(&p[i], &m[i], &v[i], g[i])
		if !(v[i] <= top[i]) { // a NaN stays
			top[i] = v[i]
		}
		p[i] -= T(m[i] / (T(root(top[i])*c.Root) + c.Eps) * c.Rate)
	}
}

// moments updates m and v and decays p.
func (c *Adam[T]) moments(p, m, v *T, g T) {
	x := T(g*c.Sign) + T(*p*c.L2)
	*p = T(*p * c.Decay)
	*m = T(*m*c.B1) + T(x*c.C1)
	*v = T(*v*c.B2) + T(T(x*x)*c.C2)
}

// root is the square root, rounded once.
func root[T Float](x T) T { return T(math.Sqrt(float64(x))) }
