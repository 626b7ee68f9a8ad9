package gguf

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func written(t *testing.T, d *Draft) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// rewrite opens a file, writes it anew and compares the bytes.
func rewrite(t *testing.T, name string) (size int) {
	t.Helper()
	f, err := Open(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := written(t, f.Draft()); !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes came back as %d others", name, len(want), len(got))
	}
	return len(want)
}

// TestRewrite writes files of other programs anew: all bytes come back.
func TestRewrite(t *testing.T) {
	names, err := filepath.Glob("../../models/testdata/*.gguf")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range append(names, "../../examples/data/stories260K.gguf") {
		rewrite(t, name)
	}
}

// TestRewriteAll does the same with all reference files, where they are at hand.
func TestRewriteAll(t *testing.T) {
	for _, dir := range []string{"../../../shared/data", "../../../../shared/data"} {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		files, total := 0, 0
		err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(name, ".gguf") {
				files, total = files+1, total+rewrite(t, name)
			}
			return err
		})
		if err != nil || files < 20 {
			t.Errorf("%d files, %v", files, err)
		}
		t.Logf("%d files, %d bytes", files, total)
		return
	}
	t.Skip("the reference files are not beside the repository; TestRewrite uses those in it")
}

// TestDraft changes metadata and tensors and reads the result.
func TestDraft(t *testing.T) {
	f := mustParse(t, image{
		version: 2, alignment: 64,
		keys: []pair{{"a", one(KindU8, 1)}, {keyAlignment, one(KindU32, 64)}, {"b", one(KindI64, 2)},
			{"c", one(KindString, "x")}},
		tensors: []info{{"w", typeOf("f32"), []uint64{3}, 0}},
		data:    []byte("0123456789ab"),
	})
	d := f.Draft()
	d.Version = 0
	d.Set("b", Text("two"))
	d.Set("d", Int(KindI16, -4))
	d.Set("e", Float(0.5))
	d.Set("f", List(KindString, Text("p"), Text("")))
	d.Delete("a")
	d.Delete("missing")
	d.Tensors = append(d.Tensors, DraftTensor{Name: "q", Type: typeOf("q8_0"), Dims: []int{32, 2},
		Write: func(w io.Writer) error {
			for range 2 {
				if _, err := w.Write(bytes.Repeat([]byte{7}, 34)); err != nil {
					return err
				}
			}
			return nil
		}}, DraftTensor{Name: "last", Type: I8, Write: func(w io.Writer) error {
		_, err := w.Write([]byte{9})
		return err
	}})
	b := written(t, d)
	got, err := parse("y.gguf", b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{keyAlignment, "b", "c", "d", "e", "f"}, got.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if s, err := got.String("b"); s != "two" || err != nil {
		t.Errorf("b is %q, %v", s, err)
	}
	if n, err := got.Int("d"); n != -4 || err != nil {
		t.Errorf("d is %d, %v", n, err)
	}
	if x, err := got.Float("e"); x != 0.5 || err != nil {
		t.Errorf("e is %v, %v", x, err)
	}
	if a, err := got.Strings("f"); a.Len() != 2 || err != nil {
		t.Errorf("f has %d elements, %v", a.Len(), err)
	}
	if got.Version() != 3 || len(b)%64 != 0 {
		t.Errorf("version %d, %d bytes", got.Version(), len(b))
	}
	for name, want := range map[string]string{"w": "0123456789ab", "q": strings.Repeat("\x07", 68), "last": "\x09"} {
		if x, _ := got.Tensor(name); string(x.Bytes()) != want {
			t.Errorf("%s is %q, want %q", name, x.Bytes(), want)
		}
	}
	if again := written(t, got.Draft()); !bytes.Equal(again, b) {
		t.Error("what was written does not come back")
	}
}

func TestDraftErrors(t *testing.T) {
	nothing := func(io.Writer) error { return nil }
	full := errors.New("disk full")
	tensor := func(name string, typ Type, write func(io.Writer) error, dims ...int) *Draft {
		return &Draft{Tensors: []DraftTensor{{name, typ, dims, write}}}
	}
	twice := tensor("w", I8, nothing, 0)
	twice.Tensors = append(twice.Tensors, twice.Tensors[0])
	aligned := &Draft{}
	aligned.Set(keyAlignment, Int(KindU32, 3))
	tests := []struct {
		d    *Draft
		want string
	}{
		{&Draft{Version: 4}, "gguf: version 4 is unknown, want 2 or 3"},
		{twice, "gguf: tensor w: is there twice"},
		{tensor("w", typeOf("q4_k"), nothing, 100),
			"gguf: tensor w: a row of 100 elements is no multiple of the 256 of a q4_k block"},
		{tensor("w", 31, nothing, 32),
			"gguf: tensor w: type 31 (q4_0_4_4) was removed from ggml; quantize the model again"},
		{tensor("w", I8, nothing, 2), "gguf: tensor w wrote 0 bytes, want 2"},
		{tensor("w", I8, func(w io.Writer) error { _, err := w.Write(make([]byte, 3)); return err }, 2),
			"gguf: a tensor writes 1 bytes more than it has"},
		{tensor("w", I8, nothing, -2), "gguf: tensor w: dim 0 is -2"},
		{tensor("w", I8, nothing, 1, 1, 1, 1, 1), "gguf: tensor w: has 5 dims, the most is 4"},
		{tensor(strings.Repeat("w", 70000), I8, nothing), "gguf: tensor " + strings.Repeat("w", 80) +
			"…: the name has 70000 bytes, the most is 65535"},
		{tensor("w", I8, func(io.Writer) error { return full }, 2), "disk full"},
	}
	for _, tt := range tests {
		if err := tt.d.Write(io.Discard); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	if err := aligned.Write(io.Discard); err == nil || !strings.Contains(err.Error(), keyAlignment) {
		t.Errorf("got %v, want an error about %s", err, keyAlignment)
	}
}

// FuzzRewrite: what can be read can be written, and then comes back byte for byte.
func FuzzRewrite(f *testing.F) {
	f.Add(image{keys: []pair{{"a", one(KindU8, 1)}}, tensors: []info{{"w", typeOf("f16"), []uint64{3}, 0}},
		data: make([]byte, 32)}.bytes())
	f.Add(image{version: 2, tensors: []info{{"w", typeOf("q4_0"), []uint64{32}, 32}, {"v", I8, []uint64{2}, 0}},
		data: make([]byte, 64)}.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := parse("x.gguf", b)
		if err != nil {
			return
		}
		once := written(t, file.Draft())
		if n, err := file.Draft().Bytes(); n != int64(len(once)) || err != nil {
			t.Fatalf("%d bytes were announced, %d came, %v", n, len(once), err)
		}
		again, err := parse("y.gguf", once)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(written(t, again.Draft()), once) {
			t.Fatal("what was written does not come back")
		}
	})
}
