package mem

import (
	"fmt"
	"runtime/debug"
)

// Guard runs fn, which reads mapped files, and returns an error that starts with what if fn hits a page
// its file no longer has. Every other panic passes through, a fault outside all mappings included: that is
// a bug, not a file that changed. The guard covers the calling goroutine only; a goroutine fn starts needs
// its own.
func Guard(what string, fn func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		// The runtime's error for a fault, and no other, has the address.
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			if !live.contain(r.Addr()) {
				panic(r)
			}
			err = fmt.Errorf("%s: the file changed or shrank while it was mapped", what)
		default:
			panic(r)
		}
	}()
	fn()
	return nil
}
