package token

import (
	"os"
	"runtime"
	"testing"

	"github.com/fucina-go/fucina/core/gguf"
)

// What opening a vocabulary allocates, garbage included, is bounded by the metadata: at most four times its bytes and
// 1 MiB.
func TestMemory(t *testing.T) {
	path := t.TempDir() + "/llama-spm.gguf"
	if err := os.WriteFile(path, gunzip(t, "testdata/llama-spm.gguf.gz"), 0o666); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tk, err := New(f)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	used := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d bytes for %d tokens in a file of %d", used, tk.Len(), info.Size())
	if most := uint64(4*info.Size() + 1<<20); used > most {
		t.Errorf("%d bytes allocated for a file of %d, at most %d", used, info.Size(), most)
	}
}
