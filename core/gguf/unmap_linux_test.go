package gguf

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// mapped is how often the process has mapped the file.
func mapped(t *testing.T, name string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	return strings.Count(string(maps), name+"\n")
}

// Files that nobody closes are unmapped when nobody can reach them: a program may open a model again and again.
func TestUnreachableFilesAreUnmapped(t *testing.T) {
	data, err := os.ReadFile("../../examples/data/stories260K.gguf")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
	most := 0
	for i := range 1000 {
		f, err := Open(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.String("general.architecture"); err != nil {
			t.Fatal(err)
		}
		if i%10 == 9 {
			most = max(most, mapped(t, name))
		}
		runtime.KeepAlive(f)
	}
	if most == 0 || most > 600 {
		t.Errorf("%d files were mapped at once", most)
	}
	left := most
	for range 50 { // clean-ups run after a collection, not in it
		runtime.GC()
		if left = mapped(t, name); left == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if left > 0 {
		t.Errorf("%d files are still mapped", left)
	}
}

// What a file hands out keeps it mapped: drafts of a file that nobody has any more, its tensors and its arrays.
func TestDraftsKeepTheFile(t *testing.T) {
	data, err := os.ReadFile("../../examples/data/stories260K.gguf")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for what, take := range map[string]func(f *File) func() []byte{
		"a draft of a file": func(f *File) func() []byte {
			d := f.Draft()
			return func() []byte { return written(t, d) }
		},
		"a draft with an array": func(f *File) func() []byte {
			v, _ := f.Value("tokenizer.ggml.tokens")
			d := &Draft{}
			d.Set("tokens", v)
			return func() []byte { return written(t, d) }
		},
		"a draft of a tensor": func(f *File) func() []byte {
			x, _ := f.Tensor("token_embd.weight")
			d := &Draft{Tensors: []DraftTensor{x.Draft()}}
			return func() []byte { return written(t, d) }
		},
		"a tensor": func(f *File) func() []byte {
			x, _ := f.Tensor("token_embd.weight")
			return func() []byte {
				b := bytes.Clone(x.Bytes())
				runtime.KeepAlive(x)
				return b
			}
		},
		"an array": func(f *File) func() []byte {
			a, err := f.Strings("tokenizer.ggml.tokens")
			if err != nil {
				t.Fatal(err)
			}
			return func() (all []byte) {
				for text := range a.Strings() {
					all = append(all, text...)
				}
				return all
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			name := filepath.Join(dir, strings.ReplaceAll(what, " ", "-")+".gguf")
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
			f, err := Open(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := take(f)()
			read := take(f)
			f = nil // nobody has it any more
			for range 10 {
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
			if mapped(t, name) != 1 {
				t.Fatal("the file is not mapped any more")
			}
			if !bytes.Equal(read(), want) {
				t.Error("the bytes are others")
			}
			read = nil
			for range 100 {
				if runtime.GC(); mapped(t, name) == 0 {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Error("the file stays mapped when nobody needs it")
		})
	}
}
