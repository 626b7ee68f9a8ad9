// Package sample chooses the next token from a model's logits.
//
// Here lives the choice for one row: penalties, filters, temperature, one random draw, and the probabilities of what
// was chosen. Not here: what the tokens mean (models/token), masking by a grammar (a masked token has the logit
// -Inf), the loop that feeds tokens back.
package sample

import (
	"fmt"
	"math"

	"github.com/fucina-go/fucina/core/rng"
)

// Sampler chooses tokens by settings, in the order of Samplers, which is llama.cpp's by default.
//
// The choice is a function of the fields, the logits, the past and the position alone, the same on every machine and
// for any number of workers: a draft that is verified later, or a run begun again in the middle, gets the same
// tokens. Mirostat alone remembers: how surprising its choices were. A Sampler keeps its working memory; it is for one
// goroutine and not to be copied after use.
type Sampler struct {
	Settings
	Stream uint64 // of the random numbers: give every text that is sampled with one Seed its own
	Bias   []Bias
	Breaks func(int32) bool // says of a token that dry looks no further back than to it; nil: none is

	ranks  ranking
	logits []float32 // a copy, where logits are changed
	past   []int32
	n      int     // how many of the best candidates are left
	scale  float64 // logits are yet to be divided by it
	u      float64 // the random number, in [0, 1)
	counts map[int32]int
	seen   []int32 // the keys of counts, in the order of the past
	runs   []int   // of dry
	near   ranking // of typical
	kept   []candidate
	mu     float64
	began  bool // mu is set
}

// Bias is added to the logit of a token; -Inf forbids it.
type Bias struct {
	ID  int32
	Add float32
}

// New is a sampler of no random stream but 0, without biases.
func New(s Settings) *Sampler { return &Sampler{Settings: s} }

// links is what a chain is made of. It is set in init, since Check looks names up in it.
var links map[string]func(*Sampler)

func init() {
	links = map[string]func(*Sampler){
		"penalties": (*Sampler).penalties, "dry": (*Sampler).dry, "top_n_sigma": (*Sampler).topNSigma,
		"top_k": (*Sampler).topK, "typ_p": (*Sampler).typical, "top_p": (*Sampler).topP, "min_p": (*Sampler).minP,
		"xtc": (*Sampler).xtc, "temperature": (*Sampler).temperature,
	}
}

// Next chooses the token that comes after past, for the text position of the given number; two choices at one position
// use the same random number, of which there is one for a choice. Equal logits rank by id, the lower first. A logit of
// -Inf is never chosen. Errors: a setting out of its range (*SettingError), a logit that is NaN, no logit above -Inf,
// a bias for no token.
func (s *Sampler) Next(logits []float32, position int, past []int32) (id int32, err error) {
	if err := s.Check(); err != nil {
		return 0, err
	}
	s.past = past
	if logits, err = s.biased(logits); err != nil {
		return 0, err
	}
	best, err := highest(logits)
	if err != nil {
		return 0, err
	}
	s.u = rng.Float64(s.Seed, s.Stream, uint64(position))
	s.begin(logits, best)
	if s.Temperature == 0 && s.DynatempRange == 0 || s.Mirostat > 0 {
		for _, name := range s.Samplers {
			if name == "penalties" || name == "dry" {
				links[name](s)
			}
		}
		if s.Mirostat > 0 && s.Temperature > 0 {
			return s.mirostat(len(logits)), nil
		}
		return highest(s.ranks.logits)
	}
	for _, name := range s.Samplers {
		links[name](s)
	}
	s.rank()
	return s.draw().id, nil
}

// biased adds the biases, in a copy.
func (s *Sampler) biased(logits []float32) ([]float32, error) {
	if len(s.Bias) == 0 {
		return logits, nil
	}
	s.logits = append(s.logits[:0], logits...)
	for _, b := range s.Bias {
		if b.ID < 0 || int(b.ID) >= len(logits) {
			return nil, fmt.Errorf("sample: logit_bias: there is no token %d; ids are 0 … %d", b.ID, len(logits)-1)
		}
		if b.Add != b.Add || math.IsInf(float64(b.Add), 1) {
			return nil, fmt.Errorf("sample: logit_bias: got %v for token %d, want a number or -inf", b.Add, b.ID)
		}
		s.logits[b.ID] += b.Add
	}
	return s.logits, nil
}

// highest is the first of the highest logits.
func highest(logits []float32) (int32, error) {
	best, id := float32(math.Inf(-1)), int32(-1)
	for i, l := range logits {
		if !(l <= best) {
			if l != l {
				return 0, fmt.Errorf("sample: the logit of token %d of %d is NaN", i, len(logits))
			}
			best, id = l, int32(i)
		}
	}
	if id < 0 {
		return 0, fmt.Errorf("sample: no token to choose: all of %d logits are -Inf", len(logits))
	}
	return id, nil
}

// begin has all logits as candidates, not ranked yet.
func (s *Sampler) begin(logits []float32, best int32) {
	s.ranks.logits, s.ranks.max = logits, logits[best]
	s.ranks.floor, s.ranks.ranked = -math.MaxFloat32, false // all but -Inf
	s.scale = 1
}

// rank ranks the candidates, unless they are.
func (s *Sampler) rank() {
	if !s.ranks.ranked {
		s.ranks.reset()
		s.n = s.ranks.len()
	}
}

// draw returns the candidate at u of the cumulative distribution of those left.
func (s *Sampler) draw() candidate {
	r := &s.ranks
	target := s.u * r.total(s.n, s.scale)
	sum := 0.0
	for i := range s.n {
		c := r.at(i)
		if sum += r.weight(c, s.scale); sum > target {
			return c
		}
	}
	return r.at(0) // target was rounded up to the sum or above it
}
