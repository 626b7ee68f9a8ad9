package gguf

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSplit cuts a model into parts of different sizes, opens each set, and puts it together again: the bytes of the
// whole come back.
func TestSplit(t *testing.T) {
	whole, err := os.ReadFile("../../examples/data/stories260K.gguf")
	if err != nil {
		t.Fatal(err)
	}
	f, err := parse("stories.gguf", whole)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[int64]int{1: len(f.Tensors()), 40 << 10: 0, 300 << 10: 0, 1 << 30: 1}
	for most, want := range counts {
		dir := t.TempDir()
		parts, names, err := f.Draft().Split(filepath.Join(dir, "m.gguf"), most)
		if err != nil {
			t.Fatal(err)
		}
		if len(parts) != len(names) || want > 0 && len(parts) != want || want == 0 && len(parts) < 2 {
			t.Errorf("%d bytes: %d parts, want %d", most, len(parts), want)
		}
		for i, p := range parts {
			b := written(t, p)
			if _, sizes, _, _ := p.head(); len(sizes) > 1 && len(parts) > 1 && int64(dataBytes(sizes)) > most {
				t.Errorf("part %d has %d bytes of data, want %d at most", i, dataBytes(sizes), most)
			}
			if err := os.WriteFile(names[i], b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		g, err := Open(names[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		if again := written(t, g.Draft()); !bytes.Equal(again, whole) {
			t.Errorf("%d bytes: %d parts give %d bytes that are not those of the whole", most, len(parts), len(again))
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

func dataBytes(sizes []uint64) (n uint64) {
	for _, s := range sizes {
		n += s + padding(s, defaultAlignment)
	}
	return n
}

// TestSplitMetadata looks at what is written in the parts, the alignment among it.
func TestSplitMetadata(t *testing.T) {
	d := &Draft{}
	d.Set("general.name", Text("x"))
	d.Set(keyAlignment, Int(KindU32, 64))
	for i := range 3 {
		d.Tensors = append(d.Tensors, DraftTensor{Name: fmt.Sprint(i), Type: I8, Dims: []int{65},
			Write: func(w io.Writer) error { _, err := w.Write(make([]byte, 65)); return err }})
	}
	parts, names, err := d.Split("a/m.gguf", 256)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a/m-00001-of-00002.gguf", "a/m-00002-of-00002.gguf"}, names); diff != "" {
		t.Error(diff)
	}
	split := []string{keySplitNo, keySplitCount, keySplitTensors}
	for i, want := range [][]string{append([]string{"general.name", keyAlignment}, split...),
		append([]string{keyAlignment}, split...)} {
		if diff := cmp.Diff(want, parts[i].Keys()); diff != "" {
			t.Errorf("part %d (-want +got):\n%s", i, diff)
		}
	}
	if len(parts[0].Tensors) != 2 || len(parts[1].Tensors) != 1 {
		t.Errorf("%d and %d tensors, want 2 and 1", len(parts[0].Tensors), len(parts[1].Tensors))
	}
	if len(d.Keys()) != 2 {
		t.Errorf("the whole has keys %v now", d.Keys())
	}
}

func TestSplitErrors(t *testing.T) {
	part := &Draft{}
	part.Set(keySplitNo, Int(KindU16, 0))
	many := &Draft{Tensors: make([]DraftTensor, maxParts+1)}
	for i := range many.Tensors {
		many.Tensors[i] = DraftTensor{Name: fmt.Sprint(i), Type: I8, Dims: []int{1}}
	}
	for _, tt := range []struct {
		d    *Draft
		name string
		most int64
		want string
	}{
		{&Draft{}, "m.bin", 1, "gguf: m.bin: the name of a model in parts must end in .gguf"},
		{&Draft{}, "m.gguf", 0, "gguf: parts of 0 bytes: want 1 or more"},
		{part, "m.gguf", 1, "gguf: m.gguf: the metadata has split.no already"},
		{many, "m.gguf", 1, "gguf: m.gguf: would have 65536 parts, at most 65535 are possible"},
		{&Draft{Tensors: []DraftTensor{{Name: "w", Type: 31, Dims: []int{1}}}}, "m.gguf", 1,
			"gguf: tensor w: type 31 (q4_0_4_4) was removed"},
	} {
		if _, _, err := tt.d.Split(tt.name, tt.most); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// TestAny reads every kind as a value, and the elements of every array.
func TestAny(t *testing.T) {
	f := mustParse(t, everyKind())
	got := map[string]any{}
	var plain func(v Value) any
	plain = func(v Value) any {
		a, ok := v.Any().(Array)
		if !ok {
			return v.Any()
		}
		list := []any{}
		for e := range a.Values() {
			list = append(list, plain(e))
		}
		return list
	}
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		got[key] = plain(v)
	}
	want := map[string]any{
		"u8": int64(255), "i8": int64(-128), "u16": int64(65535), "i16": int64(-32768), "u32": int64(4294967295),
		"i32": int64(-2147483648), "f32": float64(float32(0.1)), "bool": true, "string": "naïve",
		"u64": uint64(1 << 62), "u64.huge": uint64(1 << 63), "f64": 0.1, "bools": []any{true, false, true},
		"strings": []any{"a", "", "long enough"}, "u64s.huge": []any{uint64(1), uint64(1 << 63)}, "none": []any{},
		"nested": []any{[]any{int64(1), int64(2)}, []any{"x"}, []any{[]any{[]any{int64(7)}}}},
	}
	for key, w := range want {
		if diff := cmp.Diff(w, got[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}

// TestKindRange has every kind hold its bounds.
func TestKindRange(t *testing.T) {
	for k := KindU8; k <= KindF64; k++ {
		if got, ok := KindNamed(k.String()); !ok || got != k {
			t.Errorf("KindNamed(%q) is %s, %v", k, got, ok)
		}
		least, most := k.Range()
		if !k.IsInt() {
			if least != 0 || most != 0 {
				t.Errorf("%s: %d … %d", k, least, most)
			}
			continue
		}
		for _, n := range []int64{least, int64(most)} {
			switch v := Int(k, n).Any().(type) {
			case int64:
				if v != n {
					t.Errorf("%s: %d came back as %d", k, n, v)
				}
			case uint64:
				if v != uint64(n) {
					t.Errorf("%s: %d came back as %d", k, uint64(n), v)
				}
			}
		}
		if k.size() < 8 {
			if int64(most)-least != 1<<(8*k.size())-1 {
				t.Errorf("%s: %d … %d", k, least, most)
			}
		}
	}
	if _, ok := KindNamed("u128"); ok {
		t.Error("u128 is a kind")
	}
}
