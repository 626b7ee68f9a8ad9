package token

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/fucina-go/fucina/core/gguf"
)

// specials are the tokens that metadata gives a role, -1 where there is none, and what goes around a text.
type specials struct {
	bos, eos, unk, eot, eom, pad, sep int32
	addBOS, addEOS                    bool
	addSpace                          bool    // in front of text that begins the input or follows a special token
	before, after                     []int32 // what AddSpecial puts around a text
}

// noRoles is a vocabulary without special tokens.
var noRoles = specials{bos: -1, eos: -1, unk: -1, eot: -1, eom: -1, pad: -1, sep: -1}

// metadata is what a file says about tokens, *gguf.File or nothing.
type metadata interface {
	Int(key string) (int64, error)
	Bool(key string) (bool, error)
	String(key string) (string, error)
}

// silence is the metadata of a file that has none.
type silence struct{}

func (silence) Int(string) (int64, error)     { return 0, gguf.ErrMissing }
func (silence) Bool(string) (bool, error)     { return false, gguf.ErrMissing }
func (silence) String(string) (string, error) { return "", gguf.ErrMissing }

// markers are the roles that files leave out of their metadata, and the texts by which the token is known then.
// The first text found has the role. From llama.cpp's src/llama-vocab.cpp, as the three tables below.
var markers = []struct {
	key   string
	texts []string
	ends  bool
}{
	{"eot", []string{"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>",
		"<EOT>", "_<EOT>", "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>"}, true},
	{"eom", []string{"<|eom_id|>"}, true},
	{"fim_pre", []string{"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>",
		"<|code_prefix|>", "<|prefix|>"}, false},
	{"fim_suf", []string{"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>",
		"<|code_suffix|>", "<|suffix|>"}, false},
	{"fim_mid", []string{"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>",
		"<|code_middle|>", "<|middle|>"}, false},
	{"fim_pad", []string{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}, true},
	{"fim_rep", []string{"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}, true},
	{"fim_sep", []string{"<|file_sep|>"}, true},
}

// endTexts all end generation, whatever the metadata says.
var endTexts = []string{"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
	"<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
	"<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~["}

// shownTexts are user-defined whatever their type: the reader of gpt-oss's output format needs to see them.
var shownTexts = []string{"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}

// notEnds are tokens that do not end generation in a vocabulary that ends it with all of others.
var notEnds = []struct {
	text   string
	others []string
	flags  uint8
}{
	{"<|end|>", []string{"<|return|>", "<|call|>"}, userDefined},
	{"<|end|>", []string{"<|return|>", "<|calls|>"}, userDefined},
	{"<|end|>", []string{"<|flush|>", "<|call|>"}, userDefined},
	{"<|end|>", []string{"<|flush|>", "<|calls|>"}, userDefined},
	{"</s>", []string{"<|tool_response>"}, normal},
}

// readSpecials reads the roles, where the file is silent those of s, and completes v.flags by what texts tell.
func readSpecials(f metadata, v *vocab, s specials) (specials, error) {
	for _, role := range []struct {
		key string
		id  *int32
	}{{"bos", &s.bos}, {"eos", &s.eos}, {"unknown", &s.unk}, {"padding", &s.pad},
		{"seperator", &s.sep}} {
		id, err := readID(f, v, role.key, *role.id)
		// Files name padding tokens that their vocabulary lacks; nothing depends on them.
		if err != nil && !(role.id == &s.pad && errors.Is(err, errOutside)) {
			return s, err
		}
		*role.id = id
	}
	for _, option := range []struct {
		key string
		on  *bool
	}{{"add_bos_token", &s.addBOS}, {"add_eos_token", &s.addEOS}, {"add_space_prefix", &s.addSpace}} {
		if err := readBool(f, option.key, option.on); err != nil {
			return s, err
		}
	}
	if s.addBOS && s.bos >= 0 {
		s.before = []int32{s.bos}
	}
	if s.addEOS && s.eos >= 0 {
		s.after = []int32{s.eos}
	}
	if err := s.readMarkers(f, v); err != nil {
		return s, err
	}
	for _, text := range endTexts {
		v.mark(text, control|endsGen)
	}
	if s.eos >= 0 {
		v.flags[s.eos] |= endsGen
	}
	v.markExceptions()
	return s, v.markRStrip(f)
}

// readBool leaves *on as it is if the file does not say.
func readBool(f metadata, key string, on *bool) error {
	is, err := f.Bool("tokenizer.ggml." + key)
	if err == nil {
		*on = is
	} else if !errors.Is(err, gguf.ErrMissing) {
		return err
	}
	return nil
}

func (s *specials) readMarkers(f metadata, v *vocab) error {
	for _, m := range markers {
		id, err := readID(f, v, m.key, -1)
		if err != nil {
			return err
		}
		for _, text := range m.texts {
			if id < 0 {
				id = v.mark(text, control)
			}
		}
		if id >= 0 && m.ends {
			v.flags[id] |= endsGen
		}
		switch m.key {
		case "eot":
			s.eot = id
		case "eom":
			s.eom = id
		}
	}
	return nil
}

// errOutside is wrapped in the error for an id that is not in the vocabulary.
var errOutside = errors.New("not in the vocabulary")

// readID is fallback, if that is in the vocabulary, where the file has no such key or says -1 (as uint32 or not).
func readID(f metadata, v *vocab, role string, fallback int32) (int32, error) {
	if !v.has(fallback) {
		fallback = -1
	}
	key := "tokenizer.ggml." + role + "_token_id"
	id, err := f.Int(key)
	if errors.Is(err, gguf.ErrMissing) || err == nil && (id == -1 || id == math.MaxUint32) {
		return fallback, nil
	}
	if err != nil {
		return -1, err
	}
	if id < 0 || id >= int64(len(v.flags)) {
		return -1, fmt.Errorf("%s: token %d is %w of %d tokens", key, id, errOutside, len(v.flags))
	}
	return int32(id), nil
}

// mark adds flags to the token spelled text and returns its id, -1 if there is none.
func (v *vocab) mark(text string, flags uint8) int32 {
	id := v.find([]byte(text))
	if id >= 0 {
		v.flags[id] |= flags
	}
	return id
}

// markExceptions applies shownTexts and notEnds.
func (v *vocab) markExceptions() {
	for _, text := range shownTexts {
		if id := v.find([]byte(text)); id >= 0 {
			v.flags[id] = userDefined | v.flags[id]&endsGen
		}
	}
	for _, e := range notEnds {
		id := v.find([]byte(e.text))
		for _, other := range e.others {
			if v.find([]byte(other)) < 0 {
				id = -1
			}
		}
		if id >= 0 {
			v.flags[id] = e.flags
		}
	}
}

// markRStrip makes Phi-3's special tokens swallow the white space after them, which its files do not tell.
func (v *vocab) markRStrip(f metadata) error {
	name, err := f.String("general.name")
	if errors.Is(err, gguf.ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	name = strings.ToLower(name)
	if !strings.Contains(name, "phi-3") && !strings.Contains(name, "phi3") {
		return nil
	}
	for id, flags := range v.flags {
		if flags&(userDefined|control|unknown) != 0 {
			v.flags[id] |= rstrip
		}
	}
	for _, text := range []string{"<unk>", "<s>", "<|endoftext|>"} {
		if id := v.find([]byte(text)); id >= 0 {
			v.flags[id] &^= rstrip
		}
	}
	return nil
}
