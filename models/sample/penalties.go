package sample

import (
	"math"
	"slices"
)

// last is the last n tokens of the past, all for -1.
func (s *Sampler) last(n int) []int32 {
	if n < 0 || n > len(s.past) {
		return s.past
	}
	return s.past[len(s.past)-n:]
}

// count empties the counts.
func (s *Sampler) count() {
	if s.counts == nil {
		s.counts = map[int32]int{}
	}
	clear(s.counts)
	s.seen = s.seen[:0]
}

// note sets what is counted of a token.
func (s *Sampler) note(id int32, n int) {
	if _, known := s.counts[id]; !known {
		s.seen = append(s.seen, id)
	}
	s.counts[id] = n
}

// change gives the logits of the tokens counted new values: in a copy while nothing was filtered or divided, else
// among the candidates. They stay finite.
func (s *Sampler) change(value func(logit float64, n int) float64) {
	r := &s.ranks
	changed := func(logit float32, n int) float32 {
		return float32(max(value(float64(logit), n), -math.MaxFloat32))
	}
	if r.ranked || r.floor != -math.MaxFloat32 || s.scale != 1 {
		s.rank()
		s.take(0)
		for i, c := range r.all {
			if n, ok := s.counts[c.id]; ok {
				r.all[i].logit = changed(c.logit, n)
			}
		}
		r.keep()
		return
	}
	if len(s.logits) == 0 || &s.logits[0] != &r.logits[0] {
		s.logits = append(s.logits[:0], r.logits...)
		r.logits = s.logits
	}
	for _, id := range s.seen {
		if id >= 0 && int(id) < len(r.logits) && r.logits[id] >= r.floor {
			r.logits[id] = changed(r.logits[id], s.counts[id])
		}
	}
	r.max = slices.Max(r.logits)
}

// penalties makes tokens less probable that occurred among the last RepeatLastN: the logit is divided by
// RepeatPenalty (multiplied if it is negative), then FrequencyPenalty is subtracted for every occurrence, and
// PresencePenalty once. Keskar et al., CTRL (2019); the others as in OpenAI's interface.
func (s *Sampler) penalties() {
	if s.RepeatLastN == 0 || s.RepeatPenalty == 1 && s.FrequencyPenalty == 0 && s.PresencePenalty == 0 {
		return
	}
	s.count()
	for _, id := range s.last(s.RepeatLastN) {
		s.note(id, s.counts[id]+1)
	}
	s.change(func(logit float64, n int) float64 {
		if logit <= 0 {
			logit *= s.RepeatPenalty
		} else {
			logit /= s.RepeatPenalty
		}
		return logit - float64(float64(n)*s.FrequencyPenalty) - s.PresencePenalty
	})
}

// dry makes a token less probable that would go on repeating what was there before: if the last n tokens occurred
// before, and were then followed by the token, and n >= DRYAllowedLength, its logit is lowered by
// DRYMultiplier · DRYBase^(n - DRYAllowedLength). p-e-w, DRY: a modern repetition penalty (2024).
func (s *Sampler) dry() {
	past := s.last(s.DRYPenaltyLastN)
	n := len(past)
	if s.DRYMultiplier == 0 || n <= s.DRYAllowedLength {
		return
	}
	limit := n
	if s.Breaks != nil {
		for limit = 0; limit < n && !s.Breaks(past[n-1-limit]); limit++ {
		}
	}
	if limit < s.DRYAllowedLength {
		return
	}
	s.count()
	// runs[i] is how many tokens before and with the i-th from the end are those at the end: the Z function of the past
	// backwards, in time linear in n.
	s.runs = append(s.runs[:0], n)
	for i, left, right := 1, 0, 0; i < n; i++ {
		run := 0
		if i < right {
			run = min(right-i, s.runs[i-left])
		}
		for i+run < n && past[n-1-run] == past[n-1-i-run] {
			run++
		}
		if i+run > right {
			left, right = i, i+run
		}
		s.runs = append(s.runs, run)
		if run = min(run, limit); run >= s.DRYAllowedLength && run > 0 {
			next := past[n-i]
			s.note(next, max(s.counts[next], run))
		}
	}
	s.change(func(logit float64, run int) float64 {
		return logit - float64(s.DRYMultiplier*pow(s.DRYBase, float64(run-s.DRYAllowedLength)))
	})
}
