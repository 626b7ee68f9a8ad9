package sample

import (
	"math"
	"slices"
	"testing"

	"github.com/fucina-go/fucina/core/rng"
	"pgregory.net/rapid"
)

// plain is the chain written out: a full sort, every link a new slice, the standard library's functions.
type plain struct {
	Sampler
	all []candidate
}

func (p *plain) sort() {
	slices.SortFunc(p.all, func(a, b candidate) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
}

func (p *plain) softmax(temperature float64) (probs []float64) {
	sum := 0.0
	for _, c := range p.all {
		w := math.Exp((float64(c.logit) - float64(p.all[0].logit)) / temperature)
		sum += w
		probs = append(probs, w)
	}
	for i := range probs {
		probs[i] /= sum
	}
	return probs
}

func (p *plain) link(name string) {
	p.sort()
	probs := p.softmax(p.scale)
	keep := len(p.all)
	sum := 0.0
	switch name {
	case "top_k":
		if p.TopK > 0 {
			keep = min(keep, p.TopK)
		}
	case "top_p":
		for i, q := range probs {
			if sum += q; p.TopP < 1 && sum >= p.TopP {
				keep = i + 1
				break
			}
		}
	case "min_p":
		for keep > 1 && probs[keep-1] < p.MinP*probs[0] {
			keep--
		}
	case "top_n_sigma":
		if p.TopNSigma > 0 {
			for _, c := range p.all {
				sum += float64(c.logit)
			}
			mean, squares := sum/float64(len(p.all)), 0.0
			for _, c := range p.all {
				squares += (float64(c.logit) - mean) * (float64(c.logit) - mean)
			}
			sigma := math.Sqrt(squares / float64(len(p.all)))
			for keep > 1 && float64(p.all[keep-1].logit) < float64(p.all[0].logit)-p.TopNSigma*sigma {
				keep--
			}
		}
	case "xtc":
		last := 0
		for last+1 < keep && probs[last+1] >= p.XTCThreshold {
			last++
		}
		if p.XTCProbability > 0 && p.XTCThreshold <= 0.5 {
			if p.u < p.XTCProbability {
				p.u /= p.XTCProbability
				p.all = p.all[last:]
				keep -= last
			} else {
				p.u = (p.u - p.XTCProbability) / (1 - p.XTCProbability)
			}
		}
	case "temperature":
		p.scale *= p.Temperature
	case "penalties":
		for i, c := range p.all {
			l := float64(c.logit) / p.scale
			n := 0
			for _, id := range p.last(p.RepeatLastN) {
				if id == c.id {
					n++
				}
			}
			if n > 0 && l <= 0 {
				l *= p.RepeatPenalty
			} else if n > 0 {
				l /= p.RepeatPenalty
			}
			if n > 0 {
				l -= float64(n)*p.FrequencyPenalty + p.PresencePenalty
			}
			p.all[i].logit = float32(l)
		}
		p.scale = 1
	}
	p.all = p.all[:keep]
	p.sort()
}

func TestNextAgreesWithReference(t *testing.T) {
	s := New(Defaults()) // one for all: nothing may remain from the call before
	rapid.Check(t, func(t *rapid.T) {
		s.Temperature = rapid.Float64Range(0.05, 3).Draw(t, "temperature")
		s.TopK = rapid.IntRange(0, 30).Draw(t, "top_k")
		s.TopP = rapid.SampledFrom([]float64{0, 0.3, 0.9001, 0.99, 1}).Draw(t, "top_p")
		s.MinP = rapid.SampledFrom([]float64{0, 0.01, 0.2503, 1}).Draw(t, "min_p")
		s.TopNSigma = rapid.SampledFrom([]float64{0, 0, 1.01, 2.3}).Draw(t, "top_n_sigma")
		s.XTCProbability = rapid.SampledFrom([]float64{0, 0, 0.5, 1}).Draw(t, "xtc_probability")
		s.XTCThreshold = rapid.SampledFrom([]float64{0.02003, 0.1001, 0.4, 0.6}).Draw(t, "xtc_threshold")
		s.FrequencyPenalty = rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "frequency_penalty")
		s.RepeatPenalty = rapid.SampledFrom([]float64{1, 1.1}).Draw(t, "repeat_penalty")
		s.Samplers = rapid.Permutation([]string{"penalties", "top_n_sigma", "top_k", "top_p", "min_p", "xtc",
			"temperature"}).Draw(t, "samplers")
		s.Seed = rapid.Uint64().Draw(t, "seed")
		s.Stream = rapid.Uint64Range(0, 3).Draw(t, "stream")
		position := rapid.IntRange(0, 1<<40).Draw(t, "position")
		n := rapid.SampledFrom([]int{1, 2, 5, 31, 32, 100, 1000}).Draw(t, "vocab")
		logits := make([]float32, n)
		spread := rapid.SampledFrom([]float64{0, 1, 12}).Draw(t, "spread")
		for i := range logits {
			logits[i] = float32(math.Round((rng.Float64(s.Seed, 99, uint64(i))-0.5)*40) / 40 * spread) // with ties
		}
		for _, i := range rapid.SliceOfN(rapid.IntRange(1, 1000), 0, 40).Draw(t, "masked") {
			if i < n {
				logits[i] = float32(math.Inf(-1))
			}
		}
		past := rapid.SliceOfN(rapid.Int32Range(0, 12), 0, 20).Draw(t, "past")
		given := slices.Clone(logits)
		got, err := s.Next(logits, position, past)

		want := &plain{Sampler: Sampler{Settings: s.Settings, scale: 1, past: past}}
		want.u = rng.Float64(s.Seed, s.Stream, uint64(position))
		for id, l := range logits {
			if l > float32(math.Inf(-1)) {
				want.all = append(want.all, candidate{l, int32(id)})
			}
		}
		for _, name := range s.Samplers {
			want.link(name)
		}
		drawn, u := 0, want.u
		for i, p := range want.softmax(want.scale) {
			if u -= p; u < 0 {
				drawn = i
				break
			}
		}
		near := math.Abs(u) < 1e-7 // on the border between two tokens
		if err != nil || got != want.all[drawn].id && !near {
			t.Fatalf("got %d, %v, want %d of %v", got, err, want.all[drawn].id, want.all)
		}
		if !slices.Equal(logits, given) {
			t.Fatal("Next changed its logits")
		}
	})
}

