// Package quant converts between f32 and the number formats of ggml: blocks of weights that share scales.
//
// Here: one file per format with its layout and encoder, decoding, and the list of all formats. Not here: how a
// block's integers are found (kernels/qdot), tensors and their axes (core), where bytes come from (core/gguf), and
// products (kernels).
//
// Decoding gives the bits of ggml's to_float. Encoding gives the bytes of ggml_quantize_chunk in a build
// that does not contract products and sums; published files made with fused multiply-adds differ in about
// one block of a hundred in the formats that search for scales. The same input gives the same bytes on
// every processor.
//
// Every block layout and every rule of the searches is from ggml, src/ggml-common.h and src/ggml-quants.c
// at commit d99724f2: https://github.com/ggml-org/ggml
package quant

import (
	"errors"
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/qdot"
)

// Format is a number format: Block consecutive weights of a row take Bytes bytes.
//
// What is not a finite number cannot be encoded. Zeros and denormals can: a block of them decodes to zeros
// or to values as small. Bits of any kind can be decoded; a scale that is no number gives weights that are
// none.
type Format struct {
	Name       string // "q4_k"
	ID         uint32 // ggml's number of the type
	Block      int    // weights in a block
	Bytes      int    // bytes of a block
	Importance bool   // tells whether Encode needs the importance of the weights
	DType      dtype.Type

	// Integers is the format as integers with scales, in which its products are computed, for blocks of several
	// weights: Block and Bytes are then its own, and decode unless it is said here. It is nil for single numbers.
	Integers *qdot.Format

	decode func(y []float32, b []byte) // of a block; nil: as Integers says
	// encode writes a block of x. w is the importance of its weights, nil for none; power is the mean
	// square of the row that it is in, if w is given.
	encode func(b []byte, x, w []float32, power float32)
	scales []int               // where in a block f16 scales are
	sound  func(b []byte) bool // tells whether the scales of a block are finite; nil: as scales says
}

// formats is every format, in the order of ggml's numbers.
var formats = []*Format{&f32, &f16, &q4_0, &q4_1, &q5_0, &q5_1, &q8_0, &q8_1, &q2_k, &q3_k, &q4_k, &q5_k, &q6_k,
	&q8_k, &iq2_xxs, &iq2_xs, &iq3_xxs, &iq1_s, &iq4_nl, &iq3_s, &iq2_s, &iq4_xs, &iq1_m, &bf16, &tq1_0, &tq2_0,
	&mxfp4, &nvfp4, &q1_0, &q2_0}

// byType is the formats of more than one weight a block, in the order of their element types, of which the first is
// firstType.
var (
	byType    []*Format
	firstType dtype.Type
)

func init() {
	for _, f := range formats {
		f.takeIntegers()
		if f.Block == 1 {
			f.DType, _ = dtype.Parse(f.Name)
			continue
		}
		f.DType = dtype.NewQuantized(f.Name)
		byType = append(byType, f)
	}
	firstType = byType[0].DType
}

// takeIntegers takes what package qdot knows of the format, if it does.
func (f *Format) takeIntegers() {
	f.Integers = qdot.ByName(f.Name)
	if f.Integers == nil {
		return
	}
	f.Block, f.Bytes = f.Integers.Block, f.Integers.Bytes
}

// decodeIntegers decodes blocks: a weight is its integer times a scale, plus an offset.
func (f *Format) decodeIntegers(y []float32, b []byte) {
	var q [256]int8
	var s, m [16]float32
	for ; len(y) > 0; y, b = y[f.Block:], b[f.Bytes:] {
		each, offsets := f.Integers.Expand(q[:], s[:], m[:], b[:f.Bytes])
		for i := range f.Block / 16 {
			to, from, s, m := (*[16]float32)(y[16*i:]), (*[16]int8)(q[16*i:]), s[16*i/each], m[16*i*offsets/each]
			if offsets == 0 {
				for j := 0; j < 16; j += 4 { // looking the values up is faster than converting them
					to[j], to[j+1] = s*signed[uint8(from[j])], s*signed[uint8(from[j+1])]
					to[j+2], to[j+3] = s*signed[uint8(from[j+2])], s*signed[uint8(from[j+3])]
				}
				continue
			}
			for j, v := range from {
				to[j] = float32(s*signed[uint8(v)]) + m
			}
		}
	}
}

// Of returns the format of a quantized element type.
func Of(dt dtype.Type) (*Format, bool) {
	if !dt.Quantized() {
		return nil, false
	}
	return byType[dt-firstType], true
}

// Formats returns every format in the order of ggml's numbers. The caller must not change the slice.
func Formats() []*Format { return formats }

// ByName returns the format called name, in lower case.
func ByName(name string) (*Format, bool) {
	for _, f := range formats {
		if f.Name == name {
			return f, true
		}
	}
	return nil, false
}

// ByID returns the format with ggml's number id.
func ByID(id uint32) (*Format, bool) {
	for _, f := range formats {
		if f.ID == id {
			return f, true
		}
	}
	return nil, false
}

// Size returns the bytes that n weights take; n is a multiple of Block.
func (f *Format) Size(n int) int { return n / f.Block * f.Bytes }

