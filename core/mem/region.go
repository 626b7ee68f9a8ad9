package mem

import (
	"sync/atomic"
	"unsafe"
)

// regionBytes is how much address space a region has, unless one buffer needs more. Only what is used becomes memory.
const regionBytes = 64 << 20

// hugePage is the bytes of a transparent huge page on amd64 and, with 4 KiB pages, on arm64.
const hugePage = 2 << 20

// region is memory for buffers that live long, handed out from front to back. Its pages can be huge ones although
// a buffer may be smaller than such a page.
type region struct {
	raw  []byte // as the system gave it
	rest []byte // not handed out; begins at a huge page at first
	held atomic.Int64
}

func newRegion(bytes int) (*region, error) {
	bytes = max(regionBytes, (bytes+hugePage-1)/hugePage*hugePage)
	raw, err := osAlloc(bytes + hugePage)
	if err != nil {
		return nil, err
	}
	skip := -uintptr(unsafe.Pointer(&raw[0])) % hugePage
	r := &region{raw: raw, rest: raw[skip:][:bytes]}
	r.held.Store(1) // the pool's own hold
	return r, nil
}

// cut hands out the next bytes; nil if there are not so many.
func (r *region) cut(bytes int) *block {
	if len(r.rest) < bytes {
		return nil
	}
	blk := &block{ptr: unsafe.Pointer(&r.rest[0]), size: bytes, region: r}
	r.rest = r.rest[bytes:]
	r.held.Add(1)
	return blk
}

// release takes a hold away; with the last one the memory goes back to the system.
func (r *region) release() {
	if r.held.Add(-1) > 0 {
		return
	}
	// Unmapping memory we mapped ourselves fails only if the address is wrong.
	if err := osFree(r.raw); err != nil {
		panic("mem: " + err.Error())
	}
}

// Keep is Fill for bytes that live long and are read often, such as weights: they take no more room than they need, and
// lie side by side, so that the system can keep them in huge pages, through which they are read faster. Their memory is
// not used again: it goes back to the system when all that lies beside it has been released, too.
func (p *Pool) Keep(b *Buffer, size int) error {
	if size <= smallBlock {
		return p.Fill(b, size)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	bytes := (size + align - 1) &^ (align - 1)
	if err := p.admit(size, int64(bytes)); err != nil {
		return err
	}
	var blk *block
	if p.region != nil {
		blk = p.region.cut(bytes)
	}
	if blk == nil {
		r, err := newRegion(bytes)
		if err != nil {
			return err
		}
		if p.region != nil {
			p.region.release()
		}
		p.region, blk = r, r.cut(bytes)
		if p.closed {
			p.region.release() // it has no other buffers, and goes with this one
			p.region = nil
		}
	}
	p.hold(b, blk, size)
	return nil
}
