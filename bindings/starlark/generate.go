package starlark

import (
	"fmt"
	"slices"
	"strings"
	"time"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/models/kv"
	"github.com/fucina-go/fucina/models/sample"
	"github.com/fucina-go/fucina/models/token"
)

// generation is what m.generate and m.chat return: an iterable of pieces of text, made one by one as they are
// asked for. Iterating again begins again.
type generation struct {
	it       *Interp
	m        *Model
	prompt   []int32
	tokens   int  // at most
	fills    bool // tokens is what the context has room for, less than there would be otherwise
	stop     []string
	probs    int // of the most probable tokens to tell; 0: none
	settings sample.Settings
	bias     []sample.Bias
	breakers []string
	memory   *modelCache // nil: one of its own for each run
	last     *pieces     // the run that began last; nil: none
}

// defaultTokens is how many tokens are made where the call does not say.
const defaultTokens = 256

// modelGenerate is m.generate(prompt, max_tokens=None, stop=[], n_probs=0, logit_bias={}, dry_sequence_breakers=["\n",
// ":", "\"", "*"], cache=None, callback=None, **settings): continues a prompt, a text or a list of token ids; it is an
// iterable of pieces of text. It ends before a stop text, at the model's end token, after max_tokens (256 unless given)
// or where the context is full; that a prompt and max_tokens do not fit into the context is an error. With n_probs, it
// gives instead, for every token, a struct of text, id, logprob and top, the so many most probable: tuples of id, text
// and logprob, before any setting. logit_bias adds to the logits of a token's id, or of those of a text; False forbids
// them. dry_sequence_breakers are texts: dry looks no further back than to a token with one in it. cache, of m.cache(),
// keeps what was evaluated, so that another prompt that begins alike goes on from there. With callback, the text is
// made at once and is the value: callback(piece) is called for each piece, and ends the text by returning False. stats
// of what is returned tells of the last run: prompt, reused and tokens, numbers of tokens; prompt_seconds and seconds;
// end: why it ended, "end", "stop", "length", "context" or "left". A list of prompts is continued together, which takes
// less time: the iterable then is of tuples, the place of a prompt in the list and a piece of its text, which is the
// same as alone.
func modelGenerate(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	m := b.Receiver().(*Model)
	var prompt star.Value
	r := request{op: b.Name()}
	settings, kwargs := ownSettings(kwargs)
	pairs := append([]any{"prompt", &prompt}, r.pairs()...)
	names := argumentNames(pairs)
	for _, kw := range kwargs {
		if near := nearArgument(text(kw[0]), names); near != "" && !slices.Contains(names, text(kw[0])) {
			return nil, fmt.Errorf("%s: unexpected keyword argument %s (did you mean %s?)", b.Name(), kw[0], near)
		}
	}
	if err := star.UnpackArgs(b.Name(), args, kwargs, pairs...); err != nil {
		return nil, err
	}
	if list, ok := promptList(prompt); ok {
		return r.several(t, m, list, settings)
	}
	ids, err := m.prompt(b.Name(), prompt)
	if err != nil {
		return nil, err
	}
	return r.begin(t, m, ids, settings)
}

// request is the arguments that m.generate and m.chat share, but for settings.
type request struct {
	op                       string
	tokens, stop, bias       star.Value
	breakers, memory, caller star.Value
	probs                    int
}

// pairs is the arguments for star.UnpackArgs.
func (r *request) pairs() []any {
	r.tokens, r.stop, r.bias, r.memory, r.caller = star.None, star.None, star.None, star.None, star.None
	return []any{"max_tokens?", &r.tokens, "stop?", &r.stop, "n_probs?", &r.probs, "logit_bias?", &r.bias,
		"dry_sequence_breakers?", &r.breakers, "cache?", &r.memory, "callback?", &r.caller}
}

// begin checks all and returns the generation, or its text if there is a callback.
func (r *request) begin(t *star.Thread, m *Model, prompt []int32, settings []star.Tuple) (star.Value, error) {
	g, err := r.read(t, m, settings)
	if err != nil {
		return nil, err
	}
	g.prompt = prompt
	if err := g.fit(r.op, r.tokens != star.None); err != nil {
		return nil, err
	}
	return g.tell(t, r.op, r.caller)
}

