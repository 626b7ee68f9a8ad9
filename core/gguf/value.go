package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Kind is the type of a metadata value, by its number in the file.
type Kind uint32

// The kinds of the specification, enum gguf_metadata_value_type.
const (
	KindU8 Kind = iota
	KindI8
	KindU16
	KindI16
	KindU32
	KindI32
	KindF32
	KindBool
	KindString
	KindArray
	KindU64
	KindI64
	KindF64
)

// kinds has the name of every kind and its bytes, 0 where a value's length is its own.
var kinds = [...]struct {
	name string
	size int
}{
	KindU8:     {"u8", 1},
	KindI8:     {"i8", 1},
	KindU16:    {"u16", 2},
	KindI16:    {"i16", 2},
	KindU32:    {"u32", 4},
	KindI32:    {"i32", 4},
	KindF32:    {"f32", 4},
	KindBool:   {"bool", 1},
	KindString: {"string", 0},
	KindArray:  {"array", 0},
	KindU64:    {"u64", 8},
	KindI64:    {"i64", 8},
	KindF64:    {"f64", 8},
}

// String returns "u8", …, "f64", "bool", "string" or "array".
func (k Kind) String() string {
	if int64(k) >= int64(len(kinds)) {
		return fmt.Sprintf("kind %d", uint32(k))
	}
	return kinds[k].name
}

// KindNamed returns the kind that String calls name.
func KindNamed(name string) (Kind, bool) {
	for k := range kinds {
		if kinds[k].name == name {
			return Kind(k), true
		}
	}
	return 0, false
}

// Range returns the least and the greatest integer of a kind for integers; 0 and 0 for any other.
func (k Kind) Range() (least int64, most uint64) {
	if !k.IsInt() {
		return 0, 0
	}
	bits := 8 * k.size()
	if k == KindU8 || k == KindU16 || k == KindU32 || k == KindU64 {
		return 0, math.MaxUint64 >> (64 - bits)
	}
	return math.MinInt64 >> (64 - bits), math.MaxInt64 >> (64 - bits)
}

// IsInt reports whether k is an integer kind; bool is not one.
func (k Kind) IsInt() bool { return k <= KindI32 || k == KindU64 || k == KindI64 }

// IsFloat reports whether k is f32 or f64.
func (k Kind) IsFloat() bool { return k == KindF32 || k == KindF64 }

func (k Kind) isNumber() bool { return k.IsInt() || k.IsFloat() }
func (k Kind) isBool() bool   { return k == KindBool }
func (k Kind) isString() bool { return k == KindString }
func (k Kind) isArray() bool  { return k == KindArray }

func (k Kind) size() int {
	if int64(k) >= int64(len(kinds)) {
		return 0
	}
	return kinds[k].size
}

// Value is a metadata value just as the file has it: a writer that emits Kind and Raw emits the same file.
type Value struct {
	kind Kind
	raw  []byte
	file *File // whose mapping raw may be in, not to be collected; nil if it is in none
}

// Kind returns the value's type in the file.
func (v Value) Kind() Kind { return v.kind }

// Raw returns the bytes of the value that follow its kind in the file; the caller must not change them.
// Those of an array alias the file: they are gone when it is closed, or when neither it nor the value can be reached.
func (v Value) Raw() []byte { return v.raw }

// Any returns what the value is in Go: an int64, a uint64 (of kind u64 only), a float64, a bool, a string or an Array,
// which aliases the file. Of the zero Value, which no file has, it is nil.
func (v Value) Any() any {
	switch {
	case len(v.raw) == 0:
		return nil
	case v.kind == KindU64:
		return binary.LittleEndian.Uint64(v.raw)
	case v.kind.IsInt():
		return toInt(v.kind, v.raw)
	case v.kind.IsFloat():
		return toFloat(v.kind, v.raw)
	case v.kind == KindBool:
		return v.raw[0] != 0
	case v.kind == KindString:
		return string(v.raw[8:])
	}
	return v.array()
}

// describe says what v is, for an error: "a string", "an i32", "an array of f32".
func (v Value) describe() string {
	switch v.kind {
	case KindArray:
		return "an array of " + v.array().elem.String()
	case KindI8, KindI16, KindI32, KindI64, KindF32, KindF64:
		return "an " + v.kind.String()
	}
	return "a " + v.kind.String()
}

func (v Value) array() Array {
	return Array{
		elem: Kind(binary.LittleEndian.Uint32(v.raw)),
		n:    int(binary.LittleEndian.Uint64(v.raw[4:])),
		data: v.raw[12:],
		file: v.file,
	}
}

