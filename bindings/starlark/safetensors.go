package starlark

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unsafe"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/quant"
	"github.com/fucina-go/fucina/core/safetensors"
)

// axesKey is the metadata that keeps the axis names, for which the format has no place: a JSON object of them by
// tensor, {"w": "out in"}.
const axesKey = "axes"

// loadSafetensors is load_safetensors(path, axes=None, dtype=None): the tensors in a safetensors file, as a dict by
// name; of model.safetensors.index.json, those of all the files it lists. Tensors that save_safetensors wrote have
// their axis names; name those of others in a dict, in which a * stands for any text:
// load_safetensors("m.safetensors", {"*.weight": "out in", "*.bias": "out"}). U16 becomes i32, U32 and U64 become i64;
// with a dtype, fractions become that dtype, those of 8 bits too.
func loadSafetensors(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path, dt string
	var axes mapping
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path, "axes??", &axes, "dtype??", &dt); err != nil {
		return nil, err
	}
	f, err := interpOf(t).openTensors(b.Name(), path)
	if err != nil {
		return nil, err
	}
	defer f.file.Close()
	as, err := fractions(b.Name(), dt)
	if err != nil {
		return nil, err
	}
	names, err := f.namesFrom(b.Name(), axes.IterableMapping)
	if err != nil {
		return nil, err
	}
	d := star.NewDict(f.file.Len())
	for x := range f.file.Tensors() {
		value, err := f.read(b.Name(), x, names(x.Name), as)
		if err != nil {
			return nil, err
		}
		if err := d.SetKey(star.String(x.Name), Tensor{value}); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// fractions is a dtype that holds fractions, Invalid if none is given.
func fractions(op, name string) (dtype.Type, error) {
	if name == "" {
		return dtype.Invalid, nil
	}
	dt, _ := dtype.Parse(name)
	if !dt.IsFloat() {
		return dt, &core.Error{Op: op, Msg: fmt.Sprintf("dtype: got %q, want one for fractions", name),
			Hint: `one of f32, f64, f16 and bf16, as in: dtype="f32"`}
	}
	return dt, nil
}

// tensorFile is an open safetensors file as a script sees it.
type tensorFile struct {
	it   *Interp
	path string // as the script calls it
	file *safetensors.File
	axes keptAxes

	blocks map[string]savedBlocks // of a checkpoint: quantized tensors that are saved as bytes
}

// openTensors opens a file for op.
func (it *Interp) openTensors(op, path string) (*tensorFile, error) {
	name, err := it.named(op, path)
	if err != nil {
		return nil, err
	}
	f, err := safetensors.Open(name, it.cfg.Open)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = it.cannotOpen(failed.Path, path, err, "a path is relative to the working directory, not to the script")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	t := &tensorFile{it: it, path: path, file: f, axes: map[string]string{}}
	for key, value := range f.Metadata() {
		if key == axesKey { // unless it is of another program, that means something else by it
			_ = json.Unmarshal([]byte(value), &t.axes)
		}
	}
	return t, nil
}

// namesFrom is a function from the names of tensors to what a script's dict says of their axes; nil if it says nothing.
// A key that is no tensor's name, or matches none, is an error.
func (f *tensorFile) namesFrom(op string, axes star.IterableMapping) (func(name string) *axis.List, error) {
	exact, patterns := map[string]*axis.List{}, [][2]string{}
	lists := map[string]*axis.List{}
	if axes == nil {
		return func(string) *axis.List { return nil }, nil
	}
	for _, item := range axes.Items() {
		key, ok := star.AsString(item[0])
		_, found := f.file.Tensor(key)
		if ok && !found && strings.Contains(key, "*") {
			before, after, _ := strings.Cut(key, "*")
			patterns = append(patterns, [2]string{before, after})
			found = f.matches(before, after)
		}
		if !ok || !found {
			return nil, f.missing(op, item[0].String())
		}
		list, err := axisNames(item[1])
		if err != nil {
			return nil, fmt.Errorf("%s: axes of %s: %w", op, key, err)
		}
		exact[key], lists[key] = list, list
	}
	return func(name string) *axis.List {
		if list := exact[name]; list != nil {
			return list
		}
		for _, p := range patterns {
			if like(name, p[0], p[1]) {
				return lists[p[0]+"*"+p[1]]
			}
		}
		return nil
	}, nil
}

// like tells whether name is before, any text, and after, in which a * stands for any text too.
func like(name, before, after string) bool {
	rest, ok := strings.CutPrefix(name, before)
	if !ok {
		return false
	}
	next, last, more := strings.Cut(after, "*")
	if !more {
		return strings.HasSuffix(rest, after)
	}
	for i := range len(rest) + 1 {
		if like(rest[i:], next, last) {
			return true
		}
	}
	return false
}

func (f *tensorFile) matches(before, after string) bool {
	for x := range f.file.Tensors() {
		if like(x.Name, before, after) {
			return true
		}
	}
	return false
}

// missing is the error of a tensor, as text, that the file does not have.
func (f *tensorFile) missing(op, name string) error {
	var names []string
	for x := range f.file.Tensors() {
		names = append(names, x.Name)
	}
	hint := "it has " + strings.Join(names[:min(4, len(names))], ", ")
	if len(names) > 4 {
		hint += fmt.Sprintf(" and %d more", len(names)-4)
	}
	if near := nearest(strings.Trim(name, `"`), names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return &core.Error{Op: op, Msg: fmt.Sprintf("%s has no tensor %s", f.path, name), Hint: hint}
}

// keptAxes is the names of axes that a file keeps, by tensor, as "row col".
type keptAxes map[string]string

// of is the names of a tensor's axes: those given or, without, those that the file keeps. The hint says how to give
// them.
func (k keptAxes) of(op, path, name string, shape []int, given *axis.List, hint string) (*axis.List, error) {
	fault := func(what string) error {
		return &core.Error{Op: op, Msg: fmt.Sprintf("%s: %s has %d axes, of sizes %v, but %s", path, name,
			len(shape), shape, what), Hint: hint}
	}
	if given == nil {
		text, kept := k[name]
		if !kept && len(shape) > 0 {
			return nil, fault("the file does not name them")
		}
		var err error
		if given, err = axis.Parse(text); err != nil {
			return nil, fault("the names in the file are no good: " + err.Error())
		}
	}
	if given.Len() != len(shape) {
		return nil, fault(fmt.Sprintf("%d are named", given.Len()))
	}
	return given, nil
}

func (f *tensorFile) axesOf(op string, x safetensors.Tensor, given *axis.List) (*axis.List, error) {
	hint := fmt.Sprintf("name them: {%q: %q}", x.Name, placeholders(len(x.Shape)))
	return f.axes.of(op, f.path, x.Name, x.Shape, given, hint)
}

// read is a copy of a tensor of the file; fractions become as, unless that is Invalid.
func (f *tensorFile) read(op string, x safetensors.Tensor, given *axis.List, as dtype.Type) (*core.Tensor, error) {
	if b, ok := f.blocks[x.Name]; ok {
		return f.readBlocks(op, x, b)
	}
	names, err := f.axesOf(op, x, given)
	if err != nil {
		return nil, err
	}
	if x.Type.IsFloat8() && as == dtype.Invalid {
		return nil, &core.Error{Op: op, Msg: fmt.Sprintf("%s: %s is %s, for which there is no dtype", f.path, x.Name,
			x.Type), Hint: `ask for one that holds its values: dtype="f32"`}
	}
	r, err := x.Elements()
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %s: %w", op, f.path, x.Name, err)
	}
	dt, _ := x.Type.DType()
	t, err := f.it.env.ReadTensor(r, dt, names, x.Shape...)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %s: %w", op, f.path, x.Name, err)
	}
	if as != dtype.Invalid && dt.IsFloat() && dt != as {
		wide := t
		t = f.it.env.Cast(wide, as)
		wide.Free()
	}
	return t, nil
}

