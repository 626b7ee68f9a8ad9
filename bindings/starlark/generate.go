package starlark

import (
	"fmt"
	"slices"
	"strings"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/models/kv"
	"github.com/fucina-go/fucina/models/sample"
	"github.com/fucina-go/fucina/models/token"
)

// generation is what m.generate returns: an iterable of pieces of text, made one by one as they are
// asked for. Iterating again begins again.
type generation struct {
	it       *Interp
	m        *Model
	prompt   []int32
	tokens   int
	stop     []string
	probs    int // of the most probable tokens to tell; 0: none
	settings sample.Settings
	bias     []sample.Bias
	breakers []string
}

// modelGenerate is m.generate(prompt, max_tokens=256, stop=[], n_probs=0, logit_bias={}, dry_sequence_breakers=["\n",
// ":", "\"", "*"], **settings): continues a prompt, a text or a list of token ids; it is an iterable of pieces of text.
// It ends before a stop text, at the model's end token or after max_tokens. With n_probs, it gives instead, for every
// token, a struct of text, id, logprob and top, the so many most probable: tuples of id, text and logprob, before any
// setting. logit_bias adds to the logits of a token's id, or of those of a text; False forbids them.
// dry_sequence_breakers are texts: dry looks no further back than to a token with one in it. A list of prompts is
// continued together, which takes less time: the iterable then is of tuples, the place of a prompt in the list and a
// piece of its text, which is the same as alone.
func modelGenerate(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var prompt star.Value
	g := &generation{it: interpOf(t), m: b.Receiver().(*Model), tokens: 256, settings: sample.Defaults(),
		breakers: []string{"\n", ":", "\"", "*"}}
	var stop, bias, breakers star.Value = star.None, star.None, nil
	settings, kwargs := ownSettings(kwargs)
	err := star.UnpackArgs(b.Name(), args, kwargs, "prompt", &prompt, "max_tokens?", &g.tokens, "stop?", &stop,
		"n_probs?", &g.probs, "logit_bias?", &bias, "dry_sequence_breakers?", &breakers)
	if err != nil {
		return nil, err
	}
	for _, n := range []struct {
		name string
		got  int
	}{{"max_tokens", g.tokens}, {"n_probs", g.probs}} {
		if n.got < 0 {
			return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("%s is %d", n.name, n.got),
				Hint: "want 0 or more: " + n.name + "=5"}
		}
	}
	if err := setSettings(b.Name(), &g.settings, settings); err != nil {
		return nil, err
	}
	if g.stop, err = stopTexts("stop", stop); err != nil {
		return nil, err
	}
	if breakers != nil {
		if g.breakers, err = stopTexts("dry_sequence_breakers", breakers); err != nil {
			return nil, err
		}
	}
	if g.bias, err = g.m.biases(b.Name(), bias); err != nil {
		return nil, err
	}
	if list, ok := promptList(prompt); ok {
		return g.several(b.Name(), list)
	}
	if g.prompt, err = g.m.prompt(b.Name(), prompt); err != nil {
		return nil, err
	}
	return g, nil
}

// stopTexts is a text or a list of texts.
func stopTexts(name string, v star.Value) ([]string, error) {
	wrong := func(got string) error {
		return &core.Error{Op: "generate", Msg: name + ": got " + got,
			Hint: "want a text or a list of texts: " + name + `=["the end"]`}
	}
	var texts []string
	switch v := v.(type) {
	case star.NoneType:
	case star.String:
		texts = []string{string(v)}
	case star.Iterable:
		for item := range star.Elements(v) {
			s, ok := star.AsString(item)
			if !ok {
				return nil, wrong(item.Type() + " in the list")
			}
			texts = append(texts, s)
		}
	default:
		return nil, wrong(v.Type())
	}
	if slices.Contains(texts, "") {
		return nil, wrong("an empty text")
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
func (g *generation) Iterate() star.Iterator { return g.begin() }

func (g *generation) begin() *pieces {
	p := &pieces{g: g, cache: g.m.newCache(g.it), next: g.prompt, past: slices.Clone(g.prompt),
		text: g.m.tokens.NewDecoder(g.prompt...), sampler: sample.New(g.settings)}
	p.sampler.Bias, p.sampler.Breaks = g.bias, g.m.breaks(g.breakers)
	return p
}

// pieces is one run of a generation.
type pieces struct {
	g       *generation
	cache   *kv.Cache
	next    []int32 // tokens not yet forwarded
	past    []int32 // tokens of the prompt and made
	sampler *sample.Sampler
	probs   star.StringDict // of the token just made; nil: none
	made    int
	text    *token.Decoder
	held    string // text that may be the beginning of a stop text
	done    bool
}

// Next yields the next piece of text that is not empty. Starlark's iteration cannot fail, so an
// error ends the run from outside.
func (p *pieces) Next(v *star.Value) bool {
	for !p.done {
		p.probs = nil
		piece, err := p.step()
		if err != nil {
			p.done = true
			p.g.it.halt(&stop{msg: err.Error(), cause: err, catchable: true})
			return false
		}
		if shown := p.shown(piece); shown != nil {
			*v = shown
			return true
		}
	}
	return false
}

// shown is what a piece of text is given as, nil if there is nothing to give.
func (p *pieces) shown(piece string) star.Value {
	switch {
	case p.probs != nil:
		p.probs["text"] = star.String(piece)
		return starlarkstruct.FromStringDict(starlarkstruct.Default, p.probs)
	case piece != "" && p.g.probs > 0: // text that was held back, after the last token
		return starlarkstruct.FromStringDict(starlarkstruct.Default, star.StringDict{"text": star.String(piece),
			"id": star.None, "logprob": star.None, "top": star.NewList(nil)})
	case piece != "":
		return star.String(piece)
	}
	return nil
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
	return p.choose(logits)
}

// choose makes a token of its scores, and returns the text that has become certain.
func (p *pieces) choose(logits []float32) (text string, err error) {
	id, err := p.sampler.Next(logits, p.cache.Len(), p.past)
	if err != nil {
		return "", err
	}
	p.made++
	p.past = append(p.past, id)
	if p.g.m.tokens.IsEOG(id) || id == p.g.m.tokens.BOS() {
		p.done = true
		return p.release(p.text.Flush(), true), nil
	}
	p.next = []int32{id}
	if p.g.probs > 0 {
		if p.probs, err = p.tell(logits, id); err != nil {
			return "", err
		}
	}
	return p.release(p.text.Next(id), false), nil
}

// tell is what n_probs asks for: the token's id and log probability, and the most probable.
func (p *pieces) tell(logits []float32, id int32) (star.StringDict, error) {
	of, top, err := p.sampler.Logprobs(logits, id, p.g.probs)
	if err != nil {
		return nil, err
	}
	list := make([]star.Value, len(top))
	for i, t := range top {
		list[i] = star.Tuple{star.MakeInt(int(t.ID)), star.String(p.g.m.tokens.Decode([]int32{t.ID})),
			star.Float(t.Logprob)}
	}
	return star.StringDict{"id": star.MakeInt(int(id)), "logprob": star.Float(of.Logprob),
		"top": star.NewList(list)}, nil
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
