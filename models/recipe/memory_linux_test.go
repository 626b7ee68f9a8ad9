package recipe

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core/gguf"
)

// resident is the memory of this process in bytes: its own, and pages of mapped files.
func resident(t *testing.T) (n int) {
	t.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) == 3 && (f[0] == "RssAnon:" || f[0] == "RssFile:") {
			kib, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			n += kib << 10
		}
	}
	return n
}

// TestQuantizeMemory quantizes 96 MiB in 24 tensors: neither the memory of the process nor what it keeps of the file
// grows with them.
func TestQuantizeMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("the memory of the race detector would count")
	}
	f16, _ := gguf.TypeNamed("f16")
	const each, count = 4 << 20, 24
	d := &gguf.Draft{}
	d.Set("general.architecture", gguf.Text("llama"))
	d.Set("llama.block_count", gguf.Int(gguf.KindU32, count))
	zeros := make([]byte, each)
	for i := range count {
		d.Tensors = append(d.Tensors, gguf.DraftTensor{Name: "blk." + strconv.Itoa(i) + ".ffn_up.weight", Type: f16,
			Dims: []int{1024, each / 2 / 1024}, Write: func(w io.Writer) error {
				_, err := w.Write(zeros)
				return err
			}})
	}
	r, _ := ByName("q8_0")
	name := filepath.Join(t.TempDir(), "in.gguf")
	to, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Write(to), to.Close()); err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory()
	f, most, before := openModel(t, name), 0, resident(t)
	out, err := (&Job{File: f, Recipe: r, Done: func(Result) { most = max(most, resident(t)-before) }}).Draft()
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Write(io.Discard); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MiB more than before", float64(most)/(1<<20))
	if most > each+(40<<20) {
		t.Errorf("%d tensors of %d bytes took %d bytes", count, each, most)
	}
}