func TestProbabilities(t *testing.T) {
	inf := float32(math.Inf(1))
	far := make([]float32, 32*4) // the two best are in blocks of their own, and the others weigh more together
	far[5], far[100] = 1, 2
	for _, c := range []struct {
		name   string
		change func(s *Settings)
		logits []float32
		ids    []int32
		probs  []float64
	}{
		{"all", nil, []float32{0, 0, 0, 0}, []int32{0, 1, 2, 3}, []float64{.25, .25, .25, .25}},
		{"temperature", func(s *Settings) { s.Temperature = 0.5 }, []float32{0, 1}, []int32{1, 0},
			[]float64{1 / (1 + math.Exp(-2)), 1 / (1 + math.Exp(2))}},
		{"top_k of many", func(s *Settings) { s.TopK = 2 }, far, []int32{100, 5},
			[]float64{1 / (1 + math.Exp(-1)), 1 / (1 + math.E)}},
		{"top_p of top_k", func(s *Settings) { s.TopK, s.TopP = 2, 0.7 }, far, []int32{100}, []float64{1}},
		{"infinite", nil, []float32{inf, 3, inf, -inf}, []int32{0, 2, 1}, []float64{.5, .5, 0}},
		{"infinite, top_p", func(s *Settings) { s.Temperature, s.TopP = 2, 0.9 }, []float32{inf, 3, inf},
			[]int32{0, 2}, []float64{.5, .5}},
		{"infinite, typical", func(s *Settings) { s.TypicalP = 0.5 }, []float32{inf, 3, inf},
			[]int32{0, 2, 1}, []float64{.5, .5, 0}},
		{"infinite, sigma", func(s *Settings) { s.TopNSigma = 1 }, []float32{inf, 3}, []int32{0, 1}, []float64{1, 0}},
		// The entropy is 0.938, the surprises are 0.511, 1.386 and 1.897.
		{"typical", func(s *Settings) { s.TypicalP = 0.7 }, logs(0.6, 0.25, 0.15), []int32{0, 1},
			[]float64{0.6 / 0.85, 0.25 / 0.85}},
		// The entropy is all there can be, ln 3: the highest temperature.
		{"dynatemp, even", func(s *Settings) { s.DynatempRange = 0.5 }, []float32{1, 1, 1}, []int32{0, 1, 2},
			[]float64{1. / 3, 1. / 3, 1. / 3}},
		{"dynatemp, sure", func(s *Settings) { s.DynatempRange = 1 }, []float32{900, 1}, []int32{0}, []float64{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ids, probs := probabilities(off(c.change), c.logits)
			if !slices.Equal(ids, c.ids) {
				t.Errorf("got ids %v, want %v", ids, c.ids)
			}
			for i := range min(len(probs), len(c.probs)) {
				if math.Abs(probs[i]-c.probs[i]) > 1e-7 {
					t.Errorf("got probabilities %v, want %v", probs, c.probs)
				}
			}
		})
	}
}

