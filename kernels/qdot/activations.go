package qdot

import "math"

// An activation row is stored as a record of Record words for each Group of its elements:
//
//	word 0–7   the 32 integers, a byte each
//	word 8     d, a float32
//	word 9     d·float32(Σ a), a float32
//	word 10    -Σ a, word 11 -Σ of the first 16, word 12 -Σ of the other 16
//	word 13    d·float32(Σ of the first 16), word 14 the same of the other 16, float32
//
// The negative sums are what an accumulator begins with if the weights are stored with something added to them.

// Record is the words of a group of activations.
const Record = 15

const (
	wordScale = 8 + iota
	wordScaledSum
	wordSum
	wordLow
	wordHigh
	wordScaledLow
	wordScaledHigh
)

// ActivationWords returns the words that a row of k activations takes, k being a multiple of Group.
func ActivationWords(k int) int { return k / Group * Record }

// smallest is the least magnitude that a group of activations is not taken for zeros with.
const smallest = 0x1p-100

// Quantize stores the activations x, whose number is a multiple of Group, in dst.
func Quantize(dst []uint32, x []float32) {
	dst = dst[:ActivationWords(len(x))]
	if assembly() {
		const most = 1024 // groups that one call of the assembly takes, which cannot be preempted
		for g := 0; g < len(x)/Group; g += most {
			quantizeRow(&dst[g*Record], &x[g*Group], min(most, len(x)/Group-g))
		}
		return
	}
	for g := range len(x) / Group {
		quantizeGroup((*[Record]uint32)(dst[g*Record:]), (*[Group]float32)(x[g*Group:]))
	}
}

// quantizeGroup is the definition of Quantize.
func quantizeGroup(dst *[Record]uint32, x *[Group]float32) {
	*dst = [Record]uint32{}
	top := uint32(0) // the greatest magnitude, by its bits, of which those of NaN are the greatest
	for _, v := range x {
		top = max(top, math.Float32bits(v)&^(1<<31))
	}
	most := math.Float32frombits(top)
	if top >= math.Float32bits(float32(math.Inf(1))) {
		for _, w := range []int{wordScale, wordScaledSum, wordScaledLow, wordScaledHigh} {
			dst[w] = notANumber
		}
		return
	}
	if most < smallest {
		return
	}
	inv := 127 / most
	var sum [2]int32
	for j, v := range x {
		a := int32(math.RoundToEven(float64(float32(v * inv))))
		dst[j/4] |= uint32(uint8(a)) << (j % 4 * 8)
		sum[j/16] += a
	}
	d := most / 127
	dst[wordScale] = math.Float32bits(d)
	dst[wordScaledSum] = math.Float32bits(float32(d * float32(sum[0]+sum[1])))
	for i, v := range sum {
		dst[wordScaledLow+i] = math.Float32bits(float32(d * float32(v)))
	}
	dst[wordSum], dst[wordLow], dst[wordHigh] = uint32(-sum[0]-sum[1]), uint32(-sum[0]), uint32(-sum[1])
}

// notANumber is the bits of a NaN.
const notANumber = 0x7FC00000
