package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/fucina-go/fucina/core/dtype"
)

// Type is the element type of a tensor in a file. The types are in the format's own order, in which a greater one has
// the same alignment or a stricter one.
type Type uint8

// The element types. Those of which several are in a byte, F8_E8M0 and C64 are in newer files only.
const (
	Bool   Type = iota
	F4          // E2M1, two in a byte
	F6E2M3      // four in three bytes
	F6E3M2
	U8
	I8
	F8E5M2 // the upper byte of an F16
	F8E4M3 // without infinities; NaN is all ones
	F8E8M0 // a power of two: 2^(x-127); NaN is 255
	I16
	U16
	F16
	BF16
	I32
	U32
	F32
	C64 // two F32
	F64
	I64
	U64
)

// layout is how a file stores an element.
type layout struct {
	name string
	bits int
	dt   dtype.Type                  // of the elements as Tensor.Elements gives them; Invalid if it gives none
	put  func(dst, src []byte) error // converts an element; nil: the bytes stay
}

var types = [...]layout{
	Bool:   {"BOOL", 8, dtype.Bool, nil},
	F4:     {"F4", 4, dtype.Invalid, nil},
	F6E2M3: {"F6_E2M3", 6, dtype.Invalid, nil},
	F6E3M2: {"F6_E3M2", 6, dtype.Invalid, nil},
	U8:     {"U8", 8, dtype.U8, nil},
	I8:     {"I8", 8, dtype.I8, nil},
	F8E5M2: {"F8_E5M2", 8, dtype.F32, float8(func(x byte) float32 { return dtype.F16ToF32(uint16(x) << 8) })},
	F8E4M3: {"F8_E4M3", 8, dtype.F32, float8(e4m3)},
	F8E8M0: {"F8_E8M0", 8, dtype.F32, float8(e8m0)},
	I16:    {"I16", 16, dtype.I16, nil},
	U16:    {"U16", 16, dtype.I32, widen},
	F16:    {"F16", 16, dtype.F16, nil},
	BF16:   {"BF16", 16, dtype.BF16, nil},
	I32:    {"I32", 32, dtype.I32, nil},
	U32:    {"U32", 32, dtype.I64, widen},
	F32:    {"F32", 32, dtype.F32, nil},
	C64:    {"C64", 64, dtype.Invalid, nil},
	F64:    {"F64", 64, dtype.F64, nil},
	I64:    {"I64", 64, dtype.I64, nil},
	U64:    {"U64", 64, dtype.I64, positive},
}

// String is the name files use: "F32", "F8_E4M3".
func (t Type) String() string { return types[t].name }

// DType is the element type that Tensor.Elements gives: the same, but for U16, which becomes i32, U32 and U64, which
// become i64, and the types of 8 bits that begin with F, which become f32. It is false for types that are not read.
func (t Type) DType() (dt dtype.Type, ok bool) {
	dt = types[t].dt
	return dt, dt != dtype.Invalid
}

// Same tells whether an element has the same bytes in a file and in the engine.
func (t Type) Same() bool { return types[t].dt != dtype.Invalid && types[t].put == nil && t != Bool }

// IsFloat8 tells whether t is one of the floating-point types of 8 bits.
func (t Type) IsFloat8() bool { return t == F8E5M2 || t == F8E4M3 || t == F8E8M0 }

// typeOf is the type called name.
func typeOf(name []byte) (Type, bool) {
	for i := range types {
		if string(name) == types[i].name {
			return Type(i), true
		}
	}
	return 0, false
}

// typeFor is the type of a file for the engine's.
func typeFor(dt dtype.Type) Type {
	i := slices.IndexFunc(types[:], func(l layout) bool { return l.dt == dt && l.put == nil })
	if i < 0 {
		panic(fmt.Sprintf("safetensors: %s is no element type", dt))
	}
	return Type(i)
}

// widen puts zeros above an unsigned integer.
func widen(dst, src []byte) error {
	clear(dst[copy(dst, src):])
	return nil
}

// positive refuses integers that i64 cannot hold.
func positive(dst, src []byte) error {
	if v := binary.LittleEndian.Uint64(src); v > math.MaxInt64 {
		return fmt.Errorf("the element %d is greater than what i64 holds", v)
	}
	return widen(dst, src)
}

// float8 makes an f32 of one byte.
func float8(value func(byte) float32) func(dst, src []byte) error {
	return func(dst, src []byte) error {
		binary.LittleEndian.PutUint32(dst, math.Float32bits(value(src[0])))
		return nil
	}
}

// e4m3 is the value of sign, 4 bits of exponent with bias 7, 3 bits of fraction (Micikevicius et al.: FP8 formats for
// deep learning, 2022).
func e4m3(x byte) float32 {
	exponent, fraction := int(x>>3&15), float64(x&7)
	v := math.Ldexp(8+fraction, exponent-7-3)
	switch {
	case x&0x7f == 0x7f:
		v = math.NaN()
	case exponent == 0:
		v = math.Ldexp(fraction, 1-7-3)
	}
	if x&0x80 != 0 {
		v = math.Copysign(v, -1)
	}
	return float32(v)
}

// e8m0 is a power of two (OCP microscaling formats, 2023).
func e8m0(x byte) float32 {
	if x == 0xff {
		return float32(math.NaN())
	}
	return float32(math.Ldexp(1, int(x)-127))
}
