package mem

import (
	"os"
	"testing"
	"unsafe"
)

func TestOSAlloc(t *testing.T) {
	for _, n := range []int{1, 4096, 4097, 3 << 20} {
		b, err := osAlloc(n)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) != n || cap(b) != n {
			t.Errorf("asked for %d bytes, got len %d, cap %d", n, len(b), cap(b))
		}
		if addr := uintptr(unsafe.Pointer(&b[0])); addr%uintptr(os.Getpagesize()) != 0 {
			t.Errorf("%d bytes at %#x: not page aligned", n, addr)
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("%d bytes: byte %d is %d, want 0", n, i, b[i])
			}
			b[i] = byte(i)
		}
		if err := osFree(b); err != nil {
			t.Error(err)
		}
	}
}

func TestOSAllocRefused(t *testing.T) {
	for _, n := range []int{0, -1, 1 << 60} {
		if b, err := osAlloc(n); err == nil {
			t.Errorf("%d bytes: got %d, want an error", n, len(b))
		}
	}
}

func TestOSFreeStranger(t *testing.T) {
	b, err := osAlloc(8192)
	if err != nil {
		t.Fatal(err)
	}
	if err := osFree(b[100:]); err == nil {
		t.Error("freeing the middle of an allocation succeeded")
	}
	if err := osFree(b); err != nil {
		t.Error(err)
	}
}
