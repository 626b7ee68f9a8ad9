package gguf

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpen(t *testing.T) {
	m := everyKind()
	for i := range m.data {
		m.data[i] = byte(i)
	}
	dir := write(t, map[string][]byte{"x.gguf": m.bytes()})
	name := filepath.Join(dir, "x.gguf")
	var opened []string
	f, err := Open(name, func(name string) (fs.File, error) {
		opened = append(opened, name)
		return os.Open(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(opened, []string{name}) {
		t.Errorf("opened %q, want only %q", opened, name)
	}
	if f.Version() != 3 {
		t.Errorf("version %d, want 3", f.Version())
	}
	use(t, f)
	if w, _ := f.Tensor("blk.0.w"); !bytes.Equal(w.Bytes(), m.data[32:]) {
		t.Errorf("the tensor's bytes are % x", w.Bytes())
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if s, err := f.String("string"); s != "naïve" || err != nil {
		t.Errorf("String after Close: %q, %v, want a copy that outlives the mapping", s, err)
	}
}

func TestOpenVersion2(t *testing.T) {
	dir := write(t, map[string][]byte{"x.gguf": image{version: 2, keys: []pair{{"k", one(KindU8, 7)}}}.bytes()})
	f, err := Open(filepath.Join(dir, "x.gguf"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := f.Int("k"); f.Version() != 2 || n != 7 || err != nil {
		t.Errorf("version %d, k = %d, %v", f.Version(), n, err)
	}
}

func TestOpenRefused(t *testing.T) {
	dir := write(t, map[string][]byte{"bad.gguf": []byte("hello"), "empty.gguf": nil})
	tests := []struct{ name, want string }{
		{"absent.gguf", ""},
		{"bad.gguf", `gguf: %s: is not a GGUF file: it starts with "hell", want "GGUF"`},
		{"empty.gguf", "gguf: %s: the magic needs 4 bytes at byte 0, the file has 0 bytes (truncated?)"},
		{"", "gguf: map %s: is a directory, want a regular file"},
	}
	for _, tt := range tests {
		name := filepath.Join(dir, tt.name)
		f, err := Open(name, nil)
		if err == nil {
			f.Close()
			t.Errorf("%s: opened", tt.name)
			continue
		}
		if tt.want == "" {
			if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "gguf: open "+name) {
				t.Errorf("%s: error %v, want one that is fs.ErrNotExist", tt.name, err)
			}
		} else if want := fmt.Sprintf(tt.want, name); err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.name, err, want)
		}
	}
}

// part is one file of a split model with one tensor, called after the part.
func part(no, count, tensors int) image {
	return image{
		keys: []pair{
			{keySplitNo, one(KindU16, no)},
			{keySplitCount, one(KindU16, count)},
			{keySplitTensors, one(KindI32, tensors)},
		},
		tensors: []info{{fmt.Sprintf("tensor%d", no), I8, []uint64{3}, 0}},
		data:    bytes.Repeat([]byte{byte(no)}, 3),
	}
}

func TestOpenSplit(t *testing.T) {
	first := part(0, 3, 3)
	first.keys = append(first.keys, pair{"general.name", one(KindString, "split")})
	dir := write(t, map[string][]byte{
		"m-00001-of-00003.gguf": first.bytes(),
		"m-00002-of-00003.gguf": part(1, 3, 3).bytes(),
		"m-00003-of-00003.gguf": part(2, 3, 3).bytes(),
	})
	f, err := Open(filepath.Join(dir, "m-00001-of-00003.gguf"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := []string{keySplitNo, keySplitCount, keySplitTensors, "general.name"}
	if diff := cmp.Diff(want, f.Keys()); diff != "" {
		t.Errorf("Keys (-want +got):\n%s", diff)
	}
	for i, x := range f.Tensors() {
		name, want := fmt.Sprintf("tensor%d", i), bytes.Repeat([]byte{byte(i)}, 3)
		if x.Name != name || !bytes.Equal(x.Bytes(), want) {
			t.Errorf("tensor %d is %s with bytes %v", i, x.Name, x.Bytes())
		}
	}
	if x, ok := f.Tensor("tensor2"); !ok || x.Bytes()[0] != 2 {
		t.Errorf("tensor2 of the last part: found %v", ok)
	}
	if len(f.Tensors()) != 3 {
		t.Errorf("%d tensors, want 3", len(f.Tensors()))
	}
}

func TestOpenSplitRefused(t *testing.T) {
	renamed := part(1, 2, 2)
	renamed.tensors[0].name = "tensor0"
	noCount := part(1, 2, 2)
	noCount.keys = noCount.keys[:1]
	const one, two = "m-00001-of-00002.gguf", "m-00002-of-00002.gguf"
	tests := []struct {
		name  string
		files map[string][]byte
		open  string
		want  string // with the folder cut out
	}{
		{"not the first", map[string][]byte{two: part(1, 2, 2).bytes()}, two,
			"gguf: " + two + ": is part 2 of 2, open the first, " + one},
		{"other name", map[string][]byte{"m.gguf": part(0, 2, 2).bytes()}, "m.gguf",
			"gguf: m.gguf: is part 1 of 2, so its name must end in -00001-of-00002.gguf"},
		{"name of another part", map[string][]byte{two: part(0, 2, 2).bytes()}, two,
			"gguf: " + two + ": is part 1 of 2, so its name must end in -00001-of-00002.gguf"},
		{"part outside the count", map[string][]byte{one: part(2, 2, 2).bytes()}, one,
			"gguf: " + one + ": split.no is 2, but split.count is 2"},
		{"wrong part", map[string][]byte{one: part(0, 2, 2).bytes(), two: part(0, 2, 2).bytes()}, one,
			"gguf: " + two + ": split.no is 0, want 1 (part 2 of 2 of " + one + ")"},
		{"part of another split", map[string][]byte{one: part(0, 2, 2).bytes(), two: part(1, 3, 2).bytes()}, one,
			"gguf: " + two + ": split.count is 3, want the 2 of the first part (part 2 of 2 of " + one + ")"},
		{"part without count", map[string][]byte{one: part(0, 2, 2).bytes(), two: noCount.bytes()}, one,
			"gguf: " + two + ": missing key split.count, want an integer (part 2 of 2 of " + one + ")"},
		{"tensor count", map[string][]byte{one: part(0, 2, 5).bytes(), two: part(1, 2, 5).bytes()}, one,
			"gguf: " + one + ": the 2 parts have 2 tensors, split.tensors.count is 5"},
		{"same tensor twice", map[string][]byte{one: part(0, 2, 2).bytes(), two: renamed.bytes()}, one,
			"gguf: " + two + ": tensor tensor0 is there twice (part 2 of 2 of " + one + ")"},
		{"damaged part", map[string][]byte{one: part(0, 2, 2).bytes(), two: []byte("GG")}, one,
			"gguf: " + two + ": the magic needs 4 bytes at byte 0, the file has 2 bytes (truncated?)" +
				" (part 2 of 2 of " + one + ")"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, tt.files) + string(filepath.Separator)
			f, err := Open(dir+tt.open, nil)
			if err == nil {
				f.Close()
				t.Fatal("opened")
			}
			if got := strings.ReplaceAll(err.Error(), dir, ""); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	t.Run("absent part", func(t *testing.T) {
		dir := write(t, map[string][]byte{one: part(0, 2, 2).bytes()})
		_, err := Open(filepath.Join(dir, one), nil)
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), two) {
			t.Errorf("error %v, want fs.ErrNotExist for %s", err, two)
		}
	})
}

// TestOpenUnsplit opens what merging a split model leaves: a count of 0 or 1 and any name.
func TestOpenUnsplit(t *testing.T) {
	for _, count := range []int{0, 1} {
		dir := write(t, map[string][]byte{"m.gguf": part(0, count, 1).bytes()})
		f, err := Open(filepath.Join(dir, "m.gguf"), nil)
		if err != nil {
			t.Errorf("split.count %d: %v", count, err)
			continue
		}
		f.Close()
	}
}

// TestOpenStories opens a model of llama.cpp's making. The facts are those that @huggingface/gguf 0.4.6, a
// reader with no code in common, gives.
func TestOpenStories(t *testing.T) {
	f, err := Open(filepath.FromSlash("../../examples/data/stories260K.gguf"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	use(t, f)
	keys := f.Keys()
	if first, last := keys[0], keys[len(keys)-1]; len(keys) != 19 ||
		first != "tokenizer.ggml.tokens" || last != "llama.attention.layer_norm_rms_epsilon" {
		t.Errorf("%d keys, %s … %s", len(keys), first, last)
	}
	if arch, err := f.String("general.architecture"); arch != "llama" || err != nil {
		t.Errorf("architecture %q, %v", arch, err)
	}
	if layers, err := f.Int("llama.block_count"); layers != 5 || err != nil {
		t.Errorf("block_count %d, %v", layers, err)
	}
	if eps, err := f.Float("llama.attention.layer_norm_rms_epsilon"); float32(eps) != 1e-5 || err != nil {
		t.Errorf("layer_norm_rms_epsilon %v, %v", eps, err)
	}
	tokens, err := f.Strings("tokenizer.ggml.tokens")
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	for token := range tokens.Strings() {
		fmt.Fprintf(hash, "%s|", token)
	}
	if got := fmt.Sprintf("%x", hash.Sum(nil)[:8]); tokens.Len() != 512 || got != "7dabbbbaad9ac0b7" {
		t.Errorf("%d tokens with digest %s", tokens.Len(), got)
	}
	for _, tt := range []struct {
		name   string
		dims   []int
		digest string
	}{
		{"token_embd.weight", []int{64, 512}, "452158377d2f8703"},
		{"blk.4.attn_k.weight", []int{64, 32}, "ae424abd55c5ac4d"},
		{"blk.4.ffn_norm.weight", []int{64}, "56d1d7ae514e8fc2"},
	} {
		w, ok := f.Tensor(tt.name)
		sum := sha256.Sum256(w.Bytes())
		got := fmt.Sprintf("%x", sum[:8])
		if !ok || w.Type != typeOf("f32") || !slices.Equal(w.Dims, tt.dims) || got != tt.digest {
			t.Errorf("%s: found %v, %s %v with digest %s", tt.name, ok, w.Type, w.Dims, got)
		}
	}
	if n := len(f.Tensors()); n != 48 {
		t.Errorf("%d tensors, want 48", n)
	}
}

// vocabulary is a file with one array of n strings.
func vocabulary(n int) []byte {
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token %d", i)
	}
	return onePair("tokenizer.ggml.tokens", list(KindString, tokens...))
}

func TestArraysCostNoMemory(t *testing.T) {
	const n = 150_000
	dir := write(t, map[string][]byte{"x.gguf": vocabulary(n)})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f, err := Open(filepath.Join(dir, "x.gguf"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tokens, err := f.Strings("tokenizer.ggml.tokens")
	if err != nil {
		t.Fatal(err)
	}
	read, size := 0, 0
	for token := range tokens.Strings() {
		read++
		size += len(token)
	}
	runtime.ReadMemStats(&after)
	if read != n || size < 7*n {
		t.Errorf("read %d tokens of %d bytes in all, want %d tokens", read, size, n)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("opening and reading %d strings allocated %d bytes, want at most 1 MiB", n, got)
	}
}

// TestParseAllocations: what is allocated does not depend on how long arrays are, nested ones included.
func TestParseAllocations(t *testing.T) {
	nested := func(n int) []byte {
		return onePair("k", array(KindArray, slices.Repeat([][]byte{list(KindU8, 1, 2)[4:]}, n)...))
	}
	for name, file := range map[string]func(int) []byte{"strings": vocabulary, "nested": nested} {
		allocs := func(n int) float64 {
			b := file(n)
			return testing.AllocsPerRun(5, func() {
				if _, err := parse("x.gguf", b); err != nil {
					t.Fatal(err)
				}
			})
		}
		if few, many := allocs(2), allocs(20_000); few != many {
			t.Errorf("%s: %v allocations for 2 elements, %v for 20000", name, few, many)
		}
	}
}

// TestMemoryOfTensors: descriptions cost a small multiple of their bytes in the file.
func TestMemoryOfTensors(t *testing.T) {
	var m image
	for i := range 20_000 {
		name := fmt.Sprintf("blk.%d.attn_q.weight", i)
		m.tensors = append(m.tensors, info{name, typeOf("f32"), []uint64{8, 1}, uint64(32 * i)})
	}
	m.data = make([]byte, 32*len(m.tensors))
	b := m.bytes()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f, err := parse("x.gguf", b)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	most := 4*uint64(len(b)-len(m.data)) + 1<<20
	if got := after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc); got > most {
		t.Errorf("%d tensors take %d bytes, want at most %d", len(f.Tensors()), got, most)
	}
	runtime.KeepAlive(b)
}
