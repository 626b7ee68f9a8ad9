package repl

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func openHistory(t *testing.T, path string) *History {
	t.Helper()
	h, err := OpenHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func add(t *testing.T, h *History, blocks ...string) {
	t.Helper()
	for _, b := range blocks {
		if err := h.Add(b); err != nil {
			t.Fatal(err)
		}
	}
}

func wantBlocks(t *testing.T, path string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, openHistory(t, path).Blocks()); diff != "" {
		t.Errorf("blocks (-want +got)\n%s", diff)
	}
}

func TestHistoryKeepsBlocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fucina", "history.jsonl")
	h := openHistory(t, path)
	block := "def f(x):\n    return \"é\\n\" + x\n"
	add(t, h, "x = 1", "x = 1", block, "x = 1", "")
	wantBlocks(t, path, "x = 1", block, "x = 1")

	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(data), "\n"); got != 3 {
		t.Errorf("%d lines in the file, want one for each of 3 blocks:\n%s", got, data)
	}
}

func TestHistoryFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows has no permission bits")
	}
	path := filepath.Join(t.TempDir(), "fucina", "history.jsonl")
	add(t, openHistory(t, path), "x = 1")
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", filepath.Base(name), got, want)
		}
	}
}

func TestHistorySkipsDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	damaged := "not json\n{\"block\":\"a\"}\n\n{\"block\":7}\n{\"other\":1}\n{\"block\":\"torn"
	if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	add(t, openHistory(t, path), "b")
	wantBlocks(t, path, "a", "b")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(data), damaged) {
		t.Errorf("the file was rewritten:\n%s", data)
	}
}

func TestHistorySharedByTwo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	a, b := openHistory(t, path), openHistory(t, path)
	add(t, a, "1")
	add(t, b, "2")
	add(t, a, "3")
	wantBlocks(t, path, "1", "2", "3")
}

func TestHistoryIsBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "history.jsonl")
	h := openHistory(t, path)
	var last string
	for i := range 50 {
		last = strings.Repeat(string(rune('a'+i%26)), 100_000)
		add(t, h, last)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if limit := int64(2*maxHistoryBytes + 2*101_000); total > limit {
		t.Errorf("%d bytes are kept of 5 MB written, want at most %d", total, limit)
	}
	got := openHistory(t, path).Blocks()
	if len(got) < 10 || got[len(got)-1] != last {
		t.Errorf("%d blocks are kept and the last is wrong or they are too few", len(got))
	}
}

func TestHistoryWithoutFile(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := OpenHistory(filepath.Join(blocked, "history.jsonl"))
	if err == nil {
		t.Error("a path below a file: no error")
	}
	add(t, h, "x = 1")
	if diff := cmp.Diff([]string{"x = 1"}, h.Blocks()); diff != "" {
		t.Errorf("blocks (-want +got)\n%s", diff)
	}
}
