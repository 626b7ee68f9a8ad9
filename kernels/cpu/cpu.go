// Package cpu says what the processor can do: the tier of assembly that the
// kernels use, and single features beyond a tier. It holds no kernel.
//
// A tier is a set of instructions that a whole family of kernels is written in.
// All tiers give the same bits, so the choice is one of speed only; tests and
// curious users force a lower one.
package cpu

import "sync/atomic"

// Tier is a set of instructions. Of two tiers of one architecture the greater is
// the better; kernels that have nothing of their own in it are those of the
// smaller, whose instructions it includes. AVX512 alone need not include
// AVXVNNI, and processors with both are served by AVX512.
type Tier uint32

// The tiers. With the build tag purego, and on other architectures, there is
// only Generic.
const (
	Generic Tier = iota // plain Go
	AVX2                // amd64: AVX2, FMA, F16C
	AVXVNNI             // amd64: AVX2 and VPDPBUSD of ymm registers in the VEX encoding
	AVX512              // amd64: AVX2 and AVX-512 F, BW, VL, DQ
	NEON                // arm64: what every such processor has
	I8MM                // arm64: NEON, dot products and matrix products of bytes: SDOT, SMMLA, USMMLA
)

// String returns "go", "avx2", "avxvnni", "avx512", "neon" or "i8mm".
func (t Tier) String() string {
	return [...]string{"go", "avx2", "avxvnni", "avx512", "neon", "i8mm"}[t]
}

// Feature is an instruction set that some kernels of a tier use in addition.
type Feature uint32

// The features and the tier each belongs to.
const (
	AVX512VNNI Feature = 1 << iota // AVX512: VPDPBUSD of zmm registers
	AVX512BF16                     // AVX512: VDPBF16PS
	DotProd                        // NEON: SDOT, UDOT
)

var (
	tiers    = append([]Tier{Generic}, detectedTiers()...)
	features atomic.Uint32
	current  atomic.Uint32
)

func init() {
	current.Store(uint32(tiers[len(tiers)-1]))
	features.Store(uint32(detectedFeatures()))
}

// Tiers returns the tiers this machine has, Generic first, the best one last.
func Tiers() []Tier { return append([]Tier{}, tiers...) }

// Current returns the tier in use: the best one unless another was forced.
func Current() Tier { return Tier(current.Load()) }

// Has reports whether f can be used in the current tier.
func Has(f Feature) bool {
	if Feature(features.Load())&f == 0 {
		return false
	}
	if f == DotProd {
		return Current() >= NEON
	}
	return Current() == AVX512
}

// Force makes t the current tier of the whole process and returns a function
// that makes it the former one again. It reports false and changes nothing if
// this machine lacks t. No kernel may run meanwhile: it asks for the tier more
// than once.
func Force(t Tier) (restore func(), ok bool) {
	for _, have := range tiers {
		if have == t {
			old := current.Swap(uint32(t))
			return func() { current.Store(old) }, true
		}
	}
	return func() {}, false
}

// Forgo makes as if this machine lacked f, for the whole process, and returns a function that undoes that. What Force
// says of kernels that run meanwhile holds here, too.
func Forgo(f Feature) (restore func()) {
	old := features.And(^uint32(f))
	return func() { features.Store(old) }
}
