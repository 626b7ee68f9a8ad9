package token

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// llama2.c's tokenizer.bin: the longest text's length, then score, length and text of every token, all numbers of four
// bytes, little-endian. Spaces are written as spaces, and BOS and EOS with line ends around them. The first tokens
// are unknown, BOS, EOS and the 256 bytes.

// looksLikeLlama2 says whether data begins so.
func looksLikeLlama2(data []byte) bool {
	const unknown = "<unk>"
	return len(data) >= 12+len(unknown) && binary.LittleEndian.Uint32(data[8:]) == uint32(len(unknown)) &&
		string(data[12:12+len(unknown)]) == unknown
}

func parseLlama2(data []byte) (*Tokenizer, error) {
	v := newVocab(len(data)/16, len(data))
	longest := binary.LittleEndian.Uint32(data)
	for at := 4; at < len(data); {
		id := len(v.flags)
		if len(data)-at < 8 {
			return nil, fmt.Errorf("llama2.c: the file ends in token %d", id)
		}
		score := math.Float32frombits(binary.LittleEndian.Uint32(data[at:]))
		n := binary.LittleEndian.Uint32(data[at+4:])
		at += 8
		if n > longest && id > 3 || uint64(n) > uint64(len(data)-at) {
			return nil, fmt.Errorf("llama2.c: token %d has %d bytes, want at most %d", id, n,
				min(int(longest), len(data)-at))
		}
		if score != score {
			return nil, fmt.Errorf("llama2.c: the score of token %d is not a number", id)
		}
		text, flags := data[at:at+int(n)], normal
		switch {
		case id == 0:
			flags = unknown
		case id < 3:
			text, flags = bytes.TrimSpace(text), control
		case id < 3+256:
			if flags = isByte; !spellsByte(text) {
				return nil, fmt.Errorf("llama2.c: token %d is %.20q, want a byte such as <0x00>", id, text)
			}
		default:
			text = bytes.ReplaceAll(text, []byte(" "), []byte(spmSpace))
		}
		v.append(text, score, flags)
		at += int(n)
		if len(v.flags) > maxTokens {
			return nil, fmt.Errorf("llama2.c: got more than %d tokens", maxTokens)
		}
	}
	if len(v.flags) < 3+256 {
		return nil, errors.New("llama2.c: the file ends before the tokens of bytes")
	}
	if err := v.buildIndex(); err != nil {
		return nil, fmt.Errorf("llama2.c: %w", err)
	}
	s := noRoles
	s.unk, s.bos, s.eos, s.addBOS, s.addSpace = 0, 1, 2, true, true
	s, err := readSpecials(silence{}, v, s)
	if err != nil {
		return nil, err
	}
	c, err := newSPM(v, s)
	if err != nil {
		return nil, err
	}
	return assemble(v, s, c), nil
}
