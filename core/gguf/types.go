package gguf

import (
	"strconv"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/quant"
)

// Type is the element type of a tensor, by ggml's number for it: enum ggml_type of ggml.h. Floats and quantized
// types are those of core/quant; the others are below. Numbers that are in neither were removed or never given.
type Type uint32

// The types that are neither quantized nor the formats of one float each. I2S is that of BitNet's fork of ggml, one
// scale for a whole tensor; ggml had another type of that number, and removed it.
const (
	I8  Type = 24
	I16 Type = 25
	I32 Type = 26
	I64 Type = 27
	F64 Type = 28
	I2S Type = quant.I2SID
)

// plain has the element types of those.
var plain = map[Type]dtype.Type{I8: dtype.I8, I16: dtype.I16, I32: dtype.I32, I64: dtype.I64, F64: dtype.F64}

// removed has the names of types that ggml had.
var removed = map[Type]string{
	4: "q4_2", 5: "q4_3", 31: "q4_0_4_4", 32: "q4_0_4_8", 33: "q4_0_8_8",
	37: "iq4_nl_4_8", 38: "iq4_nl_8_8",
}

// TypeNamed returns the type called name, in lower case, such as "f32" or "q4_k".
func TypeNamed(name string) (Type, bool) {
	if f, ok := quant.ByName(name); ok {
		return Type(f.ID), true
	}
	for _, t := range []Type{I8, I16, I32, I64, F64} {
		if plain[t].String() == name {
			return t, true
		}
	}
	return 0, false
}

// Format returns the format of a float or quantized type.
func (t Type) Format() (*quant.Format, bool) { return quant.ByID(uint32(t)) }

// String returns ggml's name in lower case, such as "f32" or "q4_k"; "type 99" for an unknown number.
func (t Type) String() string {
	if f, ok := t.Format(); ok {
		return f.Name
	}
	if d, ok := plain[t]; ok {
		return d.String()
	}
	if name, ok := removed[t]; ok {
		return name
	}
	if t == I2S {
		return "i2_s"
	}
	return "type " + strconv.FormatUint(uint64(t), 10)
}

// Block returns how many consecutive elements of a row are stored together and in how many bytes. Both
// are 0 for I2S, which is not in blocks, and for a type that ggml removed or that is unknown.
func (t Type) Block() (elements, bytes int) {
	if f, ok := t.Format(); ok {
		return f.Block, f.Bytes
	}
	if d, ok := plain[t]; ok {
		return 1, d.Size()
	}
	return 0, 0
}

// DType returns the element type that t stores. It reports false for I2S, of which Tensor.Import makes another, and for
// a type that ggml removed or that is unknown.
func (t Type) DType() (dtype.Type, bool) {
	if d, ok := plain[t]; ok {
		return d, true
	}
	if f, ok := t.Format(); ok {
		return f.DType, true
	}
	return dtype.Invalid, false
}
