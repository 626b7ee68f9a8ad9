package sample

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// off is settings that keep every token, at temperature 1, with changes.
func off(change func(s *Settings)) *Sampler {
	s := New(Defaults())
	s.Temperature, s.TopK, s.TopP, s.MinP = 1, 0, 1, 0
	if change != nil {
		change(&s.Settings)
	}
	return s
}

func TestGreedy(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		name   string
		logits []float32
		want   int32
	}{
		{"highest", []float32{1, 3, 2}, 1},
		{"first of equals", []float32{0, 7, 7, 7}, 1},
		{"zeros are equal", []float32{float32(math.Copysign(0, -1)), 0}, 0},
		{"infinite", []float32{5, inf, 2, inf}, 1},
		{"masked", []float32{-inf, -inf, -9, -inf}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, s := range []*Sampler{
				New(Defaults()),
				off(func(s *Settings) { s.Temperature, s.TopK, s.TopP, s.Seed = 0, 2, 0.5, 9 }),
				off(func(s *Settings) { s.TopP = 0 }),
				off(func(s *Settings) { s.TopK = 1 }),
			} {
				got, err := s.Next(c.logits, 3, nil)
				if got != c.want || err != nil {
					t.Errorf("temperature %v, top_p %v: got %d, %v, want %d", s.Temperature, s.TopP, got, err, c.want)
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	ok := []float32{1, 2}
	for _, c := range []struct {
		change func(s *Sampler)
		logits []float32
		want   string
	}{
		{nil, nil, "all of 0 logits are -Inf"},
		{nil, []float32{1, nan}, "the logit of token 1 of 2 is NaN"},
		{nil, []float32{-inf, -inf, -inf}, "all of 3 logits are -Inf"},
		{func(s *Sampler) { s.Temperature = math.NaN() }, ok, "temperature is NaN, want 0 or more"},
		{func(s *Sampler) { s.Temperature = -1 }, ok, "temperature is -1, want 0 or more"},
		{func(s *Sampler) { s.TopP = 1.5 }, ok, "top_p is 1.5, want 0 to 1"},
		{func(s *Sampler) { s.TopP = math.NaN() }, ok, "top_p is NaN"},
		{func(s *Sampler) { s.MinP = -0.1 }, ok, "min_p is -0.1, want 0 to 1"},
		{func(s *Sampler) { s.TopK = -1 }, ok, "top_k is -1"},
		{func(s *Sampler) { s.RepeatPenalty = 0 }, ok, "repeat_penalty is 0, want 1e-09 or more, and finite"},
		{func(s *Sampler) { s.PresencePenalty = math.Inf(1) }, ok, "presence_penalty is +Inf, want a finite number"},
		{func(s *Sampler) { s.Mirostat = 3 }, ok, "mirostat is 3, want 0 to 2"},
		{func(s *Sampler) { s.Samplers = []string{"top_q"} }, ok, `samplers is "top_q" among others, want some of`},
		{func(s *Sampler) { s.Bias = []Bias{{2, 1}} }, ok, "there is no token 2; ids are 0 … 1"},
		{func(s *Sampler) { s.Bias = []Bias{{0, nan}} }, ok, "got NaN for token 0"},
		{func(s *Sampler) { s.Bias = []Bias{{0, -inf}, {1, -inf}} }, ok, "all of 2 logits"},
	} {
		s := off(nil)
		if c.change != nil {
			c.change(s)
		}
		_, err := s.Next(c.logits, 0, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got error %v, want one with %q", err, c.want)
		}
	}
}

// TestList insists that every setting has what the list promises, and that the defaults pass their own check.
func TestList(t *testing.T) {
	s := Defaults()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, set := range List() {
		if set.Name == "" || set.Default == "" || set.Help == "" || seen[set.Name] {
			t.Errorf("a setting is incomplete or twice there: %+v", set)
		}
		seen[set.Name] = true
		p, ok := set.In(&s).(*float64)
		if !ok {
			continue
		}
		was := *p
		for _, bad := range []float64{math.NaN(), math.Inf(1), set.Min - 1, set.Max * 2} {
			var refused *SettingError
			if *p = bad; bad != was && (!errors.As(s.Check(), &refused) || refused.Setting.Name != set.Name) {
				t.Errorf("%s = %v is accepted", set.Name, bad)
			}
		}
		*p = was
	}
}

// probabilities returns the ids that s keeps, best first, and their probabilities.
func probabilities(s *Sampler, logits []float32, past ...int32) (ids []int32, probs []float64) {
	best, err := highest(logits)
	if err != nil {
		panic(err)
	}
	s.past = past
	s.begin(logits, best)
	for _, name := range s.Samplers {
		links[name](s)
	}
	s.rank()
	total := s.ranks.total(s.n, s.scale)
	for i := range s.n {
		c := s.ranks.at(i)
		ids = append(ids, c.id)
		probs = append(probs, s.ranks.weight(c, s.scale)/total)
	}
	return ids, probs
}

func TestLlamaCppCases(t *testing.T) {
	data, err := os.ReadFile("testdata/llama-cpp-cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Fn   string
			Args []json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for _, c := range file.Cases {
		ran[c.Fn]++
		if c.Fn == "test_sampler_queue" {
			checkQueue(t, c.Args)
			continue
		}
		s := off(nil)
		probs, past, want := arguments(t, s, c.Fn, c.Args)
		logits := make([]float32, len(probs))
		for i, p := range probs {
			logits[i] = float32(math.Log(p))
		}
		_, got := probabilities(s, logits, past...)
		for len(got) < len(want) && slices.Min(want) < 1e-5 { // what is left out there has the probability 0
			want = slices.Delete(want, slices.Index(want, slices.Min(want)), slices.Index(want, slices.Min(want))+1)
		}
		if c.Fn == "test_xtc" || c.Fn == "test_typical" { // what is left has its old probabilities there
			sum := 0.0
			for _, p := range want {
				sum += p
			}
			for i := range want {
				want[i] /= sum
			}
		}
		slices.Sort(want)
		slices.Reverse(want)
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-5 })
		if diff := cmp.Diff(want, got, near); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.Fn, c.Args, diff)
		}
	}
	want := map[string]int{
		"test_temp": 1, "test_temp_ext": 1, "test_top_k": 2, "test_top_p": 2, "test_min_p": 5, "test_xtc": 2,
		"test_typical": 1, "test_penalties": 3, "test_dry": 2, "test_top_n_sigma": 2, "test_sampler_queue": 12,
	}
	if diff := cmp.Diff(want, ran); diff != "" {
		t.Errorf("cases run (-want +got):\n%s", diff)
	}
}

