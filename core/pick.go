package core

import "unsafe"

// What roll, tile, repeat and pad do is one thing: every place along an axis of the result is some place
// along that axis of the operand, or a filling.

// filling is the place of elements that do not come from the operand.
const filling = -1

// run is part of an axis of the result whose elements lie evenly spaced in the operand.
type run struct{ to, n, from, step int } // from: filling, or the operand's place

// runsOf cuts the places along an axis into runs of at most limit elements.
func runsOf(places []int, limit int) []run {
	var runs []run
	for i := 0; i < len(places); {
		r := run{to: i, n: 1, from: places[i]}
		if i+1 < len(places) && (r.from == filling) == (places[i+1] == filling) {
			r.step = places[i+1] - r.from
		}
		for r.n < limit && i+r.n < len(places) && places[i+r.n] == r.from+r.n*r.step &&
			(r.from == filling) == (places[i+r.n] == filling) {
			r.n++
		}
		runs = append(runs, r)
		i += r.n
	}
	return runs
}

// pick fills output 0, which has x's axes and dtype: along axis k it takes x's elements at places[k], or all of
// them in order where that is nil. Elements at the place filling are the bits of fill.
func (c *Ctx) pick(x *Tensor, places [][]int, fill uint64) {
	if c.Out(0).Len() == 0 {
		return
	}
	switch x.dtype.Size() {
	case 1:
		pickWords(c, x, places, uint8(fill))
	case 2:
		pickWords(c, x, places, uint16(fill))
	case 4:
		pickWords(c, x, places, uint32(fill))
	case 8:
		pickWords(c, x, places, fill)
	}
}

func pickWords[T uint8 | uint16 | uint32 | uint64](c *Ctx, x *Tensor, places [][]int, fill T) {
	out := c.Out(0)
	// Inner axes that stay as they are and lie together are one block.
	k, block := len(x.sizes)-1, 1
	for k > 0 && places[k] == nil && (x.sizes[k] == 1 || x.strides[k] == block) {
		block *= x.sizes[k]
		k--
	}
	if k < 0 { // a scalar
		c.copyInto(out, x)
		return
	}
	ps := append([][]int(nil), places[:k+1]...)
	for i := range ps {
		if ps[i] == nil {
			ps[i] = counting(out.sizes[i])
		}
	}
	runs := runsOf(ps[k], max(1, pointGrain/block))
	n := len(ps[k])
	rows := out.Len() / (n * block)
	to, stride := elementsOf[T](out), x.strides[k]
	c.Split(rows*len(runs), max(1, pointGrain*len(runs)/(n*block)), func(lo, hi int) {
		row, from := -1, 0
		for u := lo; u < hi; u++ {
			if u/len(runs) != row {
				row = u / len(runs)
				from = rowStart(x, ps[:k], row)
			}
			r := runs[u%len(runs)]
			y := to[(row*n+r.to)*block:][:r.n*block]
			if from == filling || r.from == filling {
				for i := range y {
					y[i] = fill
				}
				continue
			}
			takeRun(y, unsafe.Add(x.data, (from+r.from*stride)*int(unsafe.Sizeof(fill))), r.step*stride, block)
		}
	})
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

// rowStart is how many elements after x's first one the given row of the result begins in x, or filling.
func rowStart(x *Tensor, places [][]int, row int) int {
	from := 0
	for k := len(places) - 1; k >= 0; k-- {
		place := places[k][row%len(places[k])]
		row /= len(places[k])
		if place == filling {
			return filling
		}
		from += place * x.strides[k]
	}
	return from
}

// counting is 0, 1, … n-1.
func counting(n int) []int {
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	return places
}
