package sample

import "fmt"

// Logprob is a token's log probability: its logit minus ln Σ exp of all, before any setting.
type Logprob struct {
	ID      int32
	Logprob float64
}

// Logprobs returns that of token id, and the n most probable, best first. Errors are those of the logits, as in Next,
// and an id that has none.
func (s *Sampler) Logprobs(logits []float32, id int32, n int) (of Logprob, top []Logprob, err error) {
	best, err := highest(logits)
	if err != nil {
		return of, nil, err
	}
	if id < 0 || int(id) >= len(logits) {
		return of, nil, fmt.Errorf("sample: token %d, but there are logits of %d", id, len(logits))
	}
	s.begin(logits, best)
	r := &s.ranks
	all := 0.0
	for id, l := range logits {
		if l >= r.floor {
			all += r.weight(candidate{l, int32(id)}, 1)
		}
	}
	all = ln(all)
	logprob := func(c candidate) Logprob {
		if c.logit == r.max {
			return Logprob{c.id, -all} // also if both are infinite
		}
		return Logprob{c.id, float64(c.logit) - float64(r.max) - all}
	}
	if n > 0 {
		r.raise(n)
		s.rank()
		for i := range min(n, s.n) {
			top = append(top, logprob(r.at(i)))
		}
	}
	return logprob(candidate{logits[id], id}), top, nil
}
