package starlark

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
	"github.com/fucina-go/fucina/core/axis"
	"github.com/fucina-go/fucina/core/dtype"
	"github.com/fucina-go/fucina/core/npy"
)

// namesEntry is the array of an archive that keeps the axis names of the others, for which NumPy has no place: text
// of JSON as u8, {"w": ["out", "in"]}.
const namesEntry = "__axes__"

// loadNpy is load_npy(path, axes=None): the array in a NumPy file. NumPy's axes have no names: name them in order, as
// in load_npy("w.npy", "out in"). u16 becomes i32, u32 and u64 become i64. A path is relative to the working
// directory.
func loadNpy(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	var axes star.Value = star.None
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path, "axes?", &axes); err != nil {
		return nil, err
	}
	it := interpOf(t)
	f, size, err := it.openData(b.Name(), path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := optionalAxes(axes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	a, err := npy.New(f, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", b.Name(), path, err)
	}
	x, err := it.readArray(a, names, &core.Error{Op: b.Name(), Msg: path,
		Hint: fmt.Sprintf("load_npy(%q, %q)", path, placeholders(len(a.Shape)))})
	return x, err
}

// optionalAxes is axis names, or nil for None.
func optionalAxes(v star.Value) (*axis.List, error) {
	if v == star.None {
		return nil, nil
	}
	return axisNames(v)
}

// placeholders is as many axis names.
func placeholders(n int) string {
	names := []string{"batch", "row", "col"}
	if n <= len(names) {
		return strings.Join(names[len(names)-n:], " ")
	}
	names = nil
	for i := range n {
		names = append(names, fmt.Sprintf("axis%d", i))
	}
	return strings.Join(names, " ")
}

// openData opens a file of numbers for op and returns its size in bytes.
func (it *Interp) openData(op, path string) (fs.File, int64, error) {
	name, err := it.named(op, path)
	if err != nil {
		return nil, 0, err
	}
	f, err := it.cfg.Open(name)
	if err != nil {
		err = it.cannotOpen(name, path, err, "a path is relative to the working directory, not to the script")
		return nil, 0, fmt.Errorf("%s: %w", op, err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("cannot open %s: it is a folder, want a file in it", path)
	}
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("%s: %w", op, err)
	}
	return f, info.Size(), nil
}

// readArray is the array as a tensor. The error is what to say of it, to be completed, if the names do not suit.
func (it *Interp) readArray(a *npy.Array, names *axis.List, e *core.Error) (star.Value, error) {
	if names == nil {
		names = axis.Empty
	}
	if names.Len() != len(a.Shape) {
		e.Msg += fmt.Sprintf(" has %d axes, of sizes %v, but %d are named", len(a.Shape), a.Shape, names.Len())
		return nil, e
	}
	if !a.Fortran {
		x, err := it.env.ReadTensor(a, a.DType, names, a.Shape...)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", e.Op, e.Msg, err)
		}
		return Tensor{x}, nil
	}
	backward, sizes := slices.Clone(names.Names()), slices.Clone(a.Shape)
	slices.Reverse(backward)
	slices.Reverse(sizes)
	order, err := axis.Of(backward...)
	if err != nil {
		return nil, err
	}
	x, err := it.env.ReadTensor(a, a.DType, order, sizes...)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", e.Op, e.Msg, err)
	}
	return Tensor{x.Order(names.String())}, nil
}

// loadNpz is load_npz(path, axes=None): the arrays in a NumPy archive, as a dict by name. Those that save_npz wrote
// have their axis names; name those of others in a dict: load_npz("m.npz", {"w": "out in"}).
func loadNpz(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	var axes mapping
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path, "axes??", &axes); err != nil {
		return nil, err
	}
	it := interpOf(t)
	f, size, err := it.openData(b.Name(), path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, names, err := openArchive(f, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", b.Name(), path, err)
	}
	if axes.IterableMapping != nil {
		for _, item := range axes.Items() {
			key, ok := star.AsString(item[0])
			if !ok || !slices.ContainsFunc(entries, func(e npy.Entry) bool { return e.Name == key }) {
				return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("%s has no array %s", path, item[0]),
					Hint: "arrays: " + entryNames(entries)}
			}
			if names[key], err = axisNames(item[1]); err != nil {
				return nil, fmt.Errorf("%s: axes of %s: %w", b.Name(), key, err)
			}
		}
	}
	d := star.NewDict(len(entries))
	for _, entry := range entries {
		x, err := it.readEntry(b.Name(), path, entry, names[entry.Name])
		if err != nil {
			return nil, err
		}
		if err := d.SetKey(star.String(entry.Name), x); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (it *Interp) readEntry(op, path string, entry npy.Entry, names *axis.List) (star.Value, error) {
	a, closer, err := entry.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %s: %w", op, path, entry.Name, err)
	}
	defer closer.Close()
	return it.readArray(a, names, &core.Error{Op: op, Msg: path + ": " + entry.Name,
		Hint: fmt.Sprintf("load_npz(%q, {%q: %q})", path, entry.Name, placeholders(len(a.Shape)))})
}

