package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilesAreUpToDate holds the committed files to the generator.
func TestFilesAreUpToDate(t *testing.T) {
	files := generate()
	if len(files) < 10 {
		t.Fatalf("only %d files", len(files))
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("kernels/%s differs from what the generator writes: run go generate ./kernels/...", name)
		}
	}
	found, err := filepath.Glob(filepath.Join("..", "..", "*", "simd_*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		name := filepath.ToSlash(strings.TrimPrefix(path, filepath.Join("..", "..")+string(filepath.Separator)))
		if files[name] == "" {
			t.Errorf("kernels/%s: the generator does not write it", name)
		}
	}
}

func TestTwoRunsAgree(t *testing.T) {
	first := generate()
	for name, text := range generate() {
		if first[name] != text {
			t.Errorf("%s: two runs differ", name)
		}
	}
}

// TestEncodings compares words for arm64 with the architecture manual's.
func TestEncodings(t *testing.T) {
	for _, c := range []struct {
		write func(s *source)
		want  string
	}{
		{func(s *source) { s.word("fma", 4, 2, 1, 0) }, "WORD $0x4e20cc22"},
		{func(s *source) { s.word("add", 8, 31, 30, 29) }, "WORD $0x4e7dd7df"},
		{func(s *source) { s.shiftARM("shl", 4, 0, 1, 23) }, "WORD $0x4f375420"},
		{func(s *source) { s.shiftARM("shr", 8, 3, 4, 1) }, "WORD $0x6f7f0483"},
		{func(s *source) { s.element("fma", 0, 1, 2, 3) }, "WORD $0x4fa21820"},
		{func(s *source) { s.element("sdot", 0, 1, 2, 3) }, "WORD $0x4fa2e820"},
	} {
		s := newSource("x")
		s.now = neon
		c.write(s)
		if got := s.text["arm64"].String(); !strings.HasPrefix(strings.TrimSpace(got), c.want) {
			t.Errorf("got %q, want %s", got, c.want)
		}
	}
}
