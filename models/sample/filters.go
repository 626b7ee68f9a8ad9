package sample

import "math"

// topK keeps the TopK highest logits.
func (s *Sampler) topK() {
	if s.TopK == 0 {
		return
	}
	if !s.ranks.ranked {
		s.ranks.raise(s.TopK)
	}
	s.rank()
	s.n = min(s.n, s.TopK)
}

// topP keeps the fewest best tokens whose probabilities reach TopP, at least one. Holtzman et al., The curious case
// of neural text degeneration (2019).
func (s *Sampler) topP() {
	if s.TopP == 1 {
		return
	}
	s.rank()
	target := s.TopP * s.ranks.total(s.n, s.scale)
	sum := 0.0
	for i := range s.n {
		sum += s.ranks.weight(s.ranks.at(i), s.scale)
		if sum >= target {
			s.n = i + 1
			break
		}
	}
}

// minP keeps the tokens at least MinP times as probable as the best.
func (s *Sampler) minP() {
	if s.MinP == 0 {
		return
	}
	s.rank()
	for i := 1; i < s.n; i++ {
		if s.ranks.weight(s.ranks.at(i), s.scale) < s.MinP {
			s.n = i
			break
		}
	}
}

// topNSigma keeps the logits within TopNSigma standard deviations of the highest. Tang et al., Top-nσ: not all logits
// are you need (2024).
func (s *Sampler) topNSigma() {
	if s.TopNSigma == 0 {
		return
	}
	count, sum := 0, 0.0
	each := s.each()
	each(func(l float64) { count++; sum += l })
	mean, squares := sum/float64(count), 0.0
	each(func(l float64) { squares += float64((l - mean) * (l - mean)) })
	least := float64(s.ranks.max) - float64(s.TopNSigma*math.Sqrt(squares/float64(count)))
	if least != least { // infinite logits
		return
	}
	if !s.ranks.ranked {
		if floor := float32(least); float64(floor) < least {
			s.ranks.floor = max(s.ranks.floor, math.Nextafter32(floor, s.ranks.max))
		} else {
			s.ranks.floor = max(s.ranks.floor, floor)
		}
		return
	}
	for i := 1; i < s.n; i++ {
		if float64(s.ranks.at(i).logit) < least {
			s.n = i
			break
		}
	}
}

// each visits the candidates' logits.
func (s *Sampler) each() func(visit func(l float64)) {
	r := &s.ranks
	return func(visit func(l float64)) {
		if r.ranked {
			for i := range s.n {
				visit(float64(r.at(i).logit))
			}
			return
		}
		for _, l := range r.logits {
			if l >= r.floor {
				visit(float64(l))
			}
		}
	}
}

// entropy is -Σ p ln p of the candidates, and the weight of all.
func (s *Sampler) entropy() (h, total float64) {
	r := &s.ranks
	total = r.total(s.n, s.scale)
	sum := 0.0
	r.settle(s.n)
	for _, c := range r.all[len(r.all)-s.n:] {
		if w := r.weight(c, s.scale); w > 0 {
			sum += float64(w * ((float64(c.logit) - float64(r.max)) / s.scale))
		}
	}
	return ln(total) - sum/total, total
}

// take makes the candidates those of the ranks from first on, and their logits what temperatures left of them.
func (s *Sampler) take(first int) {
	r := &s.ranks
	r.settle(s.n)
	if first > 0 {
		r.at(first - 1)
	}
	copy(r.all, r.all[len(r.all)-s.n:len(r.all)-first])
	r.all, s.n = r.all[:s.n-first], s.n-first
	if s.scale != 1 {
		for i := range r.all {
			r.all[i].logit = float32(float64(r.all[i].logit) / s.scale)
		}
		s.scale = 1
	}
	r.keep()
}

// typical keeps the tokens whose surprise -ln p is nearest to the entropy, until their probabilities exceed TypicalP.
// Meister et al., Locally typical sampling (2022).
func (s *Sampler) typical() {
	if s.TypicalP == 1 {
		return
	}
	s.rank()
	s.take(0)
	r := &s.ranks
	h, total := s.entropy()
	if h != h { // infinite logits
		return
	}
	lnTotal := ln(total)
	// A second ranking, by how near: its logits are the negative distances, its ids places in all.
	s.near.all = s.near.all[:0]
	for i, c := range r.all {
		surprise := lnTotal - (float64(c.logit) - float64(r.max))
		s.near.all = append(s.near.all, candidate{float32(-math.Abs(surprise - h)), int32(i)})
	}
	s.near.heapify()
	s.kept = s.kept[:0]
	sum := 0.0
	for i := range s.n {
		c := r.all[s.near.at(i).id]
		s.kept = append(s.kept, c)
		if sum += r.weight(c, 1) / total; sum > s.TypicalP {
			break
		}
	}
	r.all = append(r.all[:0], s.kept...)
	r.keep()
	s.n = len(s.kept)
}

// xtc leaves out, in XTCProbability of all cases, every token that has the probability XTCThreshold but the least of
// them. The random number decides, and what it leaves undecided goes to the draw. p-e-w, Exclude top choices (2024).
func (s *Sampler) xtc() {
	if s.XTCProbability == 0 || s.XTCThreshold > 0.5 {
		return
	}
	if s.u >= s.XTCProbability {
		s.u = (s.u - s.XTCProbability) / (1 - s.XTCProbability)
		return
	}
	s.u /= s.XTCProbability
	s.rank()
	least := s.XTCThreshold * s.ranks.total(s.n, s.scale)
	last := 0
	for last+1 < s.n && s.ranks.weight(s.ranks.at(last+1), s.scale) >= least {
		last++
	}
	if last > 0 {
		s.take(last)
	}
}

// temperature divides the logits: by Temperature, or with DynatempRange by one that follows the entropy. Zhu et al.,
// EDT: improving large language models' generation by entropy-based dynamic temperature sampling (2024).
func (s *Sampler) temperature() {
	t := s.Temperature
	if s.DynatempRange > 0 {
		s.rank()
		least, most := max(0, t-s.DynatempRange), t+s.DynatempRange
		if s.n < 2 {
			return
		}
		h, _ := s.entropy()
		t = least + float64((most-least)*pow(min(1, max(0, h/ln(float64(s.n)))), s.DynatempExponent))
	}
	if !(t > 0) {
		s.rank()
		s.n = 1
		return
	}
	s.scale *= t
}
