package token

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// tiktoken's ranks: a line for each token, its bytes in base64, a space and its rank, which is its id. Such a file
// has neither special tokens nor a pre-tokenizer; those of the encodings below are told by the number of ranks.
var encodings = []struct {
	ranks   int
	pre     string
	special []rankedSpecial
}{
	{50256, "gpt-2", []rankedSpecial{{50256, "<|endoftext|>"}}}, // r50k_base, gpt2
	{50280, "gpt-2", []rankedSpecial{{50256, "<|endoftext|>"}}}, // p50k_base
	{100256, "dbrx", []rankedSpecial{{100257, "<|endoftext|>"}, {100258, "<|fim_prefix|>"}, {100259, "<|fim_middle|>"},
		{100260, "<|fim_suffix|>"}, {100276, "<|endofprompt|>"}}}, // cl100k_base
	{199998, "gpt-4o", []rankedSpecial{{199999, "<|endoftext|>"}, {200018, "<|endofprompt|>"}}}, // o200k_base
	{128000, "llama-bpe", []rankedSpecial{{128000, "<|begin_of_text|>"}, {128001, "<|end_of_text|>"},
		{128006, "<|start_header_id|>"}, {128007, "<|end_header_id|>"}, {128009, "<|eot_id|>"}}}, // Llama 3
	{151643, "qwen2", []rankedSpecial{{151643, "<|endoftext|>"}, {151644, "<|im_start|>"},
		{151645, "<|im_end|>"}}}, // Qwen
}

// maxRanked bounds the time it takes to find what joins into a token.
const maxRanked = 1024

type rankedSpecial struct {
	id   int
	text string
}

// looksLikeRanks says whether the first line of data is base64, a space and a number.
func looksLikeRanks(data []byte) bool {
	line, _, _ := bytes.Cut(data[:min(len(data), 4096)], []byte("\n"))
	_, _, err := parseRank(line)
	return err == nil
}

func parseRank(line []byte) (text []byte, rank int, err error) {
	code, number, ok := strings.Cut(strings.TrimSuffix(string(line), "\r"), " ")
	if !ok || code == "" {
		return nil, 0, fmt.Errorf("got %.40q, want base64, a space and a rank", line)
	}
	if text, err = base64.StdEncoding.DecodeString(code); err != nil {
		return nil, 0, fmt.Errorf("got %.40q, want base64: %w", code, err)
	}
	if len(text) > maxRanked {
		return nil, 0, fmt.Errorf("got a token of %d bytes, want at most %d", len(text), maxRanked)
	}
	rank, err = strconv.Atoi(number)
	if err != nil || rank < 0 || rank >= maxTokens {
		return nil, 0, fmt.Errorf("got the rank %.20q, want a number from 0 to %d", number, maxTokens-1)
	}
	return text, rank, nil
}

func parseRanks(data []byte, c config) (*Tokenizer, error) {
	var texts [][]byte // by rank, spelled; nil for a gap
	n := 0
	for number := 1; len(data) > 0; number++ {
		var line []byte
		if line, data, _ = bytes.Cut(data, []byte("\n")); len(line) == 0 {
			continue
		}
		text, rank, err := parseRank(line)
		// Ranks have few gaps, and so bound what is allocated.
		if err == nil && rank > 2*number+1000 {
			err = fmt.Errorf("got the rank %d, want one near %d", rank, number)
		}
		if err == nil && rank < len(texts) && texts[rank] != nil {
			err = fmt.Errorf("got the rank %d for a second time", rank)
		}
		if err != nil {
			return nil, fmt.Errorf("tiktoken: line %d: %w", number, err)
		}
		for len(texts) <= rank {
			texts = append(texts, nil)
		}
		texts[rank] = appendSpelled(make([]byte, 0, 2*len(text)), string(text))
		n++
	}
	id := c.pre
	var special []rankedSpecial
	for _, e := range encodings {
		if e.ranks == n {
			special = e.special
			if id == "" {
				id = e.pre
			}
		}
	}
	if id == "" {
		return nil, fmt.Errorf("tiktoken: %d ranks are those of no known encoding; name the pre-tokenizer, as in "+
			"pre=\"qwen2\": one of %s", n, strings.Join(PreTokenizers(), ", "))
	}
	p, err := preTokenizer(id)
	if err != nil {
		return nil, err
	}
	return newRanked(texts, special, p)
}

// newRanked makes the tokenizer of tokens by rank.
func newRanked(texts [][]byte, special []rankedSpecial, p pre) (*Tokenizer, error) {
	ranks := len(texts)
	for _, s := range special {
		for len(texts) <= s.id {
			texts = append(texts, nil)
		}
		if texts[s.id] != nil {
			return nil, fmt.Errorf("tiktoken: token %d is %q, want none there but %s", s.id, texts[s.id], s.text)
		}
		texts[s.id] = []byte(s.text)
	}
	v := newVocab(len(texts), 0)
	for _, text := range texts {
		v.append(text, 0, normal)
	}
	for _, s := range special {
		v.flags[s.id] = control
	}
	if err := v.buildIndex(); err != nil {
		return nil, fmt.Errorf("tiktoken: %w", err)
	}
	roles := noRoles
	if len(special) > 0 {
		roles.eos = int32(special[0].id)
		if special[0].text == "<|begin_of_text|>" {
			roles.bos, roles.eos, roles.addBOS = int32(special[0].id), int32(special[1].id), true
		}
	}
	s, err := readSpecials(silence{}, v, roles)
	if err != nil {
		return nil, err
	}
	p.whole = true // as tiktoken does
	b := &bpe{v: v, unk: -1, pre: p, extra: newVocab(0, 0), merges: newMerges(2 * ranks)}
	// A token joins from any two that make it up, at its own rank.
	for id, text := range texts[:ranks] {
		for at := 1; at < len(text); at++ {
			if left, right := b.find(text[:at]), b.find(text[at:]); left >= 0 && right >= 0 {
				b.merges.add(left, right, uint32(id), int32(id))
			}
		}
	}
	b.prepare()
	return assemble(v, s, b), nil
}
