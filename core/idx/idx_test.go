package idx

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core/dtype"
)

// TestRead reads arrays of every element type.
func TestRead(t *testing.T) {
	for _, tt := range []struct {
		file  string
		dt    dtype.Type
		shape []int
		want  string
	}{
		{"\x00\x00\x08\x02\x00\x00\x00\x02\x00\x00\x00\x03abcdef", dtype.U8, []int{2, 3}, "abcdef"},
		{"\x00\x00\x09\x01\x00\x00\x00\x01\xff", dtype.I8, []int{1}, "\xff"},
		{"\x00\x00\x0b\x01\x00\x00\x00\x02\x00\x01\xff\xfe", dtype.I16, []int{2}, "\x01\x00\xfe\xff"},
		{"\x00\x00\x0c\x01\x00\x00\x00\x01\x01\x02\x03\x04", dtype.I32, []int{1}, "\x04\x03\x02\x01"},
		{"\x00\x00\x0d\x00\x3f\x80\x00\x00", dtype.F32, nil, "\x00\x00\x80\x3f"},
		{"\x00\x00\x0e\x01\x00\x00\x00\x01\x3f\xf0\x00\x00\x00\x00\x00\x00", dtype.F64, []int{1},
			"\x00\x00\x00\x00\x00\x00\xf0\x3f"},
		{"\x00\x00\x08\x02\x00\x00\x00\x00\x00\x00\x00\x03", dtype.U8, []int{0, 3}, ""},
	} {
		a, err := New(strings.NewReader(tt.file), int64(len(tt.file)))
		if err != nil {
			t.Errorf("%q: %v", tt.file, err)
			continue
		}
		got, err := io.ReadAll(a)
		if err != nil || string(got) != tt.want || a.DType != tt.dt || !slices.Equal(a.Shape, tt.shape) {
			t.Errorf("%q: %s%v %q, %v", tt.file, a.DType, a.Shape, got, err)
		}
	}
}

// TestDamaged refuses what is no array.
func TestDamaged(t *testing.T) {
	for file, want := range map[string]string{
		"":                                 "does not begin with two zeros",
		"\x1f\x8b\x08\x00":                 "does not begin with two zeros",
		"\x00\x00\x0a\x01\x00\x00\x00\x01": "the element type 0x0a is unknown",
		"\x00\x00\x08\xff\x00":             "shorter than its header says",
		"\x00\x00\x08\x01\xff\xff\xff\xff": "more than the file can hold",
		"\x00\x00\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff": "more than the file can hold",
		"\x00\x00\x08\x01\x00\x00\x00\x03ab":                               "shorter than its header says",
		"\x00\x00\x08\x01\x00\x00\x00\x01ab":                               "longer than its header says",
	} {
		a, err := New(strings.NewReader(file), 20)
		if err == nil {
			_, err = io.ReadAll(a)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", file, err, want)
		}
	}
}

// FuzzNew reads anything.
func FuzzNew(f *testing.F) {
	f.Add([]byte("\x00\x00\x08\x02\x00\x00\x00\x02\x00\x00\x00\x03abcdef"))
	f.Add([]byte("\x00\x00\x0b\x01\x00\x00\x00\x02\x00\x01\xff\xfe"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := New(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		if n, err := io.Copy(io.Discard, a); err == nil && n > int64(len(data)) {
			t.Errorf("%d bytes out of %d", n, len(data))
		}
	})
}
