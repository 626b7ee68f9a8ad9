package recipe

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/core"
)

// snapshot is what the reference picks for a model.
type snapshot struct {
	Model
	columns  int
	sections []section
	names    []string // of all tensors that some section names
}

type section struct {
	recipe, base string
	types        map[string]string // those other than base
}

func readSnapshot(t *testing.T, path, arch string) *snapshot {
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
	s := &snapshot{Model: Model{Arch: arch}}
	for lines := bufio.NewScanner(z); lines.Scan(); {
		line := lines.Text()
		switch fields := strings.Fields(line); {
		case strings.HasPrefix(line, "# n_embd"):
			var ff, vocab int
			_, _ = fmt.Sscanf(line,
				"# n_embd=%d, n_ff=%d, n_vocab=%d, n_layer=%d, n_head=%d, n_head_kv=%d, n_expert=%d",
				&s.columns, &ff, &vocab, &s.Layers, &s.Heads, &s.KVHeads, &s.Experts)
		case strings.HasPrefix(line, "["):
			name := strings.ToLower(strings.Trim(fields[0], "[]"))
			s.sections = append(s.sections, section{name, strings.ToLower(fields[1]), map[string]string{}})
		case len(fields) == 2 && !strings.HasPrefix(line, "#"):
			s.sections[len(s.sections)-1].types[fields[0]] = strings.ToLower(fields[1])
			if !slices.Contains(s.names, fields[0]) {
				s.names = append(s.names, fields[0])
			}
		}
	}
	return s
}

// weights is the tensors of the snapshot. Rows have n_embd elements unless columns says otherwise.
func (s *snapshot) weights(columns map[string]int) (list []Weight) {
	for _, name := range s.names {
		w := Weight{Name: name, Dims: []int{s.columns, 64}}
		for part, n := range columns {
			if strings.HasSuffix(name, part) {
				w.Dims[0] = n
			}
		}
		if strings.Contains(name, "_exps.") || strings.Contains(name, "attn_k_b") {
			w.Dims = append(w.Dims, 128)
		}
		list = append(list, w)
	}
	return list
}

// TestSnapshots compares the choice for each tensor of six models under each recipe with llama.cpp's.
func TestSnapshots(t *testing.T) {
	models := []struct {
		file, arch string
		columns    map[string]int
	}{
		{"deepseek-v3.1", "deepseek2", map[string]int{"attn_k_b.weight": 128}},
		{"glm-4.6v", "glm4moe", map[string]int{"ffn_down.weight": 10944, "ffn_down_exps.weight": 1408,
			"ffn_down_shexp.weight": 1408}},
		{"meta-llama-3.1-70b-instruct", "llama", nil},
		{"qwen3-0.6b", "qwen3", nil},
		{"qwen3-coder-next", "qwen3next", nil},
		{"qwen3.6-27b", "qwen35", nil},
	}
	choices, sections := 0, 0
	for _, m := range models {
		t.Run(m.file, func(t *testing.T) {
			s := readSnapshot(t, filepath.Join("testdata", m.file+".schema.txt.gz"), m.arch)
			weights := s.weights(m.columns)
			for _, sec := range s.sections {
				sections++
				r, ok := ByName(sec.recipe)
				if !ok || r.Base != sec.base {
					t.Errorf("recipe %s of %s is %v", sec.recipe, sec.base, r)
					continue
				}
				formats, err := r.Formats(s.Model, weights)
				if err != nil {
					t.Fatal(err)
				}
				bad := 0
				for i, w := range weights {
					want, ok := sec.types[w.Name]
					if !ok {
						want = sec.base
					}
					choices++
					if formats[i] == nil || formats[i].Name != want {
						if bad++; bad < 4 {
							t.Errorf("%s: %s is %v, want %s", sec.recipe, w.Name, formats[i], want)
						}
					}
				}
			}
		})
	}
	t.Logf("%d choices in %d sections", choices, sections)
	if sections != 6*33 {
		t.Errorf("%d sections, want %d", sections, 6*33)
	}
}

func TestQuantizable(t *testing.T) {
	for _, tt := range []struct {
		name string
		dims []int
		want bool
	}{
		{"blk.0.attn_q.weight", []int{64, 64}, true},
		{"blk.0.ffn_down_exps.weight", []int{64, 64, 4}, true},
		{"token_embd.weight", []int{64, 512}, true},
		{"blk.0.attn_norm.weight", []int{64}, false},
		{"blk.0.attn_q.bias", []int{64, 2}, false},
		{"blk.0.ssm_norm.weight", []int{64, 64}, false},
		{"blk.0.ffn_gate_inp.weight", []int{64, 8}, false},
		{"position_embd.weight", []int{64, 512}, false},
		{"rope_freqs.weight", []int{64, 1, 1}, false},
	} {
		if got := Quantizable(Weight{tt.name, tt.dims}); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestByName finds every name that llama-quantize has, but for COPY.
func TestByName(t *testing.T) {
	for _, name := range strings.Fields("Q1_0 Q2_0 Q4_0 Q4_1 MXFP4_MOE Q5_0 Q5_1 IQ2_XXS IQ2_XS IQ2_S IQ2_M IQ1_S " +
		"IQ1_M TQ1_0 TQ2_0 Q2_K Q2_K_S IQ3_XXS IQ3_S IQ3_M Q3_K IQ3_XS Q3_K_S Q3_K_M Q3_K_L IQ4_NL IQ4_XS Q4_K " +
		"Q4_K_S Q4_K_M Q5_K Q5_K_S Q5_K_M Q6_K Q8_0 F16 BF16 F32") {
		r, ok := ByName(name)
		if want := strings.ToLower(name); !ok || r.Name != want && r.Name != want+"_m" {
			t.Errorf("%s is %v", name, r)
		}
	}
	if r, ok := ByName("q4"); ok {
		t.Errorf("q4 is %v", r)
	}
}

// What is not there is an error, of a program that goes on.
func TestNothing(t *testing.T) {
	if _, err := (&Job{}).Draft(); err == nil || !strings.Contains(err.Error(), "needs a File and a Recipe") {
		t.Errorf("got %v", err)
	}
	if err := new(Collector).Add("w", core.Product{}); err == nil || !strings.Contains(err.Error(), "has no tensors") {
		t.Errorf("got %v", err)
	}
	if _, err := ReadImportance(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
