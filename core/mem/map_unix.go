//go:build unix

package mem

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

const madvHugePage = 14 // MADV_HUGEPAGE, which package unix has on linux only

// osAlloc returns zeroed, page-aligned memory outside the Go heap. bytes must be positive; the slice has
// exactly that length and capacity, and osFree needs it whole.
func osAlloc(bytes int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("mem: the system refused %d bytes: %w", bytes, err)
	}
	if runtime.GOOS == "linux" && bytes >= hugePage {
		// Advice only: kernels without huge pages refuse it, and nothing is lost.
		_ = unix.Madvise(b, madvHugePage)
	}
	return b, nil
}

// osFree gives memory from osAlloc back to the system; any later access faults.
func osFree(b []byte) error {
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("mem: the system did not take back %d bytes: %w", len(b), err)
	}
	return nil
}

// mapFile maps the first bytes bytes of f for reading; bytes is positive.
func mapFile(f *os.File, bytes int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, bytes, unix.PROT_READ, unix.MAP_SHARED)
}

// forget gives the memory of whole pages back; an error would change nothing. Those of a file are read again, others
// are zero, or as they were.
func forget(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }

func unmapFile(b []byte) error { return unix.Munmap(b) }
