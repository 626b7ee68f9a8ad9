package token

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// tokenizer.json, as Hugging Face's tokenizers library writes it: what text goes through (normalizer, pre_tokenizer),
// the vocabulary (model), and what goes around it (post_processor).

type hfFile struct {
	AddedTokens []struct {
		ID      int32
		Content string
		Special bool
		RStrip  bool
	} `json:"added_tokens"`
	Normalizer    *hfPart `json:"normalizer"`
	PreTokenizer  *hfPart `json:"pre_tokenizer"`
	PostProcessor *hfPart `json:"post_processor"`
	Model         hfModel
}

type hfModel struct {
	Type         string
	Vocab        json.RawMessage
	Merges       json.RawMessage
	UnkToken     *string `json:"unk_token"`
	UnkID        *int32  `json:"unk_id"`
	ByteFallback bool    `json:"byte_fallback"`
	IgnoreMerges bool    `json:"ignore_merges"`
	Prefix       *string `json:"continuing_subword_prefix"`
	Suffix       *string `json:"end_of_word_suffix"`
	MaxWord      int     `json:"max_input_chars_per_word"`
}

// hfPart is any normalizer, pre-tokenizer or post-processor; each uses some of the fields.
type hfPart struct {
	Type           string
	Normalizers    []hfPart
	PreTokenizers  []hfPart
	Processors     []hfPart
	Pattern        struct{ String, Regex string }
	Content        string
	Prepend        string
	Charsmap       []byte `json:"precompiled_charsmap"`
	Lowercase      *bool
	StripAccents   *bool  `json:"strip_accents"`
	UseRegex       *bool  `json:"use_regex"`
	AddPrefixSpace *bool  `json:"add_prefix_space"`
	PrependScheme  string `json:"prepend_scheme"`
	Single         []map[string]struct{ ID string }
	SpecialTokens  map[string]struct{ IDs []int32 } `json:"special_tokens"`
	Cls, Sep       []any
	Individual     bool `json:"individual_digits"`
}

// parts is p, or what it is a sequence of.
func (p *hfPart) parts() []hfPart {
	switch {
	case p == nil:
		return nil
	case p.Type == "Sequence":
		var all []hfPart
		for _, list := range [][]hfPart{p.Normalizers, p.PreTokenizers, p.Processors} {
			all = append(all, list...)
		}
		return all
	}
	return []hfPart{*p}
}

func parseHF(data []byte, c config) (*Tokenizer, error) {
	var f hfFile
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &f); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	load, ok := map[string]func(*hfFile, *vocab, config) (codec, error){
		"BPE": hfBPE, "WordPiece": hfWordPiece, "Unigram": hfUnigram,
	}[f.Model.Type]
	if !ok {
		return nil, fmt.Errorf("tokenizer.json: model.type: got %q, want BPE, WordPiece or Unigram", f.Model.Type)
	}
	v, s, err := f.vocabulary()
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	if s, err = f.around(v, s); err != nil {
		return nil, fmt.Errorf("tokenizer.json: post_processor: %w", err)
	}
	codec, err := load(&f, v, c)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	switch codec := codec.(type) {
	case *bpe:
		codec.unk, s.addSpace = s.unk, codec.prefix
		codec.prepare()
	case *wordPiece:
		codec.unk, s.addSpace = s.unk, true
		if s.unk < 0 {
			return nil, errNoUnknown
		}
	case *unigram:
		codec.unk, s.addSpace = s.unk, codec.prefix
		if err := codec.prepare(); err != nil {
			return nil, err
		}
	}
	return assemble(v, s, codec), nil
}

// hfToken is an entry of the vocabulary.
type hfToken struct {
	text  string
	score float32
	flags uint8
}

