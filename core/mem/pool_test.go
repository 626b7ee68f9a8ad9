package mem

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

func get(t testing.TB, p *Pool, size int) *Buffer {
	t.Helper()
	b := new(Buffer)
	if err := p.Fill(b, size); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestClasses(t *testing.T) {
	last, lastSize := -1, 0
	for n := SmallBytes + 1; n < 1<<22; n += 1 + n/97 {
		c, size := class(n)
		if size < n || size%align != 0 || n > minBlock && size > n+n/4 {
			t.Fatalf("%d bytes get a block of %d", n, size)
		}
		if c < last || c == last && size != lastSize || c > last && size <= lastSize {
			t.Fatalf("%d bytes: class %d of %d bytes after class %d of %d", n, c, size, last, lastSize)
		}
		last, lastSize = c, size
	}
}

func TestSameAddress(t *testing.T) {
	p := NewPool(0)
	defer p.Close()
	for _, floats := range []int{256, 4 << 10, 64 << 10, 1 << 20, 4 << 20} {
		a := get(t, p, 4*floats)
		at := a.Data()
		a.Release()
		b := get(t, p, 4*floats)
		if b.Data() != at {
			t.Errorf("%d floats: freed %p, got %p", floats, at, b.Data())
		}
		b.Release()
	}
	if s := p.Stats(); s.InUse != 0 || s.Buffers != 0 {
		t.Errorf("outstanding: %+v", s)
	}
}

func TestCollectTakesBackGarbage(t *testing.T) {
	p := NewPool(0)
	defer p.Close()
	kept := get(t, p, 1<<20)
	for range 10 {
		get(t, p, 1<<20) // dropped, never released
	}
	p.Collect()
	if s := p.Stats(); s.Buffers != 1 {
		t.Fatalf("after a collection: %+v, want one buffer", s)
	}
	kept.Release()
	runtime.KeepAlive(kept)
}

func TestPressureBoundsGarbage(t *testing.T) {
	p := NewPool(0)
	defer p.Close()
	for range 400 {
		get(t, p, 1<<20)
	}
	if s := p.Stats(); s.Peak > 96<<20 {
		t.Fatalf("peak of %s with nothing held", Bytes(s.Peak))
	}
}

func TestLimit(t *testing.T) {
	p := NewPool(8 << 20)
	defer p.Close()
	var held []*Buffer
	for i := 0; ; i++ {
		b := new(Buffer)
		if err := p.Fill(b, 1<<20); err != nil {
			var limit *LimitError
			if !errors.As(err, &limit) || i != 8 {
				t.Fatalf("after %d MiB: %v", i, err)
			}
			break
		}
		held = append(held, b)
	}
	held[0].Release()
	get(t, p, 1<<20).Release()
	held = held[1:]
	runtime.KeepAlive(held)
	for range 100 { // garbage never makes the limit fail
		get(t, p, 1<<20)
		held = nil
	}
}

func TestPoolProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewPool(0)
		defer p.Close()
		var held []*Buffer
		var bytes int64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "free") {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				_, size := class(held[i].Size())
				bytes -= int64(size)
				held[i].Release()
				held = append(held[:i], held[i+1:]...)
			} else {
				b := new(Buffer)
				if err := p.Fill(b, rapid.IntRange(SmallBytes+1, 1<<18).Draw(t, "size")); err != nil {
					t.Fatal(err)
				}
				_, size := class(b.Size())
				bytes += int64(size)
				held = append(held, b)
			}
			if rapid.IntRange(0, 20).Draw(t, "collect") == 0 {
				p.Collect()
			}
			seen := map[any]bool{}
			for _, b := range held {
				if seen[b.Data()] {
					t.Fatal("two buffers at one address")
				}
				seen[b.Data()] = true
			}
			if s := p.Stats(); s.InUse != bytes || s.Buffers != len(held) {
				t.Fatalf("%+v, want %d bytes in %d buffers", s, bytes, len(held))
			}
		}
		runtime.KeepAlive(held)
	})
}

func TestClosedPoolGivesBack(t *testing.T) {
	p := NewPool(0)
	a, b := get(t, p, 1<<20), get(t, p, 1<<20)
	p.Close()
	a.Release()
	runtime.KeepAlive(b)
	b = nil
	for range 50 {
		runtime.GC()
		if p.Stats().InUse == 0 {
			return
		}
	}
	t.Fatalf("%+v after close, release and collection", p.Stats())
}

