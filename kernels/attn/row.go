// Package attn holds the attention kernel: query rows against a run of keys and values. It knows
// no axes, heads or batches.
package attn

import (
	"math"

	"github.com/fucina-go/fucina/kernels/gemm"
	"github.com/fucina-go/fucina/kernels/num"
)

// Block is how many keys are weighed at once. Blocks begin at multiples of Block of the absolute
// key index, so a row's result does not hang on how many other rows or keys there are.
const Block = 64

// Tile is how many rows share the keys and values of a block.
const Tile = 64

// fewRows is up to how many rows read keys and values as they lie; for more they are packed, if they are no wider
// than mostWidth.
const (
	fewRows   = 8
	mostWidth = 256

	fewPanelRows = 12 // the same for values in panels: a tile of the product
)

// Strides are the elements from one row to the next of each operand.
type Strides struct{ Out, Q, K, V int }

// Rows sets row r of out, valueWidth elements, to the softmax-weighted mean of the values of keys
// [lo[r], hi[r]): weights are softmax(scale · q·k), where row r of q and the keys have width elements.
// There are len(lo) rows. With no keys a row is 0.
//
// A score is the matrix product of kernels/gemm, rounded, times scale; a value is added to the row
// by a fused multiply-add, key after key. The maximum and the sum are carried from block to block and
// rescaled when the maximum grows (Milakov and Gimelshein 2018); a block whose scores are all -Inf
// changes nothing. A row has the same bits alone and among others. between is called before each block.
func Rows[T num.Float](out, q, k, v []T, width, valueWidth int, step Strides, lo, hi []int, scale T, between func()) {
	var s scratch[T]
	for r := 0; r < len(lo); r += Tile {
		end := min(r+Tile, len(lo))
		a := attention[T]{out: out[r*step.Out:], q: q[r*step.Q:], k: k, v: v, width: width, valueWidth: valueWidth,
			step: step, lo: lo[r:end], hi: hi[r:end], scale: scale, scratch: &s}
		if a.many() {
			var room [Block * mostWidth]T
			a.run(nil, room[:], between)
		} else {
			a.run(nil, nil, between)
		}
	}
}

// Matrix is the keys or the values of a block: Block rows, or the first few of them.
type Matrix[T num.Float] struct {
	Rows []T // as rows, if not nil

	// Else keys are as gemm.PackNT lays all of the block, values as gemm.PackNN does, or the panels of 16-bit
	// elements.
	Panels gemm.Panels[T]
}

// Source is keys and values that lie in blocks.
type Source[T num.Float] interface {
	// Block returns the keys and the values of the block that begins at key start, of which those from from to
	// to, the last one not included, are read before the next call.
	Block(start, from, to int) (k, v Matrix[T])
}

// Room is what Blocks computes in. It may be used again, by one at a time.
type Room[T num.Float] struct {
	scratch[T]
	packed [Block * mostWidth]T
}

// Blocks is Rows of at most Tile rows where keys and values come from src; step.K and step.V are the distances in
// those of its blocks that are rows. With a limit above 0 a score is limit · tanh(score / limit) before it is weighed.
func Blocks[T num.Float](room *Room[T], out, q []T, src Source[T], width, valueWidth int, step Strides, lo, hi []int,
	scale, limit T) {
	a := attention[T]{out: out, q: q, width: width, valueWidth: valueWidth, step: step,
		lo: lo[:min(Tile, len(lo))], hi: hi, scale: scale, limit: limit, scratch: &room.scratch}
	if a.many() {
		a.run(src, room.packed[:], nil)
	} else {
		a.run(src, nil, nil)
	}
}

// attention is up to Tile rows. What comes from a source is no field: what a holds would leave the stack with it.
type attention[T num.Float] struct {
	out, q, k, v      []T
	width, valueWidth int
	step              Strides
	lo, hi            []int
	scale, limit      T
	*scratch[T]
}

