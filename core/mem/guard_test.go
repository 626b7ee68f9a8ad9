package mem

import (
	"os"
	"runtime/debug"
	"slices"
	"testing"
)

var sink byte

// shrunkMapping maps four pages of a file and then cuts the file to one.
func shrunkMapping(t *testing.T) []byte {
	t.Helper()
	page := os.Getpagesize()
	f := tempFile(t, slices.Repeat([]byte{1}, 4*page))
	m, err := MapFile(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	if err := os.Truncate(f.Name(), int64(page)); err != nil {
		t.Skipf("the system does not truncate a mapped file: %v", err)
	}
	return m.Bytes()
}

func TestGuardTruncatedFile(t *testing.T) {
	data := shrunkMapping(t)
	page := os.Getpagesize()
	const want = "model.gguf: the file changed or shrank while it was mapped"
	for _, at := range []int{page, 2*page + 5, 4*page - 1} {
		done := false
		err := Guard("model.gguf", func() {
			sink += data[at]
			done = true
		})
		if done || err == nil || err.Error() != want {
			t.Errorf("reading byte %d: done %v, error %v, want %q", at, done, err, want)
		}
	}
	buf := make([]byte, 2*page)
	if err := Guard("model.gguf", func() { copy(buf, data[page:]) }); err == nil || err.Error() != want {
		t.Errorf("copying: error %v, want %q", err, want)
	}
	if err := Guard("model.gguf", func() { sink += data[page-1] }); err != nil {
		t.Errorf("reading the page that is left: %v", err)
	}
}

func TestGuardRestores(t *testing.T) {
	data := shrunkMapping(t)
	for _, before := range []bool{false, true} {
		outer := debug.SetPanicOnFault(before)
		for _, fn := range []func(){func() {}, func() { sink += data[len(data)-1] }} {
			_ = Guard("x", fn)
			if got := debug.SetPanicOnFault(before); got != before {
				t.Errorf("SetPanicOnFault is %v after Guard, was %v", got, before)
			}
		}
		debug.SetPanicOnFault(outer)
	}
}

// TestGuardPassesOtherPanics includes the fault of memory that is no file: reporting a use after free as
// a changed file would hide the bug.
func TestGuardPassesOtherPanics(t *testing.T) {
	freed, err := osAlloc(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	if err := osFree(freed); err != nil {
		t.Fatal(err)
	}
	var null *byte
	tests := map[string]func(){
		"value":          func() { panic("mine") },
		"nil pointer":    func() { sink = *null },
		"index":          func() { sink = freed[len(freed)] },
		"use after free": func() { sink = freed[0] },
	}
	for name, fn := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not pass through")
				}
			}()
			err := Guard("x", fn)
			t.Errorf("Guard returned %v", err)
		})
	}
}
