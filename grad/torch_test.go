package grad_test

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/bindings/starlark"
	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
)

// torchOps are PyTorch's operations as a script spells them: the inputs are a, b and c, AXIS is the axis or the
// axes that the case names, K its attribute k.
//
// Axes of the inputs are listed behind the name, input by input; "-" drops a dimension of size 1. Without a list,
// the dimensions of each input are d0, d1 and so on.
var torchOps = map[string]string{
	"unary.exp":        "a.exp()",
	"unary.log":        "(a.abs() + 0.1).log()",
	"unary.sqrt":       "(a.abs() + 0.1).sqrt()",
	"unary.rsqrt":      "(a.abs() + 0.1).rsqrt()",
	"unary.tanh":       "a.tanh()",
	"unary.sigmoid":    "a.sigmoid()",
	"unary.relu":       "a.relu()",
	"unary.silu":       "a.silu()",
	"unary.gelu_erf":   "a.gelu()",
	"unary.gelu_tanh":  `a.gelu(approximate="tanh")`,
	"unary.softplus":   "a.softplus()",
	"unary.leaky_relu": "a.leaky_relu(0.1)",
	"unary.elu":        "a.elu()",
	"unary.abs":        "a.abs()",
	"unary.neg":        "-a",
	"unary.square":     "a.square()",
	"unary.sin":        "a.sin()",
	"unary.cos":        "a.cos()",
	"unary.erf":        "a.erf()",
	"unary.reciprocal": "(a.abs() + 0.5).reciprocal()",
	"unary.clamp":      "a.clamp(-0.5, 0.7)",

	// Activations without an operation of their own.
	"unary.selu":        "a.elu(1.6732632423543772) * 1.0507009873554805",
	"unary.hardsigmoid": "(a / 6 + 0.5).clamp(0, 1)",
	"unary.hardswish":   "a * (a / 6 + 0.5).clamp(0, 1)",
	"unary.mish":        "a * a.softplus().tanh()",
	"unary.logsigmoid":  "-(-a).softplus()",
	"unary.relu6":       "a.clamp(0, 6)",
	"unary.softsign":    "a / (a.abs() + 1)",
	"unary.tanhshrink":  "a - a.tanh()",

	"binary_broadcast.add | d0 d1 d2 | d1 -":     "a + b",
	"binary_broadcast.sub | d0 d1 d2 | d1 -":     "a - b",
	"binary_broadcast.mul | d0 d1 d2 | d1 -":     "a * b",
	"binary_broadcast.div | d0 d1 d2 | d1 -":     "a / (b.abs() + 0.5)",
	"binary_broadcast.maximum | d0 d1 d2 | d1 -": "a.maximum(b)",
	"binary_broadcast.minimum | d0 d1 d2 | d1 -": "a.minimum(b)",
	"binary_broadcast.pow | d0 d1 d2 | d1 -":     "(a.abs() + 0.3).pow(b)",
	"binary_broadcast.where | d0 d1 d2 | d1 -":   "a.gt(b).where(a, b)",
	"binary_broadcast.atan2 | d0 d1 d2 | d1 -":   "a.atan2(b)",

	"reduce.sum":          "a.sum(AXIS)",
	"reduce.mean":         "a.mean(AXIS)",
	"reduce.amax":         "a.max(AXIS)",
	"reduce.amin":         "a.min(AXIS)",
	"reduce.var_unbiased": "a.var(AXIS)",
	"reduce.var_biased":   "a.var(AXIS, correction=0)",
	"reduce.logsumexp":    "a.logsumexp(AXIS)",
	"reduce.prod":         "a.prod(AXIS)",
	"reduce.norm2":        "a.norm(AXIS)",

	"softmax":        "a.softmax(AXIS)",
	"log_softmax":    "a.log_softmax(AXIS)",
	"cumsum":         "a.cumsum(AXIS)",
	"flip":           "a.flip(AXIS)",
	"argmax":         "a.argmax(AXIS)",
	"sort":           "a.sort(AXIS)[0]",
	"argsort_stable": "a.argsort(AXIS)",
	"topk_values":    "a.topk(K, AXIS)[0]",
	"topk_indices":   `a.topk(K, "d1")[1]`,

	"matmul.2d | m k | k n":                          `a.dot(b, "k")`,
	"matmul.batched_broadcast | b - m k | c k n":     `a.dot(b, "k").order("b c m n")`,
	"matmul.mat_vec | m k | k":                       `a.dot(b, "k")`,
	"linear | d0 d1 in | out in | out":               "linear(a, b, c)",
	"layer_norm | d0 d1 e | e | e":                   "layer_norm(a, b, c)",
	"rms_norm | d0 d1 e | e":                         "rms_norm(a, b, eps=1e-6)",
	"group_norm | d0 channel d2 | channel | channel": `group_norm(a, 2, b, c, axes="d2")`,
	"sdpa | b head seq head_dim | b head key_seq head_dim | b head key_seq head_dim": masked,

	"sdpa_gqa | b head seq head_dim | b kv_head key_seq head_dim | b kv_head key_seq head_dim": masked,

	"batch_norm_train | batch channel d2 | channel | channel": `layer_norm(a, b, c, axes="batch d2")`,
	"conv1d | d0 channel x | out channel kx | out": `a.conv(b, "channel", x="kx", bias=c, ` +
		`stride=STRIDE, padding=PADDING, dilation=DILATION, groups=GROUPS)`,
	"conv2d | d0 channel y x | out channel ky kx | out": `a.conv(b, "channel", y="ky", x="kx", bias=c, ` +
		`stride=STRIDE, padding=PADDING, dilation=DILATION, groups=GROUPS)`,
	"conv_transpose1d | d0 channel x | channel out kx | out": `a.conv_transpose(b, "channel", x="kx", bias=c, ` +
		`stride=STRIDE, padding=PADDING)`,
	"max_pool1d":                           "a.max_pool(d2=KERNEL, stride=STRIDE)",
	"max_pool2d":                           "a.max_pool(d2=KERNEL, d3=KERNEL)",
	"avg_pool2d":                           "a.avg_pool(d2=KERNEL, d3=KERNEL)",
	"rope.neox | row head head_dim":        `rope(a, arange(5, "row"), style="half")`,
	"rope.interleaved | row head head_dim": `rope(a, arange(5, "row"))`,

	"cross_entropy.mean":            `cross_entropy(a, b, "d1")`,
	"cross_entropy.sum":             `cross_entropy(a, b, "d1", reduction="sum")`,
	"cross_entropy.label_smoothing": `cross_entropy(a, b, "d1", label_smoothing=0.1)`,
	"cross_entropy.ignore_index":    `cross_entropy(a, b, "d1")`,
	"nll_loss":                      `nll_loss(a, b, "d1")`,
	"mse_loss":                      "mse_loss(a, b)",
	"l1_loss":                       "l1_loss(a, b)",
	"smooth_l1":                     "smooth_l1_loss(a, b)",
	"huber":                         "huber_loss(a, b, delta=0.7)",
	"bce_with_logits":               "bce_with_logits(a, b)",
	"kl_div.batchmean":              `kl_div(a.log_softmax("d1"), b.softmax("d1"), reduction="batchmean", axis="d1")`,

	"embedding | vocab embed | d0 d1":   "embedding(b, a)",
	"gather | d0 d1 | d0 j":             "a.gather(b, AXIS)",
	"index_select | d0 d1 d2 | i":       "a.index_select(b, AXIS)",
	"scatter_add | d0 d1 | d0 j | d0 j": "a.scatter_add(c, b, AXIS)",
	"index_add | d0 d1 | i d1 | i":      "a.index_add(c, b, AXIS)",
	"masked_fill":                       "b.ne(0).where(-1.5, a)",
	"permute":                           `a.order("d2 d0 d1")`,
	"concat":                            "concat([a, b], AXIS)",
	"stack":                             `stack([a, b], "s").order("d0 s d1")`,
	"slice":                             "a.slice(d0=(1, None), d1=(None, None, 2), d2=(-3, -1))",
	"pad.constant":                      "a.pad(d0=(0, 1), d1=(1, 2), value=0.5)",
	"repeat":                            "a.tile(d0=2, d1=3)",
	"repeat_interleave":                 "a.repeat(d1=2)",
	"tril":                              `a.tril("d0 d1")`,
	"triu1":                             `a.triu("d0 d1", diagonal=1)`,
	"expand | d1 -":                     `a.expand(d0=4, d2=5).order("d0 d1 d2")`,
	"roll":                              "a.roll(d1=2)",
	"unfold":                            `a.unfold("d1", window=3, step=2)`,
	"glu":                               "a.glu(\"d1\")",
	"swiglu":                            "swiglu(a, b)",
	"geglu_tanh":                        `geglu(a, b, approximate="tanh")`,
}