func logs(p ...float64) []float32 {
	l := make([]float32, len(p))
	for i := range p {
		l[i] = float32(math.Log(p[i]))
	}
	return l
}

// TestDynatemp checks a temperature between the ends against the formula.
func TestDynatemp(t *testing.T) {
	p := []float64{0.7, 0.2, 0.1}
	h := 0.0
	for _, q := range p {
		h -= q * math.Log(q)
	}
	temp := 0.5 + (1.5-0.5)*math.Pow(h/math.Log(3), 2)
	sum := 0.0
	for _, q := range p {
		sum += math.Pow(q, 1/temp)
	}
	s := off(func(s *Settings) { s.DynatempRange, s.DynatempExponent = 0.5, 2 })
	_, got := probabilities(s, logs(p...))
	for i, q := range p {
		if want := math.Pow(q, 1/temp) / sum; math.Abs(got[i]-want) > 1e-6 {
			t.Errorf("got %v, want %v first", got, want)
		}
	}
}

// TestDRY compares runs of repetition with a search in loops.
func TestDRY(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const vocab = 4
		past := rapid.SliceOfN(rapid.Int32Range(0, vocab-1), 0, 30).Draw(t, "past")
		s := off(func(s *Settings) {
			s.DRYMultiplier, s.DRYBase = 0.7, 1.3
			s.DRYAllowedLength = rapid.IntRange(1, 4).Draw(t, "allowed")
			s.DRYPenaltyLastN = rapid.IntRange(-1, 20).Draw(t, "last")
		})
		breaker := rapid.Int32Range(0, vocab).Draw(t, "breaker")
		s.Breaks = func(id int32) bool { return id == breaker }
		logits := []float32{1, 2, 3, 4}
		want := slices.Clone(logits)
		seen := past
		if n := s.DRYPenaltyLastN; n >= 0 && n < len(past) {
			seen = past[len(past)-n:]
		}
		since := len(seen) - 1 - slices.Index(reversed(seen), breaker)
		if i := slices.Index(reversed(seen), breaker); i < 0 {
			since = 0
		} else {
			since = len(seen) - i
		}
		tail := seen[since:] // what may repeat begins after the last breaker
		for id := range int32(vocab) {
			longest := 0
			for end := 1; end < len(seen); end++ { // an occurrence ends before end, and id stands there
				run := 0
				for run < min(end, len(tail)) && seen[end-1-run] == seen[len(seen)-1-run] {
					run++
				}
				if seen[end] == id {
					longest = max(longest, run)
				}
			}
			if longest >= s.DRYAllowedLength {
				want[id] -= float32(0.7 * math.Pow(1.3, float64(longest-s.DRYAllowedLength)))
			}
		}
		s.past = past
		s.begin(logits, 3)
		s.dry()
		for id, l := range s.ranks.logits {
			if math.Abs(float64(l-want[id])) > 1e-5 {
				t.Fatalf("got %v, want %v", s.ranks.logits, want)
			}
		}
	})
}

func reversed(ids []int32) []int32 {
	ids = slices.Clone(ids)
	slices.Reverse(ids)
	return ids
}

