package gguf

import (
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
