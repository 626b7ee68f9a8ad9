package gguf

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core/quant"
)

// patched is b with the bytes from at on replaced.
func patched(b []byte, at int, with ...byte) []byte {
	b = append([]byte(nil), b...)
	copy(b[at:], with)
	return b
}

func u32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// onePair is a file with one metadata entry.
func onePair(key string, value []byte) []byte {
	return image{keys: []pair{{key, value}}}.bytes()
}

func TestParseRefusesHeaders(t *testing.T) {
	empty := image{}.bytes()
	deep := inner(KindU8)
	for range 4 {
		deep = inner(KindArray, deep)
	}
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{"nothing", nil, "the magic needs 4 bytes at byte 0, the file has 0 bytes (truncated?)"},
		{"other format", []byte("PK\x03\x04...."), `is not a GGUF file: it starts with "PK\x03\x04", want "GGUF"`},
		{"version 0", patched(empty, 4, 0), "version 0 is unknown, want 2 or 3"},
		{"version 1", patched(empty, 4, 1), "version 1 is not read, want 2 or 3; convert the model again"},
		{"version 4", patched(empty, 4, 4), "version 4 is unknown, want 2 or 3"},
		{"big-endian", patched(empty, 4, 0, 0, 0, 3), "is big-endian (version 3), only little-endian files are read"},
		{"tensor count", patched(empty, 8, u64(math.MaxUint64)...),
			"the number of tensors is 18446744073709551615, of 24 bytes or more each, " +
				"but only 8 bytes follow at byte 16 (truncated?)"},
		{"key count", patched(empty, 16, u64(1)...),
			"the number of metadata keys is 1, of 13 bytes or more each, " +
				"but only 0 bytes follow at byte 24 (truncated?)"},
		{"duplicate key", image{keys: []pair{{"k", one(KindU8, 1)}, {"k", one(KindU8, 2)}}}.bytes(),
			"metadata key k is there twice"},
		{"key length", patched(onePair("general.name", one(KindU64, 1)), 24, u64(1<<63)...),
			"metadata key 0 of 1: the key has 9223372036854775808 bytes, the most is 65535"},
		{"long key", onePair(strings.Repeat("k", 65536), one(KindU8, 1)),
			"metadata key 0 of 1: the key has 65536 bytes, the most is 65535"},
		{"unknown kind", onePair("k", append(u32(13), 0, 0, 0, 0)),
			"metadata key k: kind 13 is unknown, kinds go to 12"},
		{"bool 2", onePair("k", append(u32(uint32(KindBool)), 2)), "metadata key k: bool 0 of 1 is 2, want 0 or 1"},
		{"bool 255 in an array", onePair("k", array(KindBool, []byte{1}, []byte{0}, []byte{255})),
			"metadata key k: bool 2 of 3 is 255, want 0 or 1"},
		{"string length", onePair("k", append(u32(uint32(KindString)), u64(math.MaxUint64)...)),
			"metadata key k: the string needs 18446744073709551615 bytes at byte 45, " +
				"the file has 45 bytes (truncated?)"},
		{"array count", onePair("k", patched(list(KindU32, 1, 2), 8, u64(1<<62)...)),
			"metadata key k: the number of elements is 4611686018427387904, of 4 bytes or more each, " +
				"but only 8 bytes follow at byte 49 (truncated?)"},
		{"string array count", onePair("k", patched(list(KindString, "", ""), 8, u64(3)...)),
			"metadata key k: the number of elements is 3, of 8 bytes or more each, " +
				"but only 16 bytes follow at byte 49 (truncated?)"},
		{"string in an array", onePair("k", array(KindString, lengthAnd("ab"), u64(3))),
			"metadata key k: element 1 of 2: the string needs 3 bytes at byte 67, the file has 67 bytes (truncated?)"},
		{"unknown element kind", onePair("k", array(99)),
			"metadata key k: array element kind 99 is unknown, kinds go to 12"},
		{"deep array", onePair("k", append(u32(uint32(KindArray)), deep...)),
			"metadata key k: element 0 of 1: element 0 of 1: element 0 of 1: element 0 of 1: " +
				"arrays are nested more than 4 deep"},
		{"alignment 0", onePair(keyAlignment, one(KindU32, 0)),
			"general.alignment is 0, want a power of two up to 1048576"},
		{"alignment 48", onePair(keyAlignment, one(KindU32, 48)),
			"general.alignment is 48, want a power of two up to 1048576"},
		{"alignment 2 MiB", onePair(keyAlignment, one(KindU32, 2<<20)),
			"general.alignment is 2097152, want a power of two up to 1048576"},
		{"negative alignment", onePair(keyAlignment, one(KindI32, -32)),
			"general.alignment is -32, want a power of two up to 1048576"},
		{"alignment of another kind", onePair(keyAlignment, one(KindString, "32")),
			"general.alignment is a string, want an integer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parse("x.gguf", tt.file)
			if err == nil || err.Error() != "gguf: x.gguf: "+tt.want {
				t.Errorf("got  %v\nwant gguf: x.gguf: %s", err, tt.want)
			}
		})
	}
}

