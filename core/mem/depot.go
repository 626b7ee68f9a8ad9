package mem

import (
	"sync"
	"unsafe"
)

// depotBytes is how much the process keeps for pools to come, in bytes, before it gives large
// blocks back to the operating system.
const depotBytes = 32 << 20

// depot is where blocks come from and where closed pools leave theirs.
var depot stock

type stock struct {
	mu     sync.Mutex
	free   [][]*block
	slab   []byte // the rest of the newest slab
	cached int64
}

func (s *stock) get(c, bytes int) (*block, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c < len(s.free) {
		if l := s.free[c]; len(l) > 0 {
			blk := l[len(l)-1]
			s.free[c] = l[:len(l)-1]
			s.cached -= int64(blk.size)
			return blk, nil
		}
	}
	if bytes > slabLimit {
		raw, err := osAlloc(bytes)
		if err != nil {
			return nil, err
		}
		return &block{ptr: unsafe.Pointer(&raw[0]), size: bytes, class: c, raw: raw}, nil
	}
	if len(s.slab) < bytes {
		raw, err := osAlloc(slabBytes)
		if err != nil {
			return nil, err
		}
		s.slab = raw
	}
	blk := &block{ptr: unsafe.Pointer(&s.slab[0]), size: bytes, class: c}
	s.slab = s.slab[(bytes+align-1)&^(align-1):]
	return blk, nil
}

func (s *stock) put(blk *block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if blk.raw != nil && s.cached+int64(blk.size) > depotBytes {
		// Unmapping memory we mapped ourselves fails only if the address is wrong.
		if err := osFree(blk.raw); err != nil {
			panic("mem: " + err.Error())
		}
		return
	}
	for len(s.free) <= blk.class {
		s.free = append(s.free, nil)
	}
	s.free[blk.class] = append(s.free[blk.class], blk)
	s.cached += int64(blk.size)
}