// TestFrequencies draws 10⁵ times by each way of choosing and compares how often every token came with its
// probability.
func TestFrequencies(t *testing.T) {
	const draws = 100_000
	logits := []float32{1, -1, float32(math.Inf(-1)), 2, 0.5, 2, 0, -0.5}
	for _, c := range []struct {
		name   string
		change func(s *Settings)
	}{
		{"temperature", func(s *Settings) { s.Temperature = 1.7 }},
		{"cold", func(s *Settings) { s.Temperature = 0.3 }},
		{"top_k", func(s *Settings) { s.TopK = 3 }},
		{"top_p", func(s *Settings) { s.TopP = 0.8 }},
		{"min_p", func(s *Settings) { s.MinP = 0.2 }},
		{"typical", func(s *Settings) { s.TypicalP = 0.7 }},
		{"top_n_sigma", func(s *Settings) { s.TopNSigma = 1 }},
		{"dynatemp", func(s *Settings) { s.DynatempRange = 0.6 }},
		{"penalties", func(s *Settings) { s.RepeatPenalty, s.FrequencyPenalty, s.PresencePenalty = 1.2, 0.3, 0.2 }},
		{"all", func(s *Settings) { s.Temperature, s.TopK, s.TopP, s.MinP, s.TypicalP = 0.9, 6, 0.95, 0.05, 0.9 }},
	} {
		s := off(c.change)
		s.Seed, s.Stream = 42, 7
		past := []int32{3, 5, 3}
		counts := make([]float64, len(logits))
		for position := range draws {
			id, err := s.Next(logits, position, past)
			if err != nil {
				t.Fatal(err)
			}
			counts[id]++
		}
		ids, probs := probabilities(off(c.change), logits, past...)
		fits(t, c.name, counts, ids, probs, draws)
	}

	// xtc is two distributions, mixed by its probability.
	s := off(func(s *Settings) { s.XTCProbability, s.XTCThreshold = 0.3, 0.15 })
	counts := make([]float64, len(logits))
	for position := range draws {
		id, err := s.Next(logits, position, nil)
		if err != nil {
			t.Fatal(err)
		}
		counts[id]++
	}
	ids, probs := probabilities(off(nil), logits)
	s.u = 0
	fewer, left := probabilities(s, logits)
	if len(fewer) != len(ids)-1 && len(fewer) != len(ids)-2 {
		t.Fatalf("xtc left %v of %v", fewer, ids)
	}
	for i, id := range ids {
		probs[i] *= 0.7
		if j := slices.Index(fewer, id); j >= 0 {
			probs[i] += 0.3 * left[j]
		}
	}
	fits(t, "xtc", counts, ids, probs, draws)
}

// fits is a chi-squared test at p = 0.001.
func fits(t *testing.T, name string, counts []float64, ids []int32, probs []float64, draws float64) {
	t.Helper()
	bound := []float64{0, 10.83, 13.82, 16.27, 18.47, 20.52, 22.46, 24.32}[len(ids)-1]
	chi2 := 0.0
	for id, n := range counts {
		i := slices.Index(ids, int32(id))
		if i < 0 {
			if n != 0 {
				t.Errorf("%s: token %d was left out, and chosen %v times", name, id, n)
			}
			continue
		}
		want := draws * probs[i]
		chi2 += (n - want) * (n - want) / want
	}
	if len(ids) < 2 || chi2 > bound {
		t.Errorf("%s: chi² of %d tokens: got %.1f, want less than %.1f; %v", name, len(ids), chi2, bound, counts)
	}
}

// TestMirostat insists that the mean surprise comes to the target.
func TestMirostat(t *testing.T) {
	logits := make([]float32, 2000)
	for i := range logits {
		logits[i] = float32(-1.1 * math.Log(float64(i+1)))
	}
	for _, version := range []int{1, 2} {
		for _, tau := range []float64{2, 4} {
			s := off(func(s *Settings) { s.Mirostat, s.MirostatTau = version, tau })
			sum, n := 0.0, 0
			for position := range 3000 {
				id, err := s.Next(logits, position, nil)
				if err != nil {
					t.Fatal(err)
				}
				if position >= 200 {
					r := &s.ranks
					sum -= math.Log2(r.weight(candidate{logits[id], id}, 1) / r.total(s.n, 1))
					n++
				}
			}
			if mean := sum / float64(n); math.Abs(mean-tau) > 0.1 {
				t.Errorf("version %d: the mean surprise is %.3f bits, want %v", version, mean, tau)
			}
		}
	}
}

