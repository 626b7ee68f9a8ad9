package starlark

import (
	"bytes"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/stdlib"
	"go.starlark.net/starlarkstruct"
)

// helpText is what help prints.
func helpText(t *testing.T, call string) string {
	t.Helper()
	var out bytes.Buffer
	it := newTest(Config{Stdout: &out})
	defer it.Close()
	src := "def double(x, by=2):\n  '''Doubles x.'''\n  return x * by\n" + call
	if err := it.RunSource(background, "<test>", []byte(src)); err != nil {
		return err.Error()
	}
	return out.String()
}

func TestHelp(t *testing.T) {
	for _, test := range []struct{ call, want string }{
		{`help("softmax")`, "x.softmax(axis, scale=1, [mask])\n\n"},
		{`help(softmax)`, "x.softmax(axis, scale=1, [mask])\n\n"},
		{`help("sum")`, "sum(xs, start=0): the elements added up."},
		{`help(sum)`, "x.sum("},
		{`help("max")`, "x.max("},
		{`help("tolist")`, "x.tolist(): nested lists of numbers, or a number for a scalar.\n"},
		{`help(ones(a=1).tolist)`, "x.tolist(): nested lists"},
		{`help("generate")`, "m.generate(prompt, max_tokens=None,"},
		{`help("scope")`, "scope(fn, *args, **kwargs): it calls fn and returns its result."},
		{`help("len")`, "len is as in Starlark: https://"},
		{`help([].append)`, "append is as in Starlark: https://"},
		{`help("double")`, "double(x, by=2)\n\nDoubles x.\n"},
		{`help(double)`, "double(x, by=2)\n\nDoubles x.\n"},
		{`help("math")`, "module with acos "},
		{`help("optim.adamw")`, "optim.adamw(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08,"},
		{`help(optim.adamw)`, "AdamW is Adam whose weight decay is no part of the gradient"},
		{`help("schedule.cosine")`, "schedule.cosine(lr, steps, warmup=0, min_lr=0)\n\nCosine rises linearly"},
		{`help("optim.ema")`, "optim.ema(params, decay=0.999): a moving average"},
		{`help(optim.sgd([variable(ones(a=1))]).step)`, "o.step(lr=None): every parameter"},
		{`help("optim")`, "module with adadelta "},
		{`help("averaged")`, "e.averaged(fn, *args, **kwargs): calls fn"},
		{`help(3)`, "int\n"},
		{`help("sofmax")`, `help: there is nothing called "sofmax"; did you mean help("softmax")?`},
		{`help("train.run")`, "run(loss, opt, steps, lr=None, clip=None"},
		{`help("train.walk")`, `there is nothing called "train.walk"`},
		{`help("adam")`, `there is nothing called "adam"; did you mean help("optim.adam")?`},
		{`help()`, "to load     args bench chat convert create data"},
		{`load("@stdlib//train.star", "train"); help(train)`, "A training loop: reports, validation, checkpoints"},
		{`load("@stdlib//train.star", "train"); help(train)`, "\n\nmodule with run\n"},
		{`help("generat")`, `did you mean help("generate")?`},
		{`help("shape")`, "x.shape: the size of each axis"},
		{`help("axes")`, "x.axes: the names of the axes"},
		{`help("dtype")`, "x.dtype: the name of the type"},
		{`help("requires_grad")`, "x.requires_grad: whether x is a variable"},
		{`help("grad")`, "grad("},
		{`help("tensor")`, "tensor is a tensor of numbers"},
		{`help("all")`, "all is whether every element"},
		{`help("soft")`, "there are log_softmax, softcap, softmax, softplus"},
		{`help("FromLists")`, `help: there is nothing called "FromLists"; did you mean help("tensor")?`},
		{`help("nn")`, "Neural networks. A module is a function"},
		{`help("nn")`, "\n\nmodule with attention block"},
		{`help("m.generate")`, "m.generate(prompt, max_tokens=None"},
		{`help("x.shape")`, "x.shape: the size of each axis"},
		{`help("RMSNorm")`, `help: there is nothing called "RMSNorm"; did you mean help("rms_norm")?`},
		{`help("tensor.shape")`, `help: there is nothing called "tensor.shape"; did you mean help("shape")?`},
		{`help("elephant")`, `help: there is nothing called "elephant"; help() lists all names`},
	} {
		if got := helpText(t, test.call); !strings.Contains(got, test.want) {
			t.Errorf("%s: got\n%s\nwant %q", test.call, got, test.want)
		}
	}
}

// TestHelpLists looks for every name of the language in the overview.
func TestHelpLists(t *testing.T) {
	words := strings.Fields(helpText(t, "help()"))
	it := New(Config{})
	defer it.Close()
	for name, v := range it.names {
		if _, ok := v.(star.Callable); ok && !slices.Contains(words, name) {
			t.Errorf("help() does not list %s", name)
		}
	}
	for line := range strings.Lines(helpText(t, "help()")) {
		if len(line) > textColumns+1 {
			t.Errorf("wider than %d columns: %s", textColumns, line)
		}
	}
}

// TestBuiltinsAreExplained insists on a comment of the form that help reads on every builtin of our own.
func TestBuiltinsAreExplained(t *testing.T) {
	it := New(Config{})
	defer it.Close()
	var ours []*star.Builtin
	for name, v := range it.names {
		if b, ok := v.(*star.Builtin); ok && (builtins.Has(name) || !star.Universe.Has(name)) {
			ours = append(ours, b)
		}
	}
	for receiver, table := range map[star.Value]map[string]*star.Builtin{
		Tensor{}: methods, &Model{}: modelMethods,
		&tensorFile{}: tensorFileMethods, &batchesOf{}: batchesMethods,
		&optimizer{}: optimizerMethods, &ema{}: emaMethods,
	} {
		for b := range maps.Values(table) {
			ours = append(ours, b.BindReceiver(receiver))
		}
	}
	for _, b := range batchMethods {
		ours = append(ours, b.BindReceiver(&batch{}))
	}
	for _, m := range []*starlarkstruct.Module{optimModule(), scheduleModule()} {
		for v := range maps.Values(m.Members) {
			ours = append(ours, v.(*star.Builtin))
		}
	}
	for _, b := range ours {
		text, err := it.builtinHelp(b)
		if err != nil || strings.Contains(text, "as in Starlark") || !strings.Contains(text, b.Name()+"(") {
			t.Errorf("%s: help says %q, %v", b.Name(), text, err)
		}
	}
}

// TestModulesAreExplained insists on a doc string in every module that comes with the program, and in every function
// that it offers.
func TestModulesAreExplained(t *testing.T) {
	files, err := fs.Glob(stdlib.FS, "*.star")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		src, err := stdlib.FS.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(src), `"""`) {
			t.Errorf("%s does not begin with what it is", file)
		}
		it := New(Config{})
		defer it.Close()
		if err := it.RunFile(background, "@stdlib//"+file); err != nil {
			t.Fatal(err)
		}
		for name, v := range it.Globals() {
			if f, ok := v.(*star.Function); ok && !strings.HasPrefix(name, "_") && f.Doc() == "" {
				t.Errorf("%s: %s has no doc string", file, name)
			}
		}
	}
}