// scratch is what the rows have gathered.
type scratch[T num.Float] struct {
	scores           [Tile * Block]T // then weights
	top, total, peak [Tile]T         // peak is the largest score of the block
	from, to         [Tile]int       // the keys of the block that the row weighs; none if they are all -Inf
}

// many tells that packing pays, or widening what has 16 bits.
func (a *attention[T]) many() bool {
	return len(a.lo) > fewRows && max(a.width, a.valueWidth) <= mostWidth
}

// run computes the rows. If packed is not nil, it is room for a block of keys or values in panels.
func (a *attention[T]) run(src Source[T], packed []T, between func()) {
	first, end := math.MaxInt, 0
	for r := range a.lo {
		a.top[r], a.total[r] = T(math.Inf(-1)), 0
		clear(a.out[r*a.step.Out:][:a.valueWidth])
		if a.lo[r] < a.hi[r] {
			first, end = min(first, a.lo[r]), max(end, a.hi[r])
		}
	}
	for at := first; at < end; at = at - at%Block + Block {
		if between != nil {
			between()
		}
		a.block(src, at-at%Block, min(end, at-at%Block+Block), packed)
	}
	for r, total := range a.total[:len(a.lo)] {
		if total > 0 {
			row := a.out[r*a.step.Out:][:a.valueWidth]
			num.Quotient(row, row, total)
		}
	}
}

// block weighs the keys of one block, which begins at start.
func (a *attention[T]) block(src Source[T], start, end int, packed []T) {
	first, last := end, start
	for r := range a.lo {
		a.from[r], a.to[r] = max(start, a.lo[r]), min(end, a.hi[r])
		if a.from[r] < a.to[r] {
			first, last = min(first, a.from[r]), max(last, a.to[r])
		}
	}
	if first >= last {
		return
	}
	var k, v Matrix[T]
	if src != nil {
		k, v = src.Block(start, first, last)
	} else {
		k.Rows, v.Rows = a.k[start*a.step.K:], a.v[start*a.step.V:]
	}
	a.multiply(k, first-start, last-start, packed)
	for r := 0; r < len(a.lo); {
		next := r + 1
		for next < len(a.lo) && a.from[next] == a.from[r] && a.to[next] == a.to[r] {
			next++
		}
		if a.from[r] < a.to[r] {
			a.weigh(r, next, start)
		}
		r = next
	}
	if v.Rows == nil && packed != nil {
		v.Panels = v.Panels.Widen(packed, a.valueWidth, last-start)
	}
	a.add(v, start, packed)
}

// multiply computes the scores of the keys [first, last) of a block, of panels perhaps some more.
func (a *attention[T]) multiply(k Matrix[T], first, last int, packed []T) {
	rows := len(a.lo)
	switch {
	case k.Rows == nil:
		first -= first % gemm.Width
		n := min(Block, (last+gemm.Width-1)/gemm.Width*gemm.Width) - first
		b := k.Panels.From(0, first/gemm.Width)
		if packed != nil {
			b = b.Widen(packed, n, a.width)
		}
		a.product(a.scores[first:], a.q, b, rows, n, a.width, a.step.Q, Block, false)
	case packed == nil:
		gemm.NT(a.scores[first:], a.q, k.Rows[first*a.step.K:], rows, last-first, a.width, a.step.Q, a.step.K, Block)
	default:
		gemm.PackNT(packed, k.Rows[first*a.step.K:], last-first, a.width, a.step.K, a.width*gemm.Width)
		gemm.Packed(a.scores[first:], a.q, packed, rows, last-first, a.width, a.step.Q, Block, false)
	}
}

