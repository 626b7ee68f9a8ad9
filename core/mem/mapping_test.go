package mem

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tempFile is a file with the given contents, open for reading.
func tempFile(t *testing.T, contents []byte) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, contents, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestMapFile(t *testing.T) {
	for _, n := range []int{0, 1, 4096, 100_000} {
		want := make([]byte, n)
		for i := range want {
			want[i] = byte(i * 7)
		}
		f := tempFile(t, want)
		if _, err := f.Seek(0, 2); err != nil { // the position does not matter
			t.Fatal(err)
		}
		m, err := MapFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(m.Bytes(), want) {
			t.Errorf("%d bytes: the mapping differs from the file", n)
		}
		for range 2 {
			if err := m.Close(); err != nil {
				t.Errorf("%d bytes: Close: %v", n, err)
			}
			if m.Bytes() != nil {
				t.Errorf("%d bytes: Bytes after Close is not nil", n)
			}
		}
	}
}

func TestMapFileRefused(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	closed := tempFile(t, []byte("x"))
	closed.Close()

	tests := []struct {
		file *os.File
		want string
	}{
		{dir, "is a directory, want a regular file"},
		{r, "is a pipe, want a regular file"},
		{closed, "file already closed"},
	}
	for _, tt := range tests {
		m, err := MapFile(tt.file)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("MapFile: got %v, %v, want an error with %q", m, err, tt.want)
		}
		var pathErr *fs.PathError
		if !errors.As(err, &pathErr) || pathErr.Path != tt.file.Name() {
			t.Errorf("error %v does not name %s", err, tt.file.Name())
		}
	}
}

// TestForget insists that a part that was forgotten reads as before, and that parts elsewhere are left alone.
func TestForget(t *testing.T) {
	page := os.Getpagesize()
	data := make([]byte, 5*page+100)
	for i := range data {
		data[i] = byte(i * 7)
	}
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := MapFile(f)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	other := bytes.Repeat([]byte{1}, 4*page)
	m.Forget(other)
	for _, part := range [][2]int{{0, len(data)}, {10, 3*page + 1}, {page, 2 * page}, {5, 9}, {7, 7}} {
		m.Forget(m.Bytes()[part[0]:part[1]])
		if !bytes.Equal(m.Bytes(), data) {
			t.Fatalf("bytes %v were forgotten for good", part)
		}
	}
	if !bytes.Equal(other, bytes.Repeat([]byte{1}, 4*page)) {
		t.Error("memory that is no mapping was forgotten")
	}
}