func TestParseRefusesTensors(t *testing.T) {
	f32 := func(name string, offset uint64, dims ...uint64) info { return info{name, typeOf("f32"), dims, offset} }
	tests := []struct {
		name    string
		tensors []info
		want    string
	}{
		{"truncated", []info{f32("w", 0, 32), f32("blk.0.attn_q.weight", 128, 10, 100)},
			"tensor blk.0.attn_q.weight: data ends at byte 4256, the file has 384 bytes (truncated?)"},
		{"offset past the end", []info{f32("w", 1<<40, 1)},
			"tensor w: data ends at byte 1099511627844, the file has 320 bytes (truncated?)"},
		{"offset that overflows", []info{f32("w", math.MaxUint64-31, 1)},
			"tensor w: offset 18446744073709551584 is outside the file of 320 bytes"},
		{"unaligned", []info{f32("w", 4, 1)}, "tensor w: offset 4 is not a multiple of the alignment, 32"},
		{"overlap", []info{f32("second", 32, 8), f32("first", 0, 9)},
			"tensor second: data at offset 32 overlaps that of tensor first, which ends at offset 36"},
		{"same data", []info{f32("a", 0, 8), f32("b", 0, 8)},
			"tensor b: data at offset 0 overlaps that of tensor a, which ends at offset 32"},
		{"duplicate", []info{f32("w", 0, 8), f32("w", 32, 8)}, "tensor w is there twice"},
		{"five dims", []info{f32("w", 0, 1, 1, 1, 1, 1)}, "tensor w: has 5 dims, the most is 4"},
		{"dim of 2⁶³", []info{f32("w", 0, 1<<63)}, "tensor w: dim 0 is 9223372036854775808, more than an int holds"},
		{"product overflows", []info{f32("w", 0, 1<<32, 1<<32)},
			"tensor w: dims [4294967296 4294967296]: more elements than an int holds"},
		{"product wraps to 0", []info{f32("w", 0, 1<<32, 1<<32, 1<<32, 1<<32)},
			"tensor w: dims [4294967296 4294967296 4294967296 4294967296]: more elements than an int holds"},
		{"bytes overflow", []info{f32("w", 0, 1<<62)},
			"tensor w: dims [4611686018427387904] of f32: more bytes than an int64 holds"},
		{"unknown type", []info{{"w", 43, []uint64{1}, 0}}, "tensor w: type 43 is unknown, types go to 42 (q2_0)"},
		{"removed type", []info{{"w", 31, []uint64{32}, 0}},
			"tensor w: type 31 (q4_0_4_4) was removed from ggml; quantize the model again"},
		{"part of a block", []info{{"w", typeOf("q4_k"), []uint64{100, 256}, 0}},
			"tensor w: a row of 100 elements is no multiple of the 256 of a q4_k block"},
		{"scalar block", []info{{"w", typeOf("q8_0"), nil, 0}},
			"tensor w: a row of 1 elements is no multiple of the 32 of a q8_0 block"},
		{"long name", []info{f32(strings.Repeat("w", 65536), 0, 1)},
			"tensor 0 of 1: the name has 65536 bytes, the most is 65535"},
		{"name for a terminal", []info{f32("\x1b[2J\n", 4, 1)},
			`tensor "\x1b[2J\n": offset 4 is not a multiple of the alignment, 32`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := image{tensors: tt.tensors, data: make([]byte, 256)}.bytes()
			if _, err := parse("x.gguf", b); err == nil || err.Error() != "gguf: x.gguf: "+tt.want {
				t.Errorf("got  %v\nwant gguf: x.gguf: %s", err, tt.want)
			}
		})
	}
}

