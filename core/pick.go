package core

import (
	"unsafe"

	"github.com/fucina-go/fucina/core/dtype"
)

// What roll, tile, repeat and pad do is one thing: every place along an axis of the result is some place
// along that axis of the operand, or a filling.

const (
	filling   = -1 // the place of elements that do not come from the operand
	scattered = -2 // stands for the beginning of a run whose places are looked up one by one
)

// run is part of an axis of the result whose elements lie evenly spaced in the operand.
type run struct{ to, n, from, step int } // from: the operand's place, filling or scattered

// placesOf is room for the places along an axis.
func (c *Ctx) placesOf(n int) []int {
	return elementsOf[int](c.Scratch(dtype.I64, placeList, []int{n}))[:n]
}

var placeList = axisList("place")

// runsOf cuts the places along an axis into runs of at most limit elements; nil if there would be more than most.
func (c *Ctx) runsOf(places []int, limit, most int) []run {
	count := 0
	c.eachRunOf(places, limit, func(run) bool { count++; return count <= most })
	if count > most {
		return nil
	}
	room := c.Scratch(dtype.I64, placeList, []int{count * int(unsafe.Sizeof(run{})) / 8})
	runs := unsafe.Slice((*run)(room.data), count)[:0]
	c.eachRunOf(places, limit, func(r run) bool { runs = append(runs, r); return true })
	return runs
}

// eachRunOf calls f with the runs of runsOf until it returns false.
func (c *Ctx) eachRunOf(places []int, limit int, f func(run) bool) {
	for i, end := 0, 0; i < len(places); {
		if i >= end {
			c.Pause()
			end = i + pauseLen
		}
		r := run{to: i, n: 1, from: places[i]}
		if i+1 < len(places) && (r.from == filling) == (places[i+1] == filling) {
			r.step = places[i+1] - r.from
		}
		for r.n < limit && i+r.n < len(places) && places[i+r.n] == r.from+r.n*r.step &&
			(r.from == filling) == (places[i+r.n] == filling) {
			r.n++
		}
		if !f(r) {
			return
		}
		i += r.n
	}
}

// pieces cuts n places into runs of at most limit that begin at from, or that are looked up one by one if that is
// scattered.
func pieces(n, limit, from int) (runs []run) {
	for i := 0; i < n; i += limit {
		r := run{to: i, n: min(limit, n-i), from: scattered}
		if from != scattered {
			r.from, r.step = from+i, 1
		}
		runs = append(runs, r)
	}
	return runs
}

// pick fills output 0, which has x's axes and dtype: along axis k it takes x's elements at places[k], or all of
// them in order where that is nil. fill points to the element for the place filling; nil where that does not occur.
func (c *Ctx) pick(x *Tensor, places [][]int, fill unsafe.Pointer) {
	if c.Out(0).Len() == 0 {
		return
	}
	switch x.dtype.Size() {
	case 1:
		pickWords(c, x, places, (*uint8)(fill))
	case 2:
		pickWords(c, x, places, (*uint16)(fill))
	case 4:
		pickWords(c, x, places, (*uint32)(fill))
	case 8:
		pickWords(c, x, places, (*uint64)(fill))
	}
}

func pickWords[T uint8 | uint16 | uint32 | uint64](c *Ctx, x *Tensor, places [][]int, fill *T) {
	out := c.Out(0)
	// Inner axes that stay as they are and lie together are one block, if it is not too long for one chunk.
	k, block := len(x.sizes)-1, 1
	for k > 0 && places[k] == nil && (x.sizes[k] == 1 || x.strides[k] == block && block*x.sizes[k] <= pointGrain) {
		block *= x.sizes[k]
		k--
	}
	if k < 0 { // a scalar
		c.copyInto(out, x)
		return
	}
	n, limit := out.sizes[k], max(1, pointGrain/block)
	var runs []run
	if places[k] == nil {
		runs = pieces(n, limit, 0) // the axis stays as it is
	} else if runs = c.runsOf(places[k], limit, n/4+1); runs == nil { // too short to be worth it
		runs = pieces(n, limit, scattered)
	}
	rows := out.Len() / (n * block)
	to, stride, size := elementsOf[T](out), x.strides[k], x.dtype.Size()
	c.Split(rows*len(runs), max(1, pointGrain*len(runs)/(n*block)), func(lo, hi int) {
		row, from, given, done := -1, 0, false, 0
		for u := lo; u < hi; u++ {
			if done > pauseLen { // runs are of different lengths
				c.Pause()
				done = 0
			}
			if u/len(runs) != row {
				row = u / len(runs)
				from, given = rowStart(x, out.sizes[:k], places, row)
			}
			r := runs[u%len(runs)]
			y := to[(row*n+r.to)*block:][:r.n*block]
			done += len(y)
			switch {
			case !given || r.from == filling:
				fillWith(y, fill)
			case r.from == scattered:
				takeEach(y, unsafe.Add(x.data, from*size), places[k][r.to:][:r.n], stride, block, fill)
			default:
				takeRun(y, unsafe.Add(x.data, (from+r.from*stride)*size), r.step*stride, block)
			}
		}
	})
}

func fillWith[T any](y []T, fill *T) {
	for i := range y {
		y[i] = *fill
	}
}

// takeEach copies the blocks at the places.
func takeEach[T any](y []T, p unsafe.Pointer, places []int, stride, block int, fill *T) {
	var zero T
	step := stride * int(unsafe.Sizeof(zero))
	for i, place := range places {
		switch {
		case place == filling:
			fillWith(y[i*block:][:block], fill)
		case block == 1:
			y[i] = *(*T)(unsafe.Add(p, place*step))
		default:
			copy(y[i*block:][:block], unsafe.Slice((*T)(unsafe.Add(p, place*step)), block))
		}
	}
}

// takeRun copies blocks of elements that begin stride elements apart.
func takeRun[T any](y []T, p unsafe.Pointer, stride, block int) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	switch {
	case stride == block:
		copy(y, unsafe.Slice((*T)(p), len(y)))
	case block == 1:
		for i := range y {
			y[i] = *(*T)(unsafe.Add(p, i*stride*size))
		}
	default:
		for i := 0; i*block < len(y); i++ {
			copy(y[i*block:][:block], unsafe.Slice((*T)(unsafe.Add(p, i*stride*size)), block))
		}
	}
}

// rowStart is how many elements after x's first one the given row of the result begins in x; it is not given
// there if it is filled.
func rowStart(x *Tensor, sizes []int, places [][]int, row int) (from int, given bool) {
	for k := len(sizes) - 1; k >= 0; k-- {
		place := row % sizes[k]
		row /= sizes[k]
		if places[k] != nil {
			place = places[k][place]
		}
		if place == filling {
			return 0, false
		}
		from += place * x.strides[k]
	}
	return from, true
}
