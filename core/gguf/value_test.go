package gguf

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustParse(t testing.TB, m image) *File {
	t.Helper()
	f, err := parse("x.gguf", m.bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestKeysAndRaw(t *testing.T) {
	m := everyKind()
	f := mustParse(t, m)
	var keys []string
	for _, p := range m.keys {
		keys = append(keys, p.key)
		v, ok := f.Value(p.key)
		if !ok || !f.Has(p.key) {
			t.Errorf("%s: not found", p.key)
			continue
		}
		if got := append([]byte{byte(v.Kind()), 0, 0, 0}, v.Raw()...); !bytes.Equal(got, p.value) {
			t.Errorf("%s: kind and raw bytes are % x, want % x", p.key, got, p.value)
		}
	}
	if diff := cmp.Diff(keys, f.Keys()); diff != "" {
		t.Errorf("Keys (-want +got):\n%s", diff)
	}
	if v, ok := f.Value("absent"); ok || f.Has("absent") {
		t.Errorf("absent: got %v", v)
	}
}

func TestGetters(t *testing.T) {
	f := mustParse(t, everyKind())
	intOf := func(key string) (any, error) { return f.Int(key) }
	floatOf := func(key string) (any, error) { return f.Float(key) }
	boolOf := func(key string) (any, error) { return f.Bool(key) }
	stringOf := func(key string) (any, error) { return f.String(key) }
	lenOf := func(get func(string) (Array, error)) func(string) (any, error) {
		return func(key string) (any, error) {
			a, err := get(key)
			return a.Len(), err
		}
	}
	tests := []struct {
		getter string
		get    func(string) (any, error)
		key    string
		want   any    // a value, or
		err    string // an error
	}{
		{"Int", intOf, "u8", int64(255), ""},
		{"Int", intOf, "i8", int64(-128), ""},
		{"Int", intOf, "u16", int64(65535), ""},
		{"Int", intOf, "i16", int64(-32768), ""},
		{"Int", intOf, "u32", int64(4294967295), ""},
		{"Int", intOf, "i32", int64(-2147483648), ""},
		{"Int", intOf, "u64", int64(1 << 62), ""},
		{"Int", intOf, "i64", int64(math.MinInt64), ""},
		{"Int", intOf, "u64.huge", nil, "u64.huge is 9223372036854775808, more than an int64 holds"},
		{"Int", intOf, "string", nil, "string is a string, want an integer"},
		{"Int", intOf, "f32", nil, "f32 is an f32, want an integer"},
		{"Int", intOf, "bool", nil, "bool is a bool, want an integer"},
		{"Int", intOf, "absent", nil, "missing key absent, want an integer"},
		{"Float", floatOf, "f32", float64(float32(0.1)), ""},
		{"Float", floatOf, "f64", 0.1, ""},
		{"Float", floatOf, "i8", -128.0, ""},
		{"Float", floatOf, "u64.huge", 0x1p63, ""},
		{"Float", floatOf, "u8s", nil, "u8s is an array of u8, want a number"},
		{"Float", floatOf, "absent", nil, "missing key absent, want a number"},
		{"Bool", boolOf, "bool", true, ""},
		{"Bool", boolOf, "u8", nil, "u8 is a u8, want a bool"},
		{"String", stringOf, "string", "naïve", ""},
		{"String", stringOf, "empty", "", ""},
		{"String", stringOf, "i32", nil, "i32 is an i32, want a string"},
		{"Array", lenOf(f.Array), "nested", 3, ""},
		{"Array", lenOf(f.Array), "none", 0, ""},
		{"Array", lenOf(f.Array), "string", nil, "string is a string, want an array"},
		{"Ints", lenOf(f.Ints), "u64s", 2, ""},
		{"Ints", lenOf(f.Ints), "u64s.huge", nil,
			"u64s.huge: element 1 is 9223372036854775808, more than an int64 holds"},
		{"Ints", lenOf(f.Ints), "strings", nil, "strings is an array of string, want an array of integers"},
		{"Ints", lenOf(f.Ints), "u8", nil, "u8 is a u8, want an array of integers"},
		{"Floats", lenOf(f.Floats), "i32s", 2, ""},
		{"Floats", lenOf(f.Floats), "bools", nil, "bools is an array of bool, want an array of numbers"},
		{"Bools", lenOf(f.Bools), "bools", 3, ""},
		{"Bools", lenOf(f.Bools), "u8s", nil, "u8s is an array of u8, want an array of bools"},
		{"Strings", lenOf(f.Strings), "strings", 3, ""},
		{"Strings", lenOf(f.Strings), "nested", nil, "nested is an array of array, want an array of strings"},
	}
	for _, tt := range tests {
		got, err := tt.get(tt.key)
		switch {
		case tt.err == "" && (err != nil || got != tt.want):
			t.Errorf("%s(%q) = %v, %v, want %v", tt.getter, tt.key, got, err, tt.want)
		case tt.err != "" && (err == nil || err.Error() != "gguf: x.gguf: "+tt.err):
			t.Errorf("%s(%q): got %v, error %v, want error %q", tt.getter, tt.key, got, err, tt.err)
		}
		if missing := tt.key == "absent"; errors.Is(err, ErrMissing) != missing {
			t.Errorf("%s(%q): error %v, is ErrMissing %v, want %v", tt.getter, tt.key, err, !missing, missing)
		}
	}
}

// elements decodes an array whatever its kind.
func elements(a Array) any {
	switch {
	case a.Elem().IsInt():
		return slices.Collect(a.Ints())
	case a.Elem().IsFloat():
		return slices.Collect(a.Floats())
	case a.Elem() == KindBool:
		return slices.Collect(a.Bools())
	case a.Elem() == KindString:
		var s []string
		for b := range a.Strings() {
			s = append(s, string(b))
		}
		return s
	}
	var all []any
	for inner := range a.Arrays() {
		all = append(all, elements(inner))
	}
	return all
}

func TestArrays(t *testing.T) {
	f := mustParse(t, everyKind())
	tests := []struct {
		key  string
		elem Kind
		want any
	}{
		{"u8s", KindU8, []int64{0, 255}},
		{"i8s", KindI8, []int64{-1, 127}},
		{"u16s", KindU16, []int64{1, 65535}},
		{"i16s", KindI16, []int64{-1, 2}},
		{"u32s", KindU32, []int64{1, 4294967295}},
		{"i32s", KindI32, []int64{-1, 2}},
		{"u64s", KindU64, []int64{1, 2}},
		{"i64s", KindI64, []int64{-1, 2}},
		{"f32s", KindF32, []float64{0.5, -1.5}},
		{"f64s", KindF64, []float64{0.1}},
		{"bools", KindBool, []bool{true, false, true}},
		{"strings", KindString, []string{"a", "", "long enough"}},
		{"none", KindI32, []int64(nil)},
		{"nested", KindArray, []any{[]int64{1, 2}, []string{"x"}, []any{[]any{[]int64{7}}}}},
	}
	for _, tt := range tests {
		a, err := f.Array(tt.key)
		if err != nil {
			t.Error(err)
			continue
		}
		if a.Elem() != tt.elem {
			t.Errorf("%s holds %s, want %s", tt.key, a.Elem(), tt.elem)
		}
		if diff := cmp.Diff(tt.want, elements(a)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.key, diff)
		}
	}
	ints, err := f.Array("i32s")
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(ints.Floats()); !slices.Equal(got, []float64{-1, 2}) {
		t.Errorf("Floats of i32s: got %v", got)
	}
}

func TestIteratorsStop(t *testing.T) {
	f := mustParse(t, everyKind())
	for _, key := range []string{"u8s", "f32s", "bools", "strings", "nested"} {
		a, err := f.Array(key)
		if err != nil {
			t.Fatal(err)
		}
		turns := 0
		switch {
		case a.Elem().IsInt():
			for range a.Ints() {
				turns++
				break
			}
		case a.Elem().IsFloat():
			for range a.Floats() {
				turns++
				break
			}
		case a.Elem() == KindBool:
			for range a.Bools() {
				turns++
				break
			}
		case a.Elem() == KindString:
			for range a.Strings() {
				turns++
				break
			}
		default:
			for range a.Arrays() {
				turns++
				break
			}
		}
		if turns != 1 {
			t.Errorf("%s: %d turns, want 1", key, turns)
		}
	}
}

func TestIteratorOfOtherKindPanics(t *testing.T) {
	f := mustParse(t, everyKind())
	a, err := f.Array("strings")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		const want = "gguf: an array of string has no integers"
		if got := recover(); got != want {
			t.Errorf("panic %v, want %q", got, want)
		}
	}()
	a.Ints()
}