func TestLogprobs(t *testing.T) {
	for _, id := range []int32{-1, 3} {
		if _, _, err := New(Defaults()).Logprobs(make([]float32, 3), id, 1); err == nil {
			t.Errorf("token %d of 3 has a probability", id)
		}
	}
	p := []float64{0.1, 0.5, 0.15, 0.25}
	of, top, err := New(Defaults()).Logprobs(logs(p...), 2, 3)
	if err != nil || of.ID != 2 || math.Abs(of.Logprob-math.Log(0.15)) > 1e-6 || len(top) != 3 {
		t.Fatalf("got %v, %v, %v", of, top, err)
	}
	for i, id := range []int32{1, 3, 2} {
		if top[i].ID != id || math.Abs(top[i].Logprob-math.Log(p[id])) > 1e-6 {
			t.Errorf("place %d: got %v", i, top[i])
		}
	}
}

func TestBias(t *testing.T) {
	s := New(Defaults())
	s.Bias = []Bias{{0, float32(math.Inf(-1))}, {2, 3}}
	if id, err := s.Next([]float32{9, 2, 0}, 0, nil); id != 2 || err != nil {
		t.Errorf("got %d, %v, want 2", id, err)
	}
}

// many is all that can be set, together.
func many(s *Settings) {
	s.Temperature, s.TopK, s.TopP, s.MinP, s.TypicalP, s.TopNSigma = 0.8, 40, 0.95, 0.05, 0.95, 3
	s.XTCProbability, s.DynatempRange, s.RepeatPenalty, s.DRYMultiplier = 0.5, 0.2, 1.1, 0.8
}

func TestNextAllocatesNothing(t *testing.T) {
	logits := make([]float32, 5000)
	for i := range logits {
		logits[i] = rng.Float32(1, 2, uint64(i)) * 8
	}
	past := make([]int32, 500)
	for i := range past {
		past[i] = int32(i * i % 37)
	}
	for i, s := range []*Sampler{
		New(Defaults()),
		off(nil),
		off(func(s *Settings) { s.TopK, s.TopP = 40, 0.95 }),
		off(func(s *Settings) { s.TopP = 0.95 }),
		off(func(s *Settings) { s.Mirostat = 1 }),
		off(func(s *Settings) { s.Mirostat = 2 }),
		off(many),
	} {
		position := 0
		next := func() {
			if _, err := s.Next(logits, position, past); err != nil {
				t.Fatal(err)
			}
			position++
		}
		for range 20 {
			next()
		}
		if n := testing.AllocsPerRun(20, next); n != 0 {
			t.Errorf("settings %d: got %v allocations a token, want 0", i, n)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	logits := make([]float32, 151936)
	for i := range logits {
		logits[i] = float32(rng.Float64(1, 2, uint64(i)))
		logits[i] *= logits[i] * logits[i] * 15
	}
	past := make([]int32, 1000)
	for i := range past {
		past[i] = int32(i * i % 997)
	}
	for _, c := range []struct {
		name string
		s    *Sampler
	}{
		{"greedy", New(Defaults())},
		{"default", off(func(s *Settings) { s.Temperature, s.TopK, s.TopP, s.MinP = 0.8, 40, 0.95, 0.05 })},
		{"top_p", off(func(s *Settings) { s.Temperature, s.TopP = 0.8, 0.95 })},
		{"min_p", off(func(s *Settings) { s.Temperature, s.MinP = 0.8, 0.05 })},
		{"temperature", off(func(s *Settings) { s.Temperature = 0.8 })},
		{"mirostat", off(func(s *Settings) { s.Mirostat = 2 })},
		{"many", off(many)},
	} {
		b.Run(c.name, func(b *testing.B) {
			position := 0
			for b.Loop() {
				if _, err := c.s.Next(logits, position, past); err != nil {
					b.Fatal(err)
				}
				position++
			}
		})
	}
}
