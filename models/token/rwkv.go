package token

import (
	"fmt"

	"github.com/fucina-go/fucina/core/gguf"
)

// rwkvFamily is RWKV's World vocabulary.
var rwkvFamily = family{"rwkv", loadRWKV}

func loadRWKV(f *gguf.File, _ string, _ config) (*Tokenizer, error) {
	v, err := readVocab(f)
	if err != nil {
		return nil, err
	}
	s, err := readSpecials(f, v, noRoles)
	if err != nil {
		return nil, err
	}
	r := &rwkv{unk: s.unk, v: newVocab(len(v.flags), len(v.text))}
	var text []byte
	for id, flags := range v.flags {
		if text, err = appendUnescaped(text[:0], v.bytes(int32(id))); err != nil {
			return nil, fmt.Errorf("tokenizer.ggml.tokens: token %d: %w", id, err)
		}
		r.v.append(text, 0, flags|normal)
	}
	r.tokens = newMatcher(r.v, normal, control|unknown)
	return assemble(v, s, r), nil
}

// rwkv takes the longest token that fits, again and again. A byte that begins none is unknown. This is llama.cpp's
// llm_tokenizer_rwkv.
type rwkv struct {
	v      *vocab // the bytes that tokens stand for; the file has them escaped
	unk    int32
	tokens matcher
}

func (r *rwkv) encode(e *encoding, text string) {
	for text != "" {
		n := 1
		id := r.tokens.longest(r.v, text)
		if id >= 0 {
			n = len(r.v.bytes(id))
		} else {
			id = r.unk
		}
		if id >= 0 {
			e.ids = append(e.ids, id)
		}
		text = text[n:]
		if !e.goOn(n) {
			return
		}
	}
}

func (r *rwkv) decode(text []byte, id int32) []byte { return append(text, r.v.bytes(id)...) }

// appendUnescaped appends text with \t, \n, \r and \x41 for what they stand for; \ before another character is that
// character.
func appendUnescaped(to, text []byte) ([]byte, error) {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			to = append(to, text[i])
			continue
		}
		if i++; i == len(text) {
			return nil, fmt.Errorf("%q ends in an escape", text)
		}
		switch text[i] {
		case 't':
			to = append(to, '\t')
		case 'n':
			to = append(to, '\n')
		case 'r':
			to = append(to, '\r')
		case 'x':
			if i+2 >= len(text) || hexValue(text[i+1]) > 15 || hexValue(text[i+2]) > 15 {
				return nil, fmt.Errorf(`%q has \x without two hexadecimal digits`, text)
			}
			to = append(to, hexValue(text[i+1])<<4|hexValue(text[i+2]))
			i += 2
		default:
			to = append(to, text[i])
		}
	}
	return to, nil
}
