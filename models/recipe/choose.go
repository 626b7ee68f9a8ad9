package recipe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fucina-go/fucina/core/quant"
)

// role is what a tensor is for.
type role uint8

const (
	other role = iota
	embedding
	output
	query
	key
	value // also those that have the values among others
	attended
	up
	gate
	down
)

// roles is parts of names and what they mean; the first that is found counts.
var roles = []struct {
	part string
	role role
}{
	{"attn_qkv.weight", value}, {"attn_kv_b.weight", value}, {"attn_v.weight", value}, {"attn_k.weight", key},
	{"attn_q.weight", query}, {"attn_output.weight", attended}, {"ffn_up", up}, {"ffn_gate", gate}, {"ffn_down", down},
}

func roleOf(name string) role {
	switch name {
	case "output.weight":
		return output
	case "token_embd.weight", "per_layer_token_embd.weight":
		return embedding
	}
	for _, r := range roles {
		if strings.Contains(name, r.part) {
			return r.role
		}
	}
	return other
}

// layerOf returns the layer in a name such as blk.7.attn_q.weight, -1 for none.
func layerOf(name string) int {
	layer := -1
	if n, _ := fmt.Sscanf(name, "blk.%d.", &layer); n != 1 {
		return -1
	}
	return layer
}

// chooser goes through the tensors of a model in the order of its layers.
type chooser struct {
	Model
	recipe *Recipe
	tied   bool // there is no output of its own: the embeddings are also that
	values int  // tensors of that role
	seen   [down + 1]int
}

// is tells whether the recipe is one of those.
func (c *chooser) is(names ...string) bool { return slices.Contains(names, c.recipe.Name) }

// shared tells whether at least four heads share one of the keys and values.
func (c *chooser) shared() bool { return c.KVHeads > 0 && c.Heads/c.KVHeads >= 4 }

// more tells whether layer i of n is one of those that get more bits: the first and last eighth and every third.
func more(i, n int) bool { return i < n/8 || i >= 7*n/8 || (i-n/8)%3 == 2 }

// choose returns the name of the format.
func (c *chooser) choose(w Weight) string {
	r := roleOf(w.Name)
	layer := c.seen[r] // how many of the role came before, which is the layer unless there are experts
	c.seen[r]++
	if r >= up && c.Experts > 1 {
		layer = layerOf(w.Name)
	}
	base := c.recipe.Base
	name := ""
	switch {
	case r == output || r == embedding && c.tied:
		name = c.output(w)
	case c.is("mxfp4_moe"):
		name = "q8_0"
		if len(w.Dims) > 2 && w.Dims[2] > 1 && (c.Arch != "bailingmoe3" || r >= up) {
			name = "mxfp4"
		}
	case r == embedding:
		name = c.embedding()
	case c.is("iq2_xxs", "iq2_xs", "iq1_s", "iq2_s", "iq2_m", "iq1_m"):
		name = c.fewBits(r, layer)
	case r == value:
		name = c.value(layer)
	case r == key || r == query:
		name = c.lookup(r)
	case r == down:
		name = c.down(layer)
	case r == attended:
		name = c.attended()
	case r == gate || r == up:
		if c.is("iq3_xs") && layer >= c.Layers/8 && layer < 7*c.Layers/8 {
			name = "iq3_xxs"
		}
	}
	if name == "" {
		return base
	}
	return name
}

func (c *chooser) output(w Weight) string {
	base, _ := quant.ByName(c.recipe.Base)
	switch {
	case c.is("mxfp4_moe"), c.Arch == "falcon", w.Dims[0]%base.Block != 0:
		return "q8_0"
	case c.is("iq2_xxs", "iq2_xs", "iq3_xxs", "iq1_s", "iq2_s", "iq2_m", "iq1_m"):
		return "q5_k"
	case base.Name != "q8_0":
		return "q6_k"
	}
	return ""
}

func (c *chooser) embedding() string {
	switch {
	case c.is("iq2_xxs", "iq2_xs", "iq1_s", "iq1_m"):
		return "q2_k"
	case c.is("iq2_s", "iq2_m", "iq3_xxs"):
		return "iq3_s"
	case c.is("tq1_0", "tq2_0", "q2_0"):
		return "q4_k"
	}
	return ""
}

