package mem

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
	"weak"
)

const (
	align     = 64  // bytes; a block begins on a cache line
	minBlock  = 512 // bytes of the smallest class
	perOctave = 4   // size classes between two powers of two: at most 25 % is lost
	calmBytes = 64 << 20
)

// block is memory outside the Go heap, owned by exactly one of: a Buffer, a Pool's free list,
// the depot.
type block struct {
	ptr    unsafe.Pointer
	size   int
	class  int
	raw    []byte // the whole mapping, when the block is one; nil for a piece of a region
	vacant bool   // in the depot, its memory given back to the system, but not its addresses

	// uses is how often it was given back: it tells a late clean-up of the pool that had it that it comes too late,
	// when it may be another pool's.
	uses atomic.Uint32

	region *region // of which it is a piece, and to which it goes back; nil for all others
}

// holding is how a pool knows a block that is in use. A strong reference costs nothing; under
// pressure it becomes a weak one, so that the collector shows which buffers nobody holds.
type holding struct {
	strong *Buffer
	weak   weak.Pointer[Buffer]
	block  *block
}

// Pool hands out buffers by size class, the last freed first, so that the next operation of a
// size works on the same warm addresses. It belongs to one interpreter; its methods may still
// be called from several goroutines, because shared buffers are released anywhere.
type Pool struct {
	mu     sync.Mutex
	free   [][]*block // by class, last freed on top
	live   []holding
	inUse  int64 // bytes in blocks held by buffers
	cached int64 // bytes in free blocks
	peak   int64
	calm   int64 // no collection below this many bytes in use
	limit  int64 // bytes; 0 is none
	closed bool
	region *region // the newest; nil if there is none

	// Stopped is asked before a collection and again and again while it runs: once it reports true, nobody waits for
	// the collector any more, and a request that needed the collection fails with ErrStopped. It may be nil. Like
	// BeforeCollect it is set before the pool is used, runs outside the lock, and is dropped by Close.
	Stopped func() bool

	// BeforeCollect runs before a collection that the pool starts; the owner lets go there of what it holds only for
	// book-keeping. It may be nil.
	BeforeCollect func()
}

// ErrStopped is the end of a request whose owner did not want to wait for a collection any more.
var ErrStopped = errors.New("mem: stopped while garbage was collected")

// LimitError says that a request would exceed the pool's budget even after a collection.
type LimitError struct {
	Want, InUse, Limit int64 // bytes
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("out of tensor memory: %s more on top of %s in use exceed the limit of %s",
		Bytes(e.Want), Bytes(e.InUse), Bytes(e.Limit))
}

// Bytes writes a number of bytes in the unit a person would choose.
func Bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// NewPool returns an empty pool with a budget of limit bytes in use; 0 is no budget.
func NewPool(limit int64) *Pool { return &Pool{limit: limit, calm: calmBytes} }

// class is the size class of n bytes and the bytes of its blocks.
func class(n int) (index, size int) {
	if n <= minBlock {
		return 0, minBlock
	}
	octave := bits.Len(uint(n-1)) - 1 // 2^octave < n ≤ 2^(octave+1)
	step := 1 << octave / perOctave
	k := (n - 1<<octave + step - 1) / step
	return (octave-9)*perOctave + k, 1<<octave + k*step
}

// Fill makes b, which must be zero, a buffer of size bytes with one holder. Its bytes are whatever the last holder
// left; up to SmallBytes they are in Go memory, and zero. The error is a *LimitError or what the operating system said.
func (p *Pool) Fill(b *Buffer, size int) error {
	if size <= SmallBytes {
		b.Embed(unsafe.Pointer(unsafe.SliceData(make([]uint64, (size+7)/8))), size)
		return nil
	}
	c, bytes := class(size)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.admit(size, int64(bytes)); err != nil {
		return err
	}
	blk, err := p.take(c, bytes)
	if err != nil {
		return err
	}
	p.hold(b, blk, size)
	return nil
}

// admit makes room for n more bytes, for a buffer of size bytes, or says that there is none. The lock is held.
func (p *Pool) admit(size int, n int64) error {
	if p.inUse+n > p.calm || p.limit > 0 && p.inUse+n > p.limit {
		if !p.collect() {
			return ErrStopped
		}
		if p.limit > 0 && p.inUse+n > p.limit {
			return &LimitError{Want: int64(size), InUse: p.inUse, Limit: p.limit}
		}
	}
	return nil
}

// hold makes b a buffer of size bytes in a block, with one holder. The lock is held.
func (p *Pool) hold(b *Buffer, blk *block, size int) {
	if b.block != nil {
		panic("mem: a buffer that has bytes was to get others")
	}
	b.Embed(blk.ptr, size)
	b.home, b.block = p, blk
	if p.closed { // nobody goes through the live ones any more
		p.abandon(b, blk)
	} else {
		b.slot = len(p.live)
		p.live = append(p.live, holding{strong: b, block: blk})
	}
	p.inUse += int64(blk.size)
	p.peak = max(p.peak, p.inUse)
}

