// Package qdot multiplies rows of activations by weights in ggml's block formats, in integers.
//
// Here: weights in panels, activations rounded to 8 bits, and the products of both, for the formats whose weights are
// small integers times a scale. Not here: encoding and decoding of blocks to floats (core/quant), tensors, goroutines.
//
// # The number that a product is
//
// A row of activations is cut into groups of 32. A group is stored as d = max|x|/127, rounded, and 32 integers
// a = x·(127/max|x|), rounded to even; a group smaller than 2⁻¹⁰⁰ counts as zeros, and one with a number that is not
// finite makes every product with it NaN. A format gives integers q, and for each 128, 32 or 16 of them a scale s and
// perhaps an offset m, or one for each 16 of 128, so that a weight is s·q + m. If its own scales are small integers
// times a number that more weights share, as those of 16 weights of q2_k and q3_k, they are in the q. Then, group after
// group and starting from 0,
//
//	y = y + float32(Σ q·a) · (s·d)          every operation rounded to float32, the sum exact
//	y = y + m · (d·float32(Σ a))            for each offset, the sum over what shares m
//
// but where 128 weights share a scale, after what their offsets add,
//
//	y = y + s · (((p₀ + p₁) + p₂) + p₃)     p = float32(Σ q·a) · d of each of their groups
//
// and where the two halves of a group have scales of their own,
//
//	y = y + (t₀ + t₁) · d                   t = float32(Σ q·a) · s of each half
//
// Every tier computes just this, whatever the number of rows, panels and workers, so a row of a batch has the bits of
// that row alone.
package qdot

import "github.com/fucina-go/fucina/kernels/cpu"

//go:generate go run ../internal/gen ..

// assembly tells whether activations are rounded and panels packed in assembly.
func assembly() bool { return hasSIMD && cpu.Current() != cpu.Generic }

// vectors tells whether the products run in assembly, which on arm64 needs dot products.
func vectors() bool { return assembly() && (cpu.Current() != cpu.NEON || cpu.Has(cpu.DotProd)) }

// Rows is the number of rows of weights in a panel: a lane of a vector belongs to a row.
const Rows = 16

// Group is how many activations share a scale.
const Group = 32

// Format is a block format of weights whose products are computed in integers.
type Format struct {
	Name  string // ggml's: "q4_k"
	Block int    // weights in a block
	Bytes int    // bytes of a block

	odd, oddAt int     // bytes of a block that are no words of 4, and where they begin: at 0 or behind the words
	each       int     // weights that share a scale: 128, 32 or 16
	offsets    int     // of weights that share a scale: none, 1, or 8 for each 16 of 128
	wide       bool    // tells whether the integers may be other than -32 to 31
	factors    bool    // tells whether they are those of 3 bits times a factor that 16 share, in wide formats
	pieces     []piece // where in a panel the words of a block lie; nil: in their order

	grid *Grid // whose points stand for weights; nil for none
	slow bool  // tells whether integers are multiplied by several rows in the time that they take to be found

	// expand sets q to the integers of block b, -128 to 127, and s and m to their scales and offsets.
	expand func(q []int8, s, m []float32, b []byte)
}

// formats is every format of this package.
var formats = []*Format{&q4_0, &q4_1, &q5_0, &q5_1, &q8_0, &q4_k, &q5_k, &q6_k, &iq4_nl, &iq4_xs, &mxfp4, &tq2_0, &q2_0,
	&q2_k, &q3_k, &iq2_xxs, &iq2_xs, &iq2_s, &iq3_xxs, &iq3_s, &iq1_s, &iq1_m, &tq1_0, &nvfp4, &q1_0, &q8_1, &q8_k}

// ByName returns the format, or nil if its products are not computed in integers.
func ByName(name string) *Format {
	for _, f := range formats {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Few is up to how many rows of activations Vec, row by row, is faster than Unpack and Tile.
func (f *Format) Few() int {
	if f.slow {
		return 1
	}
	return 2
}

// Expand sets q to the Block integers of block b, s to their scales, of which each belongs to so many integers, and m
// to so many offsets for each scale, which belong to as many weights each. q has room for all, s and m for 16.
func (f *Format) Expand(q []int8, s, m []float32, b []byte) (each, offsets int) {
	f.expand(q[:f.Block], s, m, b)
	return f.each, f.offsets
}
