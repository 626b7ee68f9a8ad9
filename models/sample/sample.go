// Package sample chooses the next token from a model's logits.
//
// Here lives the choice for one row: filters, temperature, one random draw. Not here: what the tokens mean
// (models/token), masking by a grammar (a masked token has the logit -Inf), the loop that feeds tokens back.
package sample

import (
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core/rng"
)

// Sampler chooses tokens in the order of llama.cpp's default chain: TopK, TopP, MinP, Temperature, one draw. TopP
// and MinP look at probabilities at temperature 1, each after the filter before it.
//
// The choice is a function of the fields, the logits and the position alone, the same on every machine: a draft that
// is verified later, or a run begun again in the middle, gets the same tokens. A Sampler keeps its working memory; it
// is for one goroutine and not to be copied after use.
//
// The zero value is greedy. To sample, set TopP as well as Temperature: TopP 0 keeps only the best token.
type Sampler struct {
	Temperature float64 // logits are divided by it; 0 and below: greedy, the filters and the draw do not matter
	TopK        int     // keep so many of the highest logits; 0 and below: all
	TopP        float64 // keep the fewest best tokens whose probabilities reach it, at least one; 1: all
	MinP        float64 // keep tokens at least so many times as probable as the best, at least one; 0: all
	Seed        uint64
	Stream      uint64 // of the random numbers: give every text that is sampled with one Seed its own

	ranks ranking
}

// Next chooses a token for the text position of the given number; two choices at one position use the same random
// number. Equal logits rank by id, the lower first. A logit that is NaN or -Inf is never chosen; that there is no
// other is an error, as is a field out of range.
func (s *Sampler) Next(logits []float32, position int) (id int32, err error) {
	switch {
	case math.IsNaN(s.Temperature) || math.IsInf(s.Temperature, 1):
		return 0, fmt.Errorf("sample: temperature: got %v, want a finite number", s.Temperature)
	case !(s.TopP >= 0 && s.TopP <= 1):
		return 0, fmt.Errorf("sample: top_p: got %v, want 0 to 1, which keeps all tokens", s.TopP)
	case !(s.MinP >= 0):
		return 0, fmt.Errorf("sample: min_p: got %v, want 0, which keeps all tokens, or more", s.MinP)
	}
	best := argmax(logits)
	if best < 0 {
		return 0, fmt.Errorf("sample: no token to choose: all of %d logits are -Inf or NaN", len(logits))
	}
	if s.Temperature <= 0 {
		return best, nil
	}
	s.ranks.reset(logits, logits[best], s.TopK)
	u := rng.Float64(s.Seed, s.Stream, uint64(position))
	return s.draw(s.filter(logits), u, logits), nil
}

// argmax is the first of the highest logits, -1 if all are NaN or -Inf.
func argmax(logits []float32) int32 {
	best, id := float32(math.Inf(-1)), int32(-1)
	for i, l := range logits {
		if l > best {
			best, id = l, int32(i)
		}
	}
	return id
}

// filter returns how many of the best tokens remain. Every filter keeps a beginning of the ranking, so the filters
// need only as much of it as they keep.
func (s *Sampler) filter(logits []float32) int {
	r := &s.ranks
	n := r.len()
	if s.TopK > 0 {
		n = min(n, s.TopK)
	}
	if s.TopP < 1 {
		target := s.TopP * r.total(n, 1, logits)
		sum := 0.0
		for i := range n {
			sum += r.weight(r.at(i), 1)
			if sum >= target {
				n = i + 1
				break
			}
		}
	}
	if s.MinP > 0 {
		for i := 1; i < n; i++ {
			if r.weight(r.at(i), 1) < s.MinP {
				n = i
				break
			}
		}
	}
	return n
}

// draw returns the token at u, in [0, 1), of the n best tokens' cumulative distribution.
func (s *Sampler) draw(n int, u float64, logits []float32) int32 {
	r := &s.ranks
	target := u * r.total(n, s.Temperature, logits)
	sum := 0.0
	for i := range n {
		c := r.at(i)
		sum += r.weight(c, s.Temperature)
		if sum > target {
			return c.id
		}
	}
	return r.at(0).id // target was rounded up to the sum or above it
}
