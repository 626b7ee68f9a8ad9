package core

import (
	"sync/atomic"
	"unsafe"

	"github.com/fucina-go/fucina/core/par"
	"github.com/fucina-go/fucina/kernels/qdot"
)

// foresight remembers in which order products of few rows read their weights. Token after token it is the same, so
// that workers who wait for the next product can fetch what they will read in it. It knows addresses and keeps nothing
// alive.
//
// It also remembers what operations looked at between two products: handles, plans, pages. What is read in a product
// pushes them out of the caches, and one after another they would come back at the speed at which each leads to the
// next. After the product they are asked for together.
type foresight struct {
	last  *reading
	known map[uintptr]*reading // by the first address of the first weight
	seen  [mostSeen]glance     // since the last product
	count int                  // of seen
}

// glance is lines of memory that an operation looked at.
type glance struct {
	at    uintptr
	lines int
}

// reading is where workers begin to read the weights of a product, or of several that are handed out together, and
// what operations looked at afterwards.
type reading struct {
	first   uintptr  // address of the first weight
	next    *reading // the one that came after it the last time; may be nil
	streams [streams]uintptr
	pieces  int64 // that are worth fetching
	at      atomic.Int64
	errand  par.Errand
	after   []glance // what was looked at before the next, the last time
}

const (
	mostReadings = 1 << 13 // that are remembered
	mostFetched  = 1 << 20 // bytes that are fetched of one product, about a second-level cache
	pieceLines   = 16      // that are fetched of a stream at once
	mostSeen     = 64      // glances that are remembered of one product
)

// watch is where workers begin to read a p whose first unit for them is the given one, if there is something to fetch.
func (r *reading) watch(p *blockProduct, unit int) {
	quarter, units := p.streamed()
	left := quarter - unit%units
	if !p.direct || left <= 0 {
		return
	}
	const piece = pieceLines * qdot.Line
	r.pieces = int64(streams * ceilDiv(min(mostFetched/streams, left*p.panel), piece))
	r.errand = par.Errand{Piece: r.piece}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(p.panels(unit/units, unit%units*qdot.Rows))))
	for s := range r.streams {
		r.streams[s] = base + uintptr(s*quarter*p.panel)
	}
}

// piece fetches some lines of the next stream in turn and reports whether there were any. When several workers come to
// the last, some more than there are do no harm.
func (r *reading) piece() bool {
	if r.at.Load() >= r.pieces {
		return false
	}
	turn := int(r.at.Add(1) - 1)
	qdot.Fetch(r.streams[turn%streams]+uintptr(turn/streams*pieceLines*qdot.Line), pieceLines)
	return true
}

// look notes that an operation looks at lines of memory from p on.
func (f *foresight) look(p unsafe.Pointer, lines int) {
	if f.last != nil && f.count < mostSeen {
		f.seen[f.count] = glance{uintptr(p), lines}
		f.count++
	}
}

// read notes that the products of the list were computed, of which workers began with unit half, asks for what was
// looked at after them the last time, and has workers fetch what came next then.
func (f *foresight) read(list []blockProduct, half int, workers bool) {
	r := f.of(list, half, workers)
	if f.last != nil {
		f.last.next = r
		f.last.after = append(f.last.after[:0], f.seen[:f.count]...)
	}
	f.last, f.count = r, 0
	for _, g := range r.after {
		qdot.Fetch(g.at, g.lines)
	}
	if next := r.next; workers && next != nil && next.pieces > 0 {
		next.at.Store(0)
		par.Meanwhile(&next.errand)
	}
}

// of is the reading of the products of the list.
func (f *foresight) of(list []blockProduct, half int, workers bool) *reading {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(list[0].bytes)))
	var r *reading
	if f.last != nil && f.last.next != nil && f.last.next.first == first {
		r = f.last.next
	} else {
		r = f.known[first]
	}
	if r == nil {
		r = &reading{first: first}
		if f.known == nil || len(f.known) == mostReadings {
			f.known = map[uintptr]*reading{}
		}
		f.known[first] = r
	}
	if workers && r.pieces == 0 {
		p := unitOf(list, half)
		r.watch(p, half-p.first)
	}
	return r
}