// TestParseEveryTruncation cuts a file with all kinds of content at every byte.
func TestParseEveryTruncation(t *testing.T) {
	b := everyKind().bytes()
	if _, err := parse("x.gguf", b); err != nil {
		t.Fatal(err)
	}
	for n := range b {
		if f, err := parse("x.gguf", b[:n:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are read as a file with %d keys", n, len(b), len(f.Keys()))
		}
	}
}

// TestParseEveryCorruption sets every byte of a file to values that make lengths and counts lie. Whatever
// is read must then be usable.
func TestParseEveryCorruption(t *testing.T) {
	b := everyKind().bytes()
	for i := range b {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			if f, err := parse("x.gguf", patched(b, i, v)); err == nil {
				use(t, f)
			}
		}
	}
}

// use reads all there is to read in f.
func use(t testing.TB, f *File) {
	for _, key := range f.Keys() {
		v, ok := f.Value(key)
		if !ok {
			t.Fatalf("key %q is in Keys and has no value", key)
		}
		if a, err := f.Array(key); err == nil {
			elements(a)
		} else if v.Kind() == KindArray {
			t.Fatal(err)
		}
		_, _ = f.Int(key)
		_, _ = f.Float(key)
		_, _ = f.Bool(key)
		_, _ = f.String(key)
		_, _ = f.Ints(key)
	}
	for _, want := range f.Tensors() {
		got, ok := f.Tensor(want.Name)
		if !ok || got.Name != want.Name {
			t.Fatalf("tensor %q is in Tensors and is not found", want.Name)
		}
		elements, bytes := got.Type.Block()
		if got.Type == I2S {
			_, _ = got.Import()
			if len(got.Bytes()) != quant.I2SSize(got.Elements()) {
				t.Fatalf("tensor %q: %v of i2_s in %d bytes", got.Name, got.Dims, len(got.Bytes()))
			}
			continue
		}
		if len(got.Bytes()) != got.Elements()/elements*bytes {
			t.Fatalf("tensor %q: %v of %s in %d bytes", got.Name, got.Dims, got.Type, len(got.Bytes()))
		}
	}
}

func FuzzOpen(f *testing.F) {
	m := everyKind()
	f.Add(m.bytes())
	f.Add(image{}.bytes())
	f.Add(image{version: 2, tensors: m.tensors, data: m.data}.bytes())
	for _, p := range m.keys {
		f.Add(onePair(p.key, p.value))
	}
	f.Add(image{
		alignment: 64,
		keys:      []pair{{keyAlignment, one(KindU32, 64)}},
		tensors: []info{{"a", typeOf("f16"), []uint64{3}, 0}, {"b", typeOf("q4_k"), []uint64{256, 1}, 64},
			{"c", I8, []uint64{0}, 0}},
		data: make([]byte, 64+144),
	}.bytes())
	f.Add(ggmfImage(101, ggmfSample...))
	f.Add(image{tensors: []info{{"w", I2S, []uint64{256, 2}, 0}}, data: make([]byte, 128+32)}.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		// At the exact end of the data a bound that is off by one shows as a panic.
		file, err := parse("x.gguf", b[:len(b):len(b)])
		if err != nil {
			if s := err.Error(); !strings.HasPrefix(s, "gguf: x.gguf: ") || strings.ContainsAny(s, "\n\r\x1b") {
				t.Fatalf("error %q is not one line that starts with the file", s)
			}
			return
		}
		use(t, file)
	})
}
