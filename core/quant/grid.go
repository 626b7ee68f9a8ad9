package quant

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fucina-go/fucina/kernels/qdot"
)

// grid is where encoders look for the point that is nearest to a group of weights.
type grid struct {
	*qdot.Grid
	rings int // how many different distances the neighbours of a combination have

	once   sync.Once
	places []int16 // combination → number of the point, -1 for none
	near   []atomic.Pointer[[]uint16]
}

var (
	iq2xxsGrid = grid{Grid: &qdot.IQ2XXS, rings: 2}
	iq2xsGrid  = grid{Grid: &qdot.IQ2XS, rings: 2}
	iq2sGrid   = grid{Grid: &qdot.IQ2S, rings: 1}
	iq1Grid    = grid{Grid: &qdot.IQ1, rings: 3}
	iq3xxsGrid = grid{Grid: &qdot.IQ3XXS, rings: 2}
	iq3sGrid   = grid{Grid: &qdot.IQ3S, rings: 3}
)

// load fills in the places.
func (g *grid) load() {
	n := 1
	for range g.Dim {
		n *= g.Base
	}
	g.places = make([]int16, n)
	for c := range g.places {
		g.places[c] = -1
	}
	for i, p := range g.Points() {
		g.places[g.combination(p[:])] = int16(i)
	}
	g.near = make([]atomic.Pointer[[]uint16], n)
}

// combination returns the number of the combination q.
func (g *grid) combination(q []uint8) (c int) {
	for i := g.Dim - 1; i >= 0; i-- {
		c = c*g.Base + int(q[i])
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
	from := g.Levels(c)
	// A level is at most 7 from another: the square of a distance is at most 4 · 49 or 8 · 4.
	var rings [4*49 + 1][]uint16
	for i, p := range g.Points() {
		d := 0
		for k := range g.Dim {
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
	near, points := g.neighbours(g.combination(q)), g.Points()
	best, at := float32(maxFloat), near[0]
	for _, n := range near {
		p, e := &points[n], float32(0)
		for i := range g.Dim {
			d := float32(scale*values[p[i]]) - x[i]
			e += float32(float32(w[i]*d) * d)
		}
		if e < best {
			best, at = e, n
		}
	}
	copy(q[:g.Dim], points[at][:])
	return int(at), false
}

const maxFloat = 0x1.fffffep127