func TestKindNames(t *testing.T) {
	want := []string{
		"u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64", "kind 13",
	}
	for i, name := range want {
		if got := Kind(i).String(); got != name {
			t.Errorf("kind %d is called %q, want %q", i, got, name)
		}
	}
}

func TestLabel(t *testing.T) {
	tests := map[string]string{
		"blk.0.attn_q.weight": "blk.0.attn_q.weight",
		"":                    `""`,
		"two words":           `"two words"`,
		"line\nbreak":         `"line\nbreak"`,
		"\x1b[31m":            `"\x1b[31m"`,
		"\xff":                `"\xff"`,
	}
	for name, want := range tests {
		if got := label(name); got != want {
			t.Errorf("label(%q) = %s, want %s", name, got, want)
		}
	}
	if got := label(string(bytes.Repeat([]byte("é"), 1000))); len(got) > 500 {
		t.Errorf("the label of a long name has %d bytes", len(got))
	}
}

// The zero Value is no value, and no file is written with one.
func TestZeroValue(t *testing.T) {
	if v := (Value{}).Any(); v != nil {
		t.Errorf("got %v", v)
	}
	d := &Draft{}
	d.Set("a", Value{})
	if err := d.Write(io.Discard); err == nil {
		t.Error("it is written")
	}
}
