package sample

import "math"

// mirostat chooses so that the surprise -log₂ p of the choices stays at MirostatTau. Basu et al., Mirostat: a neural
// text decoding algorithm that directly controls perplexity (2020); version 2 leaves out what is more surprising than
// a bound, version 1 finds the number of tokens to keep from the slope of the best 100.
func (s *Sampler) mirostat(vocab int) int32 {
	if !s.began {
		s.mu, s.began = 2*s.MirostatTau, true
	}
	s.rank()
	s.scale = s.Temperature
	r := &s.ranks
	if s.Mirostat == 1 {
		s.n = min(s.n, s.slope(vocab))
	} else {
		total := r.total(s.n, s.scale)
		least := float64(total * exp(float64(-s.mu*math.Ln2)))
		for i := range s.n {
			if i > 0 && r.weight(r.at(i), s.scale) < least {
				s.n = i
				break
			}
		}
	}
	c := s.draw()
	surprise := -ln(r.weight(c, s.scale)/r.total(s.n, s.scale)) / math.Ln2
	s.mu -= float64(s.MirostatEta * (surprise - s.MirostatTau))
	return c.id
}

// slope is how many tokens version 1 keeps: probabilities fall like i^-ŝ, with ŝ fitted to the best 100.
func (s *Sampler) slope(vocab int) int {
	r := &s.ranks
	var tb, tt float64
	for i := range min(100, s.n) - 1 {
		t := ln(float64(i+2) / float64(i+1))
		b := (float64(r.at(i).logit) - float64(r.at(i+1).logit)) / s.scale
		tb += float64(t * b)
		tt += float64(t * t)
	}
	hat := tb / tt
	eps := hat - 1
	k := exp(float64(s.mu*math.Ln2)) / ln(float64(vocab)) // the limit at eps = 0
	if math.Abs(eps) > 1e-9 {
		k = eps * exp(float64(s.mu*math.Ln2)) / (1 - pow(float64(vocab), -eps))
	}
	k = exp(ln(k) / hat)
	switch {
	case k >= float64(s.n) || k != k:
		return s.n
	case k < 1:
		return 1
	}
	return int(k)
}