// openArchive lists the arrays of an archive, but for the one with the axis names, and the names.
func openArchive(f fs.File, size int64) ([]npy.Entry, map[string]*axis.List, error) {
	r, ok := f.(io.ReaderAt)
	if !ok {
		data, err := io.ReadAll(io.LimitReader(f, size))
		if err != nil {
			return nil, nil, err
		}
		r, size = bytes.NewReader(data), int64(len(data))
	}
	entries, err := npy.Entries(r, size)
	if err != nil {
		return nil, nil, err
	}
	names := map[string]*axis.List{}
	i := slices.IndexFunc(entries, func(e npy.Entry) bool { return e.Name == namesEntry })
	if i < 0 {
		return entries, names, nil
	}
	if err := readNames(entries[i], names); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", namesEntry, err)
	}
	return slices.Delete(entries, i, i+1), names, nil
}

// readNames reads the axis names that an archive keeps.
func readNames(entry npy.Entry, names map[string]*axis.List) error {
	a, closer, err := entry.Open()
	if err != nil {
		return err
	}
	defer closer.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(a, most))
	if err != nil {
		return err
	}
	var lists map[string][]string
	if err := json.Unmarshal(text, &lists); err != nil {
		return errors.New("the axis names are no JSON")
	}
	for name, list := range lists {
		if names[name], err = axis.Of(list...); err != nil {
			return err
		}
	}
	return nil
}

func entryNames(entries []npy.Entry) string {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return strings.Join(names, ", ")
}

// saveNpy is save_npy(path, x): the tensor as a NumPy file, for which a file of that name makes room at the end. NumPy
// knows no axis names and no bf16.
func saveNpy(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	var x star.Value
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path, "x", &x); err != nil {
		return nil, err
	}
	head, err := arrayHeader(b.Name(), "x", x)
	if err != nil {
		return nil, err
	}
	return star.None, interpOf(t).Save(b.Name(), path, func(w io.Writer) error {
		if _, err := w.Write(head); err != nil {
			return err
		}
		return x.(Tensor).WriteBlocks(w)
	})
}

// arrayHeader is the beginning of the file of x, which the caller of op calls name.
func arrayHeader(op, name string, x star.Value) ([]byte, error) {
	tensor, ok := x.(Tensor)
	if !ok {
		return nil, &core.Error{Op: op, Msg: fmt.Sprintf("%s: got %s, want a tensor", name, x.Type())}
	}
	head, err := npy.Header(tensor.DType(), tensor.Sizes())
	if err != nil {
		hint := `x.cast("f32") keeps every value of bf16`
		if tensor.DType().Quantized() {
			hint = "save x.dequantize(), or all of it with save_gguf"
		}
		return nil, &core.Error{Op: op, Msg: name + ": " + err.Error(), Hint: hint}
	}
	return head, nil
}

// saveNpz is save_npz(path, tensors): a dict of tensors as a NumPy archive, for which a file of that name makes room at
// the end. An array __axes__ beside them keeps the axis names, so that load_npz gives back what was saved; other
// programs find the arrays by their names.
func saveNpz(t *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (v star.Value, err error) {
	defer rescue(&err)
	var path string
	var tensors mapping
	if err := star.UnpackArgs(b.Name(), args, kwargs, "path", &path, "tensors", &tensors); err != nil {
		return nil, err
	}
	items := tensors.Items()
	heads, names := make([][]byte, len(items)), map[string][]string{}
	for i, item := range items {
		name, ok := star.AsString(item[0])
		if !ok || !fs.ValidPath(name) || name == "." || name == namesEntry {
			return nil, &core.Error{Op: b.Name(), Msg: fmt.Sprintf("%s cannot name an array", item[0]),
				Hint: `names are texts such as "w" or "layer/w"`}
		}
		if heads[i], err = arrayHeader(b.Name(), name, item[1]); err != nil {
			return nil, err
		}
		names[name] = item[1].(Tensor).Axes().Names()
	}
	return star.None, interpOf(t).Save(b.Name(), path, func(w io.Writer) error {
		z := npy.NewArchive(w)
		for i, item := range items {
			err := writeEntry(z, string(item[0].(star.String)), heads[i], item[1].(Tensor).WriteBlocks)
			if err != nil {
				return err
			}
		}
		if err := writeNames(z, names); err != nil {
			return err
		}
		return z.Close()
	})
}

func writeEntry(z *npy.Archive, name string, head []byte, elements func(io.Writer) error) error {
	w, err := z.Create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	return elements(w)
}

// writeNames writes the array of the axis names.
func writeNames(z *npy.Archive, names map[string][]string) error {
	text, err := json.Marshal(names) // sorts the keys
	if err != nil {
		return err
	}
	head, err := npy.Header(dtype.U8, []int{len(text)})
	if err != nil {
		return err
	}
	return writeEntry(z, namesEntry, head, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
