package core

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/kernels/qdot"
)

// Products of one row are remembered in their order, what is fetched for the next one lies in its weights, and what
// operations look at in between is remembered, too.
func TestForesight(t *testing.T) {
	m := &Maker{Env: NewEnv(0, 2)}
	weight := func(out int) *Tensor {
		w := m.Tensor(dtype.F32, "out=%d in=1024", out)
		return m.Env.Pack(w.Quantize(quantized(t, "q4_0"), "in"), 1024, nil)
	}
	a, b, c := weight(512), weight(1024), weight(4096)
	x := m.Tensor(dtype.F32, "in=1024")
	for range 2 {
		x.Dots("in", a, b)
		x.Dot(c, "in")
	}
	place := func(w *Tensor) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(w.bytes()))) }
	f := &m.Env.ahead
	both, last := f.known[place(a)], f.known[place(c)]
	if both == nil || last == nil || both.next != last || last.next != both || f.last != last {
		t.Fatalf("remembered: %v, %v of %d", both, last, len(f.known))
	}
	within := func(r *reading, w *Tensor) {
		t.Helper()
		size := uintptr(len(w.bytes()))
		for s, at := range r.streams {
			end := at + uintptr(r.pieces/streams)*pieceLines*qdot.Line
			if at < place(w) || end > place(w)+size+pieceLines*qdot.Line {
				t.Errorf("stream %d is from %d to %d of %d bytes", s, at-place(w), end-place(w), size)
			}
		}
	}
	within(both, b) // in which half of the units of a and b fall
	within(last, c)
	last.at.Store(0)
	pieces := int64(0)
	for last.piece() {
		pieces++
	}
	if pieces != last.pieces || pieces == 0 {
		t.Errorf("%d pieces of %d", pieces, last.pieces)
	}
	alone := &Maker{Env: NewEnv(0, 1)}
	y := alone.Tensor(dtype.F32, "in=1024")
	for range 2 {
		y.Dot(c, "in")
		y.Add(y)
	}
	r := alone.Env.ahead.known[place(c)]
	if r == nil || r.pieces != 0 {
		t.Fatalf("without a second worker nobody fetches: %v", r)
	}
	saw := func(p unsafe.Pointer, lines int) bool { return slices.Contains(r.after, glance{uintptr(p), lines}) }
	if !saw(unsafe.Pointer(y), handleLines) || !saw(unsafe.Pointer(&add.Info), infoLines) {
		t.Errorf("after the product %v was looked at, not the operand at %p and its operation at %p", r.after, y, add)
	}
	for range 2 * mostSeen {
		y.Add(y)
	}
	y.Dot(c, "in")
	if alone.Env.Control.Workers = 2; r.pieces != 0 {
		t.Errorf("%d pieces without a second worker", r.pieces)
	}
	if y.Dot(c, "in"); r.pieces == 0 {
		t.Error("a second worker that comes later fetches nothing")
	}
	if n := len(r.after); n > mostSeen {
		t.Errorf("%d glances are remembered", n)
	}
}
