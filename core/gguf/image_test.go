package gguf

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// image is a file as a test wants it, right or wrong; the zero image is an empty file of version 3.
type image struct {
	version   uint32
	alignment int // of the data section, 0 is 32; writes no key
	keys      []pair
	tensors   []info
	data      []byte // the data section
}

type pair struct {
	key   string
	value []byte // kind and value: see num, text, list
}

type info struct {
	name   string
	typ    Type
	dims   []uint64
	offset uint64
}

// bytes is the file. Its parts are in one place, so that a test can aim at one of them by its offset.
func (m image) bytes() []byte {
	le := binary.LittleEndian
	version := m.version
	if version == 0 {
		version = 3
	}
	b := le.AppendUint32([]byte("GGUF"), version)
	b = le.AppendUint64(b, uint64(len(m.tensors)))
	b = le.AppendUint64(b, uint64(len(m.keys)))
	for _, p := range m.keys {
		b = append(append(b, lengthAnd(p.key)...), p.value...)
	}
	for _, t := range m.tensors {
		b = append(b, lengthAnd(t.name)...)
		b = le.AppendUint32(b, uint32(len(t.dims)))
		for _, d := range t.dims {
			b = le.AppendUint64(b, d)
		}
		b = le.AppendUint32(b, uint32(t.typ))
		b = le.AppendUint64(b, t.offset)
	}
	alignment := m.alignment
	if alignment == 0 {
		alignment = 32
	}
	if len(m.data) > 0 {
		for len(b)%alignment != 0 {
			b = append(b, 0)
		}
	}
	return append(b, m.data...)
}

func lengthAnd(s string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(s))), s...)
}

// payload is a value without its kind: an int of the kind's size, a float64, a bool or a string.
func payload(kind Kind, v any) []byte {
	le := binary.LittleEndian
	switch v := v.(type) {
	case int:
		return le.AppendUint64(nil, uint64(v))[:kind.size()]
	case uint64:
		return le.AppendUint64(nil, v)
	case float64:
		if kind == KindF32 {
			return le.AppendUint32(nil, math.Float32bits(float32(v)))
		}
		return le.AppendUint64(nil, math.Float64bits(v))
	case bool:
		if v {
			return []byte{1}
		}
		return []byte{0}
	case string:
		return lengthAnd(v)
	}
	panic("payload: no such type")
}

// one is a value of a kind.
func one(kind Kind, v any) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(kind)), payload(kind, v)...)
}

// inner is an array without its kind, the form that is an element of another array.
func inner(elem Kind, elements ...[]byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(elem))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(elements)))
	for _, e := range elements {
		b = append(b, e...)
	}
	return b
}

// array is an array value whose elements are already payloads.
func array(elem Kind, elements ...[]byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(KindArray)), inner(elem, elements...)...)
}

// list is an array value.
func list[T any](elem Kind, elements ...T) []byte {
	var payloads [][]byte
	for _, e := range elements {
		payloads = append(payloads, payload(elem, e))
	}
	return array(elem, payloads...)
}

// write puts files into a new folder and returns its path.
func write(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// everyKind has one value of each kind, arrays of each, and two tensors.
func everyKind() image {
	return image{
		keys: []pair{
			{"u8", one(KindU8, 255)},
			{"i8", one(KindI8, -128)},
			{"u16", one(KindU16, 65535)},
			{"i16", one(KindI16, -32768)},
			{"u32", one(KindU32, 4294967295)},
			{"i32", one(KindI32, -2147483648)},
			{"f32", one(KindF32, 0.1)},
			{"bool", one(KindBool, true)},
			{"string", one(KindString, "naïve")},
			{"u64", one(KindU64, 1<<62)},
			{"i64", one(KindI64, math.MinInt64)},
			{"f64", one(KindF64, 0.1)},
			{"u64.huge", one(KindU64, uint64(1<<63))},
			{"empty", one(KindString, "")},
			{"u8s", list(KindU8, 0, 255)},
			{"i8s", list(KindI8, -1, 127)},
			{"u16s", list(KindU16, 1, 65535)},
			{"i16s", list(KindI16, -1, 2)},
			{"u32s", list(KindU32, 1, 4294967295)},
			{"i32s", list(KindI32, -1, 2)},
			{"f32s", list(KindF32, 0.5, -1.5)},
			{"bools", list(KindBool, true, false, true)},
			{"strings", list(KindString, "a", "", "long enough")},
			{"u64s", list(KindU64, 1, 2)},
			{"i64s", list(KindI64, -1, 2)},
			{"f64s", list(KindF64, 0.1)},
			{"u64s.huge", list(KindU64, uint64(1), uint64(1<<63))},
			{"none", list[int](KindI32)},
			{"nested", array(KindArray,
				inner(KindI32, payload(KindI32, 1), payload(KindI32, 2)),
				inner(KindString, payload(KindString, "x")),
				inner(KindArray, inner(KindArray, inner(KindU8, payload(KindU8, 7)))))},
		},
		tensors: []info{
			{"scalar", typeOf("f32"), nil, 0},
			{"blk.0.w", typeOf("q8_0"), []uint64{64, 2}, 32},
		},
		data: make([]byte, 32+4*34),
	}
}

// typeOf is the type called name.
func typeOf(name string) Type {
	t, ok := TypeNamed(name)
	if !ok {
		panic("no type " + name)
	}
	return t
}
