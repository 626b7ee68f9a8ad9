package quant

// The formats iq2_xxs, iq2_xs, iq2_s, iq3_xxs and iq3_s store signs apart and magnitudes as points of a grid whose
// level l stands for 2l+1, in groups with a scale each. What they share is here.

// odd is 2l+1.
var odd = []float32{1, 3, 5, 7, 9, 11, 13, 15}

// gridFit is how such a format looks for points and scale of a group.
type gridFit struct {
	grid  *grid
	even  bool    // the number of negative signs of eight weights must be even
	steps int     // so many steps up and down from the greatest magnitude on the highest level,
	step  float32 // in levels
	least float32 // a group below that is zero
	first bool    // begin with the scale that fits without a grid
	redo  redo
}

// redo says what becomes of the points once the scale is known.
type redo uint8

const (
	redoOff redo = iota // cells that were off the grid are rounded anew
	redoAll             // if one was, all cells are
	always              // all cells are
)

// run chooses points and signs for x: the number of a point for every grid.Dim weights in places, a byte of signs
// for every eight in signs. It returns the scale, 0 for a group of zeros, which has point 0 and no signs.
func (f *gridFit) run(x, w []float32, places []int, signs []uint8) (scale float32) {
	clear(places)
	clear(signs)
	var abs, root [32]float32
	x8, neg := abs[:len(x)], signs
	f.split(x, w, x8, neg)
	top := x8[0]
	for _, v := range x8[1:] {
		top = max(top, v)
	}
	if top < f.least {
		clear(signs)
		return 0
	}
	for i := range x {
		root[i] = sqrt(w[i])
	}
	c := cells{gridFit: f, x: x8, w: w, root: root[:len(x)]}
	if scale = c.search(top); scale == 0 && f.first {
		clear(signs)
		return 0
	}
	scale = c.settle(scale)
	if scale < 0 { // scales have no sign
		scale = -scale
		for i := range signs {
			signs[i] ^= 0xff
		}
	}
	dim := f.grid.Dim
	for k := range places {
		places[k] = f.grid.place(c.q[dim*k:])
	}
	return scale
}

// split sets y to the magnitudes of x and signs to a bit for each that is negative. If their number must be even,
// the weight that matters least changes its sign where it is not.
func (f *gridFit) split(x, w, y []float32, signs []uint8) {
	for k := range signs {
		s := uint8(0)
		count := 0
		for i := 8 * k; i < 8*k+8; i++ {
			y[i] = x[i]
			if !(x[i] >= 0) {
				y[i] = -x[i]
				s |= 1 << (i % 8)
				count++
			}
		}
		if f.even && count%2 == 1 {
			cost := func(i int) float32 { return w[i] * x[i] * x[i] }
			at := 8 * k
			for i := at + 1; i < 8*k+8; i++ {
				if cost(i) < cost(at) {
					at = i
				}
			}
			y[at] = -y[at]
			s ^= 1 << (at % 8)
		}
		signs[k] = s
	}
}

// cells is a group at work: its weights in cells of grid.Dim.
type cells struct {
	*gridFit
	x, w, root []float32 // magnitudes, weights of errors and their roots
	q          [32]uint8 // the best levels so far
	off        [8]bool   // cells whose levels were not on the grid
}

// search tries scales around the one that puts top on the highest level, and returns the best.
func (c *cells) search(top float32) float32 {
	high := 2*c.grid.Base - 1
	scale := top / float32(high)
	if c.first {
		var q [32]uint8
		fit := fitPositive(c.grid.Base+1, c.x, c.w, q[:len(c.x)])
		scale, top = fit, fit*float32(c.grid.Base)
		if top <= 0 {
			return 0
		}
	}
	for k := range c.off {
		c.off[k] = c.redo == redoAll
	}
	best := float32(0)
	for step := -c.steps; step <= c.steps; step++ {
		inv := (float32(high) + float32(float32(step)*c.step)) / top
		var try cells
		try.gridFit, try.x, try.w, try.root = c.gridFit, c.x, c.w, c.root
		for k := 0; k < len(c.x)/c.grid.Dim; k++ {
			try.off[k] = !try.round(k, inv, 1/inv)
		}
		if lx, ll := try.moments(); ll > 0 && lx*lx > best*ll {
			scale = lx / ll
			best = scale * lx
			c.q, c.off = try.q, try.off
		}
	}
	return scale
}

// settle rounds anew what it must with the scale found, and returns the scale that fits the result best.
func (c *cells) settle(scale float32) float32 {
	count := len(c.x) / c.grid.Dim
	any := c.redo == always
	for _, off := range c.off[:count] {
		any = any || off
	}
	if !any || !(scale > 0) {
		return scale
	}
	for k := range count {
		if c.off[k] || c.redo != redoOff {
			c.round(k, 1/scale, scale)
		}
	}
	if lx, ll := c.moments(); ll > 0 {
		scale = lx / ll
	}
	return scale
}

// round chooses the levels of cell k at a scale, and tells whether they were on the grid at once.
func (c *cells) round(k int, inv, scale float32) bool {
	lo, hi := k*c.grid.Dim, (k+1)*c.grid.Dim
	for i := lo; i < hi; i++ {
		c.q[i] = uint8(clamp(nearest(0.5*(float32(inv*c.x[i])-1)), 0, c.grid.Base-1))
	}
	_, was := c.grid.snap(c.q[lo:hi], odd, c.x[lo:hi], c.root[lo:hi], scale)
	return was
}

// moments returns Σ w·x·l and Σ w·l·l over the levels chosen.
func (c *cells) moments() (lx, ll float32) {
	for i, v := range c.x {
		l := odd[c.q[i]]
		lx += float32(float32(c.w[i]*v) * l)
		ll += float32(float32(c.w[i]*l) * l)
	}
	return lx, ll
}

// gridScales sets q to the scales of a block as 2q+1 parts of d, q at most most, and returns d.
func gridScales(scales []float32, q []uint8, parts float32, most int) float32 {
	d := float32(0)
	for _, s := range scales {
		d = max(d, s)
	}
	d /= parts
	inv := 1 / d
	for i, s := range scales {
		q[i] = uint8(clamp(nearest(0.5*(float32(inv*s)-1)), 0, most))
	}
	return d
}
