package qdot

import (
	"encoding/base64"
	"sync"
)

// Grid is a set of points, each Dim levels in 0 … Base-1. Groups of as many weights are stored as the number of a
// point; points are numbered in the order of their combinations, whose last level counts most.
type Grid struct {
	Base, Dim int
	values    []uint8 // what a level stands for
	bitmap    string  // which combinations are points; grids.go

	once   sync.Once
	points [][8]uint8
	words  []uint32 // the values of the points, a byte each
}

// load fills the grid in from its bitmap.
func (g *Grid) load() {
	bitmap, err := base64.StdEncoding.DecodeString(g.bitmap)
	if err != nil {
		panic("qdot: a grid is not base64: " + err.Error()) // a constant of this program
	}
	for c := range 8 * len(bitmap) {
		if bitmap[c/8]>>(c%8)&1 == 0 {
			continue
		}
		p := g.Levels(c)
		g.points = append(g.points, p)
		for i := 0; i < g.Dim; i += 4 {
			w := uint32(0)
			for j, level := range p[i : i+4] {
				w |= uint32(g.values[level]) << (8 * j)
			}
			g.words = append(g.words, w)
		}
	}
}

// Points returns the levels of every point, the first Dim of each. The caller must not change the slice.
func (g *Grid) Points() [][8]uint8 {
	g.once.Do(g.load)
	return g.points
}

// Levels returns the levels of combination c.
func (g *Grid) Levels(c int) (p [8]uint8) {
	for i := range g.Dim {
		p[i] = uint8(c % g.Base)
		c /= g.Base
	}
	return p
}

// table returns the values of the points, four to a word.
func (g *Grid) table() []uint32 {
	g.once.Do(g.load)
	return g.words
}

// points is where the assembly finds the values of the points; nil if the format has none.
func (f *Format) points() *uint32 {
	if f.grid == nil {
		return nil
	}
	return &f.grid.table()[0]
}

// point is point i of a grid of eight.
func point(table []uint32, i int) uint64 {
	p := table[2*i:][:2]
	return uint64(p[0]) | uint64(p[1])<<32
}

// signed is the bytes of w, which are not 0, those negative of which a bit of signs is set.
func signed(w uint64, signs byte) uint64 {
	bits := spread(signs)
	return (w ^ bits*255) + bits
}

// even adds to seven signs the eighth that makes their number even.
func even(s uint8) uint8 {
	s &= 127
	odd := s ^ s>>4
	odd ^= odd >> 2
	odd ^= odd >> 1
	return s | odd&1<<7
}
