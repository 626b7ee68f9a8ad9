package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/fucina-go/fucina/core/dtype"
)

// numbers is the elements of an array as f64, in the order of the file.
func numbers(a *Array) ([]float64, error) {
	data, err := io.ReadAll(a)
	if err != nil {
		return nil, err
	}
	size := a.DType.Size()
	var list []float64
	for ; len(data) > 0; data = data[size:] {
		var word [8]byte
		copy(word[:], data[:size])
		u := binary.LittleEndian.Uint64(word[:])
		list = append(list, map[dtype.Type]func() float64{
			dtype.Bool: func() float64 { return float64(u) },
			dtype.U8:   func() float64 { return float64(u) },
			dtype.I8:   func() float64 { return float64(int8(u)) },
			dtype.I16:  func() float64 { return float64(int16(u)) },
			dtype.I32:  func() float64 { return float64(int32(u)) },
			dtype.I64:  func() float64 { return float64(int64(u)) },
			dtype.F16:  func() float64 { return float64(dtype.F16ToF32(uint16(u))) },
			dtype.F32:  func() float64 { return float64(math.Float32frombits(uint32(u))) },
			dtype.F64:  func() float64 { return math.Float64frombits(u) },
		}[a.DType]())
	}
	return list, nil
}

func open(t *testing.T, name string) (*Array, error) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return New(bytes.NewReader(data), int64(len(data)))
}

// TestRead reads what NumPy wrote.
func TestRead(t *testing.T) {
	ints, fractions := []float64{0, 1, 2, 3, 4, 127}, []float64{0, -0.5, 1.25, 3, math.Inf(1), math.NaN()}
	for _, c := range []struct {
		name  string
		dt    dtype.Type
		shape []int
		want  []float64
	}{
		{"i1", dtype.I8, []int{2, 3}, ints}, {"i2", dtype.I16, []int{2, 3}, ints}, {"i4", dtype.I32, []int{2, 3}, ints},
		{"i8", dtype.I64, []int{2, 3}, ints}, {"u1", dtype.U8, []int{2, 3}, ints}, {"u2", dtype.I32, []int{2, 3}, ints},
		{"u4", dtype.I64, []int{2, 3}, ints}, {"u8", dtype.I64, []int{2, 3}, ints},
		{"be_i2", dtype.I16, []int{2, 3}, ints},
		{"be_i4", dtype.I32, []int{2, 3}, ints}, {"be_i8", dtype.I64, []int{2, 3}, ints},
		{"be_u2", dtype.I32, []int{2, 3}, ints},
		{"be_u4", dtype.I64, []int{2, 3}, ints}, {"be_u8", dtype.I64, []int{2, 3}, ints},
		{"f2", dtype.F16, []int{2, 3}, fractions}, {"f4", dtype.F32, []int{2, 3}, fractions},
		{"f8", dtype.F64, []int{2, 3}, fractions}, {"be_f2", dtype.F16, []int{2, 3}, fractions},
		{"be_f4", dtype.F32, []int{2, 3}, fractions}, {"be_f8", dtype.F64, []int{2, 3}, fractions},
		{"b1", dtype.Bool, []int{2, 3}, []float64{1, 0, 1, 0, 0, 1}}, {"scalar", dtype.F32, nil, []float64{2.5}},
		{"vector", dtype.I64, []int{5}, []float64{0, 1, 2, 3, 4}}, {"empty", dtype.F32, []int{2, 0, 3}, nil},
		{"fortran", dtype.I32, []int{2, 3}, []float64{0, 3, 1, 4, 2, 127}},
		{"version2", dtype.I32, []int{2, 3}, ints}, {"version3", dtype.I32, []int{2, 3}, ints},
	} {
		a, err := open(t, c.name+".npy")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := numbers(a)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if a.DType != c.dt || a.Fortran != (c.name == "fortran") || a.Len() != len(c.want) {
			t.Errorf("%s: got %s, fortran %v, %d elements", c.name, a.DType, a.Fortran, a.Len())
		}
		if d := cmp.Diff(c.shape, a.Shape); d != "" {
			t.Errorf("%s: shape: %s", c.name, d)
		}
		if d := cmp.Diff(c.want, got, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s: elements: %s", c.name, d)
		}
	}
}

