package kv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/safetensors"
)

// format names the files, and the version of what is in them.
const format = family + "2"

// family is how the names of all versions begin.
const family = "fucina.kv."

// about is what the metadata of a file say, as JSON.
type about struct {
	Format string
	Model  string // whose cache it is: what tells one model from another
	DType  string
	Len    int
	Layers []aboutLayer
	Tokens []int32
}

type aboutLayer struct {
	First, Pages int      // the first page that is kept, and the one behind the last
	Window       int      `json:",omitempty"`
	Rows, State  []string `json:",omitempty"` // axes of what a recurrent layer knows
}

// Write writes the cache as a safetensors file: the pages of every layer one after another, and what recurrent layers
// know now; points to go back to are left out. model tells models apart, tokens is what the positions hold.
func (c *Cache) Write(w io.Writer, model string, tokens []int32) error {
	a := about{Format: format, Model: model, DType: c.dtype().String(), Len: c.length, Tokens: tokens,
		Layers: make([]aboutLayer, len(c.layers))}
	var infos []safetensors.Info
	var writers [][]*core.Tensor
	add := func(name string, shape []int, dt dtype.Type, ts ...*core.Tensor) {
		infos = append(infos, safetensors.Info{Name: name, DType: dt, Shape: shape})
		writers = append(writers, ts)
	}
	for i := range c.layers {
		l, to := &c.layers[i], &a.Layers[i]
		to.Window = l.window
		kept := l.pages[:min(len(l.pages), pagesFor(c.length))]
		to.Pages = len(kept)
		for to.First = 0; to.First < len(kept) && kept[to.First].K == nil; to.First++ {
		}
		var ks, vs []*core.Tensor
		for _, p := range kept[to.First:] {
			if ks = append(ks, p.K); p.V != nil {
				vs = append(vs, p.V)
			}
		}
		for name, ts := range map[string][]*core.Tensor{"k": ks, "v": vs} {
			if len(ts) > 0 {
				shape, dt := stored(ts[0])
				add(fmt.Sprintf("%d.%s", i, name), append([]int{len(ts)}, shape...), dt, ts...)
			}
		}
		for name, m := range map[string]*memory{"rows": &l.rows, "state": &l.state} {
			if x := m.known(); x != nil {
				add(fmt.Sprintf("%d.%s", i, name), x.Sizes(), x.DType(), x)
				if name == "rows" {
					to.Rows = x.Axes().Names()
				} else {
					to.State = x.Axes().Names()
				}
			}
		}
	}
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	head, order, err := safetensors.Header(infos, map[string]string{"cache": string(text)})
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, i := range order {
		for _, t := range writers[i] {
			if err := t.WriteBlocks(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// pagesFor is how many pages n positions take.
func pagesFor(n int) int { return (n + core.PageLen - 1) / core.PageLen }

// The bytes and the elements of a block of q8_0.
const q8Bytes, q8Len = 34, 32

// stored is the shape and the dtype of a page's K or V in a file, which knows no q8_0.
func stored(t *core.Tensor) ([]int, dtype.Type) {
	shape := t.Sizes()
	if t.DType().Quantized() {
		shape[2] = shape[2] / q8Len * q8Bytes
		return shape, dtype.U8
	}
	return shape, t.DType()
}

// Read makes a cache of a file that Write wrote for the same model, and returns it and the tokens that its positions
// hold. run evaluates a row of the model behind an empty cache of so many layers, in a shape-only run: what the file
// holds must have the shapes of what that leaves. Read panics with a *core.Error when the budget does not allow it.
// Errors: another file, another model's, one that was damaged; that of run.
func Read(
	env *core.Env, f *safetensors.File, model string, layers int, run func(*Cache) error,
) (*Cache, []int32, error) {
	var a about
	known := false
	for key, value := range f.Metadata() {
		known = known || key == "cache" && json.Unmarshal([]byte(value), &a) == nil && a.Format == format
	}
	switch {
	case !known && strings.HasPrefix(a.Format, family):
		return nil, nil, fmt.Errorf("it is in the format %.32q, this version reads %q: make it again", a.Format, format)
	case !known:
		return nil, nil, fmt.Errorf("it is no file of a cache that this version can read (%s)", format)
	case a.Model != model || len(a.Layers) != layers:
		return nil, nil, fmt.Errorf("it is of another model")
	case a.Len < 1 || len(a.Tokens) != a.Len:
		return nil, nil, fmt.Errorf("it says %d tokens and lists %d", a.Len, len(a.Tokens))
	}
	dt, ok := dtype.Parse(a.DType)
	if !ok || !slices.Contains(core.PageTypes(), dt) {
		return nil, nil, fmt.Errorf("its keys are %q, want f32, f16 or q8_0", a.DType)
	}
	made, like := New(env, layers), New(env, layers)
	made.DType, like.DType = dt, dt
	s := env.Open()
	defer s.Close()
	defer like.Free()
	if err := run(like); err != nil {
		return nil, nil, err
	}
	done := false
	defer func() {
		if !done { // also when the budget does not allow it
			made.Free()
		}
	}()
	r := reader{env, f, dt}
	recurrent := false
	for i := range made.layers {
		l := &made.layers[i]
		if err := r.layer(l, i, &a); err != nil {
			return nil, nil, err
		}
		if err := l.resembles(&like.layers[i]); err != nil {
			return nil, nil, fmt.Errorf("layer %d: %w", i, err)
		}
		recurrent = recurrent || l.rows.now != nil || l.state.now != nil
	}
	if made.length = a.Len; recurrent {
		made.mark()
	}
	done = true
	return made, a.Tokens, nil
}

// reader is a file being read.
type reader struct {
	env  *core.Env
	file *safetensors.File
	dt   dtype.Type // of pages
}

// layer reads what layer i of the file holds.
func (r *reader) layer(l *layer, i int, a *about) error {
	from := &a.Layers[i]
	l.window = from.Window
	if l.window < 0 || from.Pages != 0 && (from.Pages != pagesFor(a.Len) || from.First < 0 ||
		from.First >= from.Pages) {
		return fmt.Errorf("layer %d says pages %d to %d of %d tokens", i, from.First, from.Pages, a.Len)
	}
	if n := from.Pages - from.First; n > 0 {
		keys, values := fmt.Sprintf("%d.k", i), fmt.Sprintf("%d.v", i)
		kAxes, vAxes := core.PageAxes(r.dt, r.has(values))
		ks, err := r.pages(keys, n, kAxes)
		if err != nil {
			return err
		}
		l.pages, l.holders = make([]core.Page, from.Pages), make([]*int, from.Pages)
		for j, k := range ks {
			l.set(from.First+j, core.Page{K: k})
		}
		if vAxes != nil {
			vs, err := r.pages(values, n, vAxes)
			if err != nil {
				return err
			}
			for j, v := range vs {
				l.pages[from.First+j].V = v
			}
		}
	}
	for name, m := range map[string]*memory{"rows": &l.rows, "state": &l.state} {
		axes := from.Rows
		if name == "state" {
			axes = from.State
		}
		if len(axes) == 0 {
			continue
		}
		x, err := r.memory(fmt.Sprintf("%d.%s", i, name), axes)
		if err != nil {
			return err
		}
		x.Keep()
		m.now = &held{x, 1}
	}
	return nil
}

// resembles is an error if l, as far as it has been read, does not fit where like is. Rows and states of another layer
// are there or not, and so are keys; of the pages the last one tells, which every layer keeps.
func (l *layer) resembles(like *layer) error {
	if l.window != like.window {
		return fmt.Errorf("a window of %d, want %d", l.window, like.window)
	}
	type pair struct {
		what      string
		got, want *core.Tensor
	}
	pairs := []pair{{"rows", l.rows.known(), like.rows.known()}, {"state", l.state.known(), like.state.known()}}
	var got, want core.Page
	if n := len(l.pages); n > 0 {
		got = l.pages[n-1]
	}
	if n := len(like.pages); n > 0 {
		want = like.pages[n-1]
	}
	for _, p := range append(pairs, pair{"keys", got.K, want.K}, pair{"values", got.V, want.V}) {
		if p.got == nil && p.want == nil {
			continue
		}
		if p.got == nil || p.want == nil || p.got.Shape() != p.want.Shape() {
			return fmt.Errorf("%s are %s, want %s", p.what, shapeOf(p.got), shapeOf(p.want))
		}
	}
	return nil
}

func shapeOf(x *core.Tensor) string {
	if x == nil {
		return "none"
	}
	return x.Shape()
}

func (r *reader) has(name string) bool {
	_, ok := r.file.Tensor(name)
	return ok
}

// pages reads n pages' K or V. On an error those that were read end with the scope.
func (r *reader) pages(name string, n int, axes *axis.List) ([]*core.Tensor, error) {
	x, ok := r.file.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("it has no tensor %s", name)
	}
	want, last := r.dt, 1
	if r.dt.Quantized() {
		want, last = dtype.U8, q8Bytes
	}
	dt, _ := x.Type.DType()
	fits := dt == want && len(x.Shape) == 1+axes.Len() && x.Shape[0] == n
	sizes := slices.Clone(x.Shape[min(1, len(x.Shape)):])
	for k := 0; fits && k < len(sizes); k++ {
		fits = sizes[k] > 0 && (axes.At(k) != "key_seq" || sizes[k] == core.PageLen)
	}
	if !fits || sizes[len(sizes)-1]%last != 0 {
		return nil, fmt.Errorf("tensor %s is %s %v, want %d pages of %s", name, x.Type, x.Shape, n, r.dt)
	}
	if r.dt.Quantized() {
		sizes[len(sizes)-1] = sizes[len(sizes)-1] / q8Bytes * q8Len
	}
	ts := make([]*core.Tensor, n)
	for j, all := 0, x.Bytes(); j < n; j++ {
		each := len(all) / (n - j)
		t, err := r.env.ReadTensor(bytes.NewReader(all[:each]), r.dt, axes, sizes...)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", name, err)
		}
		ts[j], all = t, all[each:]
	}
	for _, t := range ts {
		t.Keep()
	}
	return ts, nil
}

// memory reads what a recurrent layer knows.
func (r *reader) memory(name string, axes []string) (*core.Tensor, error) {
	x, ok := r.file.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("it has no tensor %s", name)
	}
	list, err := axis.Of(axes...)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", name, err)
	}
	dt, ok := x.Type.DType()
	if !ok || !dt.IsFloat() || len(x.Shape) != list.Len() {
		return nil, fmt.Errorf("tensor %s is %s %v, want numbers along %s", name, x.Type, x.Shape, list)
	}
	elements, err := x.Elements()
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", name, err)
	}
	return r.env.ReadTensor(elements, dt, list, x.Shape...)
}
