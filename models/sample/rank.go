package sample

import "math"

// candidate is a token that may be chosen.
type candidate struct {
	logit float32 // neither NaN nor -Inf
	id    int32
}

func (a candidate) before(b candidate) bool {
	return a.logit > b.logit || a.logit == b.logit && a.id < b.id
}

// ranking is the candidates from best to worst, sorted no further than asked for.
type ranking struct {
	logits []float32
	ranked bool // all is made
	some   bool // all is not just every logit from floor up
	all    []candidate
	heaped int     // all[:heaped] is a heap, its best first; all[heaped:] is sorted, the best of all last
	max    float32 // the highest logit
	floor  float32 // logits below it are left out
}

// reset ranks the logits from floor up.
func (r *ranking) reset() {
	r.all = r.all[:0]
	for id, l := range r.logits {
		if l >= r.floor {
			r.all = append(r.all, candidate{l, int32(id)})
		}
	}
	r.ranked, r.some = true, false
	r.heapify()
}

// raise raises the floor to a logit that at least k logits reach and few others do: of the maxima of small blocks the
// k-th highest. That spares a large vocabulary most of the work.
func (r *ranking) raise(k int) {
	const block = 32
	r.all = r.all[:0]
	if k <= len(r.logits)/block {
		for at := 0; at < len(r.logits); at += block {
			best := float32(math.Inf(-1))
			for _, l := range r.logits[at:min(at+block, len(r.logits))] {
				best = max(best, l)
			}
			if best >= r.floor {
				r.all = append(r.all, candidate{logit: best})
			}
		}
	}
	if len(r.all) >= k {
		r.heapify()
		r.floor = r.at(k - 1).logit
	}
}

// keep makes the candidates exactly those of all, in any order.
func (r *ranking) keep() {
	r.ranked, r.some = true, true
	r.heapify()
	if len(r.all) > 0 {
		r.max = r.at(0).logit
	}
}

func (r *ranking) heapify() {
	r.heaped = len(r.all)
	for i := r.heaped/2 - 1; i >= 0; i-- {
		r.down(i)
	}
}

func (r *ranking) len() int { return len(r.all) }

// at is the candidate with i better ones.
func (r *ranking) at(i int) candidate {
	at := len(r.all) - 1 - i
	for r.heaped > at {
		r.heaped--
		r.all[0], r.all[r.heaped] = r.all[r.heaped], r.all[0]
		r.down(0)
	}
	return r.all[at]
}

// settle has the n best in all's last places.
func (r *ranking) settle(n int) {
	if n < len(r.all) {
		r.at(n - 1)
	}
}

// down moves entry i of the heap down to where it belongs.
func (r *ranking) down(i int) {
	heap := r.all[:r.heaped]
	if i >= len(heap) {
		return
	}
	c := heap[i]
	for {
		child := 2*i + 1
		if child >= len(heap) {
			break
		}
		if child+1 < len(heap) && heap[child+1].before(heap[child]) {
			child++
		}
		if !heap[child].before(c) {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	heap[i] = c
}

// weight is c's probability at the temperature, in units of the best candidate's: exp((logit - max) / temperature).
func (r *ranking) weight(c candidate, temperature float64) float64 {
	if c.logit == r.max {
		return 1 // also if both are +Inf
	}
	return exp((float64(c.logit) - float64(r.max)) / temperature)
}

// total is the weight of the n best: in order of rank, or of id where that is all.
func (r *ranking) total(n int, temperature float64) float64 {
	sum := 0.0
	if n == len(r.all) && !r.some {
		for id, l := range r.logits {
			if l >= r.floor {
				sum += r.weight(candidate{l, int32(id)}, temperature)
			}
		}
		return sum
	}
	for i := range n {
		sum += r.weight(r.at(i), temperature)
	}
	return sum
}
