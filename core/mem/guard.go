package mem

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// FaultError says that a page of a mapped file could not be read, because the file was truncated or
// changed under the mapping.
type FaultError struct{ File string }

func (e *FaultError) Error() string {
	return fmt.Sprintf("%s changed or shrank while it was mapped", e.File)
}

// Fault is a *FaultError if v, what a goroutine panicked with, is a fault inside a file mapping; nil
// for every other value, a fault outside of all mappings included: that is a bug, not a file that
// changed. A goroutine faults with a panic only if debug.SetPanicOnFault is set on it.
func Fault(v any) error {
	err, ok := v.(error)
	if !ok {
		return nil
	}
	var fault interface{ Addr() uintptr } // the runtime's error for a fault, and no other, has it
	if !errors.As(err, &fault) {
		return nil
	}
	if file, ok := live.find(fault.Addr()); ok {
		return &FaultError{file}
	}
	return nil
}

// Guard runs fn, which reads mapped files, and returns a *FaultError if fn hits a page its file no
// longer has. Every other panic passes through. The guard covers the calling goroutine only; the
// workers of core/par have one of their own.
func Guard(fn func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			if err = Fault(v); err == nil {
				panic(v)
			}
		}
	}()
	fn()
	return nil
}
