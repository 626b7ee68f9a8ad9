package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// WriteHF writes a byte-level BPE as a tokenizer.json, which Hugging Face's tokenizers and [Open] read. Errors: another
// kind of tokenizer, a pre-tokenizer for which tokenizer.json has no expression here, an error of w.
func (t *Tokenizer) WriteHF(w io.Writer) error {
	b, ok := t.codec.(*bpe)
	if !ok || b.raw || b.dropSpaces {
		return errors.New("token: a tokenizer.json is written of byte-level BPE only")
	}
	cut, err := b.hfPreTokenizer()
	if err != nil {
		return err
	}
	type added struct {
		ID         int32  `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		LStrip     bool   `json:"lstrip"`
		RStrip     bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
		Special    bool   `json:"special"`
	}
	extra := []added{}
	var vocab bytes.Buffer
	for id := range int32(t.Len()) {
		text, err := json.Marshal(t.Piece(id))
		if err != nil {
			return err
		}
		if len(t.bytes(id)) > 0 {
			fmt.Fprintf(&vocab, "%c%s:%d", "{,"[min(vocab.Len(), 1)], text, id)
		}
		if flags := t.flags[id]; flags&(control|userDefined) != 0 {
			extra = append(extra, added{ID: id, Content: t.Piece(id), RStrip: flags&rstrip != 0,
				Special: flags&control != 0})
		}
	}
	vocab.WriteByte('}')
	merges := [][2]string{}
	for left, right := range t.Merges() {
		merges = append(merges, [2]string{left, right})
	}
	var normalizer any
	if b.nfc {
		normalizer = map[string]any{"type": "NFC"}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": extra, "normalizer": normalizer,
		"pre_tokenizer": cut, "post_processor": t.hfTemplate(),
		"decoder": byteLevel(true, true),
		"model": map[string]any{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil,
			"end_of_word_suffix": nil, "fuse_unk": false, "byte_fallback": false, "ignore_merges": b.whole,
			"vocab": json.RawMessage(vocab.Bytes()), "merges": merges,
		},
	})
}

func byteLevel(prefix, regex bool) map[string]any {
	return map[string]any{"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true, "use_regex": regex}
}

// hfPreTokenizer says how pieces are cut.
func (b *bpe) hfPreTokenizer() (any, error) {
	if b.name == "gpt-2" {
		return byteLevel(b.prefix, true), nil
	}
	var parts []any
	if b.name == "starcoder" {
		parts = append(parts, map[string]any{"type": "Digits", "individual_digits": true}, byteLevel(b.prefix, true))
	}
	for _, p := range hfPatterns {
		if p.pre != b.name {
			continue
		}
		for pattern := range bytes.SplitSeq([]byte(p.patterns), []byte("\n\n")) {
			parts = append(parts, map[string]any{"type": "Split", "pattern": map[string]any{"Regex": string(pattern)},
				"behavior": "Isolated", "invert": false})
		}
		parts = append(parts, byteLevel(b.prefix, false))
	}
	if parts == nil {
		return nil, fmt.Errorf("token: no expression for tokenizer.json is known for the pre-tokenizer %s", b.name)
	}
	return map[string]any{"type": "Sequence", "pretokenizers": parts}, nil
}

// hfTemplate says what goes around a text.
func (t *Tokenizer) hfTemplate() any {
	if len(t.before)+len(t.after) == 0 {
		return nil
	}
	special := map[string]any{}
	list := func(ids []int32) (parts []any) {
		for _, id := range ids {
			text := t.Piece(id)
			special[text] = map[string]any{"id": text, "ids": []int32{id}, "tokens": []string{text}}
			parts = append(parts, map[string]any{"SpecialToken": map[string]any{"id": text, "type_id": 0}})
		}
		return parts
	}
	single := append(list(t.before), map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}})
	single = append(single, list(t.after)...)
	pair := append(append([]any{}, single...), map[string]any{"Sequence": map[string]any{"id": "B", "type_id": 1}})
	return map[string]any{"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}
}
