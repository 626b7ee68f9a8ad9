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

// tile is how many rows share the keys and values of a block.
const tile = 32

// Strides are the elements from one row to the next of each operand.
type Strides struct{ Out, Q, K, V int }

// Row sets out to the softmax-weighted mean of the values of keys [lo, hi): weights are
// softmax(scale · q·k). Key i is k[i·kStep:][:len(q)], its value v[i·vStep:][:len(out)]. With no
// keys out is 0. It is Rows for one row.
func Row[T num.Float](out, q, k, v []T, kStep, vStep, lo, hi int, scale T) {
	from, to := [1]int{lo}, [1]int{hi}
	Rows(out, q, k, v, len(q), len(out), Strides{K: kStep, V: vStep}, from[:], to[:], scale)
}

// Rows sets row r of out, valueWidth elements, to the softmax-weighted mean of the values of keys
// [lo[r], hi[r]): weights are softmax(scale · q·k), where row r of q and the keys have width elements.
// There are len(lo) rows. With no keys a row is 0.
//
// A score is the matrix product of kernels/gemm, rounded, times scale; a value is added to the row
// by a fused multiply-add, key after key. The maximum and the sum are carried from block to block and
// rescaled when the maximum grows (Milakov and Gimelshein 2018); a block whose scores are all -Inf
// changes nothing. A row has the same bits alone and among others.
func Rows[T num.Float](out, q, k, v []T, width, valueWidth int, step Strides, lo, hi []int, scale T) {
	for r := 0; r < len(lo); r += tile {
		end := min(r+tile, len(lo))
		a := attention[T]{out: out[r*step.Out:], q: q[r*step.Q:], k: k, v: v, width: width, valueWidth: valueWidth,
			step: step, lo: lo[r:end], hi: hi[r:end], scale: scale}
		a.run()
	}
}

// attention is up to tile rows and what they have gathered.
type attention[T num.Float] struct {
	out, q, k, v      []T
	width, valueWidth int
	step              Strides
	lo, hi            []int
	scale             T

	scores     [tile * Block]T // then weights
	top, total [tile]T
	from, to   [tile]int // the keys of the block that the row weighs; none if they are all -Inf
}

func (a *attention[T]) run() {
	first, end := math.MaxInt, 0
	for r := range a.lo {
		a.top[r] = T(math.Inf(-1))
		clear(a.out[r*a.step.Out:][:a.valueWidth])
		if a.lo[r] < a.hi[r] {
			first, end = min(first, a.lo[r]), max(end, a.hi[r])
		}
	}
	for at := first; at < end; at = at - at%Block + Block {
		a.block(at-at%Block, min(end, at-at%Block+Block))
	}
	for r, total := range a.total[:len(a.lo)] {
		if total > 0 {
			row := a.out[r*a.step.Out:][:a.valueWidth]
			num.Quotient(row, row, total)
		}
	}
}

// block weighs the keys of one block, which begins at start.
func (a *attention[T]) block(start, end int) {
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
	gemm.NT(a.scores[first-start:], a.q, a.k[first*a.step.K:], len(a.lo), last-first, a.width,
		a.step.Q, a.step.K, Block)
	for r := range a.lo {
		if a.from[r] < a.to[r] {
			a.weigh(r, a.scores[r*Block:][a.from[r]-start:a.to[r]-start])
		}
	}
	for r := 0; r < len(a.lo); {
		next := r + 1
		for next < len(a.lo) && a.from[next] == a.from[r] && a.to[next] == a.to[r] {
			next++
		}
		if from, to := a.from[r], a.to[r]; from < to {
			gemm.AddNN(a.out[r*a.step.Out:], a.scores[r*Block+from-start:], a.v[from*a.step.V:],
				next-r, a.valueWidth, to-from, Block, a.step.V, a.step.Out)
		}
		r = next
	}
}

// weigh turns the scores of row r into weights and rescales what it has so far.
func (a *attention[T]) weigh(r int, scores []T) {
	num.Scale(scores, scores, a.scale)
	peak := max(a.top[r], num.Max(scores))
	if math.IsInf(float64(peak), -1) {
		a.to[r] = a.from[r]
		return
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
