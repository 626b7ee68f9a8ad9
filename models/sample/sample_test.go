package sample

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core/rng"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestGreedy(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		name   string
		logits []float32
		want   int32
	}{
		{"highest", []float32{1, 3, 2}, 1},
		{"first of equals", []float32{0, 7, 7, 7}, 1},
		{"zeros are equal", []float32{float32(math.Copysign(0, -1)), 0}, 0},
		{"nan first", []float32{nan, -2, -1}, 2},
		{"nan last", []float32{-2, -1, nan}, 1},
		{"infinite", []float32{5, inf, nan, inf}, 1},
		{"masked", []float32{-inf, -inf, -9, -inf}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, s := range []Sampler{
				{}, {Temperature: -1, TopK: 2, TopP: 0.5, MinP: 0.5, Seed: 9}, {Temperature: 1},
			} {
				got, err := s.Next(c.logits, 3)
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
		s      Sampler
		logits []float32
		want   string
	}{
		{Sampler{}, nil, "all of 0 logits"},
		{Sampler{}, []float32{nan, nan}, "all of 2 logits are -Inf or NaN"},
		{Sampler{Temperature: 1, TopP: 1}, []float32{nan, -inf, -inf}, "all of 3 logits"},
		{Sampler{Temperature: math.NaN()}, ok, "temperature: got NaN"},
		{Sampler{Temperature: math.Inf(1), TopP: 1}, ok, "temperature: got +Inf"},
		{Sampler{TopP: 1.5}, ok, "top_p: got 1.5, want 0 to 1"},
		{Sampler{TopP: math.NaN()}, ok, "top_p: got NaN"},
		{Sampler{MinP: -0.1}, ok, "min_p: got -0.1, want 0"},
	} {
		_, err := c.s.Next(c.logits, 0)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got error %v, want one with %q", err, c.want)
		}
	}
}

// probabilities returns the ids that s keeps, best first, and their probabilities.
func probabilities(s *Sampler, logits []float32) (ids []int32, probs []float64) {
	s.ranks.reset(logits, logits[argmax(logits)], s.TopK)
	n := s.filter(logits)
	total := s.ranks.total(n, s.Temperature, logits)
	for i := range n {
		c := s.ranks.at(i)
		ids = append(ids, c.id)
		probs = append(probs, s.ranks.weight(c, s.Temperature)/total)
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
		s := Sampler{Temperature: 1, TopP: 1}
		args := make([]any, len(c.Args))
		switch c.Fn {
		case "test_temp", "test_temp_ext": // the latter's range of temperatures is empty
			args[2] = &s.Temperature
		case "test_top_k":
			args[2] = &s.TopK
		case "test_top_p":
			args[2] = &s.TopP
		case "test_min_p":
			args[2] = &s.MinP
		case "test_sampler_queue":
			if checkQueue(t, c.Args) {
				ran[c.Fn]++
			}
			continue
		default: // samplers that are not here
			continue
		}
		var probs, want []float64
		args[0], args[1] = &probs, &want
		for i, arg := range args {
			if arg == nil {
				continue
			}
			if err := json.Unmarshal(c.Args[i], arg); err != nil {
				t.Fatal(err)
			}
		}
		logits := make([]float32, len(probs))
		for i, p := range probs {
			logits[i] = float32(math.Log(p))
		}
		_, got := probabilities(&s, logits)
		slices.Sort(want)
		slices.Reverse(want)
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-5 })
		if diff := cmp.Diff(want, got, near); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.Fn, c.Args, diff)
		}
		ran[c.Fn]++
	}
	want := map[string]int{
		"test_temp": 1, "test_temp_ext": 1, "test_top_k": 2, "test_top_p": 2, "test_min_p": 5, "test_sampler_queue": 6,
	}
	if diff := cmp.Diff(want, ran); diff != "" {
		t.Errorf("cases run (-want +got):\n%s", diff)
	}
}

