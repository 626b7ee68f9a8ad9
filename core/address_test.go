package core

import "unsafe"

// Address is where a tensor's first element lies, for tests outside of the package.
func (t *Tensor) Address() unsafe.Pointer { return t.data }