// vocabulary is the model's tokens and the added ones, and the unknown token.
func (f *hfFile) vocabulary() (*vocab, specials, error) {
	s := noRoles
	tokens, err := f.Model.tokens()
	if err != nil {
		return nil, s, fmt.Errorf("model.vocab: %w", err)
	}
	for _, a := range f.AddedTokens {
		// Ids have few gaps, and so bound what is allocated.
		if a.ID < 0 || int(a.ID) > 2*(len(tokens)+len(f.AddedTokens))+1000 {
			return nil, s, fmt.Errorf("added_tokens: %.40q has the id %d, want one near the %d tokens", a.Content, a.ID,
				len(tokens))
		}
		for len(tokens) <= int(a.ID) {
			tokens = append(tokens, hfToken{flags: unused})
		}
		t := &tokens[a.ID]
		if t.text != "" && t.text != a.Content {
			return nil, s, fmt.Errorf("added_tokens: token %d is %.40q, but %.40q in the vocabulary", a.ID,
				a.Content, t.text)
		}
		t.text, t.flags = a.Content, userDefined
		if a.Special {
			t.flags = control
		}
		if a.RStrip {
			t.flags |= rstrip
		}
	}
	if len(tokens) > maxTokens {
		return nil, s, fmt.Errorf("got %d tokens, want at most %d", len(tokens), maxTokens)
	}
	v := newVocab(len(tokens), 0)
	for _, t := range tokens {
		if f.Model.ByteFallback && t.flags == normal && spellsByte([]byte(t.text)) {
			t.flags = isByte
		}
		v.append([]byte(t.text), t.score, t.flags)
	}
	if err := v.buildIndex(); err != nil {
		return nil, s, err
	}
	if f.Model.UnkToken != nil {
		s.unk = v.find([]byte(*f.Model.UnkToken))
	}
	if id := f.Model.UnkID; id != nil {
		if !v.has(*id) {
			return nil, s, fmt.Errorf("model.unk_id: token %d is %w of %d tokens", *id, errOutside, len(v.flags))
		}
		s.unk = *id
	}
	if s.unk >= 0 {
		v.flags[s.unk] = unknown
	}
	return v, s, nil
}

// tokens is the vocabulary in order of ids.
func (m *hfModel) tokens() ([]hfToken, error) {
	if m.Type == "Unigram" {
		var list [][2]any
		if err := json.Unmarshal(m.Vocab, &list); err != nil {
			return nil, err
		}
		tokens := make([]hfToken, len(list))
		for id, pair := range list {
			text, isText := pair[0].(string)
			score, isNumber := pair[1].(float64)
			if !isText || !isNumber || math.Abs(score) > math.MaxFloat32 {
				return nil, fmt.Errorf("token %d is %v, want a text and a score", id, pair)
			}
			tokens[id] = hfToken{text, float32(score), normal}
		}
		return tokens, nil
	}
	var ids map[string]int32
	if err := json.Unmarshal(m.Vocab, &ids); err != nil {
		return nil, err
	}
	last := int32(-1)
	for text, id := range ids {
		if id < 0 || int(id) > 2*len(ids)+1000 {
			return nil, fmt.Errorf("%.40q has the id %d, want one below the %d tokens", text, id, len(ids))
		}
		last = max(last, id)
	}
	tokens := make([]hfToken, last+1)
	for i := range tokens {
		tokens[i].flags = unused
	}
	for text, id := range ids {
		if t := &tokens[id]; t.flags != unused {
			return nil, fmt.Errorf("%.40q and %.40q both have the id %d", min(text, t.text), max(text, t.text), id)
		}
		tokens[id] = hfToken{text: text, flags: normal}
	}
	return tokens, nil
}

// hfEnds are the texts of EOS where no post-processor adds it; the first one found.
var hfEnds = []string{"</s>", "<|endoftext|>", "<|end_of_text|>", "<eos>", "<|im_end|>"}

// around completes s by what the post-processor puts around a text.
func (f *hfFile) around(v *vocab, s specials) (specials, error) {
	var before, after []int32
	for _, p := range f.PostProcessor.parts() {
		switch p.Type {
		case "TemplateProcessing":
			ids := &before
			for _, part := range p.Single {
				if _, isText := part["Sequence"]; isText {
					ids = &after
				}
				if special, ok := part["SpecialToken"]; ok {
					*ids = append(*ids, p.SpecialTokens[special.ID].IDs...)
				}
			}
		case "BertProcessing", "RobertaProcessing":
			for _, end := range []struct {
				pair []any
				ids  *[]int32
			}{{p.Cls, &before}, {p.Sep, &after}} {
				if len(end.pair) == 2 {
					if id, ok := end.pair[1].(float64); ok && id == math.Trunc(id) && math.Abs(id) < 1<<31 {
						*end.ids = append(*end.ids, int32(id))
					}
				}
			}
		case "ByteLevel":
		default:
			return s, fmt.Errorf("got %q, want TemplateProcessing, BertProcessing, RobertaProcessing or ByteLevel",
				p.Type)
		}
	}
	for _, id := range append(append([]int32{}, before...), after...) {
		if !v.has(id) {
			return s, fmt.Errorf("token %d is %w of %d tokens", id, errOutside, len(v.flags))
		}
	}
	if len(before) > 0 {
		s.bos = before[0]
	}
	for i := len(hfEnds) - 1; i >= 0; i-- {
		if id := v.find([]byte(hfEnds[i])); id >= 0 && v.flags[id]&control != 0 {
			s.eos = id
		}
	}
	if len(after) > 0 {
		s.eos = after[len(after)-1]
		if f.Model.Type == "WordPiece" {
			s.eos, s.sep = -1, s.eos
		}
	}
	s, err := readSpecials(silence{}, v, s)
	s.before, s.after = before, after
	return s, err
}