// checkQueue runs one test_sampler_queue case: logits are log 0, log 1, …, so token i has probability i/sum, and the
// sizes follow from integer sums. It returns false for an order other than this chain's.
func checkQueue(t *testing.T, raw []json.RawMessage) bool {
	var n, topK int
	var order string
	var topP, minP float64
	for i, arg := range []any{&n, &order, &topK, &topP, &minP} {
		if err := json.Unmarshal(raw[i], arg); err != nil {
			t.Fatal(err)
		}
	}
	s := Sampler{Temperature: 1, TopP: 1}
	lowest := 1 // token 0 has probability 0
	switch order {
	case "k", "p", "m", "kp":
	default:
		return false
	}
	if strings.Contains(order, "k") {
		s.TopK = topK
		lowest = max(lowest, n-topK)
	}
	if strings.Contains(order, "p") {
		s.TopP = topP
		sum := 0
		for i := lowest; i < n; i++ {
			sum += i
		}
		target := int(math.Ceil(topP * float64(sum)))
		for lowest, sum = n-1, n-1; sum < target; sum += lowest {
			lowest--
		}
	}
	if strings.Contains(order, "m") {
		s.MinP = minP
		lowest = max(lowest, int(math.Ceil(minP*float64(n-1))))
	}
	logits := make([]float32, n)
	for i := range logits {
		logits[i] = float32(math.Log(float64(i)))
	}
	ids, _ := probabilities(&s, logits)
	if ids[0] != int32(n-1) || ids[len(ids)-1] != int32(lowest) || len(ids) != n-lowest {
		t.Errorf("%s: got %d tokens, %d to %d, want %d, %d to %d",
			raw, len(ids), ids[0], ids[len(ids)-1], n-lowest, n-1, lowest)
	}
	return true
}

