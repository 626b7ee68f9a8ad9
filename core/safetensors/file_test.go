package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fucina-go/fucina/core/dtype"
)

// image is a file with the given header and data.
func image(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

// openBytes opens a file in memory.
func openBytes(files map[string][]byte, name string) (*File, error) {
	return Open(name, func(name string) (fs.File, error) {
		b, ok := files[name]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return &file{bytes.NewReader(b)}, nil
	})
}

type file struct{ *bytes.Reader }

func (f *file) Close() error               { return nil }
func (f *file) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }

// read is the elements of a tensor.
func read(t *testing.T, x Tensor) []byte {
	t.Helper()
	r, err := x.Elements()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOtherImplementation opens what another implementation wrote.
func TestOtherImplementation(t *testing.T) {
	f, err := Open("testdata/nlpodyssey.safetensors", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Len() != 15 {
		t.Errorf("%d tensors, want 15", f.Len())
	}
	wantMeta := map[string]string{"format": "pt", "note": `naïve "q" \ `}
	if diff := cmp.Diff(wantMeta, maps.Collect(f.Metadata())); diff != "" {
		t.Error(diff)
	}
	for x := range f.Tensors() {
		name, ok := strings.CutPrefix(x.Name, "x.")
		if !ok {
			continue
		}
		if x.Type.String() != name || !slices.Equal(x.Shape, []int{2, 3}) {
			t.Errorf("%s is %s%v", x.Name, x.Type, x.Shape)
		}
		for i, b := range x.Bytes() {
			want := byte(7 * i)
			switch {
			case x.Type == Bool:
				want = byte(i & 1)
			case x.Type == U64 && i%8 == 7:
				want = 0
			}
			if b != want {
				t.Fatalf("%s: byte %d is %d, want %d", x.Name, i, b, want)
			}
		}
		dt, _ := x.Type.DType()
		if n := len(read(t, x)); n != 6*dt.Size() {
			t.Errorf("%s: %d bytes of elements, want %d", x.Name, n, 6*dt.Size())
		}
	}
	if x, ok := f.Tensor("empty \"é\"\n"); !ok || !slices.Equal(x.Shape, []int{2, 0}) || len(x.Bytes()) != 0 {
		t.Errorf("the empty tensor: %v, %v", x, ok)
	}
	if x, ok := f.Tensor("one"); !ok || len(x.Shape) != 1 || !bytes.Equal(x.Bytes(), []byte{0, 0, 128, 63}) {
		t.Errorf("the tensor of one: %v, %v", x, ok)
	}
	if _, ok := f.Tensor("x"); ok {
		t.Error("there is a tensor called x")
	}
	u16, _ := f.Tensor("x.U16")
	if got, want := read(t, u16)[:8], []byte{0, 7, 0, 0, 14, 21, 0, 0}; !bytes.Equal(got, want) {
		t.Errorf("U16 gives %v, want %v", got, want)
	}
}

// TestReferenceBytes writes what the reference implementation writes: the bytes that its own tests want
// (github.com/huggingface/safetensors, safetensors/src/tensor.rs: test_serialization, test_empty,
// test_serialization_forced_alignement).
func TestReferenceBytes(t *testing.T) {
	for _, tt := range []struct {
		tensors  []Info
		metadata map[string]string
		want     string
	}{
		{[]Info{{"attn.0", dtype.F32, []int{1, 2, 3}}}, nil,
			"\x40\x00\x00\x00\x00\x00\x00\x00" + `{"attn.0":{"dtype":"F32","shape":[1,2,3],"data_offsets":[0,24]}}`},
		{nil, nil, "\x08\x00\x00\x00\x00\x00\x00\x00{}      "},
		{nil, map[string]string{"framework": "pt"},
			"\x28\x00\x00\x00\x00\x00\x00\x00" + `{"__metadata__":{"framework":"pt"}}     `},
		{[]Info{{"attn0", dtype.F32, []int{1, 1, 2, 3}}}, nil, "\x48\x00\x00\x00\x00\x00\x00\x00" +
			`{"attn0":{"dtype":"F32","shape":[1,1,2,3],"data_offsets":[0,24]}}       `},
	} {
		head, _, err := Header(tt.tensors, tt.metadata)
		if err != nil || string(head) != tt.want {
			t.Errorf("got %q, %v, want %q", head, err, tt.want)
		}
	}
}

// TestHeaderOrder puts types of stricter alignment first, then names.
func TestHeaderOrder(t *testing.T) {
	list := []Info{{"b", dtype.U8, []int{3}}, {"a", dtype.U8, []int{1}}, {"z", dtype.F64, nil},
		{"y", dtype.BF16, []int{2}}, {"x", dtype.I64, []int{1}}, {"w\"\\\n", dtype.Bool, []int{0}}}
	head, order, err := Header(list, map[string]string{"b": "1", "a": "\t"})
	if err != nil || !slices.Equal(order, []int{4, 2, 3, 1, 0, 5}) {
		t.Fatalf("got %v, %v", order, err)
	}
	f, err := openBytes(map[string][]byte{"x": append(head, make([]byte, 24)...)}, "x")
	if err != nil {
		t.Fatal(err)
	}
	if x, ok := f.Tensor("w\"\\\n"); !ok || x.Type != Bool {
		t.Errorf("%v, %v", x, ok)
	}
	if got := maps.Collect(f.Metadata()); got["a"] != "\t" || got["b"] != "1" {
		t.Errorf("metadata %q", got)
	}
	for _, bad := range [][]Info{{{"a", dtype.U8, nil}, {"a", dtype.F32, nil}}, {{"__metadata__", dtype.U8, nil}},
		{{"\xff", dtype.U8, nil}}} {
		if _, _, err := Header(bad, nil); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
	if _, _, err := Header(nil, map[string]string{"a": "\xff"}); err == nil {
		t.Error("metadata that is no UTF-8: no error")
	}
}

// TestFloat8 compares with the values that the formats' tables list.
func TestFloat8(t *testing.T) {
	for _, tt := range []struct {
		typ  Type
		bits byte
		want float64
	}{
		{F8E4M3, 0x00, 0}, {F8E4M3, 0x38, 1}, {F8E4M3, 0x7e, 448}, {F8E4M3, 0xfe, -448}, {F8E4M3, 0x01, 0x1p-9},
		{F8E4M3, 0x07, 0x1.cp-7}, {F8E4M3, 0x08, 0x1p-6}, {F8E4M3, 0x7f, math.NaN()}, {F8E4M3, 0xff, math.NaN()},
		{F8E5M2, 0x3c, 1}, {F8E5M2, 0x7b, 57344}, {F8E5M2, 0x01, 0x1p-16}, {F8E5M2, 0x03, 0x1.8p-15},
		{F8E5M2, 0x04, 0x1p-14}, {F8E5M2, 0xfc, math.Inf(-1)}, {F8E5M2, 0x7d, math.NaN()},
		{F8E8M0, 127, 1}, {F8E8M0, 0, 0x1p-127}, {F8E8M0, 254, 0x1p127}, {F8E8M0, 255, math.NaN()},
	} {
		h := fmt.Sprintf(`{"x":{"dtype":"%s","shape":[1],"data_offsets":[0,1]}}`, tt.typ)
		f, err := openBytes(map[string][]byte{"x": image(h, tt.bits)}, "x")
		if err != nil {
			t.Fatal(err)
		}
		x, _ := f.Tensor("x")
		got := float64(math.Float32frombits(binary.LittleEndian.Uint32(read(t, x))))
		if got != tt.want && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
			t.Errorf("%s %#x is %v, want %v", tt.typ, tt.bits, got, tt.want)
		}
	}
}

// TestElements converts what the engine has no type for, and refuses what it cannot.
func TestElements(t *testing.T) {
	h := `{"c":{"dtype":"C64","shape":[1],"data_offsets":[0,8]},` +
		`"u":{"dtype":"U64","shape":[1],"data_offsets":[8,16]},` +
		`"v":{"dtype":"U32","shape":[1],"data_offsets":[16,20]},` +
		`"f":{"dtype":"F4","shape":[2,1],"data_offsets":[20,21]},` +
		`"g":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[21,24]}}`
	data := bytes.Repeat([]byte{255}, 24)
	f, err := openBytes(map[string][]byte{"x": image(h, data...)}, "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"c", "f", "g"} {
		x, _ := f.Tensor(name)
		if _, err := x.Elements(); err == nil || !strings.Contains(err.Error(), "are not read") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	u, _ := f.Tensor("u")
	r, err := u.Elements()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err == nil || !strings.Contains(err.Error(), "greater than what i64 holds") {
		t.Errorf("U64: got %v", err)
	}
	v, _ := f.Tensor("v")
	if got := read(t, v); !bytes.Equal(got, []byte{255, 255, 255, 255, 0, 0, 0, 0}) {
		t.Errorf("U32 gives %v", got)
	}
}

// TestHostile gives every kind of damage a message of its own.
func TestHostile(t *testing.T) {
	x := func(shape, offsets string) string {
		return `"x":{"dtype":"I32","shape":` + shape + `,"data_offsets":` + offsets + `}`
	}
	sixteen := make([]byte, 16)
	y := `"y":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}`
	for _, tt := range []struct {
		file []byte
		want string
	}{
		{nil, "has 0 bytes"},
		{[]byte("PK\x03\x04"), "has 4 bytes"},
		{[]byte("<\x00\x00\x00\x00\xff\xff\xff{}"), "at most 100000000 are possible"},
		{[]byte("<\x00\x00\x00\x00\x00\x00\x00"), "the header claims 60 bytes, but 0 follow"},
		{image(""), "does not begin with {"},
		{image(" {}"), "does not begin with {"},
		{image("{\xff"), "the header is no UTF-8"},
		{image("{"), `the header ends where a " should follow`},
		{image(`{"x`), "ends inside a string"},
		{image(`{"x":`), "ends where a { should follow"},
		{image(`{}x`), "after its end"},
		{image(`{"x\q":{}}`), "unknown escape"},
		{image(`{"\ud800":{}}`), "unknown escape"},
		{image("{\"a\nb\":{}}"), "control character 0xa"},
		{image(`{"x":[]}`), `has '[' at byte 5, want {`},
		{image(`{"x":{}}`), `tensor "x": lacks one of dtype`},
		{image(`{`+x("[4]", "[0]")+`}`, sixteen...), "has 1 data_offsets, want 2"},
		{image(`{`+x("[4]", "[0,16,1]")+`}`, sixteen...), "has 3 data_offsets, want 2"},
		{image(`{`+x("[4]", "[16,0]")+`}`, sixteen...), "ends at byte 0, before it begins at 16"},
		{image(`{`+x("[4]", "[0,12]")+`}`, sixteen...), "has 12 bytes, but [4] of I32 takes 16"},
		{image(`{`+x("[4]", "[0,-1]")+`}`, sixteen...), "has no whole number at byte"},
		{image(`{`+x("[4.0]", "[0,16]")+`}`, sixteen...), "has a fraction"},
		{image(`{`+x("[99999999999999999999]", "[0,16]")+`}`, sixteen...), "has more than 64 bits"},
		{image(`{`+x("[2,18446744073709551614]", "[0,16]")+`}`, sixteen...), "more elements than an int64 holds"},
		{image(`{`+x("[4,4611686018427387000]", "[0,16]")+`}`, sixteen...), "more elements than an int64 holds"},
		{image(`{`+x("[4611686018427387000]", "[0,16]")+`}`, sixteen...), "more bytes than an int64 holds"},
		{image(`{`+x("[8]", "[0,32]")+`}`, sixteen...), `tensor "x" ends at byte 32 of the data, which has 16`},
		{image(`{`+x("[2]", "[0,8]")+","+y+`}`, sixteen...),
			`tensor "y" begins at byte 4 of the data, inside tensor "x", which ends at 8`},
		{image(`{`+x("[2]", "[8,16]")+","+y+`}`, sixteen...),
			`bytes 0 to 4 of the data, before tensor "y", belong to no tensor`},
		{image(`{`+x("[2]", "[0,8]")+`}`, sixteen...), "the last 8 bytes of the data belong to no tensor"},
		{image(`{` + x("[0]", "[0,0]") + "," + x("[0]", "[0,0]") + `}`), `tensor "x" is there twice`},
		{image(`{` + x("[0]", "[0,0]") + `,"\u0078":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`),
			`tensor "x" is there twice`},
		{image(`{"x":{"dtype":"I32","dtype":"I32"}}`), "has two dtype"},
		{image(`{"x":{"dtype":"I33","shape":[0],"data_offsets":[0,0]}}`), `has the dtype "I33", which is unknown`},
		{image(`{"x":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}`, 1, 2), "ends inside a byte"},
		{image(`{"__metadata__":{"a":"1","a":"2"}}`), `metadata "a" is there twice`},
		{image(`{"__metadata__":{"a":1}}`), `has metadata "a" that is no string`},
		{image(`{"__metadata__":{},"\u005f_metadata__":{}}`), "has two __metadata__"},
		{image(`{"x":{"new":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}}`),
			"nested more than 32 deep"},
		{image(`{"x":` + strings.Repeat(`{"a":`, 1000) + `1` + strings.Repeat("}", 1000) + `}`),
			"nested more than 32 deep"},
		{image(`{"x":{"new":what}}`), "has no value at byte"},
	} {
		f, err := openBytes(map[string][]byte{"x.safetensors": tt.file}, "x.safetensors")
		if err == nil {
			t.Errorf("%.80q: no error, %d tensors", tt.file, f.Len())
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "safetensors: x.safetensors: ") {
			t.Errorf("%.80q: got %v, want %q", tt.file, err, tt.want)
		}
	}
	ok := image(`{"x":{"new":[1e3,-2.5,{"a":null}],"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`+" \t\r\n", 1, 2)
	if _, err := openBytes(map[string][]byte{"x": ok}, "x"); err != nil {
		t.Errorf("a key of a newer version: %v", err)
	}
}

// TestIndex opens several files, and insists that the index and they agree.
func TestIndex(t *testing.T) {
	one := func(name string, v byte) []byte {
		return image(`{"__metadata__":{"k`+name+`":"v"},"`+name+`":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, v)
	}
	files := map[string][]byte{
		filepath.Join("dir", "1.safetensors"): one("a", 1), filepath.Join("dir", "2.safetensors"): one("b", 2),
	}
	open := func(index string) (*File, error) {
		name := filepath.Join("dir", "model.safetensors.index.json")
		files[name] = []byte(index)
		return openBytes(files, name)
	}
	f, err := open(`{"metadata":{"total_size":2},"weight_map":{"b":"2.safetensors","\u0061":"1.safetensors"}}` + "\n")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := f.Tensor("a")
	b, _ := f.Tensor("b")
	if f.Len() != 2 || a.Bytes()[0] != 1 || b.Bytes()[0] != 2 {
		t.Errorf("%d tensors, a=%v, b=%v", f.Len(), a, b)
	}
	if got := maps.Collect(f.Metadata()); len(got) != 2 || got["ka"] != "v" {
		t.Errorf("metadata %v", got)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	for index, want := range map[string]string{
		`{}`: "has no weight_map",
		`{"weight_map":{"a":"1.safetensors","c":"1.safetensors"}}`: `says that tensor "c" is in 1.safetensors`,
		`{"weight_map":{"a":"3.safetensors"}}`:                     "file does not exist",
		`{"weight_map":{"a":"../1.safetensors"}}`:                  "want one beside it",
		`{"weight_map":{"a":"sub/1.safetensors"}}`:                 "want one beside it",
		`{"weight_map":{"a":"..\\1.safetensors"}}`:                 "want one beside it",
		`{"weight_map":{"a":"/etc/passwd"}}`:                       "want one beside it",
		`{"weight_map":{"a":"1.safetensors","a":"1.safetensors"}}`: "lists 2 tensors, its files have 1",
		`{"weight_map":{"a":1}}`:                                   `want "`,
		`{"weight_map":{},"weight_map":{}}`:                        "has two weight_map",
		"\xff":                                                     "is no UTF-8",
	} {
		if _, err := open(index); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", index, err, want)
		}
	}
	files[filepath.Join("dir", "1.safetensors")] = image(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},`+
		`"z":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}`, 1)
	_, err = open(`{"weight_map":{"a":"1.safetensors"}}`)
	if err == nil || !strings.Contains(err.Error(), "its files have 2") {
		t.Errorf("an extra tensor: %v", err)
	}
}

// TestMemory opens headers made of as many things as fit, and measures what that takes.
func TestMemory(t *testing.T) {
	var tensors, pairs, shape, escaped strings.Builder
	for i := range 40000 {
		fmt.Fprintf(&tensors, `,"%05d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, i)
		fmt.Fprintf(&pairs, `,"%05d":""`, i)
		fmt.Fprintf(&escaped, `,"%05d\n\u0041":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, i)
		shape.WriteString(",0")
	}
	for _, header := range []string{
		"{" + tensors.String()[1:] + "}", `{"__metadata__":{` + pairs.String()[1:] + "}}",
		"{" + escaped.String()[1:] + "}",
		`{"x":{"dtype":"U8","shape":[` + shape.String()[1:] + `],"data_offsets":[0,0]}}`,
		`{"x":{"new":[` + shape.String()[1:] + `],"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`,
	} {
		name := filepath.Join(t.TempDir(), "x.safetensors")
		if err := os.WriteFile(name, image(header), 0o666); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f, err := Open(name, nil)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(4*len(header)+1<<20) {
			t.Errorf("%.40s… of %d bytes took %d bytes", header, len(header), used)
		}
	}
}

// FuzzOpen opens anything, within bounds of memory, and reads all there is in what opens.
func FuzzOpen(f *testing.F) {
	file, err := os.ReadFile("testdata/nlpodyssey.safetensors")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file, false)
	f.Add(image(`{"__metadata__":{"a":"\u00e9\ud83d\ude00"},`+
		`"x":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}`, 1), false)
	f.Add(image(`{"x":{"new":[1e3,-2.5,{"a":null}],"dtype":"U8","shape":[2],"data_offsets":[0,2]}}  `, 1, 2), false)
	f.Add([]byte(`{"metadata":{"total_size":2},"weight_map":{"b":"x"}}`), true)
	f.Fuzz(func(t *testing.T, data []byte, index bool) {
		name := "x"
		files := map[string][]byte{"x": data}
		if index {
			name = "x.json"
			files = map[string][]byte{name: data, "x": file}
		}
		s, err := openBytes(files, name)
		if err != nil {
			return
		}
		defer s.Close()
		n, bytes := 0, 0
		for x := range s.Tensors() {
			n++
			bytes += len(x.Bytes())
			found, ok := s.Tensor(x.Name)
			if !ok || found.Type != x.Type || len(found.Bytes()) != len(x.Bytes()) {
				t.Errorf("%q is not found", x.Name)
			}
			r, err := x.Elements()
			if err != nil {
				continue
			}
			got, err := io.Copy(io.Discard, r)
			dt, _ := x.Type.DType()
			elements := len(x.Bytes()) * 8 / types[x.Type].bits
			if err == nil && got != int64(elements*dt.Size()) {
				t.Errorf("%q: %d bytes of elements", x.Name, got)
			}
		}
		if n != s.Len() {
			t.Errorf("%d tensors, Len is %d", n, s.Len())
		}
		if !index && uint64(bytes)+8+binary.LittleEndian.Uint64(data) != uint64(len(data)) {
			t.Errorf("the tensors have %d bytes of a file of %d", bytes, len(data))
		}
	})
}
