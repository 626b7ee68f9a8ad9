// Package rng computes random numbers from counters: a value is a function of
// (seed, stream, index) and of nothing else.
//
// There is no generator state, so the order of the calls, the number of
// workers and a restart in the middle do not change what is drawn. Use one
// stream for each purpose (a layer's dropout, a population member, a request)
// and the position within it as the index. All values are the same bits on
// every architecture.
//
// Different functions with the same (seed, stream, index) read the same random
// bits, so their results depend on each other: give them different streams.
// Nothing here is fit for cryptography.
package rng

import (
	"fmt"
	"math/bits"
)

// Philox4x32-10 of Salmon, Moraes, Dror, Shaw: Parallel random numbers: as
// easy as 1, 2, 3 (SC'11).
const (
	rounds    = 10
	multiply0 = 0xD2511F53
	multiply1 = 0xCD9E8D57
	weyl0     = 0x9E3779B9
	weyl1     = 0xBB67AE85
)

// Block returns the 128 random bits with number index of a stream. The seed is
// the key of Philox4x32-10; its counter is index in the low 64 bits and stream
// in the high ones. The other functions cut their values out of blocks: value
// i of 32 bits is word i%4 of block i/4, value i of 64 bits is half i%2 of
// block i/2.
func Block(seed, stream, index uint64) [4]uint32 {
	k0, k1 := uint32(seed), uint32(seed>>32)
	c0, c1 := uint32(index), uint32(index>>32)
	c2, c3 := uint32(stream), uint32(stream>>32)
	for range rounds {
		p0 := uint64(c0) * multiply0
		p1 := uint64(c2) * multiply1
		c0, c1, c2, c3 = uint32(p1>>32)^c1^k0, uint32(p1), uint32(p0>>32)^c3^k1, uint32(p0)
		k0 += weyl0
		k1 += weyl1
	}
	return [4]uint32{c0, c1, c2, c3}
}

// Uint64 returns 64 random bits.
func Uint64(seed, stream, index uint64) uint64 {
	b := Block(seed, stream, index/2)
	return half(&b, index%2)
}

// half returns 64 of the bits of a block, the earlier word low.
func half(b *[4]uint32, i uint64) uint64 { return uint64(b[2*i]) | uint64(b[2*i+1])<<32 }

// Float32 returns a uniform multiple of 2⁻²⁴ in [0, 1).
func Float32(seed, stream, index uint64) float32 {
	b := Block(seed, stream, index/4)
	return unit32(b[index%4])
}

func unit32(word uint32) float32 { return float32(float32(word>>8) * 0x1p-24) }

// Float64 returns a uniform multiple of 2⁻⁵³ in [0, 1).
func Float64(seed, stream, index uint64) float64 {
	return unit64(Uint64(seed, stream, index))
}

func unit64(u uint64) float64 { return float64(float64(u>>11) * 0x1p-53) }

// FillFloat32 sets dst[i] to Float32(seed, stream, index+i), at a quarter of
// the cost of single calls.
func FillFloat32(dst []float32, seed, stream, index uint64) {
	for len(dst) > 0 {
		b := Block(seed, stream, index/4)
		four := [4]float32{unit32(b[0]), unit32(b[1]), unit32(b[2]), unit32(b[3])}
		n := copy(dst, four[index%4:])
		dst, index = dst[n:], index+uint64(n)
	}
}

// IntN returns a uniform integer in [0, n) without bias: the multiplication
// and rejection of Lemire, Fast random integer generation in an interval
// (2019). It panics if n < 1.
func IntN(seed, stream, index uint64, n int) int {
	if n < 1 {
		panic(fmt.Sprintf("rng: IntN needs n of at least 1, got %d", n))
	}
	hi, lo := bits.Mul64(Uint64(seed, stream, index), uint64(n))
	if lo < uint64(n) {
		// A rejected draw is repeated at the same place under other keys, so
		// that no draw of this seed is used twice.
		for reject := -uint64(n) % uint64(n); lo < reject; {
			seed += 0x9E3779B97F4A7C15
			hi, lo = bits.Mul64(Uint64(seed, stream, index), uint64(n))
		}
	}
	return int(hi)
}
