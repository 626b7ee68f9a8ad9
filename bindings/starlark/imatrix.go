package starlark

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/models/recipe"
	"github.com/fucina-go/fucina/models/token"
)

// importanceAxis is the axis of what load_imatrix and collect_imatrix return.
var importanceAxis = mustAxes("in")

// collectImatrix is collect_imatrix(model, text, target, chunk=512, output=False, dataset=""): runs the model on a
// text, in chunks of that many tokens, of which each begins anew, and saves an importance matrix: for each column of
// each weight of the layers, with output also of the last one, the mean of the squares of what it is multiplied by. A
// last chunk that is not full is left out, unless it is the only one. quantize_model and other programs read the file,
// which is in the format that llama-imatrix had before if its name ends in .dat; dataset is what it calls the text.
//
// It returns the importance of the weights, importance[in], as a dict by their names. The columns of several experts
// follow one another; those of an expert that no token was sent to count 1.
func collectImatrix(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var model star.Value
	var text, target, dataset string
	var output bool
	chunk := 512
	if err := star.UnpackArgs(b.Name(), args, kwargs, "model", &model, "text", &text, "target", &target, "chunk?",
		&chunk, "output?", &output, "dataset?", &dataset); err != nil {
		return nil, err
	}
	m, ok := model.(*Model)
	if !ok {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("model: got a %s, want a model", model.Type()),
			Hint: `as in: collect_imatrix(load_model("a.gguf"), read_text("a.txt"), "imatrix.gguf")`}
	}
	if chunk < 2 {
		return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("chunk: got %d tokens, want 2 or more", chunk)}
	}
	it := interpOf(t)
	ids, err := m.tokens.EncodeUntil(text, token.AddSpecial, it.stopper(b.Name()))
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, &core.Error{Op: b.Name(), Msg: "the text has no tokens"}
	}
	if chunk = min(chunk, len(ids)); m.context > 0 && chunk > m.context {
		return nil, m.tooLong(b.Name(), chunk, 0)
	}
	c := &recipe.Collector{}
	if err := it.collect(c, m, ids, chunk, output); err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	if err := it.Save(b.Name(), target, func(w io.Writer) error {
		if strings.HasSuffix(target, ".dat") {
			return c.WriteOld(w, dataset, len(ids)/chunk, chunk)
		}
		return c.Draft(dataset, len(ids)/chunk, chunk).Write(w)
	}); err != nil {
		return nil, err
	}
	return it.importance(c.Means()), nil
}

// collect runs the model on the full chunks of ids.
func (it *Interp) collect(c *recipe.Collector, m *Model, ids []int32, chunk int, output bool) error {
	var failed error
	outside := it.env.Multiplied
	defer func() { it.env.Multiplied = outside }()
	it.env.Multiplied = func(p core.Product) {
		name := m.nameOf(p.W)
		if failed == nil && (strings.HasPrefix(name, "blk.") || output && name != "") {
			failed = c.Add(name, p)
		}
	}
	meter := &meter{out: it.cfg.Stderr, terminal: it.cfg.Terminal, label: "collect", total: len(ids) / chunk,
		began: time.Now()}
	meter.shown, meter.running = meter.began, true
	defer func() { meter.end(time.Now()) }()
	begins := ids[0] == m.tokens.BOS()
	for part := range slices.Chunk(ids, chunk) {
		if len(part) < chunk {
			break
		}
		if part = slices.Clone(part); begins {
			part[0] = m.tokens.BOS()
		}
		cache := m.newCache(it)
		x, err := m.forward(it, cache, part, output)
		cache.Free()
		if err == nil {
			x.Free()
			err = failed
		}
		if err != nil {
			return err
		}
		meter.tick(true, time.Now())
	}
	return nil
}

// importance is a dict of tensors by the names of the weights.
func (it *Interp) importance(m map[string][]float32) *star.Dict {
	d := star.NewDict(len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		values := make([]float64, len(m[name]))
		for i, v := range m[name] {
			values[i] = float64(v)
		}
		x := it.env.FromFloats(dtype.F32, values, importanceAxis, len(values))
		_ = d.SetKey(star.String(name), Tensor{x}) // a string can be hashed
	}
	return d
}

// loadImatrix is load_imatrix(path): the importance of weights, importance[in], as a dict by their names, from a file
// that collect_imatrix or llama-imatrix wrote. With it x.quantize("iq2_xxs", "in", importance=m["blk.0.attn_q.weight"])
// tells which columns matter. The columns of several experts follow one another.
func loadImatrix(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path); err != nil {
		return nil, err
	}
	it := interpOf(t)
	name, err := it.named(b.Name(), path)
	if err != nil {
		return nil, err
	}
	m, err := recipe.ReadImportance(name, it.cfg.Open)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = it.cannotOpen(failed.Path, path, err, "a path is relative to the working directory, not to the script")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	return it.importance(m.Weights), nil
}