// TestClosedPoolServes asks a closed pool for buffers, as an operation on a tensor that outlived its Env does: no two
// have one address, those released and those dropped go back, and what is kept goes back to the system.
func TestClosedPoolServes(t *testing.T) {
	p := NewPool(0)
	p.Close()
	get(t, p, 3<<20).Release()
	p.Collect() // must not take back what was released
	a, b := get(t, p, 3<<20), get(t, p, 3<<20)
	if a.Data() == b.Data() {
		t.Fatal("two buffers at one address")
	}
	kept := keep(t, p, 300_000)
	region := kept.block.region
	kept.Release()
	if n := region.held.Load(); n != 0 {
		t.Errorf("%d holders of a region of which nothing is in use", n)
	}
	a.Release()
	if s := p.Stats(); s.InUse != int64(b.block.size) {
		t.Errorf("%+v, want %d bytes of one buffer", s, b.block.size)
	}
	runtime.KeepAlive(b)
	for range 50 {
		if runtime.GC(); p.Stats().InUse == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%+v after the last buffer was dropped", p.Stats())
}

func BenchmarkGetRelease(b *testing.B) {
	p := NewPool(0)
	for b.Loop() {
		get(b, p, 4096).Release()
	}
}

func keep(t testing.TB, p *Pool, size int) *Buffer {
	t.Helper()
	b := new(Buffer)
	if err := p.Keep(b, size); err != nil {
		t.Fatal(err)
	}
	return b
}

// What is kept lies side by side without gaps, and goes back to the system with the last of its neighbours.
func TestKeep(t *testing.T) {
	p := NewPool(0)
	const size = 300_000
	a, b := keep(t, p, size), keep(t, p, size)
	if gap := uintptr(b.Data()) - uintptr(a.Data()); gap != 300_032 {
		t.Errorf("the second begins %d bytes after the first", gap)
	}
	if at := uintptr(a.Data()); at%hugePage != 0 {
		t.Errorf("the first begins at %#x, which is no beginning of a huge page", at)
	}
	large := keep(t, p, regionBytes+1)
	if s := p.Stats(); s.Buffers != 3 || s.InUse != 2*300_032+regionBytes+align {
		t.Errorf("in use: %+v", s)
	}
	first, second := a.block.region, large.block.region
	if first == second || first.held.Load() != 2 || second.held.Load() != 2 {
		t.Errorf("%d and %d holders, want 2 and 2", first.held.Load(), second.held.Load())
	}
	a.Release()
	b.Release()
	if n := first.held.Load(); n != 0 {
		t.Errorf("%d holders of a region without buffers", n)
	}
	p.Close()
	unsafe.Slice((*byte)(large.Data()), large.Size())[regionBytes] = 1 // outlives the pool
	large.Release()
	if n := second.held.Load(); n != 0 {
		t.Errorf("%d holders of a region of a closed pool", n)
	}
	if b := keep(t, NewPool(0), 1000); b.block.region != nil {
		t.Error("a small buffer has a region")
	}
	if err := NewPool(1<<20).Keep(new(Buffer), 2<<20); !errors.As(err, new(*LimitError)) {
		t.Errorf("beyond the limit: %v", err)
	}
}

// slowCollections is so many objects that a collection takes some 50 ms while they are reachable.
func slowCollections() [][]*int {
	ballast := make([][]*int, 1<<10)
	for i := range ballast {
		ballast[i] = make([]*int, 1<<12)
		for k := range ballast[i] {
			ballast[i][k] = new(int)
		}
	}
	return ballast
}

// A request that waits for a collection fails when its owner has been stopped, and the pool goes on afterwards.
func TestStoppedCollection(t *testing.T) {
	p := NewPool(0)
	defer p.Close()
	stopped := true
	p.Stopped = func() bool { return stopped }
	if err := p.Fill(new(Buffer), calmBytes+1); !errors.Is(err, ErrStopped) {
		t.Errorf("stopped: %v", err)
	}
	get(t, p, 1<<20).Release() // needs no collection
	stopped = false
	get(t, p, calmBytes+1).Release()
	if s := p.Stats(); s.InUse != 0 || s.Buffers != 0 {
		t.Errorf("outstanding: %+v", s)
	}
	// Stopped while the collector runs; what it found meanwhile is taken back by the next collection.
	asked := 0
	p.Stopped = func() bool { asked++; return asked > 1 }
	ballast := slowCollections()
	_ = get(t, p, 1<<20) // garbage
	if err := p.Fill(new(Buffer), calmBytes+1); !errors.Is(err, ErrStopped) && asked > 1 {
		t.Errorf("stopped while it collects: %v", err)
	}
	runtime.KeepAlive(ballast)
	p.Stopped = nil
	p.Collect()
	if s := p.Stats(); s.InUse != 0 || s.Buffers != 0 {
		t.Errorf("outstanding after a collection that went on: %+v", s)
	}
}

// TestCloseBesideCollection closes a pool while a request of another goroutine collects.
func TestCloseBesideCollection(t *testing.T) {
	p := NewPool(0)
	p.BeforeCollect = func() {}
	began, once := make(chan struct{}), sync.Once{}
	p.Stopped = func() bool { once.Do(func() { close(began) }); return false }
	ballast := slowCollections()
	defer runtime.KeepAlive(ballast)
	done := make(chan error)
	var b Buffer
	go func() { done <- p.Fill(&b, calmBytes+1) }()
	<-began
	p.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.Release()
	if s := p.Stats(); s.InUse != 0 {
		t.Errorf("outstanding: %+v", s)
	}
}

// Blocks smaller than a huge page lie side by side from the beginning of one on. When there are enough that nobody
// uses, the system gets the memory of the next ones, which can be used again all the same.
func TestDepot(t *testing.T) {
	const size = 1 << 20
	var s stock
	c, _ := class(size)
	blocks := map[*block]bool{}
	for i := range 2 * depotBytes / size {
		b, err := s.get(c, size)
		if err != nil {
			t.Fatal(err)
		}
		if at := uintptr(b.ptr) % hugePage; i < regionBytes/size && at != uintptr(i*size%hugePage) {
			t.Fatalf("block %d lies %d bytes behind the beginning of a huge page", i, at)
		}
		unsafe.Slice((*byte)(b.ptr), size)[size/2] = 1
		blocks[b] = true
	}
	for b := range blocks {
		s.put(b)
	}
	if s.cached != depotBytes {
		t.Errorf("%d bytes are cached, want %d", s.cached, depotBytes)
	}
	zeros := 0
	for range len(blocks) {
		b, err := s.get(c, size)
		if err != nil {
			t.Fatal(err)
		}
		if !blocks[b] {
			t.Error("a block is new though others are free, or is handed out twice")
		}
		delete(blocks, b)
		if unsafe.Slice((*byte)(b.ptr), size)[size/2] == 0 {
			zeros++
		}
	}
	if want := depotBytes / size; runtime.GOOS == "linux" && zeros != want {
		t.Errorf("the memory of %d blocks was given back, want %d", zeros, want)
	}
	if s.cached != 0 {
		t.Errorf("%d bytes are cached though all blocks are in use", s.cached)
	}
}

// Blocks go from pool to pool, some of which are closed while their buffers are held: none is two buffers' at a time,
// and clean-ups that come late leave alone what another pool has by then.
func TestBlocksOfSeveralPools(t *testing.T) {
	type holder struct {
		b    Buffer
		mark byte
	}
	draw := rand.New(rand.NewPCG(1, 2))
	bytes := func(h *holder) []byte { return unsafe.Slice((*byte)(h.b.Data()), h.b.Size()) }
	pools := []*Pool{NewPool(0), NewPool(0)}
	var held []*holder
	for i := range 10000 {
		k := draw.IntN(len(pools))
		if i%200 == 0 {
			pools[k].Close()
			pools[k] = NewPool(0)
		}
		if i%1000 == 0 {
			runtime.GC()
		}
		if len(held) == 0 || len(held) < 200 && draw.IntN(2) == 0 {
			h := &holder{mark: byte(1 + draw.IntN(255))}
			if err := pools[k].Fill(&h.b, 1+draw.IntN(1<<(4+draw.IntN(18)))); err != nil {
				t.Fatal(err)
			}
			b := bytes(h)
			b[0], b[len(b)/2], b[len(b)-1] = h.mark, h.mark, h.mark
			held = append(held, h)
			continue
		}
		at := draw.IntN(len(held))
		h := held[at]
		if b := bytes(h); b[0] != h.mark || b[len(b)/2] != h.mark || b[len(b)-1] != h.mark {
			t.Fatalf("a buffer of %d bytes was written by another", len(b))
		}
		if held = slices.Delete(held, at, at+1); draw.IntN(4) > 0 { // the collector finds the others
			h.b.Release()
		}
	}
}