// reference is Next written out: a full sort, every filter a new slice, the standard library's exp. It returns what
// the filters keep, best first, and which of it is drawn.
func reference(s Sampler, logits []float32, position int) (kept []int32, drawn int) {
	var all []candidate
	for id, l := range logits {
		if l > float32(math.Inf(-1)) {
			all = append(all, candidate{l, int32(id)})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	softmax := func(temperature float64) (probs []float64) {
		sum := 0.0
		for _, c := range all {
			w := math.Exp((float64(c.logit) - float64(all[0].logit)) / temperature)
			sum += w
			probs = append(probs, w)
		}
		for i := range probs {
			probs[i] /= sum
		}
		return probs
	}
	if s.TopK > 0 && s.TopK < len(all) {
		all = all[:s.TopK]
	}
	if s.TopP < 1 {
		sum := 0.0
		for i, p := range softmax(1) {
			if sum += p; sum >= s.TopP {
				all = all[:i+1]
				break
			}
		}
	}
	probs := softmax(1)
	for i := range all {
		if i > 0 && probs[i] < s.MinP*probs[0] {
			all = all[:i]
			break
		}
	}
	for _, c := range all {
		kept = append(kept, c.id)
	}
	u := rng.Float64(s.Seed, s.Stream, uint64(position))
	for i, p := range softmax(s.Temperature) {
		if u -= p; u < 0 {
			return kept, i
		}
	}
	return kept, 0
}

func TestNextAgreesWithReference(t *testing.T) {
	var s Sampler // one for all: nothing may remain from the call before
	rapid.Check(t, func(t *rapid.T) {
		s.Temperature = rapid.Float64Range(0.05, 3).Draw(t, "temperature")
		s.TopK = rapid.IntRange(-1, 30).Draw(t, "top_k")
		s.TopP = rapid.SampledFrom([]float64{0, 0.3, 0.9001, 0.99, 1}).Draw(t, "top_p")
		s.MinP = rapid.SampledFrom([]float64{0, 0.01, 0.2503, 1.5}).Draw(t, "min_p")
		s.Seed = rapid.Uint64().Draw(t, "seed")
		s.Stream = rapid.Uint64Range(0, 3).Draw(t, "stream")
		position := rapid.IntRange(0, 1<<40).Draw(t, "position")
		n := rapid.SampledFrom([]int{1, 2, 5, 31, 32, 100, 1000}).Draw(t, "vocab")
		logits := make([]float32, n)
		spread := rapid.SampledFrom([]float64{0, 1, 12}).Draw(t, "spread")
		for i := range logits {
			logits[i] = float32(math.Round((rng.Float64(s.Seed, 99, uint64(i))-0.5)*40) / 40 * spread) // with ties
		}
		for _, masked := range []float64{math.NaN(), math.Inf(-1)} {
			for _, i := range rapid.SliceOfN(rapid.IntRange(1, 1000), 0, 40).Draw(t, "masked") {
				if i < n {
					logits[i] = float32(masked)
				}
			}
		}
		given := slices.Clone(logits)
		got, err := s.Next(logits, position)
		want, drawn := reference(s, logits, position)
		if err != nil || got != want[drawn] {
			t.Fatalf("got %d, %v, want %d", got, err, want[drawn])
		}
		kept, _ := probabilities(&s, logits)
		if diff := cmp.Diff(want, kept); diff != "" {
			t.Fatalf("kept (-want +got):\n%s", diff)
		}
		same := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
		if !slices.EqualFunc(logits, given, same) {
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
		s      Sampler
		logits []float32
		ids    []int32
		probs  []float64
	}{
		{"all", Sampler{Temperature: 1, TopP: 1}, []float32{0, 0, 0, 0},
			[]int32{0, 1, 2, 3}, []float64{.25, .25, .25, .25}},
		{"temperature", Sampler{Temperature: 0.5, TopP: 1}, []float32{0, 1}, []int32{1, 0},
			[]float64{1 / (1 + math.Exp(-2)), 1 / (1 + math.Exp(2))}},
		{"top_k of many", Sampler{Temperature: 1, TopK: 2, TopP: 1}, far, []int32{100, 5},
			[]float64{1 / (1 + math.Exp(-1)), 1 / (1 + math.E)}},
		{"top_p of top_k", Sampler{Temperature: 1, TopK: 2, TopP: 0.7}, far, []int32{100}, []float64{1}},
		{"infinite", Sampler{Temperature: 1, TopP: 1}, []float32{inf, 3, inf, -inf},
			[]int32{0, 2, 1}, []float64{.5, .5, 0}},
		{"infinite, top_p", Sampler{Temperature: 2, TopP: 0.9}, []float32{inf, 3, inf},
			[]int32{0, 2}, []float64{.5, .5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ids, probs := probabilities(&c.s, c.logits)
			if diff := cmp.Diff(c.ids, ids); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
			near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
			if diff := cmp.Diff(c.probs, probs, near); diff != "" {
				t.Errorf("probabilities (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFrequencies(t *testing.T) {
	const draws = 20000
	logits := []float32{1, -1, float32(math.Inf(-1)), 2, 0.5, 2}
	s := Sampler{Temperature: 1.7, TopP: 1, Seed: 42, Stream: 7}
	counts := make([]float64, len(logits))
	for position := range draws {
		id, err := s.Next(logits, position)
		if err != nil {
			t.Fatal(err)
		}
		counts[id]++
	}
	total, chi2 := 0.0, 0.0
	for _, l := range logits {
		total += math.Exp(float64(l) / 1.7)
	}
	for id, l := range logits {
		want := draws * math.Exp(float64(l)/1.7) / total
		if want == 0 {
			if counts[id] != 0 {
				t.Errorf("masked token %d was chosen %v times", id, counts[id])
			}
			continue
		}
		chi2 += (counts[id] - want) * (counts[id] - want) / want
	}
	if chi2 > 18.5 { // 4 degrees of freedom: p = 0.001
		t.Errorf("chi squared: got %.1f, want below 18.5; counts %v", chi2, counts)
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	logits := make([]float32, 5000)
	for i := range logits {
		logits[i] = rng.Float32(1, 2, uint64(i)) * 8
	}
	for _, s := range []Sampler{
		{},
		{Temperature: 1, TopP: 1},
		{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05},
		{Temperature: 0.8, TopP: 0.95},
	} {
		position := 0
		next := func() {
			if _, err := s.Next(logits, position); err != nil {
				t.Fatal(err)
			}
			position++
		}
		next()
		if n := testing.AllocsPerRun(20, next); n != 0 {
			t.Errorf("temperature %v, top_k %d: got %v allocations a token, want 0", s.Temperature, s.TopK, n)
		}
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

func BenchmarkNext(b *testing.B) {
	logits := make([]float32, 150000)
	for i := range logits {
		logits[i] = float32(rng.Float64(1, 2, uint64(i)))
		logits[i] *= logits[i] * logits[i] * 15
	}
	for _, c := range []struct {
		name string
		s    Sampler
	}{
		{"greedy", Sampler{}},
		{"default", Sampler{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}},
		{"top_p", Sampler{Temperature: 0.8, TopP: 0.95}},
		{"min_p", Sampler{Temperature: 0.8, TopP: 1, MinP: 0.05}},
		{"temperature", Sampler{Temperature: 0.8, TopP: 1}},
	} {
		b.Run(c.name, func(b *testing.B) {
			position := 0
			for b.Loop() {
				if _, err := c.s.Next(logits, position); err != nil {
					b.Fatal(err)
				}
				position++
			}
		})
	}
}