// openSafetensors is open_safetensors(path): a safetensors file, of which nothing is read but the header, or, of
// model.safetensors.index.json, the files it lists. f["w"] is a tensor of it; "w" in f, len(f) and for name in f go
// by the names. The file is mapped, and tensors that lie in it as the engine has them share its memory: they cannot be
// changed, and the file must not change.
func openSafetensors(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path); err != nil {
		return nil, err
	}
	return interpOf(t).openTensors(b.Name(), path)
}

var (
	_ star.Mapping  = (*tensorFile)(nil)
	_ star.Sequence = (*tensorFile)(nil)
	_ star.HasAttrs = (*tensorFile)(nil)
)

func (f *tensorFile) String() string        { return fmt.Sprintf("<safetensors %s>", f.path) }
func (f *tensorFile) Type() string          { return "safetensors" }
func (f *tensorFile) Freeze()               {}
func (f *tensorFile) Truth() star.Bool      { return true }
func (f *tensorFile) Hash() (uint32, error) { return 0, errors.New("unhashable: safetensors") }
func (f *tensorFile) Len() int              { return f.file.Len() }

// HoldsNothing says that no tensor ends with the file.
func (f *tensorFile) HoldsNothing() {}

// Iterate goes through the names of the tensors.
func (f *tensorFile) Iterate() star.Iterator { return f.keys().Iterate() }