// Decode sets dst to the weights in src, which is whole blocks for as many weights.
//
// Errors: dst is no whole number of blocks; src has another size than dst needs.
func (f *Format) Decode(dst []float32, src []byte) error {
	if err := f.fits(len(dst), len(src)); err != nil {
		return err
	}
	if f.decode == nil {
		f.decodeIntegers(dst, src)
		return nil
	}
	for len(dst) > 0 {
		f.decode(dst[:f.Block:f.Block], src[:f.Bytes:f.Bytes])
		dst, src = dst[f.Block:], src[f.Bytes:]
	}
	return nil
}

// Encode sets dst to the blocks that hold src: one row or several of the same length. importance tells how
// much an error of each weight of a row counts, as an importance matrix does (the mean square of what the
// weight is multiplied by); it is as long as a row, or nil, and formats that make no use of it ignore it.
//
// Errors: src or a row is no whole number of blocks; dst has another size than src needs; a number in src
// or importance is not finite, or an importance is negative; no importance for a format that needs it; a
// block whose scale is too large for the format. After the last of these the bytes of dst are undefined.
func (f *Format) Encode(dst []byte, src, importance []float32) error {
	return f.EncodeUntil(dst, src, importance, nil)
}

// ErrStopped is the error of an encoding that was stopped.
var ErrStopped = errors.New("quant: stopped")

// stopStride is how many weights are encoded, in a few milliseconds at most, before stop is asked again.
const stopStride = 1 << 10

// EncodeUntil is Encode that asks stop every few milliseconds and ends with ErrStopped if it says so.
func (f *Format) EncodeUntil(dst []byte, src, importance []float32, stop func() bool) error {
	if err := f.fits(len(src), len(dst)); err != nil {
		return err
	}
	row := len(src)
	if importance != nil {
		row = len(importance)
		if row == 0 && len(src) > 0 || row > 0 && len(src)%row != 0 {
			return fmt.Errorf("quant: %s: %d weights are no whole number of rows of %d, the length of the importance",
				f.Name, len(src), row)
		}
		if row%f.Block != 0 {
			return fmt.Errorf("quant: %s: an importance of %d weights is no multiple of the %d of a block",
				f.Name, row, f.Block)
		}
	}
	if f.Importance && importance == nil {
		return fmt.Errorf("quant: %s needs an importance matrix: at so few bits it decides what is kept", f.Name)
	}
	if i := unsound(importance, true); i >= 0 {
		return fmt.Errorf("quant: %s: the importance of weight %d is %v, want a finite number of 0 or more",
			f.Name, i, importance[i])
	}
	if i := unsound(src, false); i >= 0 {
		return fmt.Errorf("quant: %s: weight %d is %v, want a finite number", f.Name, i, src[i])
	}
	for at := 0; at < len(src); at += row {
		if err := f.encodeRow(dst[f.Size(at):], src[at:at+row], importance, at, stop); err != nil {
			return err
		}
	}
	return nil
}

// tooMuch is far more than a scale of f16 can stand for in any format, 65504·127·32 at most.
const tooMuch = 1e12

// encodeRow encodes the row that begins at weight at.
func (f *Format) encodeRow(dst []byte, row, importance []float32, at int, stop func() bool) error {
	power := float32(0)
	if importance != nil {
		power = squares(row) / float32(len(row))
	}
	for i := 0; i < len(row); i += f.Block {
		if stop != nil && i%stopStride == 0 && stop() {
			return ErrStopped
		}
		b := dst[f.Size(i) : f.Size(i)+f.Bytes : f.Size(i)+f.Bytes]
		x := row[i : i+f.Block : i+f.Block]
		var w []float32
		if importance != nil {
			w = importance[i : i+f.Block : i+f.Block]
		}
		f.encode(b, x, w, power)
		// Sums of an encoder overflow long before float32 does, and the scale that it then finds is sound, and wrong.
		if top := abs(peak(x)); !f.Sound(b) || f.sound == nil && top > tooMuch {
			return fmt.Errorf("quant: %s: weights %d to %d reach %v, and the scale of their block is more than "+
				"the format holds", f.Name, at+i, at+i+f.Block-1, top)
		}
	}
	return nil
}

// Sound tells whether the scales in b, one block, are finite numbers. A part of a block is not sound.
func (f *Format) Sound(b []byte) bool {
	if len(b) < f.Bytes {
		return false
	}
	if f.sound != nil {
		return f.sound(b)
	}
	for _, at := range f.scales {
		if b[at+1]&0x7c == 0x7c {
			return false
		}
	}
	return true
}

// fits tells whether n weights take size bytes.
func (f *Format) fits(n, size int) error {
	if n%f.Block != 0 {
		return fmt.Errorf("quant: %s: %d weights are no multiple of the %d of a block", f.Name, n, f.Block)
	}
	if f.Size(n) != size {
		return fmt.Errorf("quant: %s: %d weights take %d bytes, got %d", f.Name, n, f.Size(n), size)
	}
	return nil
}

// unsound returns the place of the first value that is not finite, or negative if that is forbidden; -1 if
// all are well.
func unsound(x []float32, positive bool) int {
	for i, v := range x {
		if math.Float32bits(v)&0x7f800000 == 0x7f800000 || positive && v < 0 {
			return i
		}
	}
	return -1
}
