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
	all    []candidate
	heaped int     // all[:heaped] is a heap, its best first; all[heaped:] is sorted, the best of all last
	max    float32 // the highest logit
	floor  float32 // logits below it are left out
}

// reset ranks logits, of which max is the highest: all of them, or at least the k best if k is positive.
func (r *ranking) reset(logits []float32, max float32, k int) {
	r.max, r.floor = max, r.findFloor(logits, k)
	r.all = r.all[:0]
	for id, l := range logits {
		if l >= r.floor {
			r.all = append(r.all, candidate{l, int32(id)})
		}
	}
	r.heapify()
}

// findFloor returns a logit that at least k logits reach and few others do: of the maxima of small blocks the k-th
// highest. That spares a large vocabulary most of the work.
func (r *ranking) findFloor(logits []float32, k int) float32 {
	const block = 32
	r.all = r.all[:0]
	if k > 0 && k <= len(logits)/block {
		for at := 0; at < len(logits); at += block {
			part := logits[at:min(at+block, len(logits))]
			if best := argmax(part); best >= 0 {
				r.all = append(r.all, candidate{logit: part[best]})
			}
		}
	}
	if k <= 0 || len(r.all) < k {
		return -math.MaxFloat32 // all but NaN and -Inf
	}
	r.heapify()
	return r.at(k - 1).logit
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
func (r *ranking) total(n int, temperature float64, logits []float32) float64 {
	sum := 0.0
	if n == len(r.all) {
		for id, l := range logits {
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

// exp is e^x for x <= 0, within 2 ulp, and 0 below -708. math.Exp rounds differently on different architectures, and
// the last bit can decide a draw. With x = k ln 2 + r and |r| <= ln 2 / 2, e^r is its Taylor polynomial of degree 13,
// whose remainder is below 2⁻⁵⁷. The conversions keep compilers from fusing multiplications with additions.
func exp(x float64) float64 {
	const (
		ln2hi = 0x1.62e42fefap-1 // few bits, so that k*ln2hi is exact
		ln2lo = math.Ln2 - ln2hi
	)
	if x < -708 {
		return 0
	}
	k := int64(float64(x*math.Log2E) - 0.5)
	r := (x - float64(float64(k)*ln2hi)) - float64(float64(k)*ln2lo)
	p := 1.0 / 6227020800
	p = float64(p*r) + 1.0/479001600
	p = float64(p*r) + 1.0/39916800
	p = float64(p*r) + 1.0/3628800
	p = float64(p*r) + 1.0/362880
	p = float64(p*r) + 1.0/40320
	p = float64(p*r) + 1.0/5040
	p = float64(p*r) + 1.0/720
	p = float64(p*r) + 1.0/120
	p = float64(p*r) + 1.0/24
	p = float64(p*r) + 1.0/6
	p = float64(p*r) + 1.0/2
	p = float64(p*r) + 1
	p = float64(p*r) + 1
	return math.Float64frombits(math.Float64bits(p) + uint64(k)<<52) // p * 2^k
}
