package token

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/fucina-go/fucina/core/gguf"
)

// entry is one key of a GGUF file: a string, bool, int32, uint32, []string, []float32, []byte or []int32.
type entry struct {
	key   string
	value any
}

// writeGGUF writes a GGUF file that has metadata and no tensors.
func writeGGUF(path string, entries []entry) error {
	var b bytes.Buffer
	put := func(v any) {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err) // an entry of a type that is not in the list
		}
	}
	str := func(s string) {
		put(uint64(len(s)))
		b.WriteString(s)
	}
	b.WriteString("GGUF")
	put(uint32(3))
	put(uint64(0))
	put(uint64(len(entries)))
	for _, e := range entries {
		str(e.key)
		switch v := e.value.(type) {
		case uint32:
			put(gguf.KindU32)
			put(v)
		case int32:
			put(gguf.KindI32)
			put(v)
		case bool:
			put(gguf.KindBool)
			put(v)
		case string:
			put(gguf.KindString)
			str(v)
		case []string:
			put(gguf.KindArray)
			put(gguf.KindString)
			put(uint64(len(v)))
			for _, s := range v {
				str(s)
			}
		case []float32:
			put(gguf.KindArray)
			put(gguf.KindF32)
			put(uint64(len(v)))
			put(v)
		case []byte:
			put(gguf.KindArray)
			put(gguf.KindU8)
			put(uint64(len(v)))
			put(v)
		case []int32:
			put(gguf.KindArray)
			put(gguf.KindI32)
			put(uint64(len(v)))
			put(v)
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

// newTokenizer is New for the file at path, which is closed before the tokenizer is used.
func newTokenizer(path string) (*Tokenizer, error) {
	f, err := gguf.Open(path, nil)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return New(f)
}

// fromEntries is New for a file of these entries; the tokenizer model is "llama" if they name none.
func fromEntries(t testing.TB, entries ...entry) (*Tokenizer, error) {
	t.Helper()
	if !slices.ContainsFunc(entries, func(e entry) bool { return e.key == "tokenizer.ggml.model" }) {
		entries = append(entries, entry{"tokenizer.ggml.model", "llama"})
	}
	path := filepath.Join(t.TempDir(), "vocab.gguf")
	if err := writeGGUF(path, entries); err != nil {
		t.Fatal(err)
	}
	return newTokenizer(path)
}

// tokens is the three arrays of a small vocabulary: <unk>, <s>, </s>, "▁", then texts, of falling score. Without
// byte tokens, what it cannot spell is <unk>.
func tokens(texts ...string) []entry {
	texts = append([]string{"<unk>", "<s>", "</s>", "▁"}, texts...)
	scores := make([]float32, len(texts))
	types := make([]int32, len(texts))
	for i := range texts {
		scores[i], types[i] = -float32(i), 1
	}
	copy(types, []int32{2, 3, 3})
	return []entry{
		{"tokenizer.ggml.tokens", texts}, {"tokenizer.ggml.scores", scores}, {"tokenizer.ggml.token_type", types},
	}
}

var cache struct {
	sync.Mutex
	tokenizers map[string]*Tokenizer
}

// tokenizer returns "stories260k", "llama-spm" or a variant in testdata/variants.json.
func tokenizer(t testing.TB, name string) *Tokenizer {
	t.Helper()
	cache.Lock()
	defer cache.Unlock()
	if cache.tokenizers[name] == nil {
		path := filepath.Join(t.TempDir(), name+".gguf")
		switch name {
		case "stories260k":
			path = "../../examples/data/stories260K.gguf"
		case "llama-spm":
			if err := os.WriteFile(path, gunzip(t, "testdata/llama-spm.gguf.gz"), 0o600); err != nil {
				t.Fatal(err)
			}
		default:
			if err := writeVariant(t, path, name); err != nil {
				t.Fatal(err)
			}
		}
		tk, err := newTokenizer(path)
		if err != nil {
			t.Fatal(err)
		}
		if cache.tokenizers == nil {
			cache.tokenizers = map[string]*Tokenizer{}
		}
		cache.tokenizers[name] = tk
	}
	return cache.tokenizers[name]
}

// writeVariant writes the llama-spm vocabulary with the changes of testdata/variants.json.
func writeVariant(t testing.TB, path, name string) error {
	var variants []struct {
		Name    string
		Strings map[string]string
		IDs     map[string]uint32
		Bools   map[string]bool
		Tokens  []struct {
			ID    int
			Text  string
			Score float32
			Type  int32
		}
	}
	data, err := os.ReadFile("testdata/variants.json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &variants); err != nil {
		return err
	}
	base := filepath.Join(t.TempDir(), "base.gguf")
	if err := os.WriteFile(base, gunzip(t, "testdata/llama-spm.gguf.gz"), 0o600); err != nil {
		return err
	}
	f, err := gguf.Open(base, nil)
	if err != nil {
		return err
	}
	defer f.Close()
	v, err := readVocab(f)
	if err != nil {
		return err
	}
	texts, types := make([]string, len(v.flags)), make([]int32, len(v.flags))
	for id, flags := range v.flags {
		texts[id] = string(v.bytes(int32(id)))
		types[id] = int32(slices.Index(typeFlags[:], flags))
	}
	for _, variant := range variants {
		if variant.Name != name {
			continue
		}
		for _, tok := range variant.Tokens {
			if tok.ID == len(texts) {
				texts, v.scores, types = append(texts, ""), append(v.scores, 0), append(types, 0)
			}
			texts[tok.ID], v.scores[tok.ID], types[tok.ID] = tok.Text, tok.Score, tok.Type
		}
		entries := []entry{
			{"general.architecture", "llama"},
			{"tokenizer.ggml.model", "llama"},
			{"tokenizer.ggml.tokens", texts},
			{"tokenizer.ggml.scores", v.scores},
			{"tokenizer.ggml.token_type", types},
		}
		for key, s := range variant.Strings {
			entries = append(entries, entry{key, s})
		}
		for role, id := range variant.IDs {
			entries = append(entries, entry{"tokenizer.ggml." + role + "_token_id", id})
		}
		for key, b := range variant.Bools {
			entries = append(entries, entry{"tokenizer.ggml." + key, b})
		}
		return writeGGUF(path, entries)
	}
	return fmt.Errorf("variants.json has no %q", name)
}

func gunzip(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func floatBits(f float32) uint32 { return math.Float32bits(f) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
