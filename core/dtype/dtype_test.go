package dtype

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTypes(t *testing.T) {
	const float, integer = 1, 2
	tests := []struct {
		typ  Type
		name string
		size int
		kind int
	}{
		{F32, "f32", 4, float},
		{F64, "f64", 8, float},
		{F16, "f16", 2, float},
		{BF16, "bf16", 2, float},
		{I8, "i8", 1, integer},
		{U8, "u8", 1, integer},
		{I16, "i16", 2, integer},
		{I32, "i32", 4, integer},
		{I64, "i64", 8, integer},
		{Bool, "bool", 1, 0},
	}
	var names []string
	for i, tt := range tests {
		if int(tt.typ) != i+1 {
			t.Errorf("%s has value %d, want %d", tt.name, tt.typ, i+1)
		}
		if tt.typ.String() != tt.name || tt.typ.Size() != tt.size {
			t.Errorf("got %s of %d bytes, want %s of %d", tt.typ, tt.typ.Size(), tt.name, tt.size)
		}
		if got, want := tt.typ.IsFloat(), tt.kind == float; got != want {
			t.Errorf("%s.IsFloat() = %v, want %v", tt.name, got, want)
		}
		if got, want := tt.typ.IsInt(), tt.kind == integer; got != want {
			t.Errorf("%s.IsInt() = %v, want %v", tt.name, got, want)
		}
		if got, ok := Parse(tt.name); got != tt.typ || !ok {
			t.Errorf("Parse(%q) = %s, %v", tt.name, got, ok)
		}
		names = append(names, tt.name)
	}
	if diff := cmp.Diff(names, Names()); diff != "" {
		t.Errorf("Names (-want +got):\n%s", diff)
	}
}

func TestInvalid(t *testing.T) {
	for _, typ := range []Type{Invalid, Bool + 1, 255} {
		if typ.String() != "invalid" || typ.Size() != 0 || typ.IsFloat() || typ.IsInt() {
			t.Errorf("Type(%d): %s, size %d, float %v, int %v",
				uint8(typ), typ, typ.Size(), typ.IsFloat(), typ.IsInt())
		}
	}
	for _, name := range []string{"", "invalid", "F32", "float32", "f32 ", "u16"} {
		if typ, ok := Parse(name); ok || typ != Invalid {
			t.Errorf("Parse(%q) = %s, %v, want none", name, typ, ok)
		}
	}
}
