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
type foresight struct {
	last  *reading
	known map[uintptr]*reading // by the first address of the first weight
}

// reading is where workers begin to read the weights of a product, or of several that are handed out together.
type reading struct {
	next    *reading // the one that came after it the last time; may be nil
	streams [streams]uintptr
	pieces  int64 // that are worth fetching
	at      atomic.Int64
	errand  par.Errand
}

const (
	mostReadings = 1 << 13 // that are remembered
	mostFetched  = 1 << 20 // bytes that are fetched of one product, about a second-level cache
	pieceLines   = 16      // that are fetched of a stream at once
)

// newReading is of a p whose first unit for workers is the given one; nil if there is nothing to fetch.
func newReading(p *blockProduct, unit int) *reading {
	quarter, units := p.streamed()
	left := quarter - unit%units
	if !p.direct || left <= 0 {
		return nil
	}
	const piece = pieceLines * qdot.Line
	r := &reading{pieces: int64(streams * ceilDiv(min(mostFetched/streams, left*p.panel), piece))}
	r.errand = par.Errand{Piece: r.piece}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(p.panels(unit/units, unit%units*qdot.Rows))))
	for s := range r.streams {
		r.streams[s] = base + uintptr(s*quarter*p.panel)
	}
	return r
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

// read notes that the products of the list were computed, of which workers began with unit half, and has them fetch
// what came next the last time.
func (f *foresight) read(list []blockProduct, half int) {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(list[0].bytes)))
	r := f.known[first]
	if r == nil {
		p := unitOf(list, half)
		if r = newReading(p, half-p.first); r == nil {
			return
		}
		if f.known == nil || len(f.known) == mostReadings {
			f.known = map[uintptr]*reading{}
		}
		f.known[first] = r
	}
	if f.last != nil {
		f.last.next = r
	}
	f.last = r
	if r.next != nil {
		r.next.at.Store(0)
		par.Meanwhile(&r.next.errand)
	}
}
