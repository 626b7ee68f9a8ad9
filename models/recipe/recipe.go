// Package recipe says which format each tensor of a language model is quantized to under a name such as q4_k_m.
//
// Here: the recipes of llama.cpp's llama-quantize and how they choose, by the tensor's role, its layer and the size of
// the model. Not here: the formats (core/quant), files (core/gguf), and doing it (bindings/starlark).
//
// Source of all rules: llama.cpp, src/llama-quant.cpp at commit 007dbbf3, https://github.com/ggml-org/llama.cpp
package recipe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fucina-go/fucina/core/quant"
)

// Recipe is a way to quantize a model.
type Recipe struct {
	Name     string // "q4_k_m"
	Base     string // the format of most tensors
	FileType int    // what general.file_type says
}

// Recipes is all of them, in the order of their file types.
var Recipes = []Recipe{
	{"f32", "f32", 0}, {"f16", "f16", 1}, {"q4_0", "q4_0", 2}, {"q4_1", "q4_1", 3}, {"q8_0", "q8_0", 7},
	{"q5_0", "q5_0", 8}, {"q5_1", "q5_1", 9}, {"q2_k", "q2_k", 10}, {"q3_k_s", "q3_k", 11}, {"q3_k_m", "q3_k", 12},
	{"q3_k_l", "q3_k", 13}, {"q4_k_s", "q4_k", 14}, {"q4_k_m", "q4_k", 15}, {"q5_k_s", "q5_k", 16},
	{"q5_k_m", "q5_k", 17}, {"q6_k", "q6_k", 18}, {"iq2_xxs", "iq2_xxs", 19}, {"iq2_xs", "iq2_xs", 20},
	{"q2_k_s", "q2_k", 21}, {"iq3_xs", "iq3_s", 22}, {"iq3_xxs", "iq3_xxs", 23}, {"iq1_s", "iq1_s", 24},
	{"iq4_nl", "iq4_nl", 25}, {"iq3_s", "iq3_s", 26}, {"iq3_m", "iq3_s", 27}, {"iq2_s", "iq2_xs", 28},
	{"iq2_m", "iq2_s", 29}, {"iq4_xs", "iq4_xs", 30}, {"iq1_m", "iq1_m", 31}, {"bf16", "bf16", 32},
	{"tq1_0", "tq1_0", 36}, {"tq2_0", "tq2_0", 37}, {"mxfp4_moe", "mxfp4", 38}, {"nvfp4", "nvfp4", 39},
	{"q1_0", "q1_0", 40}, {"q2_0", "q2_0", 41},
}

// short is other names of recipes.
var short = map[string]string{"q3_k": "q3_k_m", "q4_k": "q4_k_m", "q5_k": "q5_k_m"}

// ByName returns the recipe called name, in upper or lower case.
func ByName(name string) (*Recipe, bool) {
	name = strings.ToLower(name)
	name = cmp.Or(short[name], name)
	i := slices.IndexFunc(Recipes, func(r Recipe) bool { return r.Name == name })
	if i < 0 {
		return nil, false
	}
	return &Recipes[i], true
}

// Model is what the choice depends on besides the tensors.
type Model struct {
	Arch       string // general.architecture
	Layers     int    // block_count
	Heads      int    // attention.head_count
	KVHeads    int    // attention.head_count_kv, of the first layer
	Experts    int    // expert_count
	Importance bool   // there is an importance matrix
}

// Weight is a tensor: its name and its sizes in ggml's order, the row first.
type Weight struct {
	Name string
	Dims []int
}

// Formats returns the format of each tensor, nil for those that stay as they are: vectors, norms and others that are
// small or sensitive.
func (r *Recipe) Formats(m Model, weights []Weight) ([]*quant.Format, error) {
	c := chooser{recipe: r, Model: m, tied: true}
	order := make([]int, len(weights))
	for i, w := range weights {
		order[i] = i
		if roleOf(w.Name) == output {
			c.tied = false
		}
		if roleOf(w.Name) == value {
			c.values++
		}
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := weights[i].Name, weights[j].Name
		return cmp.Or(cmp.Compare(layerOf(a), layerOf(b)), cmp.Compare(a, b))
	})
	formats := make([]*quant.Format, len(weights))
	for _, i := range order {
		w := weights[i]
		if !Quantizable(w) {
			continue
		}
		name := r.Base
		if base, _ := quant.ByName(r.Base); base.Block > 1 {
			name = fitting(c.choose(w), w.Dims[0])
		}
		f, ok := quant.ByName(name)
		if !ok {
			return nil, fmt.Errorf("%s: no format is called %q, for %s", r.Name, name, w.Name)
		}
		formats[i] = f
	}
	return formats, nil
}

// kept is parts of names of tensors that stay as they are.
var kept = []string{
	"_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel", "per_layer_model_proj",
	"ssm_conv1d", "shortconv.conv.weight", "indexer.k_proj.weight", "indexer.q_proj.weight", "time_mix_first.weight",
	"time_mix_w0.weight", "time_mix_w1.weight", "time_mix_w2.weight", "time_mix_v0.weight", "time_mix_v1.weight",
	"time_mix_v2.weight", "time_mix_a0.weight", "time_mix_a1.weight", "time_mix_a2.weight", "time_mix_g1.weight",
	"time_mix_g2.weight", "time_mix_decay_w1.weight", "time_mix_decay_w2.weight", "time_mix_lerp_fused.weight",
	"attn_rel_b.weight", ".position_embd", "sam.pos_embd", "sam.neck.", "sam.net_", ".rel_pos", ".patch_embd",
	".patch_merger", "a.rvq.codebook", "mm.a.code_embd",
}

// Quantizable tells whether a recipe changes the tensor.
func Quantizable(w Weight) bool {
	wide := false
	for i, n := range w.Dims {
		wide = wide || i > 0 && n > 1
	}
	if !wide || !strings.HasSuffix(w.Name, "weight") || w.Name == "position_embd.weight" ||
		w.Name == "token_types.weight" {
		return false
	}
	return !slices.ContainsFunc(kept, func(part string) bool { return strings.Contains(w.Name, part) })
}

// NeedsImportance tells whether the recipe refuses to quantize the tensor to f without importance, where the format
// itself may not.
func (r *Recipe) NeedsImportance(name string, f *quant.Format) bool {
	switch role := roleOf(name); {
	case role == embedding || role == output:
		return f.Importance
	case f.Name == "q2_k":
		return r.Name == "q2_k_s"
	}
	return slices.Contains([]string{"iq3_xxs", "iq2_xxs", "iq2_xs", "iq2_s", "iq1_m", "iq1_s"}, f.Name)
}

// stand is the formats that stand in for those of 256 weights where a row is no multiple of that.
var stand = map[string]string{
	"iq1_s": "iq4_nl", "iq1_m": "iq4_nl", "iq2_xxs": "iq4_nl", "iq2_xs": "iq4_nl", "iq2_s": "iq4_nl",
	"iq3_xxs": "iq4_nl", "iq3_s": "iq4_nl", "iq4_xs": "iq4_nl", "q2_0": "q4_0", "q2_k": "q4_0", "q3_k": "q4_0",
	"tq1_0": "q4_0", "tq2_0": "q4_0", "q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0",
}

// fitting returns the format, or the one that stands in for it in rows of n: f16 where no block fits. (llama-quantize
// gives up where none stands in.)
func fitting(name string, n int) string {
	f, ok := quant.ByName(name)
	if !ok || n%f.Block == 0 {
		return name
	}
	other, ok := quant.ByName(stand[name])
	if !ok || n%other.Block != 0 {
		return "f16"
	}
	return other.Name
}
