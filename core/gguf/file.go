// Package gguf reads and writes GGUF files, the model files of ggml and llama.cpp: metadata and tensors, versions
// 2 and 3, little-endian, in one file or, for reading, split over several. It also reads the container that ggml had
// before, ggmf, as if it were one.
//
// Here: the format. Not here: what keys and tensors mean (models/*), and decoding quantized blocks
// (core/quant); a tensor is a name, a type, sizes and bytes.
//
// A file is mapped, and opening it costs little memory whatever its size: tensor data and metadata arrays
// stay in the mapping, other values are copied. Everything in a file is taken for hostile until checked,
// once, by Open. A file must not change while it is open; mem.Guard tells how to read one that may shrink.
//
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
package gguf

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/fucina-go/fucina/core/mem"
)

// File is an open model: one file or all parts of a split one. Its methods may be called from several
// goroutines, Close excepted. A File that nobody can reach any more is closed. Its tensors, arrays and drafts reach it;
// who reads bytes of them keeps it, or them, alive meanwhile.
type File struct {
	name     string
	version  uint32
	entries  []entry        // metadata, in file order
	index    map[string]int // key → entry
	tensors  []Tensor
	byName   map[string]int // name → tensor
	mappings []*mem.Mapping
}

// Open opens a model. open opens the files; nil means os.Open. If the model is split, as its metadata
// tells, name must be the first part and end in -00001-of-00003.gguf or the like; the other parts are
// opened under the names that follow from it.
//
// Errors name the file and what in it is wrong. A key or count that does not fit the file's size, an
// unknown kind or type, a duplicate key or tensor name and overlapping tensors are errors.
func Open(name string, open func(name string) (fs.File, error)) (*File, error) {
	if open == nil {
		open = func(name string) (fs.File, error) { return os.Open(name) }
	}
	f, err := openPart(name, open)
	if err != nil {
		return nil, err
	}
	if err := f.openSiblings(open); err != nil {
		f.Close()
		return nil, err
	}
	for i := range f.tensors {
		f.tensors[i].file = f
	}
	for i := range f.entries {
		f.entries[i].value.file = f
	}
	mem.Unmap(f, f.mappings)
	return f, nil
}

// openPart opens one file and knows nothing of its siblings.
func openPart(name string, open func(name string) (fs.File, error)) (*File, error) {
	file, err := open(name)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	defer file.Close()
	mapping, err := mem.MapFile(file)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	var f *File
	fault := mem.Guard(func() { f, err = parse(name, mapping.Bytes()) })
	if fault != nil {
		err = fault
	}
	if err != nil {
		mapping.Close()
		return nil, err
	}
	f.mappings = []*mem.Mapping{mapping}
	return f, nil
}

// The metadata of a split model, in each of its parts.
const (
	keySplitNo      = "split.no"            // this part, from 0
	keySplitCount   = "split.count"         // parts; 0 or 1 is not split
	keySplitTensors = "split.tensors.count" // tensors of all parts
)

// openSiblings adds the tensors of the other parts if f is the first part of a split model.
func (f *File) openSiblings(open func(name string) (fs.File, error)) error {
	if !f.Has(keySplitCount) {
		return nil
	}
	count, err := f.Int(keySplitCount)
	if err != nil || count == 0 || count == 1 {
		return err
	}
	tensors, err := f.Int(keySplitTensors)
	if err != nil {
		return err
	}
	no, err := f.Int(keySplitNo)
	if err != nil {
		return err
	}
	if no < 0 || no >= count {
		return f.errorf("%s is %d, but %s is %d", keySplitNo, no, keySplitCount, count)
	}
	suffix := partSuffix(no, count)
	prefix, ok := strings.CutSuffix(f.name, suffix)
	if !ok {
		return f.errorf("is part %d of %d, so its name must end in %s", no+1, count, suffix)
	}
	if no != 0 {
		return f.errorf("is part %d of %d, open the first, %s", no+1, count, prefix+partSuffix(0, count))
	}
	for i := int64(1); i < count; i++ {
		if err := f.openSibling(prefix+partSuffix(i, count), open, i); err != nil {
			return fmt.Errorf("%w (part %d of %d of %s)", err, i+1, count, f.name)
		}
	}
	if int64(len(f.tensors)) != tensors {
		return f.errorf("the %d parts have %d tensors, %s is %d", count, len(f.tensors), keySplitTensors, tensors)
	}
	return nil
}

// openSibling adds the tensors of part no, which must belong to the same split.
func (f *File) openSibling(name string, open func(name string) (fs.File, error), no int64) error {
	part, err := openPart(name, open)
	if err != nil {
		return err
	}
	f.mappings = append(f.mappings, part.mappings...)
	got, err := part.Int(keySplitNo)
	if err != nil {
		return err
	}
	if got != no {
		return part.errorf("%s is %d, want %d", keySplitNo, got, no)
	}
	for _, key := range []string{keySplitCount, keySplitTensors} {
		got, err := part.Int(key)
		if err != nil {
			return err
		}
		if want, _ := f.Int(key); got != want {
			return part.errorf("%s is %d, want the %d of the first part", key, got, want)
		}
	}
	return part.errorIf(f.addTensors(part.tensors))
}

// partSuffix is how the name of part no, from 0, of count parts ends.
func partSuffix(no, count int64) string { return fmt.Sprintf("-%05d-of-%05d.gguf", no+1, count) }

// addTensors appends tensors, whose names must be new.
func (f *File) addTensors(tensors []Tensor) error {
	for i := range tensors {
		name := tensors[i].Name
		if _, dup := f.byName[name]; dup {
			return fmt.Errorf("tensor %s is there twice", label(name))
		}
		f.byName[name] = len(f.tensors) + i
	}
	f.tensors = append(f.tensors, tensors...)
	return nil
}

// Close unmaps the file: the bytes of its tensors, arrays and strings within arrays are gone. A second
// Close does nothing. The error is the first of all parts.
func (f *File) Close() error {
	var first error
	for _, m := range f.mappings {
		if err := m.Close(); err != nil && first == nil {
			first = err
		}
	}
	f.mappings = nil
	return f.errorIf(first)
}

// Version returns the version of the format, 2 or 3; that of the first file if the model is split. It is 0 for a file
// of the container before GGUF.
func (f *File) Version() uint32 { return f.version }

// Tensors returns all tensors in file order, part by part. The caller must not change the slice.
func (f *File) Tensors() []Tensor { return f.tensors }

// Tensor returns the tensor called name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// errorf makes an error that names the package and the file.
func (f *File) errorf(format string, args ...any) error {
	return f.errorIf(fmt.Errorf(format, args...))
}

// errorIf adds the package and the file to err if there is one.
func (f *File) errorIf(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("gguf: %s: %w", f.name, err)
}