// add adds the weighed values of the block to the rows: as many rows at once as weigh the same keys, or a few that
// begin with the same key, as rows do of which each sees some keys more.
func (a *attention[T]) add(v Matrix[T], start int, packed []T) {
	packedFrom, packedTo, few := 0, 0, fewRows
	if v.Rows == nil {
		few = fewPanelRows
	}
	for r := 0; r < len(a.lo); {
		from, to, next := a.from[r], a.to[r], r+1
		for next < len(a.lo) && a.from[next] == from && a.to[next] == to {
			next++
		}
		if from >= to {
			r = next
			continue
		}
		for ; next < min(r+few, len(a.lo)) && a.from[next] == from && a.to[next] > from; next++ {
			to = min(to, a.to[next])
		}
		if rows := next - r; v.Rows == nil || packed == nil || rows <= fewRows {
			a.addRows(v, r, next, start, from, to)
			for i := r; i < next; { // what some see beyond
				end := i + 1
				for end < next && a.to[end] == a.to[i] {
					end++
				}
				if to < a.to[i] {
					a.addRows(v, i, end, start, to, a.to[i])
				}
				i = end
			}
		} else {
			if from != packedFrom || to != packedTo {
				n := to - from
				gemm.PackNN(packed, v.Rows[(from-start)*a.step.V:], a.valueWidth, n, a.step.V, n*gemm.Width)
				packedFrom, packedTo = from, to
			}
			gemm.Packed(a.out[r*a.step.Out:], a.scores[r*Block+from-start:], packed,
				rows, a.valueWidth, to-from, Block, a.step.Out, true)
		}
		r = next
	}
}

// addRows adds the values of keys [from, to) to the rows [r, end).
func (a *attention[T]) addRows(v Matrix[T], r, end, start, from, to int) {
	out, weights := a.out[r*a.step.Out:], a.scores[r*Block+from-start:]
	if v.Rows == nil {
		a.product(out, weights, v.Panels.From(from-start, 0), end-r, a.valueWidth, to-from, Block, a.step.Out, true)
		return
	}
	gemm.AddNN(out, weights, v.Rows[(from-start)*a.step.V:], end-r, a.valueWidth, to-from, Block, a.step.V, a.step.Out)
}

// product is b.Multiply. Of many rows, all pass two panels, which stay in the first level cache, before the next two.
func (a *attention[T]) product(c, x []T, b gemm.Panels[T], m, n, k, ldx, ldc int, add bool) {
	most := n
	if m > fewPanelRows {
		most = 2 * gemm.Width
	}
	for j := 0; j < n; j += most {
		b.From(0, j/gemm.Width).Multiply(c[j:], x, m, min(most, n-j), k, ldx, ldc, add)
	}
}

// weigh turns the scores of the rows [r, end), which weigh the same keys, into weights and rescales what they have so
// far.
func (a *attention[T]) weigh(r, end, start int) {
	from, n := a.from[r]-start, a.to[r]-a.from[r]
	copy(a.peak[r:end], a.top[r:end])
	if a.limit == 0 {
		scalePeaks(a.scores[r*Block+from:], end-r, Block, n, a.scale, a.peak[r:end])
	}
	lowest := T(math.Inf(-1))
	for ; r < end; r++ {
		scores := a.scores[r*Block+from:][:n]
		if a.limit > 0 {
			num.Scale(scores, scores, a.scale)
			num.Softcap(scores, scores, a.limit)
			a.peak[r] = max(a.top[r], num.Max(scores))
		}
		peak := a.peak[r]
		if !(peak > lowest) { // all are -Inf, or there is a NaN
			if peak = num.Max(scores); peak == lowest {
				a.to[r] = a.from[r]
				continue
			}
		}
		if peak > a.top[r] && a.total[r] > 0 {
			shrink := [1]T{a.top[r] - peak}
			num.Exp(shrink[:], shrink[:])
			a.total[r] = T(a.total[r] * shrink[0])
			row := a.out[r*a.step.Out:][:a.valueWidth]
			num.Scale(row, row, shrink[0])
		}
		a.top[r] = peak
		a.total[r] += num.ExpSum(scores, scores, peak)
	}
}
