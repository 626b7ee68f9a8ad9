package mem

import (
	"fmt"
	"io"
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
// A Mapping is not closed by the collector, since slices of Bytes do not keep it alive; who hands the bytes out knows
// what does, and attaches Unmap to that.
type Mapping struct {
	data   []byte
	mapped bool // false: data is a copy in Go memory
}

// MapFile maps file from its first byte to the end it has now. The file may be closed afterwards. An empty
// file gives an empty mapping. The error is an *fs.PathError; a directory, pipe or device is refused by
// name. A file that is no file of the operating system, such as an embedded one, is read into memory.
func MapFile(file fs.File) (*Mapping, error) {
	f, ok := file.(*os.File)
	if !ok {
		data, err := io.ReadAll(file)
		return &Mapping{data: data}, err
	}
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
	live.add(data, f.Name())
	return &Mapping{data: data, mapped: true}, nil
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

// Forget tells the system that part of Bytes will not be read soon. What is not of this mapping is left alone.
func (m *Mapping) Forget(part []byte) {
	if !m.mapped || len(m.data) == 0 || len(part) == 0 {
		return
	}
	first, last := uintptr(unsafe.Pointer(&m.data[0])), uintptr(unsafe.Pointer(&m.data[len(m.data)-1]))
	if at := uintptr(unsafe.Pointer(&part[0])); at < first || at+uintptr(len(part)-1) > last {
		return
	}
	if whole := wholePages(part); len(whole) > 0 {
		forget(whole)
	}
}

// wholePages is what of b are pages that belong to it alone.
func wholePages(b []byte) []byte {
	page := uintptr(os.Getpagesize())
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	from, to := (at+page-1)/page*page, (at+uintptr(len(b)))/page*page
	if from >= to {
		return nil
	}
	return b[from-at : to-at]
}

// Close unmaps the file. A second Close does nothing. It must not run at the same time as another method
// or while a slice of Bytes is being read.
func (m *Mapping) Close() error {
	if m.data == nil {
		return nil
	}
	data := m.data
	m.data = nil
	if !m.mapped {
		return nil
	}
	live.remove(data)
	if err := unmapFile(data); err != nil {
		return fmt.Errorf("mem: the system did not unmap a file of %d bytes: %w", len(data), err)
	}
	return nil
}

// mappings are the address ranges of the process that are file mappings. Guard needs them to tell a file
// that shrank from a pointer that went wrong.
type mappings struct {
	mu        sync.Mutex
	at        map[uintptr]extent // by first address
	collectAt int                // files, at which a collection is due
}

type extent struct {
	size uintptr // bytes
	file string
}

var live = mappings{at: map[uintptr]extent{}, collectAt: calmMappings}

// calmMappings is how many files may be mapped before a collection looks for those nobody can reach: a mapping is a
// few bytes to the collector, but a system allows a process only so many (65,530 on Linux).
const calmMappings = 128

func (l *mappings) add(b []byte, file string) {
	l.mu.Lock()
	l.at[uintptr(unsafe.Pointer(&b[0]))] = extent{uintptr(len(b)), file}
	n := len(l.at)
	crowded := n >= l.collectAt
	if crowded {
		l.collectAt = n + calmMappings
	}
	l.mu.Unlock()
	if crowded {
		runtime.GC() // the clean-ups follow soon; waiting for them is not needed
	}
}

// Unmap closes mappings when owner, through which alone their bytes are reached, cannot be reached any more. Whoever
// reads the bytes must keep owner alive until then: runtime.KeepAlive. A mapping may be closed before.
func Unmap[T any](owner *T, files []*Mapping) {
	runtime.AddCleanup(owner, func(files []*Mapping) {
		for _, m := range files {
			m.Close() // an error would be the system's, and there is nobody to tell
		}
	}, files)
}

func (l *mappings) remove(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.collectAt = max(calmMappings, min(l.collectAt, len(l.at)+calmMappings))
	delete(l.at, uintptr(unsafe.Pointer(&b[0])))
}

// find is the file mapped at an address.
func (l *mappings) find(addr uintptr) (file string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for first, e := range l.at {
		if first <= addr && addr-first < e.size {
			return e.file, true
		}
	}
	return "", false
}