// arguments reads those of a case: settings go to s.
func arguments(t *testing.T, s *Sampler, fn string, raw []json.RawMessage) (
	probs []float64, past []int32, want []float64,
) {
	var breakers []string
	args := []any{&probs, &want}
	switch fn {
	case "test_temp":
		args = append(args, &s.Temperature)
	case "test_temp_ext":
		args = append(args, &s.Temperature, &s.DynatempRange, &s.DynatempExponent)
	case "test_top_k":
		args = append(args, &s.TopK)
	case "test_top_p":
		args = append(args, &s.TopP)
	case "test_min_p":
		args = append(args, &s.MinP)
	case "test_xtc":
		args = append(args, &s.XTCProbability, &s.XTCThreshold)
	case "test_typical":
		args = append(args, &s.TypicalP)
	case "test_top_n_sigma":
		args = append(args, &s.TopNSigma)
	case "test_penalties":
		args = []any{&probs, &past, &want, &s.RepeatPenalty, &s.FrequencyPenalty, &s.PresencePenalty}
	case "test_dry":
		args = []any{&probs, &past, &want, &s.DRYMultiplier, &s.DRYBase, &s.DRYAllowedLength, &s.DRYPenaltyLastN,
			&breakers}
	default:
		t.Fatalf("unknown case %s", fn)
	}
	if len(args) != len(raw) || len(breakers) != 0 {
		t.Fatalf("%s has %d arguments, want %d", fn, len(raw), len(args))
	}
	for i, arg := range args {
		if err := json.Unmarshal(raw[i], arg); err != nil {
			t.Fatal(err)
		}
	}
	return probs, past, want
}