func (f *tensorFile) keys() *star.List {
	names := make([]star.Value, 0, f.file.Len())
	for x := range f.file.Tensors() {
		names = append(names, star.String(x.Name))
	}
	return star.NewList(names)
}

// Get is f[name].
func (f *tensorFile) Get(key star.Value) (v star.Value, found bool, err error) {
	defer rescue(&err)
	name, ok := star.AsString(key)
	if !ok {
		return nil, false, fmt.Errorf("got %s, want the name of a tensor", key.Type())
	}
	x, ok := f.file.Tensor(name)
	if !ok {
		return nil, false, nil
	}
	t, err := f.share("safetensors", x, nil, dtype.Invalid)
	if err != nil {
		return nil, true, err
	}
	return Tensor{t}, true, nil
}

// share is a tensor over the memory of the file, if that has it as it is to be, else a copy.
func (f *tensorFile) share(op string, x safetensors.Tensor, given *axis.List, as dtype.Type) (*core.Tensor, error) {
	dt, _ := x.Type.DType()
	data := x.Bytes()
	if !x.Type.Same() || len(data) == 0 || as != dtype.Invalid && dt.IsFloat() && dt != as ||
		uintptr(unsafe.Pointer(&data[0]))%uintptr(dt.Size()) != 0 {
		return f.read(op, x, given, as)
	}
	names, err := f.axesOf(op, x, given)
	if err != nil {
		return nil, err
	}
	return core.Borrow(data, f.file, dt, names, x.Shape...), nil
}

// tensorFileMethods are what scripts call on an open file.
var tensorFileMethods = map[string]*star.Builtin{
	"info":   star.NewBuiltin("info", tensorFileInfo),
	"keys":   star.NewBuiltin("keys", tensorFileKeys),
	"tensor": star.NewBuiltin("tensor", tensorFileTensor),
}