// read is a generation for any prompt.
func (r *request) read(t *star.Thread, m *Model, settings []star.Tuple) (*generation, error) {
	g := &generation{it: interpOf(t), m: m, tokens: defaultTokens, probs: r.probs, settings: sample.Defaults(),
		breakers: []string{"\n", ":", "\"", "*"}}
	if r.tokens != star.None {
		var err error
		if g.tokens, err = star.AsInt32(r.tokens); err != nil {
			return nil, &core.Error{Op: r.op, Msg: "max_tokens: got " + brief(r.tokens),
				Hint: "want a whole number: max_tokens=5"}
		}
	}
	for _, n := range []struct {
		name string
		got  int
	}{{"max_tokens", g.tokens}, {"n_probs", g.probs}} {
		if n.got < 0 {
			return nil, &core.Error{Op: r.op, Msg: fmt.Sprintf("%s is %d", n.name, n.got),
				Hint: "want 0 or more: " + n.name + "=5"}
		}
	}
	if err := setSettings(r.op, &g.settings, settings); err != nil {
		return nil, err
	}
	var err error
	if g.stop, err = stopTexts(r.op, "stop", r.stop); err != nil {
		return nil, err
	}
	if r.breakers != nil {
		if g.breakers, err = stopTexts(r.op, "dry_sequence_breakers", r.breakers); err != nil {
			return nil, err
		}
	}
	if g.bias, err = m.biases(r.op, r.bias); err != nil {
		return nil, err
	}
	g.memory, err = cacheOf(t, r.op, r.memory, m)
	return g, err
}

// fit is an error if the context has no room for the prompt and what is asked for, or, where nobody asked for a number,
// for one token.
func (g *generation) fit(op string, asked bool) error {
	room := g.m.context - len(g.prompt)
	if g.m.context == 0 || room >= g.tokens {
		return nil
	}
	if asked || room < 1 {
		return g.m.tooLong(op, len(g.prompt), g.tokens)
	}
	g.tokens, g.fills = room, true
	return nil
}

// tell gives the pieces to a function and returns the text; without one, it is the generation.
func (g *generation) tell(t *star.Thread, op string, caller star.Value) (star.Value, error) {
	if caller == star.None {
		return g, nil
	}
	fn, ok := caller.(star.Callable)
	if !ok {
		return nil, &core.Error{Op: op, Msg: "callback: got " + caller.Type() + ", want a function",
			Hint: `as in: callback=lambda piece: write(piece)`}
	}
	p := g.begin()
	defer p.Done()
	var all strings.Builder
	for {
		v, err := p.advance()
		if err != nil || v == nil {
			return star.String(all.String()), err
		}
		text := v
		if told, ok := v.(*starlarkstruct.Struct); ok {
			if text, err = told.Attr("text"); err != nil {
				return nil, err
			}
		}
		all.WriteString(string(text.(star.String)))
		switch more, err := g.it.call(t, fn, star.Tuple{v}, nil); {
		case err != nil:
			return nil, err
		case more == star.False:
			return star.String(all.String()), nil
		}
	}
}

