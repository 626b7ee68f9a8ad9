package starlark

import (
	"fmt"
	"math"
	"strings"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/models/kv"
	"github.com/fucina-go/fucina/models/sample"
	"github.com/fucina-go/fucina/models/token"
)

// generation is what m.generate returns: an iterable of pieces of text, made one by one as they are
// asked for. Iterating again begins again.
type generation struct {
	it      *Interp
	m       *Model
	prompt  []int32
	tokens  int
	stop    []string
	sampler sample.Sampler
}

// modelGenerate is m.generate(prompt, max_tokens=256, temperature=0, top_k=40, top_p=0.95, min_p=0.05,
// seed=0, stop=[]): continues a prompt, a text or a list of token ids. A temperature of 0 takes the most
// probable token each time. It ends before a stop text, at the model's end token or after max_tokens.
func modelGenerate(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var prompt star.Value
	g := &generation{it: interpOf(t), m: b.Receiver().(*Model), tokens: 256}
	s := &g.sampler
	s.TopK, s.TopP, s.MinP = 40, 0.95, 0.05
	var temperature, topP, minP star.Value = star.MakeInt(0), star.Float(s.TopP), star.Float(s.MinP)
	var stop star.Value = star.None
	err := star.UnpackArgs(b.Name(), args, kwargs, "prompt", &prompt, "max_tokens?", &g.tokens,
		"temperature?", &temperature, "top_k?", &s.TopK, "top_p?", &topP, "min_p?", &minP, "seed?", &s.Seed,
		"stop?", &stop)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name string
		from star.Value
		to   *float64
	}{{"temperature", temperature, &s.Temperature}, {"top_p", topP, &s.TopP}, {"min_p", minP, &s.MinP}} {
		var ok bool
		if *f.to, ok = star.AsFloat(f.from); !ok {
			return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("%s: got %s, want a number", f.name, f.from.Type()),
				Hint: fmt.Sprintf("as in: m.generate(\"once\", %s=0.5)", f.name)}
		}
	}
	if err := g.checkOptions(); err != nil {
		return nil, err
	}
	if g.stop, err = stopTexts(stop); err != nil {
		return nil, err
	}
	if g.prompt, err = g.m.prompt(b.Name(), prompt); err != nil {
		return nil, err
	}
	return g, nil
}

// wantStop is how texts to stop before are given.
const wantStop = `as in: m.generate("once", stop=["the end"])`

// checkOptions refuses numbers that mean nothing, before anything is computed.
func (g *generation) checkOptions() error {
	s := &g.sampler
	for _, c := range []struct {
		ok   bool
		name string
		got  any
		want string
	}{
		{g.tokens >= 0, "max_tokens", g.tokens, "0 or more: max_tokens=100"},
		{s.Temperature >= 0 && !math.IsInf(s.Temperature, 1), "temperature", s.Temperature,
			"0, which is greedy, or more: temperature=0.8"},
		{s.TopK >= 0, "top_k", s.TopK, "0, which keeps all tokens, or more: top_k=40"},
		{s.TopP >= 0 && s.TopP <= 1, "top_p", s.TopP, "0 to 1, which keeps all tokens: top_p=0.95"},
		{s.MinP >= 0 && s.MinP <= 1, "min_p", s.MinP, "0, which keeps all tokens, to 1: min_p=0.05"},
	} {
		if !c.ok {
			return &core.Error{Op: "generate", Msg: fmt.Sprintf("%s is %v", c.name, c.got), Hint: "want " + c.want}
		}
	}
	return nil
}

// stopTexts is a text or a list of texts.
func stopTexts(v star.Value) ([]string, error) {
	var texts []string
	switch v := v.(type) {
	case star.NoneType:
	case star.String:
		texts = []string{string(v)}
	case star.Iterable:
		for item := range star.Elements(v) {
			s, ok := star.AsString(item)
			if !ok {
				return nil, &core.Error{Op: "generate", Msg: "stop: got " + item.Type() + " in the list, want texts",
					Hint: wantStop}
			}
			texts = append(texts, s)
		}
	default:
		return nil, &core.Error{Op: "generate", Msg: "stop: got " + v.Type() + ", want a text or a list of texts",
			Hint: wantStop}
	}
	for _, s := range texts {
		if s == "" {
			return nil, &core.Error{Op: "generate", Msg: "stop: got an empty text", Hint: wantStop}
		}
	}
	return texts, nil
}

func (g *generation) String() string {
	return fmt.Sprintf("<generation of at most %d tokens>", g.tokens)
}
func (g *generation) Type() string          { return "generation" }
func (g *generation) Freeze()               {}
func (g *generation) Truth() star.Bool      { return true }
func (g *generation) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: generation") }

// Holds visits the model's weights.
func (g *generation) Holds(visit func(star.Value)) { visit(g.m) }

// Iterate begins to generate.
func (g *generation) Iterate() star.Iterator {
	return &pieces{g: g, cache: kv.New(g.it.env, g.m.layers), next: g.prompt, text: g.m.tokens.NewDecoder(g.prompt...)}
}

// pieces is one run of a generation.
type pieces struct {
	g     *generation
	cache *kv.Cache
	next  []int32 // tokens not yet forwarded
	made  int
	text  *token.Decoder
	held  string // text that may be the beginning of a stop text
	done  bool
}

// Next yields the next piece of text that is not empty. Starlark's iteration cannot fail, so an
// error ends the run from outside.
func (p *pieces) Next(v *star.Value) bool {
	for !p.done {
		piece, err := p.step()
		if err != nil {
			p.done = true
			p.g.it.halt(&stop{msg: err.Error(), cause: err, catchable: true})
			return false
		}
		if piece != "" {
			*v = star.String(piece)
			return true
		}
	}
	return false
}

// Done gives the cache back.
func (p *pieces) Done() {
	p.done = true
	p.cache.Free()
}

// step makes one token and returns the text that has become certain.
func (p *pieces) step() (text string, err error) {
	defer rescue(&err)
	if p.made == p.g.tokens {
		p.done = true
		return p.release(p.text.Flush(), true), nil
	}
	scores, err := p.g.m.forward(p.g.it, p.cache, p.next, false)
	if err != nil {
		return "", err
	}
	logits := scores.Float32s()
	scores.Free()
	id, err := p.g.sampler.Next(logits, p.cache.Len())
	if err != nil {
		return "", err
	}
	p.made++
	if p.g.m.tokens.IsEOG(id) || id == p.g.m.tokens.BOS() {
		p.done = true
		return p.release(p.text.Flush(), true), nil
	}
	p.next = []int32{id}
	return p.release(p.text.Next(id), false), nil
}

// release adds text and returns what can be shown: all up to a stop text, which ends the run; else
// all but an end that could become one.
func (p *pieces) release(text string, last bool) string {
	p.held += text
	hold := 0
	cut := -1
	for _, stop := range p.g.stop {
		if i := strings.Index(p.held, stop); i >= 0 && (cut < 0 || i < cut) {
			cut = i
		}
		for n := min(len(stop)-1, len(p.held)); n > hold; n-- {
			if strings.HasSuffix(p.held, stop[:n]) {
				hold = n
			}
		}
	}
	switch {
	case cut >= 0:
		p.done = true
		text, p.held = p.held[:cut], ""
	case last:
		text, p.held = p.held, ""
	default:
		text, p.held = p.held[:len(p.held)-hold], p.held[len(p.held)-hold:]
	}
	return text
}
