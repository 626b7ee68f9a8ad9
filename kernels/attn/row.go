// Package attn holds the attention kernel: one query row against a run of keys and values. It
// knows no axes, heads or batches.
package attn

import (
	"math"

	"github.com/fucina-go/fucina/kernels/num"
)

// Block is how many keys are weighed at once. Blocks begin at multiples of Block of the absolute
// key index, so a row's result does not hang on how many other rows or keys there are.
const Block = 64

// Row sets out to the softmax-weighted mean of the values of keys [lo, hi): weights are
// softmax(scale · q·k). Key i is k[i·kStep:][:len(q)], its value v[i·vStep:][:len(out)]. With no
// keys out is 0.
//
// The maximum and the sum are carried from block to block and rescaled when the maximum grows
// (Milakov and Gimelshein 2018); a block whose scores are all -Inf changes nothing.
func Row[T num.Float](out, q, k, v []T, kStep, vStep, lo, hi int, scale T) {
	var scores, weights [Block]T
	clear(out)
	top, total := T(math.Inf(-1)), T(0)
	for at := lo; at < hi; {
		end := min(hi, at-at%Block+Block)
		n := end - at
		for i := range n {
			scores[i] = T(num.Dot(q, k[(at+i)*kStep:]) * scale)
		}
		peak := max(top, num.Max(scores[:n]))
		if math.IsInf(float64(peak), -1) {
			at = end
			continue
		}
		for i := range n {
			scores[i] -= peak
		}
		num.Exp(weights[:n], scores[:n])
		if peak > top && total > 0 {
			shrink := [1]T{top - peak}
			num.Exp(shrink[:], shrink[:])
			total = T(total * shrink[0])
			for j := range out {
				out[j] = T(out[j] * shrink[0])
			}
		}
		top = peak
		total += num.Sum(weights[:n])
		for i, w := range weights[:n] {
			value := v[(at+i)*vStep:][:len(out)]
			for j, x := range value {
				out[j] += T(w * x)
			}
		}
		at = end
	}
	if total > 0 {
		for j := range out {
			out[j] /= total
		}
	}
}
