package token

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var shared = flag.String("shared", sharedFolder(),
	"folder of reference data: tokenizers/ has llama.cpp's models/ggml-vocab-*.gguf, their .inp and .out, and "+
		"*.extra.json")

// sharedFolder is where the reference data is beside the repository, or one folder further up.
func sharedFolder() string {
	const beside, above = "../../../shared/data", "../../../../shared/data"
	if _, err := os.Stat(beside); err != nil {
		if _, err := os.Stat(above); err == nil {
			return above
		}
	}
	return beside
}

// sharedData is a file of the reference data; the test is skipped if it is not there.
func sharedData(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(*shared, name))
	if err != nil {
		t.Skipf("no reference data %s: -shared names its folder", name)
	}
	return data
}

// sharedCases are all texts for a vocabulary: those of llama.cpp and the extra ones.
func sharedCases(t testing.TB, name string) []textCase {
	t.Helper()
	base := "tokenizers/ggml-vocab-" + name + ".gguf"
	var cases []textCase
	if err := json.Unmarshal(sharedData(t, "tokenizers/"+name+".extra.json"), &cases); err != nil {
		t.Fatal(err)
	}
	texts := strings.Split(string(sharedData(t, base+".inp")), "\n__ggml_vocab_test__\n")
	lines := strings.Split(strings.TrimSuffix(string(sharedData(t, base+".out")), "\n"), "\n")
	for i, line := range lines {
		c := textCase{Text: texts[i], IDs: []int32{}}
		for _, field := range strings.Fields(line) {
			id, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			c.IDs = append(c.IDs, int32(id))
		}
		cases = append(cases, c)
	}
	return cases
}

func sharedTokenizer(t testing.TB, name string) *Tokenizer {
	t.Helper()
	base := "tokenizers/ggml-vocab-" + name + ".gguf"
	sharedData(t, base)
	tk, err := newTokenizer(filepath.Join(*shared, base))
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

// TestSharedTexts runs every text for every vocabulary of the reference data.
func TestSharedTexts(t *testing.T) {
	for name, want := range map[string]int{
		"llama-spm": 117, "phi-3": 117, "gpt-2": 117, "mpt": 117, "qwen2": 117, "bert-bge": 117,
	} {
		t.Run(name, func(t *testing.T) {
			tk, cases := sharedTokenizer(t, name), sharedCases(t, name)
			for _, c := range cases {
				if diff := cmp.Diff(c.IDs, tk.Encode(c.Text, Plain)); diff != "" {
					t.Errorf("encode %.60q (-want +got):\n%s", c.Text, diff)
				}
				if got := tk.Decode(c.IDs); name != "bert-bge" && got != c.Text {
					t.Errorf("decode: got %.60q, want %.60q", got, c.Text)
				}
			}
			if len(cases) != want {
				t.Errorf("got %d texts, want %d", len(cases), want)
			}
			t.Logf("%d texts", len(cases))
		})
	}
}

// TestVocabularyObjects insists that a vocabulary is a few flat slices: nothing per token for the collector to walk.
func TestVocabularyObjects(t *testing.T) {
	for _, name := range []string{"qwen2", "bert-bge", "llama-spm"} {
		sharedData(t, "tokenizers/ggml-vocab-"+name+".gguf")
		count := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapObjects
		}
		sharedTokenizer(t, name)
		before := count()
		tk := sharedTokenizer(t, name)
		after := count()
		if n := int64(after - before); n > 300 {
			t.Errorf("%s: %d objects for %d tokens, want at most 300", name, n, tk.Len())
		} else {
			t.Logf("%s: %d objects for %d tokens", name, n, tk.Len())
		}
		runtime.KeepAlive(tk)
	}
}