// toInt decodes one integer; a u64 of 2⁶³ or more comes out negative.
func toInt(kind Kind, b []byte) int64 {
	switch kind {
	case KindU8:
		return int64(b[0])
	case KindI8:
		return int64(int8(b[0]))
	case KindU16:
		return int64(binary.LittleEndian.Uint16(b))
	case KindI16:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case KindU32:
		return int64(binary.LittleEndian.Uint32(b))
	case KindI32:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// toFloat decodes one number; integers of 64 bits are rounded to the nearest float64.
func toFloat(kind Kind, b []byte) float64 {
	switch kind {
	case KindF32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case KindF64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case KindU64:
		return float64(binary.LittleEndian.Uint64(b))
	}
	return float64(toInt(kind, b))
}

// ErrMissing is what errors.Is finds in the error of a getter whose key the file does not have.
var ErrMissing = errors.New("missing key")

// Has reports whether the metadata has key.
func (f *File) Has(key string) bool {
	_, ok := f.index[key]
	return ok
}

// Value returns the value of key as the file has it.
func (f *File) Value(key string) (Value, bool) {
	i, ok := f.index[key]
	if !ok {
		return Value{}, false
	}
	return f.entries[i].value, true
}

// Keys returns the metadata's keys in file order; those of the first file if the model is split.
func (f *File) Keys() []string {
	keys := make([]string, len(f.entries))
	for i := range f.entries {
		keys[i] = f.entries[i].key
	}
	return keys
}

// Int returns an integer of any width. Like every getter here it fails with ErrMissing if there is no
// such key and otherwise says which kind was found and which was wanted; a u64 must be below 2⁶³.
func (f *File) Int(key string) (int64, error) {
	n, err := f.int(key)
	return n, f.errorIf(err)
}

func (f *File) int(key string) (int64, error) {
	v, err := f.find(key, "an integer", Kind.IsInt)
	if err != nil {
		return 0, err
	}
	n := toInt(v.kind, v.raw)
	if v.kind == KindU64 && n < 0 {
		return 0, fmt.Errorf("%s is %d, more than an int64 holds", label(key), uint64(n))
	}
	return n, nil
}

// Float returns a float or integer of any width, rounded to the nearest float64.
func (f *File) Float(key string) (float64, error) {
	v, err := f.find(key, "a number", Kind.isNumber)
	if err != nil {
		return 0, f.errorIf(err)
	}
	return toFloat(v.kind, v.raw), nil
}

// Bool returns a bool.
func (f *File) Bool(key string) (bool, error) {
	v, err := f.find(key, "a bool", Kind.isBool)
	if err != nil {
		return false, f.errorIf(err)
	}
	return v.raw[0] != 0, nil
}

// String returns a string. The file promises UTF-8; it is not checked.
func (f *File) String(key string) (string, error) {
	v, err := f.find(key, "a string", Kind.isString)
	if err != nil {
		return "", f.errorIf(err)
	}
	return string(v.raw[8:]), nil
}

// Array returns an array of any kind of element; see Ints, Floats, Bools and Strings.
func (f *File) Array(key string) (Array, error) {
	v, err := f.find(key, "an array", Kind.isArray)
	if err != nil {
		return Array{}, f.errorIf(err)
	}
	return v.array(), nil
}

// Ints returns an array of integers of any width, all of which fit an int64.
func (f *File) Ints(key string) (Array, error) {
	a, err := f.arrayOf(key, "an array of integers", Kind.IsInt)
	if err != nil || a.elem != KindU64 {
		return a, err
	}
	i := 0
	for n := range a.Ints() {
		if n < 0 {
			return Array{}, f.errorf("%s: element %d is %d, more than an int64 holds", label(key), i, uint64(n))
		}
		i++
	}
	return a, nil
}

// Floats returns an array of floats or integers of any width.
func (f *File) Floats(key string) (Array, error) {
	return f.arrayOf(key, "an array of numbers", Kind.isNumber)
}

// Bools returns an array of bools.
func (f *File) Bools(key string) (Array, error) {
	return f.arrayOf(key, "an array of bools", Kind.isBool)
}

// Strings returns an array of strings.
func (f *File) Strings(key string) (Array, error) {
	return f.arrayOf(key, "an array of strings", Kind.isString)
}

// find returns the value of key, whose kind must be one that is accepts. Its errors do not name the file.
func (f *File) find(key, want string, is func(Kind) bool) (Value, error) {
	v, ok := f.Value(key)
	if !ok {
		return Value{}, fmt.Errorf("%w %s, want %s", ErrMissing, label(key), want)
	}
	if !is(v.kind) {
		return Value{}, fmt.Errorf("%s is %s, want %s", label(key), v.describe(), want)
	}
	return v, nil
}

func (f *File) arrayOf(key, want string, is func(Kind) bool) (Array, error) {
	v, err := f.find(key, want, Kind.isArray)
	if err != nil {
		return Array{}, f.errorIf(err)
	}
	a := v.array()
	if !is(a.elem) {
		return Array{}, f.errorf("%s is %s, want %s", label(key), v.describe(), want)
	}
	return a, nil
}