const masked = "attention(a, b, c, causal=CAUSAL)"

// torchEinsums are the equations of einsum.
var torchEinsums = map[string]string{
	"ij,jk->ik":     `einsum(a, b, out="i k")`,
	"bij,bjk->bik":  `einsum(a, b, out="b i k")`,
	"i,j->ij":       `einsum(a, b, out="i j")`,
	"ij->ji":        `einsum(a, out="j i")`,
	"ijk->k":        `einsum(a, out="k")`,
	"bij->b":        `einsum(a, out="b")`,
	"ij,ij->":       `einsum(a, b, out="")`,
	"abc,cd->abd":   `einsum(a, b, out="a b d")`,
	"ab,ac->abc":    `einsum(a, b, out="a b c")`,
	"ijk,jl,kl->i":  `einsum(a, b, c, out="i")`,
	"bsd,dhe->bhse": `einsum(a, b, out="b h s e")`,

	"bhqd,bhkd->bhqk":    `einsum(a, b, out="b h q k")`,
	"...ij,...jk->...ik": `einsum(a, b, out="e i k")`,
	"ii->i":              `a.diagonal("i i_")`, // an axis has one name, and a name one axis
	"ii":                 `a.diagonal("i i_").sum()`,
}

// torchCase is one case of the file.
type torchCase struct {
	Op    string
	Expr  string // the script, in TestNets
	Attrs struct {
		Axis                                         any
		K, Kernel, Stride, Padding, Dilation, Groups int
		Causal                                       bool
		Equation                                     string
	}
	Inputs, Grads []*torchTensor
	Output        torchTensor
	GradOutput    *torchTensor `json:"grad_output"`
}

