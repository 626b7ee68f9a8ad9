// Package dtype names the element types a tensor can have and converts f16 and bf16 to and from f32.
//
// Here: the type list, its names and sizes, and conversions of one value. Not here: loops over slices
// (kernels/half) and block-quantized formats (core/quant), whose elements have no size of their own: they
// are types too, but their list is there.
package dtype

import "slices"

// Type is the element type of a tensor. The zero value is Invalid.
type Type uint8

// The element types. The order is part of no file format; names are.
const (
	Invalid Type = iota
	F32          // IEEE 754 binary32
	F64          // IEEE 754 binary64
	F16          // IEEE 754 binary16
	BF16         // upper half of a binary32
	I8
	U8
	I16
	I32
	I64
	Bool // one byte, 0 or 1
)

var types = [...]struct {
	name string
	size int
}{
	Invalid: {"invalid", 0},
	F32:     {"f32", 4},
	F64:     {"f64", 8},
	F16:     {"f16", 2},
	BF16:    {"bf16", 2},
	I8:      {"i8", 1},
	U8:      {"u8", 1},
	I16:     {"i16", 2},
	I32:     {"i32", 4},
	I64:     {"i64", 8},
	Bool:    {"bool", 1},
}

// quantized is the names of the types that NewQuantized made; they follow the others.
var quantized []string

// NewQuantized makes a type for a quantized format. It is called when the program starts, by core/quant.
func NewQuantized(name string) Type {
	quantized = append(quantized, name)
	return Bool + Type(len(quantized))
}

// Quantized reports whether t is a quantized format; core/quant says which.
func (t Type) Quantized() bool { return t > Bool && int(t-Bool) <= len(quantized) }

// String returns the name scripts use: "f32", "bf16", "bool", "q4_k". A value outside the list is "invalid".
func (t Type) String() string {
	if t.Quantized() {
		return quantized[t-Bool-1]
	}
	if int(t) >= len(types) {
		t = Invalid
	}
	return types[t].name
}

// Size returns the bytes of one element, 0 for Invalid and for quantized types, whose elements share bytes.
func (t Type) Size() int {
	if int(t) >= len(types) {
		return 0
	}
	return types[t].size
}

// IsFloat reports whether t is f32, f64, f16 or bf16.
func (t Type) IsFloat() bool { return F32 <= t && t <= BF16 }

// IsInt reports whether t is an integer type; bool is not one.
func (t Type) IsInt() bool { return I8 <= t && t <= I64 }

// Parse returns the type called name, in lower case: one of Names, or a quantized type.
func Parse(name string) (Type, bool) {
	for t := F32; int(t) < len(types); t++ {
		if types[t].name == name {
			return t, true
		}
	}
	if i := slices.Index(quantized, name); i >= 0 {
		return Bool + 1 + Type(i), true
	}
	return Invalid, false
}

// QuantizedNames returns the name of every quantized type.
func QuantizedNames() []string { return slices.Clone(quantized) }

// Names returns the name of every type except Invalid and the quantized ones, in the order of the constants.
func Names() []string {
	names := make([]string, 0, len(types)-1)
	for _, t := range types[F32:] {
		names = append(names, t.name)
	}
	return names
}
