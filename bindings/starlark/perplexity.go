package starlark

import (
	"fmt"
	"math"
	"slices"
	"time"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/par"
)

// modelPerplexity is m.perplexity(text, chunk=None, details=False): how surprised the model is by a text, a list of
// texts, each of which begins anew, or a list of token ids: e to the mean of -log p over all tokens but the first, each
// given all before it. A text must fit into the context; with chunk, it is cut into chunks of that many tokens, each of
// which begins anew, and of which the second half counts, as llama-perplexity does; a last chunk that is not full is
// left out. With details it is a struct of perplexity, error, the standard error of it, tokens, the number that count,
// and chunks.
func modelPerplexity(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var text, size star.Value = nil, star.None
	var details bool
	err = star.UnpackArgs(b.Name(), args, kwargs, "text", &text, "chunk?", &size, "details?", &details)
	if err != nil {
		return nil, err
	}
	s := &surprise{op: b.Name(), it: interpOf(t), m: b.Receiver().(*Model)}
	texts, err := s.texts(text)
	if err != nil {
		return nil, err
	}
	chunks, first := texts, 0
	if size != star.None {
		n, err := star.AsInt32(size)
		if err != nil || n < 3 {
			return nil, &core.Error{Op: s.op,
				Msg: fmt.Sprintf("chunk: got %s, want a number of tokens from 3 on", brief(size))}
		}
		if chunks, err = s.cut(texts, n); err != nil {
			return nil, err
		}
		first = n / 2
	}
	if err := s.run(chunks, first); err != nil {
		return nil, err
	}
	if s.n == 0 {
		return nil, &core.Error{Op: s.op, Msg: "the text has no token that another comes before", Hint: "give it more"}
	}
	mean := s.sum / float64(s.n)
	perplexity := math.Exp(mean)
	if !details {
		return star.Float(perplexity), nil
	}
	// The error of the mean, by the rule for a function of it: |d exp(x)| is exp(x)·|dx|.
	deviation := perplexity * math.Sqrt(max(0, s.squares/float64(s.n)-mean*mean)/max(1, float64(s.n-1)))
	return starlarkstruct.FromStringDict(starlarkstruct.Default, star.StringDict{
		"perplexity": star.Float(perplexity), "error": star.Float(deviation), "tokens": star.MakeInt(s.n),
		"chunks": star.MakeInt(len(chunks))}), nil
}

// surprise adds up -log p of tokens.
type surprise struct {
	op           string
	it           *Interp
	m            *Model
	sum, squares float64
	n            int
}

// texts is the tokens of each text.
func (s *surprise) texts(v star.Value) ([][]int32, error) {
	list, isList := v.(star.Sequence)
	if !isList || list.Len() == 0 {
		ids, err := s.m.prompt(s.op, v)
		return [][]int32{ids}, err
	}
	var texts [][]int32
	for item := range star.Elements(list) {
		if _, ok := item.(star.String); !ok {
			ids, err := s.m.ids(s.op, v)
			return [][]int32{ids}, err
		}
		ids, err := s.m.prompt(s.op, item)
		if err != nil {
			return nil, err
		}
		texts = append(texts, ids)
	}
	return texts, nil
}

// cut is the full chunks of n tokens of the texts. Each begins as a text does.
func (s *surprise) cut(texts [][]int32, n int) ([][]int32, error) {
	if s.m.context > 0 && n > s.m.context {
		return nil, s.m.tooLong(s.op, n, 0)
	}
	var chunks [][]int32
	total := 0
	for _, ids := range texts {
		total += len(ids)
		begins := ids[0] == s.m.tokens.BOS()
		for part := range slices.Chunk(ids, n) {
			if len(part) < n {
				break
			}
			if part = slices.Clone(part); begins {
				part[0] = s.m.tokens.BOS()
			}
			chunks = append(chunks, part)
		}
	}
	if len(chunks) == 0 {
		return nil, &core.Error{Op: s.op, Msg: fmt.Sprintf("the text has %d tokens, but a chunk %d", total, n),
			Hint: "give it more, or a smaller chunk"}
	}
	return chunks, nil
}

// piece is how many tokens are evaluated at once.
const piece = 512

// run evaluates the chunks and counts all tokens behind the place first.
func (s *surprise) run(chunks [][]int32, first int) error {
	m := &meter{out: s.it.cfg.Stderr, terminal: s.it.cfg.Terminal, label: s.op, total: len(chunks), began: time.Now()}
	m.shown, m.running = m.began, true
	defer func() { m.end(time.Now()) }()
	for _, ids := range chunks {
		if s.m.context > 0 && len(ids) > s.m.context {
			return s.m.tooLong(s.op, len(ids), 0)
		}
		if err := s.chunk(ids, first); err != nil {
			return err
		}
		m.tick(true, time.Now())
	}
	return nil
}

// chunk evaluates one: of what nobody counts, the scores are not computed.
func (s *surprise) chunk(ids []int32, first int) error {
	cache := s.m.newCache(s.it)
	defer cache.Free()
	for at := 0; at+1 < len(ids); {
		end := min(at+piece, len(ids)-1)
		if at < first {
			end = min(end, first)
		}
		x, err := s.m.forward(s.it, cache, ids[at:end], at >= first)
		if err != nil {
			return err
		}
		if at >= first {
			err = s.count(x, ids[at+1:end+1])
		}
		x.Free()
		if err != nil {
			return err
		}
		at = end
	}
	return nil
}

// count adds the rows of scores[row, vocab], by what came next.
func (s *surprise) count(x *core.Tensor, next []int32) error {
	const some = 32 // rows that are copied at once
	width := x.Size("vocab")
	surprises := make([]float64, len(next))
	for at := 0; at < len(next); at += some {
		rows := x.Slice("row", at, min(at+some, len(next)), 1)
		scores := rows.Float32s()
		rows.Free()
		if !par.Split(&s.it.env.Control, len(scores)/width, 1, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				surprises[at+i] = -logProbability(scores[i*width:(i+1)*width], next[at+i])
			}
		}) {
			return &core.Canceled{Op: s.op}
		}
	}
	for _, v := range surprises { // in this order for any number of workers
		s.sum += v
		s.squares += v * v
	}
	s.n += len(next)
	return nil
}

// logProbability is that of a token by the scores of all.
func logProbability(scores []float32, id int32) float64 {
	top := slices.Max(scores)
	sum := 0.0
	for _, v := range scores {
		sum += math.Exp(float64(v) - float64(top))
	}
	return float64(scores[id]) - float64(top) - math.Log(sum)
}
