package mem

import (
	"os"
	"runtime/debug"
	"slices"
	"testing"
	"unsafe"
)

var sink byte

// shrunkMapping maps four pages of a file and then cuts the file to one.
func shrunkMapping(t *testing.T) (data []byte, name string) {
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
	return m.Bytes(), f.Name()
}

func TestGuardTruncatedFile(t *testing.T) {
	data, name := shrunkMapping(t)
	page := os.Getpagesize()
	want := name + " changed or shrank while it was mapped"
	for _, at := range []int{page, 2*page + 5, 4*page - 1} {
		done := false
		err := Guard(func() {
			sink += data[at]
			done = true
		})
		if done || err == nil || err.Error() != want {
			t.Errorf("reading byte %d: done %v, error %v, want %q", at, done, err, want)
		}
	}
	buf := make([]byte, 2*page)
	if err := Guard(func() { copy(buf, data[page:]) }); err == nil || err.Error() != want {
		t.Errorf("copying: error %v, want %q", err, want)
	}
	if err := Guard(func() { sink += data[page-1] }); err != nil {
		t.Errorf("reading the page that is left: %v", err)
	}
}

func TestGuardRestores(t *testing.T) {
	data, _ := shrunkMapping(t)
	for _, before := range []bool{false, true} {
		outer := debug.SetPanicOnFault(before)
		for _, fn := range []func(){func() {}, func() { sink += data[len(data)-1] }} {
			_ = Guard(fn)
			if got := debug.SetPanicOnFault(before); got != before {
				t.Errorf("SetPanicOnFault is %v after Guard, was %v", got, before)
			}
		}
		debug.SetPanicOnFault(outer)
	}
}

// TestGuardPassesOtherPanics includes a fault outside every mapping, as after a use of freed memory: reporting
// it as a changed file would hide the bug. The address is one that no system maps; memory freed a moment ago
// would not do, as the runtime's own threads may have been given it meanwhile.
func TestGuardPassesOtherPanics(t *testing.T) {
	var null *byte
	short := []byte{1}
	address := uintptr(0x8000)
	wild := *(**byte)(unsafe.Pointer(&address))
	tests := map[string]func(){
		"value":       func() { panic("mine") },
		"nil pointer": func() { sink = *null },
		"index":       func() { sink = short[len(short)] },
		"no mapping":  func() { sink = *wild },
	}
	for name, fn := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not pass through")
				}
			}()
			err := Guard(fn)
			t.Errorf("Guard returned %v", err)
		})
	}
}