// fewBits is the choice of the recipes of about two bits and less.
func (c *chooser) fewBits(r role, layer int) string {
	better := "q2_k"
	if c.is("iq2_s", "iq2_m") {
		better = "iq3_s"
	}
	switch r {
	case value:
		if c.shared() || c.Experts >= 4 {
			return "q4_k"
		}
		return better
	case key:
		if c.Experts == 8 {
			return "q4_k"
		}
	case down:
		if c.seen[down]-1 < c.Layers/8 {
			return better
		}
	case attended:
		switch {
		case c.Experts == 8:
			return "q5_k"
		case c.is("iq1_s", "iq1_m"):
			return "iq2_xxs"
		case c.is("iq2_s", "iq2_m"):
			return "iq3_s"
		}
	}
	return ""
}

// value is the choice for values, which are few where heads share them, and sensitive.
func (c *chooser) value(layer int) string {
	name := ""
	switch {
	case c.is("q2_k"):
		name = "q3_k"
		if c.shared() {
			name = "q4_k"
		}
	case c.is("q2_k_s", "iq3_xs", "iq3_s") && c.shared(), c.is("iq3_m"):
		name = "q4_k"
	case c.is("iq3_xxs"):
		switch {
		case c.shared():
			name = "q4_k"
		case !c.Importance:
			name = "iq3_s"
		}
	case c.is("q3_k_m"):
		name = "q4_k"
		if layer < 2 {
			name = "q5_k"
		}
	case c.is("q3_k_l"), c.is("iq4_nl", "iq4_xs") && c.shared(), c.is("q4_k_s") && layer < 4:
		name = "q5_k"
	case c.is("q4_k_m", "q5_k_m") && more(layer, c.values):
		name = "q6_k"
	}
	if name == "" {
		name = c.recipe.Base
	}
	// In models of 70 billion weights eight heads share the values, which cost little.
	large := c.Layers == 80 && (c.Arch == "llama" && c.Heads != c.KVHeads || c.Arch == "qwen2")
	if large && (name == "q3_k" || name == "q4_k") {
		name = "q5_k"
	}
	if c.Experts == 8 {
		name = "q8_0"
	}
	return name
}

// lookup is the choice for keys and queries.
func (c *chooser) lookup(r role) string {
	switch {
	case r == key && c.Experts == 8:
		return "q8_0"
	case c.is("iq3_xs"):
		return "iq3_xxs"
	case c.is("iq3_xxs"):
		return "iq2_s"
	}
	return ""
}

func (c *chooser) down(layer int) string {
	n, falcon := c.Layers, c.Arch == "falcon"
	early := layer < n/8
	switch {
	case c.is("q2_k"):
		return "q3_k"
	case c.is("q2_k_s"):
		if early {
			return "q4_k"
		}
	case c.is("iq3_xxs") && !c.Importance:
		if early {
			return "q4_k"
		}
		return "q3_k"
	case c.is("q3_k_m"):
		switch {
		case layer < n/16:
			return "q5_k"
		case !falcon || more(layer, n):
			return "q4_k"
		}
		return "q3_k"
	case c.is("iq3_m"):
		if early || c.Experts == 8 && more(layer, n) {
			return "q4_k"
		}
	case c.is("q3_k_l"):
		if falcon {
			return "q4_k"
		}
		return "q5_k"
	case c.is("q4_k_m"):
		switch {
		case falcon && layer >= n/16 && more(layer, n):
			return "q5_k"
		case falcon && layer < n/16, !falcon && more(layer, n):
			return "q6_k"
		}
	case c.is("iq4_nl", "iq4_xs") && early && !c.Importance, c.is("q4_k_s") && early && !falcon:
		return "q5_k"
	case c.is("q5_k_m") && more(layer, n):
		return "q6_k"
	case c.is("q4_0") && early && c.Importance:
		return "q4_1"
	case c.is("q5_0") && early && c.Importance:
		return "q5_1"
	}
	return ""
}

// attended is the choice for what comes behind attention.
func (c *chooser) attended() string {
	switch {
	case c.Arch == "falcon":
		if c.is("q3_k_l") {
			return "q4_k"
		}
	case c.Experts == 8:
		if c.is("q2_k", "iq3_xs", "iq3_xxs", "q3_k_s", "q3_k_m", "iq4_nl", "q4_k_s", "q4_k_m", "iq3_s", "iq3_m",
			"iq4_xs") {
			return "q5_k"
		}
	case c.is("q2_k"):
		return "q3_k"
	case c.is("iq3_xxs"):
		return "iq3_s"
	case c.is("q3_k_m", "iq3_m"):
		return "q4_k"
	case c.is("q3_k_l"):
		return "q5_k"
	}
	return ""
}
