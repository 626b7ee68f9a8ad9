package token

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// hfPatterns are the expressions by which tokenizer.json files cut texts, and the pre-tokenizers that do the same. A
// line with several has them in a row, with an empty line between.
var hfPatterns = []struct{ patterns, pre string }{
	{`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|` +
		`\s+(?!\S)|\s+`, "dbrx"},
	{`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
		"qwen2"},
	{`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|` +
		`\s+(?!\S)|\s+`, "qwen35"},
	{`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`,
		"bailingmoe"},
	{`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`, "gpt-2"},
	{hfCased + `(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` + hfCasedUp + `(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|` + hfCasedRest,
		"gpt-4o"},
	{hfCased + `|` + hfCasedUp + `|\p{N}|` + hfCasedRest, "tekken"},
	{`\p{N}{1,3}` + "\n\n" + `[一-龥぀-ゟ゠-ヿ]+` + "\n\n" + "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|" +
		`[^` + "\r\n" + `\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[` + "\r\n" + `]*|\s*[` + "\r\n" + `]+|` +
		`\s+(?!\S)|\s+`,
		"deepseek-v3"},
}

const (
	hfCased     = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	hfCasedUp   = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	hfCasedRest = ` ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// hfBPE is byte-level BPE, or BPE of characters with "▁" for a space as converted from SentencePiece.
func hfBPE(f *hfFile, v *vocab, c config) (codec, error) {
	m := &f.Model
	for _, affix := range []struct {
		name string
		text *string
	}{{"end_of_word_suffix", m.Suffix}, {"continuing_subword_prefix", m.Prefix}} {
		if affix.text != nil && *affix.text != "" {
			return nil, fmt.Errorf("model.%s: got %q, want none", affix.name, *affix.text)
		}
	}
	b := &bpe{v: v}
	id, err := f.preTokenizer(b)
	if err != nil && c.pre == "" {
		return nil, err
	}
	if c.pre != "" {
		id, b.raw = c.pre, false
	}
	if !b.raw {
		if b.pre, err = preTokenizer(id); err != nil {
			return nil, err
		}
	} else {
		b.stages = []splitter{everything}
	}
	b.whole = m.IgnoreMerges || b.whole && c.pre != ""
	if err := f.normalizer(b); err != nil {
		return nil, err
	}
	if b.raw && b.prefix && !b.escape {
		return nil, errors.New("normalizer: a space comes before the text, but no token has \"▁\" for it")
	}
	b.merges, b.extra, err = m.merges(v)
	return b, err
}

// everything is one piece.
func everything(t *text) int { return len(t.s) }

// preTokenizer is the id of the pre-tokenizer of a byte-level file; for the others it sets b.raw.
func (f *hfFile) preTokenizer(b *bpe) (string, error) {
	parts := f.PreTokenizer.parts()
	if !slices.ContainsFunc(parts, func(p hfPart) bool { return p.Type == "ByteLevel" }) {
		b.raw = true
		for _, p := range parts {
			switch {
			case p.Type == "Metaspace":
				b.escape, b.prefix = true, p.prefixed()
			case p.Type == "Split" && p.Pattern.String == " ": // each space with the word before or after, joined again
			default:
				return "", errUnlike("pre_tokenizer", p, "ByteLevel, Metaspace or a Split at spaces")
			}
		}
		return "", nil
	}
	var patterns []string
	digits := false
	for _, p := range parts {
		switch p.Type {
		case "Split":
			patterns = append(patterns, p.Pattern.Regex+p.Pattern.String)
		case "Digits":
			if digits = p.Individual; !digits {
				return "", errUnlike("pre_tokenizer", p, "Digits one by one")
			}
		case "ByteLevel":
			b.prefix = p.AddPrefixSpace != nil && *p.AddPrefixSpace
			if (p.UseRegex == nil || *p.UseRegex) && len(patterns) == 0 {
				if digits {
					return "starcoder", nil
				}
				return "gpt-2", nil
			}
		default:
			return "", errUnlike("pre_tokenizer", p, "Split, Digits or ByteLevel")
		}
	}
	for _, p := range hfPatterns {
		if p.patterns == strings.Join(patterns, "\n\n") && !digits {
			return p.pre, nil
		}
	}
	return "", fmt.Errorf("pre_tokenizer: cuts by %.300q, which is not known here; name one that is alike, as in "+
		"pre=\"qwen2\": one of %s", patterns, strings.Join(PreTokenizers(), ", "))
}

// normalizer sets what b does to a text first.
func (f *hfFile) normalizer(b *bpe) error {
	for _, p := range f.Normalizer.parts() {
		switch {
		case p.Type == "NFC":
			b.nfc = true
		case p.Type == "Prepend" && p.Prepend == spmSpace:
			b.prefix, b.always = true, true
		case p.Type == "Replace" && p.Pattern.String == " " && p.Content == spmSpace:
			b.escape = true
		default:
			return errUnlike("normalizer", p, "NFC, or Prepend and Replace of a space by \"▁\"")
		}
	}
	return nil
}

// nfc is text in Unicode's composed form, but for what is not UTF-8.
func nfc(text string) string {
	if norm.NFC.IsNormalString(text) {
		return text
	}
	return norm.NFC.String(text)
}
