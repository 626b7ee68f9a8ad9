package gguf

import (
	"strconv"

	"github.com/fucina-go/fucina/core/dtype"
)

// Type is the element type of a tensor, by ggml's number for it.
type Type uint32

// The types of ggml.h, enum ggml_type. Numbers that are not here were removed or never given.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
	Q2_0    Type = 42
)

// types has the layout of every type: a block of so many consecutive elements of a row takes so many
// bytes. An entry with a name and no block is a type that ggml removed.
var types = [...]struct {
	name     string
	elements int
	bytes    int
	dtype    dtype.Type
}{
	F32:     {"f32", 1, 4, dtype.F32},
	F16:     {"f16", 1, 2, dtype.F16},
	Q4_0:    {"q4_0", 32, 18, 0},
	Q4_1:    {"q4_1", 32, 20, 0},
	4:       {name: "q4_2"},
	5:       {name: "q4_3"},
	Q5_0:    {"q5_0", 32, 22, 0},
	Q5_1:    {"q5_1", 32, 24, 0},
	Q8_0:    {"q8_0", 32, 34, 0},
	Q8_1:    {"q8_1", 32, 36, 0},
	Q2_K:    {"q2_k", 256, 84, 0},
	Q3_K:    {"q3_k", 256, 110, 0},
	Q4_K:    {"q4_k", 256, 144, 0},
	Q5_K:    {"q5_k", 256, 176, 0},
	Q6_K:    {"q6_k", 256, 210, 0},
	Q8_K:    {"q8_k", 256, 292, 0},
	IQ2_XXS: {"iq2_xxs", 256, 66, 0},
	IQ2_XS:  {"iq2_xs", 256, 74, 0},
	IQ3_XXS: {"iq3_xxs", 256, 98, 0},
	IQ1_S:   {"iq1_s", 256, 50, 0},
	IQ4_NL:  {"iq4_nl", 32, 18, 0},
	IQ3_S:   {"iq3_s", 256, 110, 0},
	IQ2_S:   {"iq2_s", 256, 82, 0},
	IQ4_XS:  {"iq4_xs", 256, 136, 0},
	I8:      {"i8", 1, 1, dtype.I8},
	I16:     {"i16", 1, 2, dtype.I16},
	I32:     {"i32", 1, 4, dtype.I32},
	I64:     {"i64", 1, 8, dtype.I64},
	F64:     {"f64", 1, 8, dtype.F64},
	IQ1_M:   {"iq1_m", 256, 56, 0},
	BF16:    {"bf16", 1, 2, dtype.BF16},
	31:      {name: "q4_0_4_4"},
	32:      {name: "q4_0_4_8"},
	33:      {name: "q4_0_8_8"},
	TQ1_0:   {"tq1_0", 256, 54, 0},
	TQ2_0:   {"tq2_0", 256, 66, 0},
	36:      {name: "iq4_nl_4_4"},
	37:      {name: "iq4_nl_4_8"},
	38:      {name: "iq4_nl_8_8"},
	MXFP4:   {"mxfp4", 32, 17, 0},
	NVFP4:   {"nvfp4", 64, 36, 0},
	Q1_0:    {"q1_0", 128, 18, 0},
	Q2_0:    {"q2_0", 64, 18, 0},
}

// String returns ggml's name in lower case, such as "f32" or "q4_k"; "type 99" for an unknown number.
func (t Type) String() string {
	if int64(t) >= int64(len(types)) {
		return "type " + strconv.FormatUint(uint64(t), 10)
	}
	return types[t].name
}

// Block returns how many consecutive elements of a row are stored together and in how many bytes. Both
// are 0 for a type that ggml removed or that is unknown.
func (t Type) Block() (elements, bytes int) {
	if int64(t) >= int64(len(types)) {
		return 0, 0
	}
	return types[t].elements, types[t].bytes
}

// DType returns the plain element type that t stores. It reports false for quantized types.
func (t Type) DType() (dtype.Type, bool) {
	if int64(t) >= int64(len(types)) {
		return dtype.Invalid, false
	}
	d := types[t].dtype
	return d, d != dtype.Invalid
}
