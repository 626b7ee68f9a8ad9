package token

import (
	"bytes"
	"unicode/utf8"
)

// Decode returns the text of ids. Control tokens, the unknown token and ids outside the vocabulary stand for no
// text; bytes that are not UTF-8 become U+FFFD each. The space that encoding puts in front of a text is dropped.
func (t *Tokenizer) Decode(ids []int32) string {
	d := t.NewDecoder()
	for _, id := range ids {
		d.add(id)
	}
	return d.take(true)
}

// Decoder decodes a text token by token. It is for one goroutine; [Tokenizer.NewDecoder] makes one.
type Decoder struct {
	t       *Tokenizer
	pending []byte // not returned yet
	begun   bool   // a visible token was added
}

// NewDecoder decodes what follows prompt, whose own text it does not return. Without a prompt, or after one of
// control tokens alone, the text begins here and the space that encoding puts in front is dropped; a continuation
// keeps its space.
func (t *Tokenizer) NewDecoder(prompt ...int32) *Decoder {
	t.mustBeRead("decode")
	d := &Decoder{t: t}
	for _, id := range prompt {
		d.add(id)
	}
	d.take(false)
	return d
}

// Next returns the text that id completes: whole characters only, often none.
func (d *Decoder) Next(id int32) string {
	d.t.mustBeRead("decode")
	d.add(id)
	return d.take(false)
}

// Flush returns what Next held back, the beginning of a character, as U+FFFD for each byte.
func (d *Decoder) Flush() string { return d.take(true) }

func (d *Decoder) add(id int32) {
	text, visible := d.t.appendText(d.pending, id)
	if visible && !d.begun {
		d.begun = true
		if d.t.addSpace {
			text = bytes.TrimPrefix(text, []byte(" "))
		}
	}
	d.pending = text
}

// take removes the text of whole characters from pending, and what is left at the end too if all is set.
func (d *Decoder) take(all bool) string {
	var text []byte
	rest := d.pending
	for len(rest) > 0 && (all || utf8.FullRune(rest)) {
		r, n := utf8.DecodeRune(rest)
		text = utf8.AppendRune(text, r)
		rest = rest[n:]
	}
	d.pending = append(d.pending[:0], rest...)
	return string(text)
}
