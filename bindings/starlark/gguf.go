package starlark

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"unsafe"

	star "go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/gguf"
	"github.com/fucina-go/fucina/models/recipe"
)

// ggufAxesKey is the metadata that keeps the axis names of tensors that a script saved: the JSON object of axesKey.
const ggufAxesKey = "fucina.axes"

// ggufFile is an open GGUF file as a script sees it.
type ggufFile struct {
	it   *Interp
	path string // as the script calls it
	file *gguf.File
	axes keptAxes
	meta func() (*star.Dict, error)
}

// openGGUF is open_gguf(path): a GGUF file, of which nothing is read but the head, or, of the first part of a model in
// parts, all of them. f["w"] is a tensor of it; "w" in f, len(f) and for name in f go by the names. f.metadata is a
// dict of all keys, f.kinds of their kinds, f.tensors of what the file says of each tensor: dtype, shape, a list of
// sizes, the slowest first, axes, their names or None, and bytes; f.recipe is the name of how it was quantized, as far
// as it says, or None. The file is mapped, and its tensors share its memory:
// they cannot be changed, and the file must not change.
func openGGUF(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
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
	file, err := gguf.Open(name, it.cfg.Open)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = it.cannotOpen(failed.Path, path, err, "a path is relative to the working directory, not to the script")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	f := &ggufFile{it: it, path: path, file: file, axes: map[string]string{}}
	if text, err := file.String(ggufAxesKey); err == nil { // what is no JSON names nothing
		_ = json.Unmarshal([]byte(text), &f.axes)
	}
	f.meta = sync.OnceValues(f.readMetadata)
	return f, nil
}

var (
	_ star.Mapping  = (*ggufFile)(nil)
	_ star.Sequence = (*ggufFile)(nil)
	_ star.HasAttrs = (*ggufFile)(nil)
)

func (f *ggufFile) String() string        { return fmt.Sprintf("<gguf %s>", f.path) }
func (f *ggufFile) Type() string          { return "gguf" }
func (f *ggufFile) Freeze()               {}
func (f *ggufFile) Truth() star.Bool      { return true }
func (f *ggufFile) Hash() (uint32, error) { return 0, errors.New("unhashable: gguf") }
func (f *ggufFile) Len() int              { return len(f.file.Tensors()) }

// HoldsNothing says that no tensor ends with the file.
func (f *ggufFile) HoldsNothing() {}

// Iterate goes through the names of the tensors, in the order of the file.
func (f *ggufFile) Iterate() star.Iterator {
	var names []star.Value
	for _, x := range f.file.Tensors() {
		names = append(names, star.String(x.Name))
	}
	return star.NewList(names).Iterate()
}

// Get is f[name].
func (f *ggufFile) Get(key star.Value) (v star.Value, found bool, err error) {
	defer rescue(&err)
	name, ok := star.AsString(key)
	if !ok {
		return nil, false, fmt.Errorf("got %s, want the name of a tensor", key.Type())
	}
	x, ok := f.file.Tensor(name)
	if !ok {
		return nil, false, nil
	}
	t, err := f.share("gguf", &x, nil, dtype.Invalid)
	if err != nil {
		return nil, true, err
	}
	return Tensor{t}, true, nil
}

var ggufFileMethods = map[string]*star.Builtin{
	"tensor": star.NewBuiltin("tensor", ggufFileTensor),
}

// Attr is a method by name, or what the file says of itself.
func (f *ggufFile) Attr(name string) (star.Value, error) {
	if b, ok := ggufFileMethods[name]; ok {
		return b.BindReceiver(f), nil
	}
	switch name {
	case "version":
		return star.MakeInt(int(f.file.Version())), nil
	case "recipe":
		if id, err := f.file.Int("general.file_type"); err == nil {
			for _, r := range recipe.Recipes {
				if int64(r.FileType) == id {
					return star.String(r.Name), nil
				}
			}
		}
		return star.None, nil
	case "metadata":
		d, err := f.meta()
		if err != nil {
			return nil, err
		}
		return d, nil
	case "kinds":
		d := star.NewDict(0)
		for _, key := range f.file.Keys() {
			v, _ := f.file.Value(key)
			kind := v.Kind().String()
			if a, ok := v.Any().(gguf.Array); ok {
				kind = "array of " + a.Elem().String()
			}
			_ = d.SetKey(star.String(key), star.String(kind)) // a string can be hashed
		}
		return d, nil
	case "tensors":
		d := star.NewDict(f.Len())
		for _, x := range f.file.Tensors() {
			_ = d.SetKey(star.String(x.Name), f.describe(&x))
		}
		return d, nil
	}
	return nil, nil
}

