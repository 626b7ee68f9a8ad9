package mem

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"unsafe"
)

// Mapping is a whole file mapped read-only. Its pages are read from disk on first touch and shared with
// every other process that maps the file.
//
// If the file is truncated while it is mapped, reading past its new end faults, which kills the process
// unless debug.SetPanicOnFault is set on the reading goroutine: Guard sets it and turns the fault into an
// error. A file that is rewritten in place shows its new bytes. (Windows refuses to truncate a mapped file.)
//
// A Mapping is never closed by the collector, since slices of Bytes do not keep it alive.
type Mapping struct {
	data []byte
}

// MapFile maps f from its first byte to the end it has now. f may be closed afterwards. An empty file
// gives an empty mapping. The error is an *fs.PathError; a directory, pipe or device is refused by name.
func MapFile(f *os.File) (*Mapping, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if kind := notRegular(info.Mode()); kind != "" {
		return nil, mapError(f, fmt.Errorf("is %s, want a regular file", kind))
	}
	size := int(info.Size())
	if int64(size) != info.Size() {
		return nil, mapError(f, fmt.Errorf("has %d bytes, more than this system can address", info.Size()))
	}
	if size == 0 {
		return &Mapping{}, nil
	}
	data, err := mapFile(f, size)
	runtime.KeepAlive(f) // not collected, hence not closed, while its descriptor is in use
	if err != nil {
		return nil, mapError(f, err)
	}
	live.add(data)
	return &Mapping{data}, nil
}

func mapError(f *os.File, err error) error {
	return &fs.PathError{Op: "map", Path: f.Name(), Err: err}
}

// notRegular names what a file is if it is not a regular one.
func notRegular(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// Bytes returns the file's bytes, nil after Close. They must not be written to and must not be read after
// Close: either faults.
func (m *Mapping) Bytes() []byte { return m.data }

// Close unmaps the file. A second Close does nothing. It must not run at the same time as another method
// or while a slice of Bytes is being read.
func (m *Mapping) Close() error {
	if m.data == nil {
		return nil
	}
	data := m.data
	m.data = nil
	live.remove(data)
	if err := unmapFile(data); err != nil {
		return fmt.Errorf("mem: the system did not unmap a file of %d bytes: %w", len(data), err)
	}
	return nil
}

// mappings are the address ranges of the process that are file mappings. Guard needs them to tell a file
// that shrank from a pointer that went wrong.
type mappings struct {
	mu   sync.Mutex
	size map[uintptr]uintptr // by first address
}

var live = mappings{size: map[uintptr]uintptr{}}

func (l *mappings) add(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.size[uintptr(unsafe.Pointer(&b[0]))] = uintptr(len(b))
}

func (l *mappings) remove(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.size, uintptr(unsafe.Pointer(&b[0])))
}

func (l *mappings) contain(addr uintptr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for first, size := range l.size {
		if first <= addr && addr-first < size {
			return true
		}
	}
	return false
}