// take finds a free block of the class or makes one. The lock is held.
func (p *Pool) take(c, bytes int) (*block, error) {
	if c < len(p.free) {
		if l := p.free[c]; len(l) > 0 {
			blk := l[len(l)-1]
			p.free[c] = l[:len(l)-1]
			p.cached -= int64(blk.size)
			return blk, nil
		}
	}
	if p.cached > 0 && p.inUse+p.cached+int64(bytes) > p.calm {
		p.dropCached() // sizes changed: what was cached for the old ones would only add up
	}
	return depot.get(c, bytes)
}

// put gives the block of a buffer without holders back.
func (p *Pool) put(b *Buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.unlink(b.slot)
	}
	p.reuse(b.block)
	b.block, b.ptr = nil, nil
}

// unlink takes entry i out of the live list. The lock is held.
func (p *Pool) unlink(i int) {
	last := len(p.live) - 1
	if i != last {
		p.live[i] = p.live[last]
		if b := p.live[i].buffer(); b != nil {
			b.slot = i
		}
	}
	p.live[last] = holding{}
	p.live = p.live[:last]
}

func (h *holding) buffer() *Buffer {
	if h.strong != nil {
		return h.strong
	}
	return h.weak.Value()
}

// reuse puts a block that nobody holds on its free list. The lock is held.
func (p *Pool) reuse(blk *block) {
	p.inUse -= int64(blk.size)
	blk.uses.Add(1)
	switch {
	case blk.region != nil:
		blk.region.release()
		return
	case p.closed:
		depot.put(blk)
		return
	}
	for len(p.free) <= blk.class {
		p.free = append(p.free, nil)
	}
	p.free[blk.class] = append(p.free[blk.class], blk)
	p.cached += int64(blk.size)
}

// Collect runs the garbage collector and takes back every block whose buffer nobody can reach; or nothing, if Stopped
// reports true meanwhile.
func (p *Pool) Collect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.collect()
}

// collect is Collect with the lock held; it lets go of the lock while the collector runs. Weak
// pointers are nil as soon as the collection is over, so nothing has to be waited for and the
// outcome does not hang on when clean-ups run. It reports whether the owner waited for it: if not, the next collection
// takes back what this one finds.
func (p *Pool) collect() bool {
	for i := range p.live {
		if h := &p.live[i]; h.strong != nil {
			h.weak, h.strong = weak.Make(h.strong), nil
		}
	}
	before, stopped := p.BeforeCollect, p.Stopped // which Close takes away
	p.mu.Unlock()
	if before != nil {
		before()
	}
	done := garbage(stopped)
	p.mu.Lock()
	if !done {
		return false
	}
	for i := len(p.live) - 1; i >= 0; i-- {
		if h := p.live[i]; h.buffer() == nil {
			p.unlink(i)
			p.reuse(h.block)
		}
	}
	p.calm = max(calmBytes, 2*p.inUse)
	return true
}

// garbage runs the collector, which takes a second for each few gigabytes of a script's lists, and reports whether it
// was waited for: it is left behind, and ends by itself, once stopped reports true.
func garbage(stopped func() bool) bool {
	if stopped == nil {
		runtime.GC()
		return true
	}
	if stopped() {
		return false
	}
	done := make(chan struct{})
	go func() {
		runtime.GC()
		close(done)
	}()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-done:
			return true
		case <-look.C:
			if stopped() {
				return false
			}
		}
	}
}

// dropCached gives the free blocks to the depot. The lock is held.
func (p *Pool) dropCached() {
	for c, l := range p.free {
		for _, blk := range l {
			depot.put(blk)
		}
		clear(l)
		p.free[c] = l[:0]
	}
	p.cached = 0
}

// Close gives the free blocks to the rest of the process. Buffers still held stay valid; their
// blocks follow when they are released or when the collector finds them unreachable. So do those of buffers that the
// pool is asked for later, for which there is no budget any more.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.dropCached()
	if p.region != nil {
		p.region.release()
		p.region = nil
	}
	p.closed, p.limit = true, 0
	p.BeforeCollect, p.Stopped = nil, nil // clean-ups hold the pool, so it must not lead to the buffers
	for _, h := range p.live {
		if b := h.buffer(); b != nil {
			p.abandon(b, h.block)
		} else {
			p.reuse(h.block)
		}
	}
	p.live = nil
}

// abandon lets the block of a buffer of a closed pool come back when the collector finds the buffer unreachable.
func (p *Pool) abandon(b *Buffer, blk *block) {
	runtime.AddCleanup(b, p.orphaned, orphan{blk, blk.uses.Load()})
}

// orphan is a block that a buffer of a closed pool holds, if it still has been used as often.
type orphan struct {
	block *block
	uses  uint32
}

func (p *Pool) orphaned(o orphan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.block.uses.Load() == o.uses {
		p.reuse(o.block)
	}
}

// SetLimit changes the budget, in bytes; 0 is none.
func (p *Pool) SetLimit(limit int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = limit
}

// Stats are the pool's figures, in bytes but for Buffers.
type Stats struct {
	InUse, Cached, Peak, Limit int64
	Buffers                    int // buffers of the pool that are held, or not yet known to be garbage
}

// Stats reports the pool's figures.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{InUse: p.inUse, Cached: p.cached, Peak: p.peak, Limit: p.limit, Buffers: len(p.live)}
}