// AttrNames is every attribute.
func (f *ggufFile) AttrNames() []string {
	return []string{"kinds", "metadata", "recipe", "tensor", "tensors", "version"}
}

// describe is what the file says of a tensor.
func (f *ggufFile) describe(x *gguf.Tensor) star.Value {
	var axes star.Value = star.None
	if names, err := f.axesOf("gguf", x, nil); err == nil {
		axes = star.String(names.String())
	}
	var shape []star.Value
	for _, n := range f.shapeOf(x) {
		shape = append(shape, star.MakeInt(n))
	}
	return starlarkstruct.FromStringDict(starlarkstruct.Default, star.StringDict{"axes": axes,
		"bytes": star.MakeInt(len(x.Bytes())), "dtype": star.String(x.Type.String()), "shape": star.NewList(shape)})
}

// shapeOf is the sizes of a tensor, the slowest first. One element of which a script saved that it has no axes has
// none.
func (f *ggufFile) shapeOf(x *gguf.Tensor) []int {
	if names, kept := f.axes[x.Name]; kept && names == "" && len(x.Dims) == 1 && x.Dims[0] == 1 {
		return nil
	}
	shape := make([]int, len(x.Dims))
	for i, n := range x.Dims {
		shape[len(shape)-1-i] = n
	}
	return shape
}

func (f *ggufFile) axesOf(op string, x *gguf.Tensor, given *axis.List) (*axis.List, error) {
	hint := fmt.Sprintf("name them: f.tensor(%q, %q)", x.Name, placeholders(len(x.Dims)))
	return f.axes.of(op, f.path, x.Name, f.shapeOf(x), given, hint)
}

// share is a tensor over the memory of the file, or a copy where that lies too crookedly for its elements; fractions,
// quantized ones too, become as, unless that is Invalid.
func (f *ggufFile) share(op string, x *gguf.Tensor, given *axis.List, as dtype.Type) (*core.Tensor, error) {
	names, err := f.axesOf(op, x, given)
	if err != nil {
		return nil, err
	}
	t, err := x.Import()
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %s: %w", op, f.path, x.Name, err)
	}
	dt, ok := t.Type.DType()
	if !ok {
		return nil, fmt.Errorf("%s: %s: %s is of an unknown type, %s", op, f.path, x.Name, x.Type)
	}
	data := t.Bytes()
	var y *core.Tensor
	if len(data) > 0 && uintptr(unsafe.Pointer(&data[0]))%8 == 0 {
		y = core.Borrow(data, f.file, dt, names, f.shapeOf(x)...)
	} else if y, err = f.it.env.ReadTensor(bytes.NewReader(data), dt, names, f.shapeOf(x)...); err != nil {
		return nil, fmt.Errorf("%s: %s: %s: %w", op, f.path, x.Name, err)
	}
	if as != dtype.Invalid && (dt.IsFloat() || dt.Quantized()) && dt != as {
		return f.it.env.Cast(y, as), nil
	}
	return y, nil
}

// ggufFileTensor is f.tensor(name, axes=None, dtype=None): a tensor of an open GGUF file; axes names its axes, the
// slowest first, as in f.tensor("output.weight", "vocab embed"), if the file does not, and a dtype is what fractions
// become, quantized ones too.
func ggufFileTensor(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var name, dt string
	var axes star.Value = star.None
	if err := star.UnpackArgs(b.Name(), args, kwargs, "name", &name, "axes??", &axes, "dtype??", &dt); err != nil {
		return nil, err
	}
	f := b.Receiver().(*ggufFile)
	x, ok := f.file.Tensor(name)
	if !ok {
		return nil, f.missing(b.Name(), name)
	}
	names, err := optionalAxes(axes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	as, err := fractions(b.Name(), dt)
	if err != nil {
		return nil, err
	}
	y, err := f.share(b.Name(), &x, names, as)
	if err != nil {
		return nil, err
	}
	return Tensor{y}, nil
}

// missing is the error of a tensor that the file does not have.
func (f *ggufFile) missing(op, name string) error {
	var names []string
	for _, x := range f.file.Tensors() {
		names = append(names, x.Name)
	}
	hint := fmt.Sprintf("it has %d tensors: list(f)", len(names))
	if near := nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return &core.Error{Op: op, Msg: fmt.Sprintf("%s has no tensor %q", f.path, name), Hint: hint}
}