// TestRefuse reads what NumPy wrote but no tensor can hold.
func TestRefuse(t *testing.T) {
	for name, want := range map[string]string{
		"complex": `type "<c16" cannot be read: save the real and the imaginary part`,
		"text":    `type "<U1" cannot be read`,
		"fields":  "fields have no counterpart",
		"object":  "objects are not read",
		"huge_u8": "the element 9223372036854775808 is greater than what i64 holds",
	} {
		a, err := open(t, name+".npy")
		if err == nil {
			_, err = io.ReadAll(a)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, want)
		}
	}
}

// file is an array file of version 1 with that header and as many bytes behind it.
func file(dict string, bytes int) []byte {
	head := append([]byte(magic), 1, 0)
	head = binary.LittleEndian.AppendUint16(head, uint16(len(dict)))
	return append(append(head, dict...), make([]byte, bytes)...)
}

// TestDamaged reads headers that are wrong.
func TestDamaged(t *testing.T) {
	const good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n"
	if _, err := New(bytes.NewReader(file(good, 24)), int64(len(file(good, 24)))); err != nil {
		t.Errorf("undamaged: %v", err)
	}
	for _, c := range []struct {
		dict  string
		bytes int
		want  string
	}{
		{good, 23, "says 6 elements of 4 bytes, but the file has 23 bytes"},
		{"", 0, "want { before"},
		{"{'descr': '<f4', 'shape': (1,)}", 4, `"fortran_order" is missing`},
		{"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, `"descr" occurs twice`},
		{"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", 4, "want False before"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 4, "want a size before"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': 3}", 12, "want ( before"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}", 12, "want a comma before"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", 4, `"x" is unknown`},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4, "something follows"},
		{"{'descr': '=f4', 'fortran_order': False, 'shape': (1,)}", 4, `type "=f4" cannot be read`},
		{"{'descr': '|f4', 'fortran_order': False, 'shape': (1,)}", 4, `type "|f4" cannot be read`},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 4, "too large"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", 4, "too many elements"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 0)}", 0, "too many elements"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}", 4, "says 1000000000 elements"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (" + strings.Repeat("1,", 65) + ")}", 4,
			"more than 64 sizes"},
	} {
		data := file(c.dict, c.bytes)
		_, err := New(bytes.NewReader(data), int64(len(data)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want an error with %q", c.dict, err, c.want)
		}
	}
	for name, data := range map[string][]byte{
		"this is no .npy file": []byte("PK\x03\x04 and more"), "version 9.0": append([]byte(magic), 9, 0, 0, 0),
		"the header claims 65535": append([]byte(magic), 1, 0, 255, 255),
	} {
		if _, err := New(bytes.NewReader(data), int64(len(data))); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error with %q", err, name)
		}
	}
}

// TestMemory reads headers that claim more than there is: what is allocated hangs on the bytes there are, at most four
// times those of the header and 1 MiB.
func TestMemory(t *testing.T) {
	long := strings.Repeat("1, ", 20000)
	for _, data := range [][]byte{
		file("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}", 4),
		file("{'descr': '<f8', 'fortran_order': True, 'shape': (1, 4611686018427387904)}", 0),
		file("{'descr': '<f4', 'fortran_order': False, 'shape': ("+long+")}", 4),
		file("{'descr': '"+strings.Repeat("<", 60000)+"'}", 0),
		append([]byte(magic), 2, 0, 255, 255, 255, 255),
		append([]byte(magic), 3, 0, 255, 255, 255, 127),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := New(bytes.NewReader(data), int64(len(data)))
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%.80q was read", data)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(4*len(data)+1<<20) {
			t.Errorf("%.80q: %d bytes allocated for a file of %d", data, used, len(data))
		}
	}
}

