package mem

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// osAlloc returns zeroed, page-aligned memory outside the Go heap. bytes must be positive; the slice has
// exactly that length and capacity, and osFree needs it whole.
func osAlloc(bytes int) ([]byte, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("mem: the system refused %d bytes: %w", bytes, windows.ERROR_INVALID_PARAMETER)
	}
	const reserveAndCommit = windows.MEM_RESERVE | windows.MEM_COMMIT
	addr, err := windows.VirtualAlloc(0, uintptr(bytes), reserveAndCommit, windows.PAGE_READWRITE)
	if err != nil {
		return nil, fmt.Errorf("mem: the system refused %d bytes: %w", bytes, err)
	}
	return bytesAt(addr, bytes), nil
}

// osFree gives memory from osAlloc back to the system; any later access faults.
func osFree(b []byte) error {
	if err := windows.VirtualFree(addressOf(b), 0, windows.MEM_RELEASE); err != nil {
		return fmt.Errorf("mem: the system did not take back %d bytes: %w", len(b), err)
	}
	return nil
}

// mapFile maps the first bytes bytes of f for reading; bytes is positive.
func mapFile(f *os.File, bytes int) ([]byte, error) {
	section, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(section) // the view keeps the section alive
	addr, err := windows.MapViewOfFile(section, windows.FILE_MAP_READ, 0, 0, uintptr(bytes))
	if err != nil {
		return nil, err
	}
	return bytesAt(addr, bytes), nil
}

// forget tells the system that b may be lost; it takes the memory when it needs some. Pages of a mapped file, for which
// that is an error, it takes without being told.
func forget(b []byte) {
	if len(b) > 0 {
		_, _ = windows.VirtualAlloc(addressOf(b), uintptr(len(b)), windows.MEM_RESET, windows.PAGE_READWRITE)
	}
}

func unmapFile(b []byte) error { return windows.UnmapViewOfFile(addressOf(b)) }

// bytesAt is the n bytes at an address the system returned. The address is reread as a pointer because
// vet takes a direct conversion for pointer arithmetic; the memory is not the collector's, so it is safe.
func bytesAt(addr uintptr, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n)
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