// Attr is a method by name, or the metadata.
func (f *tensorFile) Attr(name string) (star.Value, error) {
	if b, ok := tensorFileMethods[name]; ok {
		return b.BindReceiver(f), nil
	}
	if name != "metadata" {
		return nil, nil
	}
	d := star.NewDict(0)
	for key, value := range f.file.Metadata() {
		if _, seen, err := d.Get(star.String(key)); err != nil || seen {
			continue
		}
		if err := d.SetKey(star.String(key), star.String(value)); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// AttrNames is every attribute.
func (f *tensorFile) AttrNames() []string { return []string{"info", "keys", "metadata", "tensor"} }

// tensorFileKeys is f.keys(): the names of the tensors in an open safetensors file.
func tensorFileKeys(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	if err := star.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	return b.Receiver().(*tensorFile).keys(), nil
}

// tensorFileInfo is f.info(name): what an open safetensors file says of a tensor: dtype, as the format calls it,
// shape, a list of sizes, axes, their names or None, and bytes.
func tensorFileInfo(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	f, x, err := tensorOf(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	var axes star.Value = star.None
	if names, err := f.axesOf(b.Name(), x, nil); err == nil {
		axes = star.String(names.String())
	}
	shape := make([]star.Value, len(x.Shape))
	for i, n := range x.Shape {
		shape[i] = star.MakeInt(n)
	}
	return starlarkstruct.FromStringDict(starlarkstruct.Default, star.StringDict{"axes": axes,
		"bytes": star.MakeInt(len(x.Bytes())), "dtype": star.String(x.Type.String()), "shape": star.NewList(shape),
	}), nil
}

// tensorOf is the tensor that the first argument of a method names; others are unpacked into pairs.
func tensorOf(
	b *star.Builtin, args star.Tuple, kwargs []star.Tuple, pairs ...any,
) (f *tensorFile, x safetensors.Tensor, err error) {
	var name string
	if err := star.UnpackArgs(b.Name(), args, kwargs, append([]any{"name", &name}, pairs...)...); err != nil {
		return nil, x, err
	}
	f = b.Receiver().(*tensorFile)
	x, ok := f.file.Tensor(name)
	if !ok {
		err = f.missing(b.Name(), fmt.Sprintf("%q", name))
	}
	return f, x, err
}

// tensorFileTensor is f.tensor(name, axes=None, dtype=None): a tensor of an open safetensors file; axes names its axes,
// as in f.tensor("w", "out in"), if the file does not, and a dtype is what fractions become.
func tensorFileTensor(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var axes star.Value = star.None
	var dt string
	f, x, err := tensorOf(b, args, kwargs, "axes??", &axes, "dtype??", &dt)
	if err != nil {
		return nil, err
	}
	names, err := optionalAxes(axes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	as, err := fractions(b.Name(), dt)
	if err != nil {
		return nil, err
	}
	t, err := f.share(b.Name(), x, names, as)
	if err != nil {
		return nil, err
	}
	return Tensor{t}, nil
}

// saveSafetensors is save_safetensors(path, tensors, metadata=None): a dict of tensors as a safetensors file, for
// which a file of that name makes room at the end. metadata is a dict of texts; "axes" in it is taken: the axis
// names, so that load_safetensors gives back what was saved. Other programs find the tensors by their names.
func saveSafetensors(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	var tensors, metadata mapping
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path, "tensors", &tensors, "metadata??",
		&metadata); err != nil {
		return nil, err
	}
	texts := map[string]string{}
	if metadata.IterableMapping != nil {
		for _, item := range metadata.Items() {
			key, ok := star.AsString(item[0])
			value, isText := star.AsString(item[1])
			if !ok || !isText || key == axesKey {
				return nil, &core.Error{Op: b.Name(), Msg: "metadata: got " + brief(item[0]) + ": " + brief(item[1]),
					Hint: `want texts by other names than "axes", as in: metadata={"format": "pt"}`}
			}
			texts[key] = value
		}
	}
	var list []namedTensor
	for _, item := range tensors.Items() {
		name, ok := star.AsString(item[0])
		x, isTensor := item[1].(Tensor)
		if !ok || !isTensor {
			return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("tensors: got %s: %s", item[0], item[1].Type()),
				Hint: `want tensors by name, as in: {"w": zeros(row=2)}`}
		}
		list = append(list, namedTensor{name: name, x: x.Tensor})
	}
	return star.None, interpOf(t).saveTensors(b.Name(), path, list, texts, 0)
}

// namedTensor is a tensor to be saved.
type namedTensor struct {
	name   string
	x      *core.Tensor
	blocks bool // it is quantized, and saved as bytes
}

// saveTensors writes a safetensors file of the tensors and texts, to which it adds the axis names. Of the file that was
// there, and of those before it, keep are kept.
func (it *Interp) saveTensors(op, path string, list []namedTensor, texts map[string]string, keep int) error {
	infos, axes := make([]safetensors.Info, len(list)), map[string]string{}
	for i, t := range list {
		if t.blocks {
			f, _ := quant.Of(t.x.DType())
			infos[i] = safetensors.Info{Name: t.name, DType: dtype.U8, Shape: []int{f.Size(t.x.Len())}}
			axes[t.name] = "byte"
			continue
		}
		if t.x.DType().Quantized() {
			return &core.Error{Op: op, Msg: fmt.Sprintf("%s is %s, and safetensors has no quantized dtype", t.name,
				t.x.Shape()), Hint: "save x.dequantize(), or all of it with save_gguf"}
		}
		infos[i] = safetensors.Info{Name: t.name, DType: t.x.DType(), Shape: t.x.Sizes()}
		if t.x.Rank() > 0 {
			axes[t.name] = t.x.Axes().String()
		}
	}
	text, err := json.Marshal(axes) // sorts the keys
	if err != nil {
		return err
	}
	if texts[axesKey] = string(text); len(axes) == 0 {
		delete(texts, axesKey)
	}
	if len(texts) == 0 {
		texts = nil
	}
	head, order, err := safetensors.Header(infos, texts)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	closed := slices.IndexFunc(list, func(t namedTensor) bool { return t.x.Closed() })
	if closed >= 0 {
		return &core.Error{Op: op, Msg: fmt.Sprintf("%s: %s", list[closed].name, list[closed].x)}
	}
	return it.Save(op, path, func(w io.Writer) error {
		if _, err := w.Write(head); err != nil {
			return err
		}
		for _, i := range order {
			if err := list[i].x.WriteBlocks(w); err != nil {
				return err
			}
		}
		if keep > 0 {
			return it.cfg.rotate(it.ResolvePath(path), keep)
		}
		return nil
	})
}