type torchTensor struct {
	Shape []int
	F32   string
	Ints  []int64
	Data  []float64
	Axes  string // in TestNets
}

// floats is the elements as numbers.
func (t *torchTensor) floats() []float64 {
	values := append([]float64(nil), t.Data...)
	for _, v := range t.Ints {
		values = append(values, float64(v))
	}
	raw, err := base64.StdEncoding.DecodeString(t.F32)
	if err != nil {
		panic(err)
	}
	for ; len(raw) > 0; raw = raw[4:] {
		values = append(values, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))))
	}
	return values
}

// of is t with rank dimensions, less those of size 1 that PyTorch kept.
func (t *torchTensor) of(rank int) *torchTensor {
	if rank == len(t.Shape) {
		return t
	}
	squeezed := *t
	squeezed.Shape = slices.DeleteFunc(slices.Clone(t.Shape), func(n int) bool { return n == 1 })
	return &squeezed
}

// tensor is t with its dimensions named.
func (t *torchTensor) tensor(env *core.Env, names []string) *core.Tensor {
	var axes []string
	var sizes []int
	for i, name := range names {
		if name != "-" {
			axes, sizes = append(axes, name), append(sizes, t.Shape[i])
		}
	}
	list, err := axis.Of(axes...)
	if err != nil {
		panic(err)
	}
	if t.Ints != nil {
		return env.FromInts(dtype.I64, t.Ints, list, sizes...)
	}
	return env.FromFloats(dtype.F32, t.floats(), list, sizes...)
}

// names is a name for each dimension of the inputs, from the list behind an operation's name.
func (c *torchCase) names(listed []string) [][]string {
	all := make([][]string, len(c.Inputs))
	terms, _, _ := strings.Cut(c.Attrs.Equation, "->")
	for i, t := range c.Inputs {
		switch {
		case c.Op == "einsum":
			for _, letter := range strings.Split(strings.ReplaceAll(strings.Split(terms, ",")[i], "...", "e"), "") {
				if slices.Contains(all[i], letter) {
					letter += "_"
				}
				all[i] = append(all[i], letter)
			}
		case len(listed) > 0:
			all[i] = strings.Fields(listed[i])
		default:
			for k := range t.Shape {
				all[i] = append(all[i], fmt.Sprint("d", k))
			}
		}
	}
	return all
}

// axis is the axis or axes that the case names, as a script writes them.
func (c *torchCase) axis(names []string) string {
	places, ok := c.Attrs.Axis.([]any)
	if !ok && c.Attrs.Axis != nil {
		places = []any{c.Attrs.Axis}
	}
	var list []string
	for _, p := range places {
		k := int(p.(float64))
		list = append(list, names[(k+len(names))%len(names)])
	}
	return fmt.Sprintf("%q", strings.Join(list, " "))
}

