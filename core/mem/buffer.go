package mem

import (
	"sync/atomic"
	"unsafe"
)

// SmallBytes is the largest size kept in ordinary Go memory, in bytes: handing so little to the
// pool costs more than the collector does.
const SmallBytes = 256

// Buffer is a run of bytes with a count of its holders. It lies in Go memory (small ones), in a
// block of a Pool, or in memory borrowed from elsewhere, such as a mapped file. Tensors that
// are views of one another share one Buffer.
type Buffer struct {
	ptr     unsafe.Pointer // the first byte; kept alive by small, block or owner
	size    int
	refs    atomic.Int32
	version atomic.Uint32
	marked  atomic.Uint32 // version of the last change that a gradient flows through
	home    *Pool         // whose block it holds; nil otherwise
	block   *block        // nil: Go memory or borrowed
	slot    int           // place in home.live
	owner   any           // what keeps borrowed memory valid
}

// Embed makes b, which must be zero, a buffer over size bytes of Go memory at p, with one holder.
func (b *Buffer) Embed(p unsafe.Pointer, size int) {
	b.ptr, b.size = p, size
	b.refs.Store(1)
}

// Borrow is a buffer over memory that others own: data must stay valid and unchanged in size
// while owner is reachable. The pool's budget does not count it.
func Borrow(data []byte, owner any) *Buffer {
	b := &Buffer{ptr: unsafe.Pointer(unsafe.SliceData(data)), size: len(data), owner: owner}
	b.refs.Store(1)
	return b
}

// Data is the address of the first byte; it may be nil when Size is 0.
func (b *Buffer) Data() unsafe.Pointer { return b.ptr }

// Size is the length in bytes.
func (b *Buffer) Size() int { return b.size }

// Retain adds a holder.
func (b *Buffer) Retain() { b.refs.Add(1) }

// Release takes a holder away. The last one gives the block back to its pool, whose next
// request of that size gets it; the holder must not touch the bytes again.
func (b *Buffer) Release() {
	switch n := b.refs.Add(-1); {
	case n > 0 || b.block == nil:
		return
	case n < 0:
		panic("mem: a buffer was released more often than it was retained")
	}
	b.home.put(b)
}

// Holders is the number of holders.
func (b *Buffer) Holders() int { return int(b.refs.Load()) }

// Pooled tells whether the bytes go back to a pool when the last holder lets go.
func (b *Buffer) Pooled() bool { return b.block != nil }

// Borrowed tells whether the bytes belong to somebody else, who may not want them changed.
func (b *Buffer) Borrowed() bool { return b.owner != nil }

// Version counts the in-place changes of the bytes.
func (b *Buffer) Version() uint32 { return b.version.Load() }

// Touch records an in-place change.
func (b *Buffer) Touch() { b.version.Add(1) }

// MarkRecorded notes that a gradient flows through the last in-place change.
func (b *Buffer) MarkRecorded() { b.marked.Store(b.version.Load()) }

// Recorded is the version of the last change through which a gradient flows; 0 if there is none.
func (b *Buffer) Recorded() uint32 { return b.marked.Load() }
