package quant

import (
	"encoding/base64"
	"slices"
	"sync"
	"sync/atomic"
)

// grid is a set of points, each dim levels in 0 … base-1. Groups of weights are stored as the number of the point
// that is nearest to them; points are numbered in the order of their combinations, whose last level counts most.
type grid struct {
	base, dim int
	rings     int    // how many different distances the neighbours of a combination have
	bitmap    string // which combinations are points; grids.go

	once   sync.Once
	points []point
	places []int16 // combination → number of the point, -1 for none
	near   []atomic.Pointer[[]uint16]
}

// point is the levels of a point; the first dim of them.
type point [8]uint8

// load fills the grid in from its bitmap.
func (g *grid) load() {
	bitmap, err := base64.StdEncoding.DecodeString(g.bitmap)
	if err != nil {
		panic("quant: a grid is not base64: " + err.Error()) // a constant of this program
	}
	n := 1
	for range g.dim {
		n *= g.base
	}
	g.places = make([]int16, n)
	g.near = make([]atomic.Pointer[[]uint16], n)
	for c := range n {
		g.places[c] = -1
		if bitmap[c/8]>>(c%8)&1 == 1 {
			g.places[c] = int16(len(g.points))
			g.points = append(g.points, g.levels(c))
		}
	}
}

// all returns the points of the grid.
func (g *grid) all() []point {
	g.once.Do(g.load)
	return g.points
}

// levels returns the levels of combination c.
func (g *grid) levels(c int) (p point) {
	for i := range g.dim {
		p[i] = uint8(c % g.base)
		c /= g.base
	}
	return p
}

// combination returns the number of the combination q.
func (g *grid) combination(q []uint8) (c int) {
	for i := g.dim - 1; i >= 0; i-- {
		c = c*g.base + int(q[i])
	}
	return c
}

// place returns the number of the point q, or -1.
func (g *grid) place(q []uint8) int {
	g.once.Do(g.load)
	return int(g.places[g.combination(q)])
}

// neighbours returns the points at the least distances from combination c, the nearest first and those as near in
// their order. They are computed once.
func (g *grid) neighbours(c int) []uint16 {
	if list := g.near[c].Load(); list != nil {
		return *list
	}
	from := g.levels(c)
	// A level is at most 7 from another: the square of a distance is at most 4 · 49 or 8 · 4.
	var rings [4*49 + 1][]uint16
	for i, p := range g.points {
		d := 0
		for k := range g.dim {
			e := int(p[k]) - int(from[k])
			d += e * e
		}
		rings[d] = append(rings[d], uint16(i))
	}
	var list []uint16
	for d, left := 0, g.rings; left > 0 && d < len(rings); d++ {
		if len(rings[d]) > 0 {
			list = append(list, rings[d]...)
			left--
		}
	}
	list = slices.Clip(list)
	g.near[c].Store(&list)
	return list
}

// snap moves q to the point that makes scale · values[q] nearest to x, where w weighs the errors, if q is none
// itself. It tells whether q was one, and the number of the point. Of the points only neighbours of q are looked
// at; the first of several as near counts.
func (g *grid) snap(q []uint8, values, x, w []float32, scale float32) (place int, was bool) {
	if place := g.place(q); place >= 0 {
		return place, true
	}
	near := g.neighbours(g.combination(q))
	best, at := float32(maxFloat), near[0]
	for _, n := range near {
		p, e := &g.points[n], float32(0)
		for i := range g.dim {
			d := float32(scale*values[p[i]]) - x[i]
			e += float32(float32(w[i]*d) * d)
		}
		if e < best {
			best, at = e, n
		}
	}
	copy(q[:g.dim], g.points[at][:])
	return int(at), false
}

const maxFloat = 0x1.fffffep127