// errUnlike is for a part of the file that does what is not known here.
func errUnlike(part string, p hfPart, want string) error {
	return fmt.Errorf("%s: %s is not known here, want %s", part, p.describe(), want)
}

func (p *hfPart) describe() string {
	if p.Pattern.Regex != "" || p.Pattern.String != "" {
		return fmt.Sprintf("%s of %.200q", p.Type, p.Pattern.Regex+p.Pattern.String)
	}
	return p.Type
}

// merges reads merges, which are texts or pairs of texts.
func (m *hfModel) merges(v *vocab) (merges, *vocab, error) {
	var pairs [][2]string
	var texts []string
	if json.Unmarshal(m.Merges, &pairs) != nil {
		pairs = nil
		if err := json.Unmarshal(m.Merges, &texts); err != nil {
			return merges{}, nil, errors.New("model.merges: want a list of texts or of pairs of texts")
		}
	}
	ms, extra, err := readMerges(v, len(texts)+len(pairs), func(yield func([]byte) bool) {
		for _, text := range texts {
			if !yield([]byte(text)) {
				return
			}
		}
	})
	for rank, p := range pairs {
		if err == nil {
			err = ms.join(v, extra, []byte(p[0]), []byte(p[1]), uint32(rank))
		}
	}
	if err != nil {
		err = fmt.Errorf("model.merges: %w", err)
	}
	return ms, extra, err
}

// hfWordPiece is WordPiece with BERT's normalizer.
func hfWordPiece(f *hfFile, v *vocab, _ config) (codec, error) {
	w := &wordPiece{v: v, later: "##", maxWord: cmp.Or(f.Model.MaxWord, 100)}
	if f.Model.Prefix != nil {
		w.later = *f.Model.Prefix
	}
	if w.later == "" || len(w.later) > 32 {
		return nil, fmt.Errorf("model.continuing_subword_prefix: got %.40q, want a short text such as ##", w.later)
	}
	for _, p := range f.Normalizer.parts() {
		if p.Type != "BertNormalizer" {
			return nil, errUnlike("normalizer", p, "BertNormalizer")
		}
		w.lower = p.Lowercase == nil || *p.Lowercase
		if w.strip = w.lower; p.StripAccents != nil {
			w.strip = *p.StripAccents
		}
	}
	for _, p := range f.PreTokenizer.parts() {
		if p.Type != "BertPreTokenizer" {
			return nil, errUnlike("pre_tokenizer", p, "BertPreTokenizer")
		}
	}
	return w, nil
}

// hfUnigram is SentencePiece's Unigram.
func hfUnigram(f *hfFile, v *vocab, _ config) (codec, error) {
	u := &unigram{v: v}
	for _, p := range f.Normalizer.parts() {
		switch {
		case p.Type == "Precompiled":
			var err error
			if u.chars, err = newCharsMap(p.Charsmap); err != nil {
				return nil, fmt.Errorf("normalizer: %w", err)
			}
		case p.Type == "Replace" && p.Pattern.Regex == " {2,}", p.Type == "Strip":
			u.merge = true
		default:
			return nil, errUnlike("normalizer", p, "Precompiled, Strip or Replace of two spaces")
		}
	}
	for _, p := range f.PreTokenizer.parts() {
		switch p.Type {
		case "Metaspace":
			u.prefix = p.prefixed()
		case "WhitespaceSplit":
			u.merge = true
		default:
			return nil, errUnlike("pre_tokenizer", p, "Metaspace or WhitespaceSplit")
		}
	}
	return u, nil
}

// prefixed says whether Metaspace puts a space before the text.
func (p *hfPart) prefixed() bool {
	if p.PrependScheme != "" {
		return p.PrependScheme != "never"
	}
	return p.AddPrefixSpace == nil || *p.AddPrefixSpace
}