// checkQueue runs one test_sampler_queue case: logits are log 0, log 1, …, so token i has probability i/sum, and the
// sizes follow from integer sums.
func checkQueue(t *testing.T, raw []json.RawMessage) {
	var n, topK int
	var order string
	var topP, minP float64
	for i, arg := range []any{&n, &order, &topK, &topP, &minP} {
		if err := json.Unmarshal(raw[i], arg); err != nil {
			t.Fatal(err)
		}
	}
	s := off(func(s *Settings) { s.TopK, s.TopP, s.MinP, s.Samplers = topK, topP, minP, nil })
	lowest := 1 // token 0 has probability 0
	for _, f := range order {
		switch f {
		case 'k':
			s.Samplers = append(s.Samplers, "top_k")
			lowest = max(lowest, n-topK)
		case 'p':
			s.Samplers = append(s.Samplers, "top_p")
			sum := 0
			for i := lowest; i < n; i++ {
				sum += i
			}
			target := int(math.Ceil(topP * float64(sum)))
			for lowest, sum = n-1, n-1; sum < target; sum += lowest {
				lowest--
			}
		case 'm':
			s.Samplers = append(s.Samplers, "min_p")
			lowest = max(lowest, int(math.Ceil(minP*float64(n-1))))
		}
	}
	logits := make([]float32, n)
	for i := range logits {
		logits[i] = float32(math.Log(float64(i)))
	}
	ids, _ := probabilities(s, logits)
	if ids[0] != int32(n-1) || ids[len(ids)-1] != int32(lowest) || len(ids) != n-lowest {
		t.Errorf("%s: got %d tokens, %d to %d, want %d, %d to %d",
			raw, len(ids), ids[0], ids[len(ids)-1], n-lowest, n-1, lowest)
	}
}

func TestExp(t *testing.T) {
	for x := 0.0; x > -707; x -= 0.0137 {
		got, want := exp(x), math.Exp(x)
		if math.Abs(got-want) > 2*(math.Nextafter(want, 2)-want) {
			t.Fatalf("exp(%v): got %v, want %v within 2 ulp", x, got, want)
		}
	}
	for _, c := range []struct{ x, want float64 }{
		{0, 1}, {-1, 0x1.78b56362cef38p-2}, {-0.3, 0x1.7b4c869c37c05p-1}, {-700, 0x1.14f2b0fb9307fp-1010}, {-709, 0},
		{math.Inf(-1), 0}, {-1e300, 0},
	} {
		if got := exp(c.x); got != c.want {
			t.Errorf("exp(%v): got %x, want %x: the same bits everywhere", c.x, got, c.want)
		}
	}
}

func TestLn(t *testing.T) {
	for x := 1e-300; x < 1e300; x *= 1.37 {
		if got, want := ln(x), math.Log(x); math.Abs(got-want) > 1e-15*max(1, math.Abs(want)) {
			t.Fatalf("ln(%v): got %v, want %v", x, got, want)
		}
	}
	for _, x := range []float64{0, 1, math.Inf(1), -1} {
		if got, want := ln(x), math.Log(x); got != want && !(got != got && want != want) {
			t.Errorf("ln(%v): got %v, want %v", x, got, want)
		}
	}
	if got := pow(3, 2.5); math.Abs(got-math.Pow(3, 2.5)) > 1e-13 {
		t.Errorf("pow: got %v", got)
	}
}