// stopTexts is a text or a list of texts.
func stopTexts(op, name string, v star.Value) ([]string, error) {
	wrong := func(got string) error {
		return &core.Error{Op: op, Msg: name + ": got " + got,
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

// Attr is stats.
func (g *generation) Attr(name string) (star.Value, error) {
	if name == "stats" {
		return g.last.stats(), nil
	}
	return nil, nil
}

// AttrNames is every attribute.
func (*generation) AttrNames() []string { return []string{"stats"} }

// Iterate begins to generate.
func (g *generation) Iterate() star.Iterator { return g.begin() }

func (g *generation) begin() *pieces {
	p := &pieces{g: g, next: g.prompt, past: slices.Clone(g.prompt), text: g.m.tokens.NewDecoder(g.prompt...),
		sampler: sample.New(g.settings)}
	p.sampler.Bias, p.sampler.Breaks = g.bias, g.m.breaks(g.breakers)
	if g.memory != nil {
		p.cache, p.reused = g.memory.cache, g.memory.rewind(p, g.prompt)
		p.next = g.prompt[p.reused:]
	} else {
		p.cache = g.m.newCache(g.it)
	}
	g.last = p
	return p
}

// pieces is one run of a generation.
type pieces struct {
	g       *generation
	cache   *kv.Cache
	reused  int     // tokens of the prompt that the cache had
	next    []int32 // tokens not yet forwarded
	past    []int32 // tokens of the prompt and made
	sampler *sample.Sampler
	probs   star.StringDict // of the token just made; nil: none
	made    int
	text    *token.Decoder
	held    string // text that may be the beginning of a stop text
	end     string // why it ended; "": it goes on

	reading, writing time.Duration // what the prompt took, and all that came after
}

// stats tells of the run; nil is one that never began.
func (p *pieces) stats() star.Value {
	if p == nil {
		p = &pieces{g: &generation{}}
	}
	return starlarkstruct.FromStringDict(starlarkstruct.Default, star.StringDict{
		"prompt": star.MakeInt(len(p.g.prompt)), "reused": star.MakeInt(p.reused), "tokens": star.MakeInt(p.made),
		"prompt_seconds": star.Float(p.reading.Seconds()), "seconds": star.Float(p.writing.Seconds()),
		"end": star.String(p.end)})
}

// Next yields the next piece of text that is not empty. Starlark's iteration cannot fail, so an
// error ends the run from outside.
func (p *pieces) Next(v *star.Value) bool {
	piece, err := p.advance()
	if err != nil {
		p.g.it.halt(&stop{msg: err.Error(), cause: err, catchable: true})
	}
	if piece == nil {
		return false
	}
	*v = piece
	return true
}

// advance is the next piece of text that is not empty, or what n_probs asks for; nil after the last.
func (p *pieces) advance() (star.Value, error) {
	for p.end == "" {
		p.probs = nil
		piece, err := p.step()
		if err != nil {
			p.end = "error"
			return nil, err
		}
		if shown := p.shown(piece); shown != nil {
			return shown, nil
		}
	}
	return nil, nil
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

// Done gives the cache back, unless it is the script's.
func (p *pieces) Done() {
	if p.end == "" {
		p.end = "left"
	}
	if p.g.memory == nil {
		p.cache.Free()
	}
}

// step makes one token and returns the text that has become certain.
func (p *pieces) step() (text string, err error) {
	defer rescue(&err)
	began, spent := time.Now(), &p.writing
	if len(p.past) == len(p.g.prompt) {
		spent = &p.reading
	}
	defer func() { *spent += time.Since(began) }()
	if p.made == p.g.tokens {
		return p.finish(), nil
	}
	if err := p.g.memory.ask(p); err != nil {
		return "", err
	}
	scores, err := p.g.m.forward(p.g.it, p.cache, p.next, false)
	p.g.memory.add(p.next, err)
	if err != nil {
		return "", err
	}
	logits := scores.Float32s()
	scores.Free()
	return p.choose(logits)
}

// finish ends a run that has made all its tokens, and returns the text that was held back.
func (p *pieces) finish() string {
	p.end = "length"
	if p.g.fills {
		p.end = "context"
	}
	return p.release(p.text.Flush(), true)
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
		p.end = "end"
		return p.release(p.text.Flush(), true), nil
	}
	p.next = []int32{id}
	if p.g.probs > 0 {
		if p.probs, err = p.probabilities(logits, id); err != nil {
			return "", err
		}
	}
	return p.release(p.text.Next(id), false), nil
}

// probabilities is what n_probs asks for: the token's id and log probability, and the most probable.
func (p *pieces) probabilities(logits []float32, id int32) (star.StringDict, error) {
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
		p.end = "stop"
		text, p.held = p.held[:cut], ""
	case last:
		text, p.held = p.held, ""
	default:
		text, p.held = p.held[:len(p.held)-hold], p.held[len(p.held)-hold:]
	}
	return text
}

// foreignNames is what arguments of m.generate and m.chat are called in llama.cpp and its bindings, in transformers and
// in the API of OpenAI.
var foreignNames = map[string]string{
	"temp": "temperature", "do_sample": "temperature", "n_predict": "max_tokens", "num_predict": "max_tokens",
	"max_length": "max_tokens", "max_completion_tokens": "max_tokens", "stop_strings": "stop", "stop_sequences": "stop",
	"antiprompt": "stop", "reverse_prompt": "stop", "repetition_penalty": "repeat_penalty",
	"penalty_repeat": "repeat_penalty", "penalty_last_n": "repeat_last_n", "logprobs": "n_probs",
	"top_logprobs": "n_probs", "mirostat_lr": "mirostat_eta", "mirostat_ent": "mirostat_tau", "typ_p": "typical_p",
	"streamer": "callback", "random_seed": "seed",
}

// nearArgument is the one of names that a keyword argument of another name most likely meant, or "".
func nearArgument(name string, names []string) string {
	if known := foreignNames[name]; known != "" {
		return known
	}
	return nearest(name, names)
}