// TestShrunk reads a file that became shorter after its size was asked.
func TestShrunk(t *testing.T) {
	data := file("{'descr': '<f4', 'fortran_order': False, 'shape': (10,)}", 40)
	a, err := New(bytes.NewReader(data[:len(data)-1]), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(a); err == nil || !strings.Contains(err.Error(), "shorter than its header says") {
		t.Errorf("got %v", err)
	}
}

// TestRoundTrip writes arrays and reads them again.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dts := []dtype.Type{dtype.F64, dtype.F32, dtype.F16, dtype.I64, dtype.I32, dtype.I16, dtype.I8, dtype.U8}
		dt := rapid.SampledFrom(dts).Draw(t, "dtype")
		shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 5).Draw(t, "shape")
		n := dt.Size()
		for _, s := range shape {
			n *= s
		}
		data := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "data")
		head, err := Header(dt, shape)
		if err != nil || len(head)%64 != 0 {
			t.Fatalf("header of %d bytes, %v", len(head), err)
		}
		a, err := New(bytes.NewReader(append(head, data...)), int64(len(head)+n))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(a)
		if err != nil || a.DType != dt || a.Fortran || !bytes.Equal(got,
			data) || fmt.Sprint(a.Shape) != fmt.Sprint(shape) {
			t.Fatalf("got %s %v % x, %v; want %s %v % x", a.DType, a.Shape, got, err, dt, shape, data)
		}
	})
	if _, err := Header(dtype.BF16, nil); err == nil {
		t.Error("a header for bf16")
	}
}

// TestHeaderIsNumPys compares a header with that of a file of NumPy's.
func TestHeaderIsNumPys(t *testing.T) {
	for name, shape := range map[string][]int{"f4": {2, 3}, "scalar": nil, "empty": {2, 0, 3}} {
		want, err := os.ReadFile("testdata/" + name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Header(dtype.F32, shape)
		if err != nil || !bytes.HasPrefix(want, got) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func archive(t *testing.T, name string) []Entry {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	list, err := Entries(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestArchives reads archives that NumPy wrote.
func TestArchives(t *testing.T) {
	for _, name := range []string{"plain.npz", "compressed.npz"} {
		got := map[string][]float64{}
		for _, e := range archive(t, name) {
			a, closer, err := e.Open()
			if err != nil {
				t.Fatal(err)
			}
			if got[e.Name], err = numbers(a); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			closer.Close()
		}
		want := map[string][]float64{"w": {0, -0.5, 1.25, 3, math.Inf(1), math.NaN()}, "b": {0, 1, 2}}
		if d := cmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestChecksum changes a byte of an element.
func TestChecksum(t *testing.T) {
	data, err := os.ReadFile("testdata/plain.npz")
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte{0, 0, 0xa0, 0x3f}) // 1.25
	data[at] ^= 1
	list, err := Entries(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	a, closer, err := list[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	if _, err := io.ReadAll(a); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("got %v, want an error about the checksum", err)
	}
}

// FuzzRead reads anything: it must not panic, and must not give more than the file can hold.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"f4.npy", "be_u2.npy", "b1.npy", "version2.npy", "fields.npy", "compressed.npz",
		"plain.npz"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		read := func(a *Array, most int64) {
			if n := int64(a.Len()); n > most {
				t.Fatalf("%d elements in %d bytes", n, most)
			}
			got, err := io.ReadAll(a)
			if err == nil && len(got) != a.Len()*a.DType.Size() {
				t.Fatalf("%d bytes of %d elements of %s", len(got), a.Len(), a.DType)
			}
		}
		if a, err := New(bytes.NewReader(data), int64(len(data))); err == nil {
			read(a, int64(len(data)))
		}
		list, err := Entries(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for _, e := range list {
			if a, closer, err := e.Open(); err == nil {
				read(a, (int64(len(data))+64)*maxDeflate)
				closer.Close()
			}
		}
	})
}
