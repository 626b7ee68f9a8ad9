package mem

import (
	"sync"
	"unsafe"
)

// depotBytes is how much the process keeps for pools to come, in bytes, before it gives the memory of blocks above
// smallBlock back to the operating system, or lets it take it, on Windows and macOS, when memory is short.
const depotBytes = 32 << 20

// smallBlock is up to how many bytes of a block are not worth giving back.
const smallBlock = 1 << 17

// depot is where blocks come from and where closed pools leave theirs. Blocks smaller than a huge page lie side by
// side, so that the system can keep them in such pages: what an operation looks at, or the keys and values of a model,
// would otherwise be in hundreds of small ones, more than a processor knows the places of.
var depot stock

type stock struct {
	mu     sync.Mutex
	free   [][]*block
	slab   []byte // the rest of the newest region for blocks smaller than a huge page
	cached int64
}

func (s *stock) get(c, bytes int) (*block, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c < len(s.free) {
		if l := s.free[c]; len(l) > 0 {
			blk := l[len(l)-1]
			s.free[c] = l[:len(l)-1]
			if !blk.vacant {
				s.cached -= int64(blk.size)
			}
			blk.vacant = false
			return blk, nil
		}
	}
	if bytes >= hugePage {
		raw, err := osAlloc(bytes)
		if err != nil {
			return nil, err
		}
		return &block{ptr: unsafe.Pointer(&raw[0]), size: bytes, class: c, raw: raw}, nil
	}
	if len(s.slab) < bytes {
		r, err := newRegion(regionBytes)
		if err != nil {
			return nil, err
		}
		s.slab = r.rest
	}
	blk := &block{ptr: unsafe.Pointer(&s.slab[0]), size: bytes, class: c}
	s.slab = s.slab[(bytes+align-1)&^(align-1):]
	return blk, nil
}

func (s *stock) put(blk *block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	blk.vacant = blk.size > smallBlock && s.cached+int64(blk.size) > depotBytes
	switch {
	case !blk.vacant:
		s.cached += int64(blk.size)
	case blk.raw != nil:
		// Unmapping memory we mapped ourselves fails only if the address is wrong.
		if err := osFree(blk.raw); err != nil {
			panic("mem: " + err.Error())
		}
		return
	default:
		forget(wholePages(unsafe.Slice((*byte)(blk.ptr), blk.size)))
	}
	for len(s.free) <= blk.class {
		s.free = append(s.free, nil)
	}
	s.free[blk.class] = append(s.free[blk.class], blk)
}