// fill puts the case's attributes into the expression.
func (c *torchCase) fill(expr string, names []string) string {
	causal := "False"
	if c.Attrs.Causal {
		causal = "True"
	}
	return strings.NewReplacer("AXIS", c.axis(names), "CAUSAL", causal, "KERNEL", fmt.Sprint(c.Attrs.Kernel),
		"STRIDE", fmt.Sprint(c.Attrs.Stride), "PADDING", fmt.Sprint(c.Attrs.Padding), "GROUPS",
		fmt.Sprint(c.Attrs.Groups),
		"DILATION", fmt.Sprint(c.Attrs.Dilation), "K", fmt.Sprint(c.Attrs.K)).Replace(expr)
}

// TestTorch runs PyTorch's cases through scripts, backward included.
func TestTorch(t *testing.T) {
	f, err := os.Open("testdata/torch-ops.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var cases []*torchCase
	if err := json.NewDecoder(z).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	exprs, listed := map[string]string{}, map[string][]string{}
	for key, expr := range torchOps {
		parts := strings.Split(key, " | ")
		exprs[parts[0]], listed[parts[0]] = expr, parts[1:]
	}
	worst := 0.0
	for _, c := range cases {
		expr, ok := exprs[c.Op]
		if c.Op == "einsum" {
			expr, ok = torchEinsums[c.Attrs.Equation]
		}
		if !ok {
			t.Errorf("no script for %s %s", c.Op, c.Attrs.Equation)
			continue
		}
		names := c.names(listed[c.Op])
		expr = c.fill(expr, names[0])
		off, err := c.run(expr, names)
		if err != nil || !(off <= 1e-5) {
			t.Errorf("%s: %s: off by %.2g, %v", c.Op, expr, off, err)
		}
		worst = max(worst, off)
	}
	t.Logf("%d cases, off by at most %.2g", len(cases), worst)
	page, err := os.ReadFile("../docs/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## torch-ops\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if want := fmt.Sprintf("\n%d cases of PyTorch operations", len(cases)); !strings.Contains(section, want) ||
		!strings.Contains(section, "All of them apply") || strings.Contains(section, "\n|") {
		t.Errorf("docs/coverage.md has to say of torch-ops: %s, and that all of them apply; it says\n%s", want, section)
	}
}

// run compares the value of a script's expression and its gradients with PyTorch's and returns the largest
// difference, relative to the greater of 1 and the value.
func (c *torchCase) run(expr string, names [][]string) (off float64, err error) {
	it := starlark.New(starlark.Config{})
	defer it.Close()
	var wanted []string
	for i, input := range c.Inputs {
		x, name := input.tensor(it.Env(), names[i]), "abcdefg"[i:i+1]
		if c.Grads != nil && c.Grads[i] != nil {
			x = it.Env().Watch(x)
			wanted = append(wanted, name)
		}
		it.Globals()[name] = starlark.Tensor{Tensor: x}
	}
	value := func(name, src string) (star.Value, error) { return it.Eval(context.Background(), name, src) }
	y, err := value("value", "y = "+expr)
	if err == nil {
		y, err = value("y", "y")
	}
	if err != nil {
		return 0, err
	}
	compare := func(v star.Value, want *torchTensor) {
		got := v.(starlark.Tensor).Values()
		numbers := want.floats()
		if len(got) != len(numbers) {
			off = math.Inf(1)
			return
		}
		for i, w := range numbers {
			g, ok := got[i].(float64)
			if !ok {
				g = float64(got[i].(int64))
			}
			off = max(off, math.Abs(g-w)/max(1, math.Abs(w)))
		}
	}
	compare(y, &c.Output)
	if c.Grads == nil {
		return off, nil
	}
	seed := c.GradOutput.of(len(y.(starlark.Tensor).Sizes())).tensor(it.Env(), y.(starlark.Tensor).Axes().Names())
	it.Globals()["seed"] = starlark.Tensor{Tensor: seed}
	grads, err := value("grads", fmt.Sprintf("grad(y, [%s], seeds=seed)", strings.Join(wanted, ", ")))
	if err != nil {
		return off, err
	}
	for i, name := range wanted {
		compare(grads.(*star.List).Index(i), c.Grads[strings.Index("abcdefg", name)])
	}
	return off, nil
}
